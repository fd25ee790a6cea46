"""Record of a source that was read: its limit, how many rows it gave, and the checksums of the parts they are in.

The record takes its place when all of the parts are there: a part that it does not name is left of an attempt that was
interrupted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pv_data.checksums import checksum_of, remedy
from pv_judge.files import load_json, verified, with_checksum, write_atomically
from pv_rl.errors import DataError

__all__ = [
    "FOLDERS",
    "Collected",
    "checksums",
    "drop_unfinished",
    "is_collected",
    "parts_of",
    "read_collected",
]

FOLDERS = {"problem": "problems/{}", "proof": "proofs/{}", "aside": "aside/collect-{}"}
"""Parts by the kind of their rows; a part's name begins with the number of its source."""


@dataclass(frozen=True, kw_only=True)
class Collected:
    """See the module."""

    counts: Counter[str]
    """Rows by kind, rejected ones by reason."""
    parts: Mapping[str, str] | None
    """Checksum by path in the run's folder; None in a record of an earlier version, see `completed`."""
    limit: int | None
    """So many problems at most."""

    def write(self, run: Path, number: int) -> None:
        """Write the record of source `number`."""
        path = _path(run, number)
        path.parent.mkdir(exist_ok=True)
        document = {"counts": self.counts, "limit": self.limit, "parts": self.parts}
        text = json.dumps(with_checksum(document), indent=1)
        write_atomically(path, lambda temporary: temporary.write_text(text))

    def completed(self, run: Path, number: int, limit: int | None) -> Collected:
        """Write a record of an earlier version again, with the parts that are there and the manifest's limit."""
        made = replace(self, parts=checksums(run, number), limit=limit)
        made.write(run, number)
        return made

    def grows(self, limit: int | None) -> bool:
        """Whether a limit asks for more problems than this one did."""
        return self.parts is not None and self.limit is not None and (limit is None or limit > self.limit)


def read_collected(run: Path, number: int) -> Collected | None:
    """The record of source `number`; None if the source was not read to its end.

    Raises:
        DataError: the record is damaged, or a part is missing or another file than was written.
    """
    path = _path(run, number)
    try:
        document: dict[str, Any] = verified(load_json(path.read_text()))
        if "parts" not in document:  # of an earlier version: the counts alone
            return Collected(counts=Counter(document), parts=None, limit=None)
        found = Collected(
            counts=Counter(document["counts"]), parts=dict(document["parts"]), limit=document["limit"]
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path} cannot be read ({error}). {remedy(path)}") from error
    for part, checksum in (found.parts or {}).items():
        if not (run / part).is_file():
            raise DataError(f"{run / part} is missing. {remedy(run / part)}")
        if checksum_of(run / part) != checksum:
            raise DataError(f"{run / part} is not the file that was written there. {remedy(run / part)}")
    return found


def is_collected(run: Path, number: int) -> bool:
    """Whether source `number` was read to its end."""
    return _path(run, number).exists()


def checksums(run: Path, number: int) -> dict[str, str]:
    """Of the parts of a source, by path in the run's folder."""
    found = [part for parts in parts_of(run, number).values() for part in parts]
    return {str(part.relative_to(run)): checksum_of(part) for part in found}


def parts_of(run: Path, number: int) -> dict[str, list[Path]]:
    """The parts of a source that are there, by the kind of their rows, in order."""
    return {
        kind: sorted(run.glob(place.format(f"{number:02d}-*.parquet"))) for kind, place in FOLDERS.items()
    }


def drop_unfinished(run: Path) -> None:
    """Remove the parts that no record has, also of a source that the config no longer has."""
    numbers = [int(one.stem) for one in (run / "collected").glob("*.json") if one.stem.isdigit()]
    records = {f"{number:02d}": read_collected(run, number) for number in numbers}
    for place in FOLDERS.values():
        for part in run.glob(place.format("*.parquet")):
            record = records.get(part.name.removeprefix("collect-").partition("-")[0])
            whole = record is not None and record.parts is None  # of an earlier version
            if record is None or not (whole or str(part.relative_to(run)) in (record.parts or ())):
                part.unlink()


def _path(run: Path, number: int) -> Path:
    return run / "collected" / f"{number:02d}.json"
