"""One evaluation, as the options of `pv-data eval` say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pv_eval.sampling import Sampling
from pv_eval.sets.overlap import Action

__all__ = ["Wanted"]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """See the module; the command's help says what each is."""

    set_spec: str
    verifier: str
    out: Path
    model: str = ""
    name: str = ""
    sampling: Sampling = field(default_factory=Sampling)
    set_options: Mapping[str, Any] = field(default_factory=dict)
    train: Path | None = None
    overlap: Action = "refuse"
    limit: int | None = None
    prompt: Path | None = None
    server: str = "auto"
    server_arguments: Sequence[str] = ()
    client: Sequence[str] = ()
    """Settings of `pv_data.asking.settings.Model`, `name=value`."""
    cache: Path | None = None
    step: int | None = None
    keep_traces: bool = True
