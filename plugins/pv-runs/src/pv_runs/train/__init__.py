"""Training command: starts a run or a sweep by name, each run in its own process tree, and resumes it."""
