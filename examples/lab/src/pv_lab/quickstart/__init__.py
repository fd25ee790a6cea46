"""Quick start: trains the lab's verifier with the real verl trainer on a CPU, and shows it."""
