"""Hydra job: one run, or one run of a sweep, in this process or where a Hydra launcher starts it."""

from __future__ import annotations

from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from pv_runs.preflight import examine, this_machine
from pv_runs.run_folder import check_unused
from pv_runs.run_record import Record, next_record, write_record
from pv_runs.train.attempt import attempt
from pv_runs.train.preflight import raise_faults
from pv_runs.train.progress import say
from pv_runs.train.provenance import add_provenance

__all__ = ["ENDED", "job", "start"]

ENDED: dict[Path, Record] = {}
"""The runs of this process and how they ended; those that a launcher took elsewhere are not here."""


def job(config: DictConfig) -> str:
    """Run verl in the folder that Hydra made. A run that fails is written down and does not end a sweep.

    Returns:
        The state, see `Record`.

    Raises:
        ConfigError: there is a run in the folder.
        KeyboardInterrupt: somebody stopped the run here, and with it the runs after it.
    """
    folder = Path(HydraConfig.get().runtime.output_dir).resolve()
    check_unused(folder)
    console, record = Console(soft_wrap=True), next_record(None)
    try:
        record = start(folder, config, record, console)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with one run, the others of a sweep go on
        record = record.ending("failed", None, f"{type(error).__name__}: {error}")
        write_record(folder, record)
    ENDED[folder] = record
    if record.state == "failed":
        say(console, f"failed: {folder}")
    return record.state


def start(folder: Path, config: DictConfig, record: Record, console: Console) -> Record:
    """Check the config, prepare what it asks for, and make one attempt.

    Raises:
        PvRlError: the config cannot be run; nothing was started.
    """
    OmegaConf.set_struct(config, False)
    config.run_dir = str(folder)
    machine = this_machine(config, Path(record.cwd))
    found = examine(config, machine)
    raise_faults(found)
    for note in (one for findings in found.values() for one in findings if one.state == "note"):
        say(console, note.text)
    if config.launch.prepare is not None:
        instantiate(config.launch.prepare)
        written = config.copy()
        written.launch.prepare = None
        raise_faults(examine(written, machine, only=("model", "data")))
    record = add_provenance(folder, config, record, console)
    return attempt(folder, config, record, console)
