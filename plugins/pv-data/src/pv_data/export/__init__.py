"""Export of labelled proofs: verl Parquet, a Hugging Face folder, tables and reports."""
