"""One gradient, however the step is cut: verl's own worker held to a float64 oracle, over a grid of cuts."""
