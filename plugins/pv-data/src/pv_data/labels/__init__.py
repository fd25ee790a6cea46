"""Labels: what a judge is asked about a proof, how its answer is read, and what the votes make of it."""
