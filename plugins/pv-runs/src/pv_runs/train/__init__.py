"""`pv-rl train`: a run or a sweep by name, each run in a process tree of its own, stopped and resumed at any step."""
