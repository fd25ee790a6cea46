"""Fuzzing of every reader of untrusted bytes; see `fuzz.targets`. It imports nothing, so that atheris can be first."""
