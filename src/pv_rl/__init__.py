"""pv-rl: balanced token weighting and proof-verifier rewards for verl, as plugins of an unmodified trainer.

Importing this package imports neither torch nor verl; `pv_rl.losses` needs torch, `pv_rl.verl_adapter` verl.
"""

__version__ = "0.1.0"
__all__ = ["__version__"]
