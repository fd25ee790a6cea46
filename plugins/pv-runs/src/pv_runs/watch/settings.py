"""What a run was started with, and how it says it ended."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pv_judge.pages.text import plain
from pv_rl.errors import DataError
from pv_runs.hydra_record import read_config
from pv_runs.run_folder import RunFolder
from pv_runs.run_record import read_about
from pv_runs.watch.text import redact

__all__ = ["Settings", "SettingsFile"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """As read from a run's folder; none of it is shown as it is."""

    config: Mapping[str, str] = field(default_factory=dict)
    """By dotted key, nothing resolved."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """What run.json says."""
    notes: tuple[str, ...] = ()
    """What could not be read."""


class SettingsFile:
    """Reads the files again only when one of them has changed: a config has 1,000 lines."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stamp: object = None
        self._settings = Settings()

    def look(self) -> Settings:
        """What they say now."""
        stamp = []
        folder = RunFolder(self._folder)
        for file in (folder.record, *folder.of_hydra("config.yaml")):
            with contextlib.suppress(OSError):
                state = file.stat()
                stamp.append((file, state.st_mtime_ns, state.st_size, state.st_ino))
        if stamp != self._stamp:
            self._settings, self._stamp = _read(self._folder), stamp
        return self._settings


def _read(folder: Path) -> Settings:
    config: dict[str, str] = {}
    about: dict[str, Any] = {}
    notes = []
    try:
        config = read_config(folder)
    except (DataError, OSError) as error:
        notes.append(plain(redact(str(error))))
    try:
        about = read_about(RunFolder(folder).record)
    except (DataError, OSError) as error:
        notes.append(plain(redact(str(error))))
    return Settings(config=config, about=about, notes=tuple(notes))
