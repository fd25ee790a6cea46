"""Patch of verl's `validate_config` with pv-rl's own config checks, before a run starts."""

from __future__ import annotations

import functools
import logging
from types import ModuleType
from typing import TYPE_CHECKING

from pv_rl.verl_adapter.patching import replace_everywhere

if TYPE_CHECKING:
    from omegaconf import DictConfig

__all__ = ["check_config", "patch_validate_config"]

logger = logging.getLogger("pv_rl")


def patch_validate_config(module: ModuleType) -> None:
    """Wrap `validate_config` (verl/utils/config.py:119), which every trainer of verl calls first, in the driver.

    Symptom without it: `+recipe=dapo` without a search path trains with verl's own weighting and says nothing, a
    recipe may be overridden unseen, and a sentinel that cannot be made ends the run after minutes of starting. Can go
    when verl lets a plugin look at the config.
    """
    original = module.validate_config

    @functools.wraps(original)
    def validate_config(config, *arguments, **options):
        from pv_rl.recipes.choices import remarks

        check_config(config)
        for remark in remarks(config):
            logger.warning("%s", remark)
        return original(config, *arguments, **options)

    replace_everywhere(module, "validate_config", validate_config)


def check_config(config: DictConfig) -> None:
    """Check for errors that neither verl nor Hydra detects.

    Raises:
        ConfigError: a group that Hydra took for a key, settings that undo each other, or a sentinel that cannot be
            made.
        LossModeError: a recipe's values make no weighting.
    """
    # `import verl` imports this module in every process, and only the driver needs these.
    from pv_rl.recipes.choices import check_choices
    from pv_rl.verl_adapter.config_groups import check_groups
    from pv_runs.sentinel.verl_hooks import read_settings

    check_groups(config)
    check_choices(config)
    read_settings(config)
