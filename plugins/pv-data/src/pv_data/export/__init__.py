"""From labelled proofs to what trainers, the Hugging Face hub and readers take: verl parquet, a folder, tables."""
