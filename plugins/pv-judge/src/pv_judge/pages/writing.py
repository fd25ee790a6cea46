"""Report files: NAME.html, NAME.md, NAME.json and a PNG a figure, written together or not at all."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from pv_judge.files import write_together
from pv_judge.pages.blocks import Block
from pv_judge.pages.html import to_html
from pv_judge.pages.markdown import to_markdown
from pv_rl.errors import DataError

__all__ = ["check_folder", "plain_values", "to_json", "write_pages"]


def check_folder(folder: Path, option: str = "--out") -> None:
    """Check before any work that a folder can be written to. It may be missing, its parent may not.

    Raises:
        DataError: it is no folder, or its parent is missing.
    """
    if folder.exists() and not folder.is_dir():
        raise DataError(f"{option} {folder} is not a folder; choose another one")
    if not folder.parent.is_dir():
        raise DataError(
            f"{option} {folder}: there is no folder {folder.parent}; create it, or choose another one"
        )


def write_pages(
    folder: Path,
    blocks: Iterable[Block],
    document: Any,
    pictures: Mapping[str, bytes] | None = None,
    *,
    others: Mapping[str, bytes] | None = None,
    name: str = "report",
) -> list[Path]:
    """Write all files of a report to a folder, which is created if need be.

    Args:
        folder: where to write; its parent exists.
        blocks: the page.
        document: the same for a program, see `plain_values`.
        pictures: PNG files by name, those of the blocks' `Picture`.
        others: further files by their whole name.
        name: of the files.

    Returns:
        The files.
    """
    known = list(blocks)
    pictures = pictures or {}
    files = {
        f"{name}.html": to_html(known, pictures).encode(),
        f"{name}.md": to_markdown(known).encode(),
        f"{name}.json": to_json(document).encode(),
        **{f"{picture}.png": data for picture, data in pictures.items()},
        **(others or {}),
    }
    folder.mkdir(exist_ok=True)
    write_together({folder / file: data for file, data in files.items()})
    return [folder / file for file in files]


def to_json(document: Any) -> str:
    """One line of JSON; see `plain_values`."""
    return json.dumps(plain_values(document), allow_nan=False, ensure_ascii=False) + "\n"


def plain_values(value: Any) -> Any:
    """Dataclasses as objects, NaN and infinities as null, halves of surrogate pairs as `?`."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {str(key): plain_values(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain_values(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
