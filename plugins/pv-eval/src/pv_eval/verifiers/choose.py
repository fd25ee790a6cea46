"""What `--verifier` names: an address, a model's folder, a verl checkpoint, a file or a folder of traces."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pv_data.serving.checkpoint import is_model, is_verl
from pv_eval.sets.rows import SUFFIXES
from pv_judge.rowfiles.steps import SUFFIXES as DUMPS
from pv_rl.errors import ConfigError

__all__ = ["Chosen", "choose_verifier"]


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """A verifier of a kind."""

    kind: Literal["endpoint", "checkpoint", "traces"]
    url: str = ""
    path: Path = Path()


def choose_verifier(given: str) -> Chosen:
    """The verifier of an address or a path.

    Raises:
        ConfigError: it is neither an address nor the path of something known.
    """
    if given.startswith(("http://", "https://")):
        return Chosen(kind="endpoint", url=given.rstrip("/").removesuffix("/chat/completions"))
    path = Path(given)
    if path.is_file() and path.suffix in SUFFIXES:
        return Chosen(kind="traces", path=path)
    if path.is_dir():
        if is_model(path) or is_verl(path):
            return Chosen(kind="checkpoint", path=path)
        if any(file.suffix in DUMPS for file in path.iterdir()):
            return Chosen(kind="traces", path=path)
    what = "is not there" if not path.exists() else "is none of these"
    raise ConfigError(
        f"--verifier {given!r:.200} {what}; give an address (http://HOST/v1), a model's folder (config.json and "
        f".safetensors), a verl checkpoint (global_step_N), a file of traces ({', '.join(SUFFIXES)}) or a folder with "
        "one a step"
    )
