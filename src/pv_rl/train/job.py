"""What Hydra calls for a run, and for each run of a sweep, in this process or where a launcher takes it."""

from __future__ import annotations

from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf
from rich.console import Console
from rich.markup import escape

from pv_rl.errors import PvRlError
from pv_rl.recipes import check
from pv_rl.train.attempt import attempt
from pv_rl.train.record import Record, now, versions, write_record

__all__ = ["job", "start"]


def job(config: DictConfig) -> str:
    """Run verl in the folder that Hydra made. A run that fails is written down and does not end a sweep.

    Returns:
        The state, see `Record`.

    Raises:
        KeyboardInterrupt: somebody stopped the run here, and with it the runs after it.
    """
    folder = Path(HydraConfig.get().runtime.output_dir).resolve()
    console = Console(soft_wrap=True)
    try:
        record = start(folder, config, console=console)
    except (PvRlError, OSError) as error:
        record = Record(
            state="failed", attempts=1, started=now(), ended=now(), error=str(error), versions=versions()
        )
        write_record(folder, record)
    if record.state == "failed":
        console.print(
            f"[bold red]failed[/] {escape(str(folder))}: {escape(record.error or '')}", highlight=False
        )
    return record.state


def start(
    folder: Path, config: DictConfig, *, console: Console, number: int = 1, extra: tuple[str, ...] = ()
) -> Record:
    """Check the config, prepare what it asks for, and make one attempt.

    Raises:
        PvRlError: the config cannot be run; nothing was started.
    """
    OmegaConf.set_struct(config, False)
    config.run_dir = str(folder)
    check(config)
    if config.launch.prepare is not None:
        instantiate(config.launch.prepare)
    return attempt(folder, config, number=number, extra=extra, console=console)
