"""A set as a task of other harnesses: lm-evaluation-harness and inspect_ai."""
