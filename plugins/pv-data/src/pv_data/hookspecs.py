"""Hook specifications: a package, ours included, adds sources, generation methods and commands to pv-data.

A package joins through an entry point of the group `pv_data.plugins` that names a module with hook implementations.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pluggy

from pv_data.methods.base import Method
from pv_data.records import Aside, Problem, Proof, is_name
from pv_rl.errors import PluginError

if TYPE_CHECKING:
    import typer

__all__ = [
    "MethodEntry",
    "Read",
    "SourceEntry",
    "hookimpl",
    "pv_data_commands",
    "pv_data_methods",
    "pv_data_sources",
]

hookspec = pluggy.HookspecMarker("pv_data")
hookimpl = pluggy.HookimplMarker("pv_data")

Read: TypeAlias = Iterator[Problem | Proof | Aside]
"""What a source gives, one after another and never all at once: a problem before its proofs; the rest aside."""


@dataclass(frozen=True, kw_only=True)
class SourceEntry:
    """A source under a name that a config can say."""

    name: str
    """What `kind` says in a config, for example `processbench`."""
    read: Callable[..., Read]
    """`read(path: Path, *, option: type = default, ...)`, a generator. Options are checked against its signature before
    it is called; it raises `ConfigError` for one that has the type and still cannot be, and `DataError` for a file that
    is not of this source."""
    meaning: str = ""
    """A few words for the list of sources."""
    default_path: Path | None = None
    """For a source that needs no file of the user's."""

    def __post_init__(self) -> None:
        _check_name(self.name)
        inspect.signature(self.read)  # raises for a builtin: the plugin is left out, with this reason


@dataclass(frozen=True, kw_only=True)
class MethodEntry:
    """A generation method under a name that a config can say."""

    name: str
    """The method part of its slices, for example `mask_completion`."""
    build: Callable[..., Method]
    """`build(**options)`; `ConfigError` or TypeError for an option that it does not know."""
    meaning: str = ""

    def __post_init__(self) -> None:
        _check_name(self.name)


def _check_name(name: str) -> None:
    if not is_name(name):
        raise PluginError(f"{name!r} cannot name an entry. Use one character or more, without /, [ and ]")


@hookspec
def pv_data_sources() -> list[SourceEntry]:  # pyright: ignore[reportReturnType]
    """The sources that this plugin adds."""


@hookspec
def pv_data_methods() -> list[MethodEntry]:  # pyright: ignore[reportReturnType]
    """The generation methods that this plugin adds."""


@hookspec
def pv_data_commands() -> typer.Typer:  # pyright: ignore[reportReturnType]
    """The commands that this plugin adds to `pv-data`. Called by the command line alone."""
