"""Drivers: each runs one trainer's own functions on the rows of a step. See `trainer_grid.Driver`."""
