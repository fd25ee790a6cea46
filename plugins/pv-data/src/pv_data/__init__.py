"""pv-data: question-proof-check data for proof verifiers. A shell for now; it imports neither torch nor verl."""

__version__ = "0.1.0"
__all__ = ["__version__"]
