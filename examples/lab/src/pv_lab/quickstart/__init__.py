"""Quick start: trains the lab's verifier with the real verl trainer, or TRL's, on a CPU, and shows it."""
