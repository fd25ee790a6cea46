"""`pv-rl train`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime
from importlib.resources import files
from pathlib import Path

from omegaconf import DictConfig, OmegaConf
from rich.console import Console
from rich.markup import escape

from pv_rl.errors import ConfigError, DataError, SetupError
from pv_rl.recipes.compose import CONFIG_MODULE, check_run_arguments, split_run, without_pv_cpu
from pv_rl.train.record import RECORD, Record, read_record

__all__ = ["resume", "train"]

MULTIRUN = ("--multirun", "-m")


def train(arguments: Sequence[str]) -> None:
    """Start the run or the sweep that the arguments name.

    Args:
        arguments: `run=NAME`, Hydra's overrides, and Hydra's own options (--multirun, --cfg job, ...).

    Raises:
        ConfigError: a name that does not exist, or a config that cannot be run.
        SetupError: verl is not there, or a run failed (after the others of its sweep have ended).
    """
    run, rest = split_run(arguments)
    check_run_arguments(rest)
    sweep = any(option in rest for option in MULTIRUN)
    if not sweep and any(one.startswith("sweep=") for one in rest):
        raise ConfigError("sweep=... needs --multirun: pv-rl train --multirun " + " ".join(arguments))
    _check_sweep(rest)
    folder = _folder(run, rest, sweep)

    import hydra

    from pv_rl.train.job import job

    without_pv_cpu()
    key = "hydra.sweep.dir" if sweep else "hydra.run.dir"
    # Hydra reads the command line itself.
    overrides = [one for one in rest if not one.startswith("-") and (one.startswith("~") or "=" in one)]
    options = [one for one in rest if one not in overrides]  # argparse wants overrides in one piece
    sys.argv = ["pv-rl train", *options, *overrides, f"{key}={folder}"]
    hydra.main(version_base="1.3", config_path=f"pkg://{CONFIG_MODULE}", config_name=run)(job)()
    if folder.is_dir():
        _raise_failed(folder)


def resume(folder: Path, extra: Sequence[str], console: Console) -> None:
    """Go on with a run, or with every run of a sweep that is not finished, from the last checkpoint.

    Args:
        folder: of the run or the sweep.
        extra: overrides, for example `trainer.total_training_steps=400`.

    Raises:
        DataError: there is no run in the folder.
        SetupError: a run failed again.
    """
    from pv_rl.train.job import start

    found = run_folders(folder)
    if not found:
        raise DataError(
            f"{folder} holds no run of pv-rl train: there is no {RECORD} in it or in a folder of it"
        )
    for one in found:
        record = read_record(one)
        if record.state == "finished" and not extra:
            console.print(f"{escape(str(one))}: finished already")
            continue
        if record.is_alive():
            raise DataError(
                f"{one} is running, as process {record.pid}; stop it first (Ctrl-C, or kill {record.pid})"
            )
        config = OmegaConf.load(one / ".hydra" / "config.yaml")
        assert isinstance(config, DictConfig)
        if any(argument.startswith("-") or "." not in argument for argument in extra):
            raise ConfigError(
                f"beside --resume only overrides of single values can be given, not {' '.join(extra)}"
            )
        config = OmegaConf.merge(config, OmegaConf.from_dotlist([e.lstrip("+") for e in extra]))
        assert isinstance(config, DictConfig)
        start(one, config, console=console, number=record.attempts + 1, extra=tuple(extra))
    _raise_failed(folder)


def run_folders(folder: Path) -> list[Path]:
    """The folder itself, or the folders in it, that hold a run; in the order of a sweep's jobs."""
    if (folder / RECORD).is_file():
        return [folder.resolve()]
    found = (path.parent.resolve() for path in folder.glob(f"*/{RECORD}"))
    return sorted(found, key=lambda path: (len(path.name), path.name))


def _check_sweep(arguments: Sequence[str]) -> None:
    """Hydra would take both: each value of the sweep with each value of the command line."""
    named = [argument.partition("=")[2] for argument in arguments if argument.startswith("sweep=")]
    given = {argument.lstrip("+").partition("=")[0] for argument in arguments}
    for name in named:
        params = OmegaConf.load(
            str(files("pv_rl.hydra_configs") / "sweep" / f"{name}.yaml")
        ).hydra.sweeper.params
        if twice := sorted(given & set(params)):
            raise ConfigError(
                f"sweep={name} already sweeps over {', '.join(twice)}: leave out sweep={name} and name all values "
                f"({' '.join(f'{key}={value}' for key, value in params.items())}), or leave out {', '.join(twice)}"
            )


def _folder(run: str, arguments: Sequence[str], sweep: bool) -> Path:
    """Where Hydra shall put the run or the sweep; what the user says wins."""
    key = "hydra.sweep.dir=" if sweep else "hydra.run.dir="
    said = [argument.partition("=")[2].strip("'\"") for argument in arguments if argument.startswith(key)]
    moment = f"{datetime.now():%Y-%m-%d_%H-%M-%S}"
    return Path(said[-1] if said else f"runs/{run}{'-sweep' if sweep else ''}/{moment}")


def _raise_failed(folder: Path) -> None:
    records: dict[Path, Record] = {one: read_record(one) for one in run_folders(folder)}
    failed = [f"{one}: {record.error}" for one, record in records.items() if record.state == "failed"]
    if failed:
        raise SetupError(f"{len(failed)} of {len(records)} runs failed. " + "\n".join(failed))
