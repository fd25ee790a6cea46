"""Checkpoints on disk: detection, conversion, fingerprint, and the server of one."""
