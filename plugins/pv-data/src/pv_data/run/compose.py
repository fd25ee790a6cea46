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
    from yaml import YAMLError

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
            found = hydra_compose(name, [_adding(override) for override in overrides])
        values = OmegaConf.to_container(found, resolve=True, throw_on_missing=True)
    except (YAMLError, UnicodeDecodeError, OSError) as error:
        raise ConfigError(f"{config} cannot be read as YAML: {' '.join(str(error).split())}") from error
    except (HydraException, OmegaConfBaseException) as error:
        where = f" ({key})" if (key := getattr(error, "full_key", None)) else ""
        raise ConfigError(f"{config}: {str(error).splitlines()[0]}{where}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{config} is no mapping of settings")
    values.pop("vars", None)  # what a config interpolates
    return read_run(values)


def _adding(override: str) -> str:
    """An override that may name a setting of which the file says nothing; `RunConfig` knows which there are."""
    key = override.partition("=")[0]
    return override if key[:1] in "+~" or "@" in key or "/" in key else f"++{override}"
