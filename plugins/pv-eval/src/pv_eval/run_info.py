"""What was sampled and how: `run.json` of a run on disk."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from pv_rl.errors import DataError

__all__ = ["FORMAT", "LENGTH_UNITS", "RunInfo", "info_as_json", "read_info"]

FORMAT = 1
"""Version of the format of a run on disk."""
LENGTH_UNITS = ("tokens", "characters")
LARGEST = 1_000_000
"""Bytes of a run.json."""


@dataclass(frozen=True, kw_only=True)
class RunInfo:
    """What was sampled, and how."""

    verifier: str
    """Name that tables show."""
    set_name: str = ""
    """`curated`, `opc`, `proofbench` and others of the paper get its numbers beside them."""
    length_unit: str = "characters"
    """Of the traces' length: `tokens` or `characters`."""
    temperature: float | None = None
    seed: int | None = None
    notes: tuple[str, ...] = ()
    """Sentences that the report repeats: what an adapter dropped, what was not run."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Anything else, as JSON; the report's JSON copies it."""

    def __post_init__(self) -> None:
        if not isinstance(self.verifier, str) or not self.verifier.strip():
            raise DataError(
                f"verifier={self.verifier!r:.80}; a run names its verifier by a text that is not blank"
            )
        if not isinstance(self.set_name, str):
            raise DataError(f"set_name={self.set_name!r:.80}; it is a text")
        if self.length_unit not in LENGTH_UNITS:
            raise DataError(f"length_unit={self.length_unit!r:.80}; units are {' and '.join(LENGTH_UNITS)}")
        for name, kind in (("temperature", int | float), ("seed", int)):
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, kind) or not math.isfinite(value):
                raise DataError(f"{name}={value!r:.80}; it is a finite number or null")
        if not isinstance(self.notes, tuple | list) or not all(isinstance(note, str) for note in self.notes):
            raise DataError(f"notes={self.notes!r:.80}; they are a list of sentences")
        object.__setattr__(self, "notes", tuple(self.notes))
        if not isinstance(self.settings, Mapping):
            raise DataError(f"settings={self.settings!r:.80}; they are values by name")


def info_as_json(info: RunInfo) -> bytes:
    """The content of run.json.

    Raises:
        DataError: the settings hold something that JSON does not.
    """
    try:
        text = json.dumps({"format": FORMAT, **asdict(info)}, ensure_ascii=False, indent=1, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise DataError(f"the settings of a run are values that JSON has: {error}") from error
    return (text + "\n").encode("utf-8", "replace")


def read_info(path: Path) -> RunInfo:
    """Read one.

    Raises:
        DataError: it is none, or of a later version.
    """
    try:
        if path.stat().st_size > LARGEST:
            raise DataError(f"{path} has more than {LARGEST} bytes, and is no run.json of ours")
        given = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(given, dict):
        raise DataError(
            f"{path} holds no object; it has the keys {', '.join(one.name for one in fields(RunInfo))}"
        )
    version = given.pop("format", None)
    if type(version) is not int or not 1 <= version <= FORMAT:
        raise DataError(f"{path} has format={version!r:.40}; read are 1 to {FORMAT}")
    known = {one.name for one in fields(RunInfo)}
    strange = [name for name in given if name not in known]
    if strange or "verifier" not in given:
        raise DataError(
            f"{path} has the keys {', '.join(given)[:200]}; it has verifier, and may have "
            f"{', '.join(sorted(known - {'verifier'}))}. What else there is goes into settings"
        )
    return RunInfo(**given)
