"""`pv-rl score`: a reward, tried on rollouts that are there already."""
