"""Checkpoints on disk: what is one, what tells them apart, and how one is served."""
