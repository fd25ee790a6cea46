"""Recipes: composition and checks of a run's config."""

from pv_runs.recipes.arguments import check_arguments
from pv_runs.recipes.checks import check
from pv_runs.recipes.compose import compose

__all__ = ["check", "check_arguments", "compose"]
