"""`pv-rl quickstart`: the real verl trainer on the lab verifier, on a CPU, with something to look at."""
