"""The command `pv-rl train`: starts a run or a sweep, or resumes one."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import sys
from collections.abc import Sequence
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from rich.console import Console

from pv_judge.hydra_errors import unreadable
from pv_judge.override import override, quoted
from pv_judge.pages.text import plural
from pv_rl.errors import ConfigError, DataError, PvRlError, SetupError
from pv_rl.plugins import nearest
from pv_rl.recipes import SOURCES
from pv_runs.hydra_record import saved_config
from pv_runs.metrics_log import attempt_of, find_metrics
from pv_runs.nodes import check_folder
from pv_runs.recipes.compose import CONFIG_MODULE, check_run_arguments, split_run, without_pv_cpu
from pv_runs.recipes.unknown_keys import check_keys
from pv_runs.run_folder import RunFolder, check_unused, locked, run_folders
from pv_runs.run_record import Record, next_record, read_record
from pv_runs.train.progress import say

if TYPE_CHECKING:
    from pv_runs.preflight import MoreChecks

__all__ = ["resume", "train"]

MULTIRUN = ("--multirun", "-m")
SHOWS = (
    "--cfg",
    "-c",
    "--info",
    "-i",
    "--help",
    "-h",
    "--hydra-help",
    "--version",
    "--shell-completion",
    "-sc",
)
"""Options with which Hydra prints something and starts nothing."""
VALUE = re.compile(r"\+{0,2}[\w-]+(?:\.[\w-]+)+=.*", re.DOTALL)
"""An override of one value: a key with a dot, and no sweep or group."""


def train(
    arguments: Sequence[str], console: Console, *, only_check: bool = False, more: MoreChecks | None = None
) -> bool:
    """Check the run or the sweep that the arguments name, then start it.

    Args:
        arguments: `run=NAME`, Hydra's overrides, and Hydra's own options (--multirun, --cfg job, ...).
        console: for the findings.
        only_check: whether nothing is started.
        more: further checks of each config.

    Returns:
        Whether nothing was found that would stop the run.

    Raises:
        ConfigError: a name that does not exist, a folder that is in use, or a run that would fail.
        SetupError: verl is not there, or a run failed (after the others of its sweep have ended).
    """
    here = Path()
    if not any(one.startswith("run=") for one in arguments) and (
        RunFolder(here).record.is_file() or (here / "multirun.yaml").is_file()
    ):
        raise ConfigError(
            "run=NAME is missing. The current folder contains a run; to continue it: pv-rl train --resume . (with "
            "--check to only check it)"
        )
    run, rest = split_run(arguments)
    check_run_arguments(rest)
    sweep = any(option in rest for option in MULTIRUN)
    if not sweep and any(one.startswith("sweep=") for one in rest):
        raise ConfigError("sweep=... needs --multirun: pv-rl train --multirun " + " ".join(arguments))
    if any(one.startswith("run_dir=") for one in rest):
        raise ConfigError("run_dir is set by pv-rl train: name the folder of the run with hydra.run.dir=...")
    _check_sweep(rest)
    key = "hydra.sweep.dir" if sweep else "hydra.run.dir"
    said = [one.partition("=")[2].strip("'\"") for one in rest if re.match(rf"\+*{re.escape(key)}=", one)]
    for folder in map(Path, said[-1:] or ["runs"]):
        check_folder(folder, key)
    for folder in map(Path, said[-1:]):
        check_unused(folder)
    shows = any(one.partition("=")[0] in SHOWS for one in rest)
    if sweep and shows:
        raise ConfigError(
            "--multirun starts runs, and the other option only prints something. Give one of them"
        )
    overrides = [one for one in rest if not one.startswith("-") and (one.startswith("~") or "=" in one)]
    options = [one for one in rest if one not in overrides]  # argparse wants overrides in one piece
    _check_options([*options, *overrides])
    without_pv_cpu()
    if not shows:
        from pv_runs.train.preflight import check_runs, raise_faults, show

        default = None if said else Path("runs", run + ("-sweep" if sweep else ""), "new")
        found = check_runs(
            run, [*overrides, *_search_path(rest)], sweep=sweep, folder=default, more=more or {}
        )
        if only_check:
            return show(found, console)
        raise_faults(found)
    folder = None if said or shows else _new_folder(run, sweep)

    import hydra
    from hydra.errors import HydraException

    from pv_runs.train.job import ENDED, job

    if folder is not None:
        overrides.append(override(key, folder))
    # Hydra reads the command line itself.
    sys.argv = ["pv-rl train", *options, *overrides]
    os.environ["HYDRA_FULL_ERROR"] = "1"  # else Hydra prints an error of ours as a traceback, and exits
    try:
        hydra.main(version_base="1.3", config_path=f"pkg://{CONFIG_MODULE}", config_name=run)(job)()
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(unreadable(error)) from error
    elsewhere = run_folders(folder or Path(said[-1])) if folder or said else []
    _raise_failed(ENDED | {one: read_record(one) for one in elsewhere})
    return True


def _check_options(arguments: Sequence[str]) -> None:
    """Refuse options that Hydra does not have, and words that are neither an option nor an override, before a run is
    checked for a minute."""
    from hydra._internal.utils import get_args_parser

    parser = get_args_parser()
    known, unknown = parser.parse_known_args(arguments)
    if unknown:
        names = ("--check", "--resume", *(one for one in parser._option_string_actions if one[:2] == "--"))
        raise ConfigError(
            f"pv-rl train has no option {unknown[0]}.{nearest(unknown[0], names)} Options: {', '.join(names)}"
        )
    for one in known.overrides:
        if "=" not in one and not one.startswith("~"):
            raise ConfigError(f"{one!r} is neither an option nor KEY=VALUE, such as run=8b or {one}=VALUE")


def resume(folder: Path, extra: Sequence[str], console: Console, *, only_check: bool = False) -> bool:
    """Go on with a run, or with every run of a sweep that is not finished, from the last checkpoint.

    Args:
        folder: of the run or the sweep.
        extra: overrides, for example `trainer.total_training_steps=400`; later resumes keep them.
        console: for what happens.
        only_check: whether nothing is started.

    Returns:
        Whether nothing was found that would stop a run.

    Raises:
        DataError: there is no run in the folder.
        ConfigError: an override that is not one of a single value.
        SetupError: a run failed again.
    """
    from pv_runs.train.job import start

    if wrong := [one for one in extra if not VALUE.fullmatch(one)]:
        raise ConfigError(f"--resume accepts only overrides of single values, not {' '.join(wrong)}")
    found = run_folders(folder)
    if not found:
        raise DataError(
            f"{folder} contains no run of pv-rl train: neither it nor a folder in it has a run.json"
        )
    if only_check:
        right = [_check_saved(one, extra, console) for one in found]
        return all(right)
    ended: dict[Path, Record] = {}
    for one in found:
        try:
            before = read_record(one)
            saved = saved_config(one, before.overrides)
            if _is_finished(one, before, extra, console):
                continue
            check_keys(extra, saved)
            record = next_record(before, tuple(extra), max(map(attempt_of, find_metrics(one)), default=0))
            ended[one] = start(one, saved_config(one, record.overrides), record, console)
        except PvRlError as error:
            ended[one] = Record(state="failed", attempts=0, error=str(error))
    _raise_failed(ended)
    return True


def _is_finished(folder: Path, record: Record, extra: Sequence[str], console: Console) -> bool:
    """Whether a resume has nothing to do; prints what the user can do."""
    if record.state != "finished" or extra:
        return False
    say(
        console,
        f"{folder}: finished, so there is nothing to resume. To train more steps, add "
        f"trainer.total_training_steps=NUMBER. To see the results: pv-rl report {shlex.quote(str(folder))}",
    )
    return True


def _check_saved(folder: Path, extra: Sequence[str], console: Console) -> bool:
    from pv_runs.preflight import examine, this_machine
    from pv_runs.train.preflight import show

    before = read_record(folder)
    saved = saved_config(folder, before.overrides)
    if _is_finished(folder, before, extra, console):
        return True
    if before.state == "running":  # or killed, and then nobody has the lock
        with locked(folder):
            pass
    record = next_record(before, tuple(extra))
    check_keys(extra, saved)
    config = saved_config(folder, record.overrides)
    config.run_dir = str(folder)
    say(console, f"{folder}:")
    return show(examine(config, this_machine(config, Path(record.cwd))), console)


def _search_path(options: Sequence[str]) -> list[str]:
    """Hydra's --config-dir as an override, for a composition without Hydra's command line."""
    for number, one in enumerate(options):
        name, _, folder = one.partition("=")
        if name in ("--config-dir", "-cd"):
            folder = folder or "".join(options[number + 1 : number + 2])
            if not Path(folder).is_dir():
                raise ConfigError(f"--config-dir {folder} is not a folder. Name one with config groups")
            places = [f"pkg://{one}" for one in ("verl.trainer.config", *SOURCES)]
            return [f"hydra.searchpath=[{','.join([*places, quoted(f'file://{Path(folder).resolve()}')])}]"]
    return []


def _check_sweep(arguments: Sequence[str]) -> None:
    """Hydra would take both: each value of the sweep with each value of the command line."""
    named = [argument.partition("=")[2] for argument in arguments if argument.startswith("sweep=")]
    given = {argument.lstrip("+").partition("=")[0] for argument in arguments}
    for name in named:
        path = files("pv_rl.hydra_configs") / "sweep" / f"{name}.yaml"
        params = OmegaConf.load(str(path)).hydra.sweeper.params
        if twice := sorted(given & set(params)):
            raise ConfigError(
                f"sweep={name} already sweeps over {', '.join(twice)}: leave out sweep={name} and name all values "
                f"({' '.join(f'{key}={value}' for key, value in params.items())}), or leave out {', '.join(twice)}"
            )


def _new_folder(run: str, sweep: bool) -> Path:
    """A folder that nobody else has, named after the run and the moment."""
    moment = f"{datetime.now():%Y-%m-%d_%H-%M-%S}"
    base = Path(f"runs/{run}{'-sweep' if sweep else ''}")
    base.mkdir(parents=True, exist_ok=True)
    for number in itertools.count(1):
        folder = base / (moment if number == 1 else f"{moment}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise AssertionError("itertools.count ends")


def _raise_failed(records: dict[Path, Record]) -> None:
    failed = {one: record.error or "" for one, record in records.items() if record.state == "failed"}
    if not failed:
        return
    causes = "\n".join(failed.values())
    many = (
        ""
        if len(records) == 1
        else f"\n{len(failed)} of {plural(len(records), 'run')} failed: {', '.join(map(str, failed))}"
    )
    raise SetupError(causes + many)
