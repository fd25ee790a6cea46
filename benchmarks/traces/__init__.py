"""Real model texts shaped as verifier traces, and ways to spoil them."""
