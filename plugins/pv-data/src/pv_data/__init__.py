"""Question-proof-check data."""
