"""A run's config: a YAML file or one that comes with pv-data, with Hydra's overrides."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from pv_data.run.config import RunConfig, read_run
from pv_rl.errors import ConfigError
from pv_rl.plugins import nearest

__all__ = ["compose", "names"]

MODULE = "pv_data.configs"


def names() -> list[str]:
    """The configs that come with pv-data."""
    return sorted(one.name[:-5] for one in files(MODULE).iterdir() if one.name.endswith(".yaml"))


def compose(config: str, overrides: Sequence[str] = ()) -> RunConfig:
    """The run of a file or of a name.

    Raises:
        ConfigError: there is no such config, Hydra refuses an override, or a setting is not allowed.
    """
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir, initialize_config_module
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    path = Path(config)
    if path.suffix in (".yaml", ".yml"):
        if not path.is_file():
            raise ConfigError(f"{path} is no file; give a YAML file or one of {', '.join(names())}")
        opened = initialize_config_dir(str(path.parent.resolve()), version_base="1.3")
        name = path.name
    elif config in names():
        opened, name = initialize_config_module(MODULE, version_base="1.3"), config
    else:
        raise ConfigError(
            f"no config is called {config!r}.{nearest(config, names())} Give a YAML file or one of "
            f"{', '.join(names())}"
        )
    try:
        with opened:
            found = hydra_compose(name, list(overrides))
        values = OmegaConf.to_container(found, resolve=True, throw_on_missing=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(f"{config}: {str(error).splitlines()[0]}") from error
    assert isinstance(values, dict)
    return read_run(values)
