"""Readers of untrusted files: checked fields row by row; unfit rows are rejected with a reason."""
