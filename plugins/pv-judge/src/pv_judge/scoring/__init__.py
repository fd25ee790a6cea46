"""Command `pv-rl score`: tries a reward on existing rollouts."""
