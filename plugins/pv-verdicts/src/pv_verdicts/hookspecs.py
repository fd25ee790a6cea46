"""Hook specification: a package, ours included, adds verdict formats.

A package joins through an entry point of the group `pv_verdicts.plugins` that names a module with hook implementations.
Each format, but `verdict`, becomes a reward of pv-rl under its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pluggy

from pv_rl.errors import PluginError

if TYPE_CHECKING:
    from pv_verdicts.formats import VerdictFormat

__all__ = ["FormatEntry", "hookimpl", "pv_verdict_formats"]

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")

hookspec = pluggy.HookspecMarker("pv_verdicts")
hookimpl = pluggy.HookimplMarker("pv_verdicts")


@dataclass(frozen=True, kw_only=True)
class FormatEntry:
    """A verdict format under the name that a config gives."""

    name: str
    build: Callable[..., VerdictFormat]
    """`build(**options)`; `ConfigError` or TypeError for an option that it does not know."""
    meaning: str = ""
    """A few words for lists."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not NAME.fullmatch(self.name):
            raise PluginError(
                f"a verdict format is named {self.name!r}; a name is a letter, then letters, digits and underscores"
            )
        if not callable(self.build):
            raise PluginError(
                f"the verdict format {self.name!r} has build={self.build!r}; expected a function"
            )


@hookspec
def pv_verdict_formats() -> list[FormatEntry]:  # pyright: ignore[reportReturnType]
    """The verdict formats that this plugin adds."""
