"""The runs and groups of `hydra_configs`: what there is, composed and checked."""

from pv_rl.recipes.checks import check
from pv_rl.recipes.compose import compose
from pv_rl.recipes.groups import GROUPS, check_arguments, options, runs

__all__ = ["GROUPS", "check", "check_arguments", "compose", "options", "runs"]
