"""What surrounds a run of verl: its start, plan, weights, report, watch and sentinel."""

__version__ = "0.1.0"
__all__ = ["__version__"]
