"""Evaluation sets: readers of files, of pv-data runs and of sources."""
