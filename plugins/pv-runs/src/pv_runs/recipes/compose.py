"""Config composition: one config from the name of a run and its overrides."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Sequence

from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from pv_rl.errors import ConfigError, SetupError
from pv_rl.installing import how_to_install
from pv_rl.plugins import nearest
from pv_rl.recipes import options
from pv_runs.recipes.arguments import check_arguments
from pv_runs.recipes.unknown_keys import check_keys

__all__ = ["CONFIG_MODULE", "check_run_arguments", "compose", "split_run", "without_pv_cpu"]

CONFIG_MODULE = "pv_rl.hydra_configs.runs"
TOP_KEYS = ("run", "seed", "data_dir", "model_path", "run_dir")
"""Keys without a dot that every run has."""


def split_run(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """`run=NAME` and the other arguments.

    Raises:
        ConfigError: there is none, more than one, or no run of this name.
    """
    named = [argument.partition("=")[2] for argument in arguments if argument.startswith("run=")]
    if len(named) != 1:
        given = f"{len(named)} were given" if named else "none was given"
        raise ConfigError(f"name one run, run=NAME ({given}); there are {', '.join(options('runs'))}")
    if named[0] not in options("runs"):
        raise ConfigError(
            f"there is no run named {named[0]!r}; there are {', '.join(options('runs'))}."
            f"{nearest(named[0], options('runs'))}"
        )
    return named[0], [argument for argument in arguments if not argument.startswith("run=")]


def check_run_arguments(arguments: Sequence[str]) -> None:
    """Refuse misspelt groups, and say early what composing needs.

    Raises:
        ConfigError: see `check_arguments`; or a value that begins with ~.
        SetupError: verl, whose configs ours stand on, is not installed.
    """
    if importlib.util.find_spec("verl") is None:
        raise SetupError(
            "the runs extend verl's own config, and verl is not installed. " + how_to_install("pv-rl[verl]")
        )
    for one in arguments:
        key, _, given = one.partition("=")
        if given.startswith("~"):
            raise ConfigError(
                f"{one}: neither Hydra nor verl replaces ~ by a folder, and the shell did not. Write {key}=$HOME/..."
            )
    own_groups = any(one.startswith("--config-dir") or "hydra.searchpath=" in one for one in arguments)
    if not own_groups:  # whose options only Hydra knows
        check_arguments([one for one in arguments if not one.startswith("-")], TOP_KEYS)


def without_pv_cpu() -> None:
    """Keep Hydra from warning, in every run on a GPU, that the package with cluster=cpu is not installed."""
    warnings.filterwarnings("ignore", message=".*pv_cpu.hydra_configs is not available", category=UserWarning)


def compose(run: str, overrides: Sequence[str] = (), *, with_hydra: bool = False) -> DictConfig:
    """What Hydra makes of a run; interpolations are left in it.

    Args:
        run: a name of `options("runs")`.
        overrides: as on Hydra's command line, without sweeps.
        with_hydra: whether Hydra's own settings are in it, as `hydra`.

    Raises:
        ConfigError: a name that does not exist, with those that do; a key that nothing reads; or Hydra's error.
        SetupError: verl is not installed.
    """
    from hydra import compose as hydra_compose
    from hydra import initialize_config_module
    from hydra.errors import HydraException

    split_run([f"run={run}"])
    check_run_arguments(overrides)
    without_pv_cpu()
    dotted = [one for one in overrides if "." in one.partition("=")[0] and not one.startswith("hydra.")]
    chosen = [one for one in overrides if one not in dotted]
    try:
        with initialize_config_module(CONFIG_MODULE, version_base="1.3"):
            try:
                config = hydra_compose(run, overrides=list(overrides), return_hydra_config=with_hydra)
            except HydraException:
                check_keys(dotted, hydra_compose(run, overrides=chosen))
                raise
            if any(one.startswith("+") for one in dotted):
                check_keys(dotted, hydra_compose(run, overrides=chosen))
            return config
    except ConfigError:
        raise
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        raise ConfigError(f"{' '.join(str(error).split())} (in run={run} {' '.join(overrides)})") from error
