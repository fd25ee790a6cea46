"""pv-data: question-proof-check data for proof verifiers, and their evaluation. It imports neither torch nor verl."""

__version__ = "0.1.0"
__all__ = ["__version__"]
