"""Patch of verl's `validate_config`: checks a config for what only pv-rl knows, before a run starts."""

from __future__ import annotations

import functools
from types import ModuleType

from pv_rl.verl_adapter.patching import replace_everywhere

__all__ = ["patch_validate_config"]


def patch_validate_config(module: ModuleType) -> None:
    """Wrap `validate_config` (verl/utils/config.py:119), which every trainer of verl calls first, in the driver.

    Symptom without it: `+recipe=dapo` without a search path trains with verl's own weighting and says nothing, a
    recipe may be overridden unseen, and a sentinel that cannot be made ends the run after minutes of starting. Can go
    when verl lets a plugin look at the config.
    """
    original = module.validate_config

    @functools.wraps(original)
    def validate_config(config, *arguments, **options):
        # `import verl` runs this module's patch in every process, and only the driver needs these.
        from pv_rl.verl_adapter.config_groups import check_groups
        from pv_rl.verl_adapter.sentinel import read_settings

        check_groups(config)
        read_settings(config)
        return original(config, *arguments, **options)

    replace_everywhere(module, "validate_config", validate_config)
