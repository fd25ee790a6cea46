"""The runs and config groups of `hydra_configs`, and checks of a config that verl does not make."""

from pv_rl.recipes.groups import GROUPS, options, runs

__all__ = ["GROUPS", "options", "runs"]
