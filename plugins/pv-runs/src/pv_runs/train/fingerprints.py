"""Fingerprints: short hashes of the files that a config names, which may change behind an unchanged path."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pv_runs.hydra_record import flatten

__all__ = ["fingerprint", "fingerprints"]

INPUT = re.compile(r".*(?:\.|_)(?:path|files?)")
OUTPUT = re.compile(
    r".*(?:save_path|resume_from_path|(?:log|output|cache|timeline_json)_file)|sentinel\..*|hydra\..*"
)
HIDDEN = re.compile(r"(?:^|/)\.")
WHOLE = 64 * 2**20
"""Bytes of a file that are hashed whole; of a larger one its size and both ends are."""
MOST = 1000
"""Files of a folder."""
UNREADABLE = (OSError, ValueError, TypeError, RuntimeError, OmegaConfBaseException)
"""A file that cannot be read, or a value that cannot be resolved or is no path."""


def fingerprints(config: DictConfig, cwd: Path) -> Iterator[tuple[str, str]]:
    """By config key, of what is on this machine: data, model, code and prompts. A hub's names are left out.

    Args:
        config: composed.
        cwd: relative paths are from there.
    """
    seen = set()
    for key in sorted(key for key, _ in flatten(OmegaConf.to_container(config))):
        if not INPUT.fullmatch(key) or OUTPUT.fullmatch(key):
            continue
        try:
            given = OmegaConf.select(config, key)
            names = [given] if isinstance(given, str) else list(given or ())
            paths = tuple(cwd / Path(str(name)).expanduser() for name in names)
            if paths in seen:  # the model's path is in three keys
                continue
            seen.add(paths)
            prints = [fingerprint(path) for path in paths if path.is_file() or path.is_dir()]
        except UNREADABLE:
            continue
        if prints:
            yield key, " ".join(prints)


def fingerprint(path: Path) -> str:
    """16 hex digits of the SHA-256 of a file's content, or of the names and contents of a folder's files.

    Of a file above 64 MiB: of its size and of the first and the last 32 MiB.

    Raises:
        OSError: it cannot be read.
    """
    whole = hashlib.sha256()
    if path.is_dir():
        inside = sorted(str(one.relative_to(path)) for one in path.rglob("*") if one.is_file())
        for name in [name for name in inside if not HIDDEN.search(name)][:MOST]:
            whole.update(f"{name} {fingerprint(path / name)}\n".encode())
        return whole.hexdigest()[:16]
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        whole.update(b"%d " % size)
        whole.update(file.read(WHOLE if size <= WHOLE else WHOLE // 2))
        if size > WHOLE:
            file.seek(size - WHOLE // 2)
            whole.update(file.read(WHOLE // 2))
    return whole.hexdigest()[:16]
