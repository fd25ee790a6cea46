"""Contract with verl: checks the seams, which are the functions of verl that the adapter relies on (`seams.csv`).

pv-rl works with a verl of any version whose seams are unchanged. It checks them before it patches anything.
"""

from __future__ import annotations

import csv
import importlib
import inspect
import logging
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from pv_rl.errors import VerlError

__all__ = ["SEAMS", "TESTED", "Seam", "check", "check_run", "problems", "record", "remark", "version"]

TESTED = ("0.9.0", "0.9.1")
"""The versions of verl that the tests run on (`tests/verl/test_versions.py`). A run with another one logs a warning."""


class Seam(NamedTuple):
    """One attribute of verl."""

    part: str
    """The feature that needs it; empty if all do."""
    module: str
    seam: str
    """`NAME`, or `NAME(PARAMETERS)` with the positional parameters that it must begin with. `exactly` after it allows
    no other parameters, since the adapter would not pass them on. `async` before it marks a coroutine function."""

    def problem(self, module: ModuleType) -> str | None:
        """What is wrong with this seam in the imported `module`, or None."""
        attribute, _, parameters = self.seam.removeprefix("async ").partition("(")
        target: Any = module
        for part in attribute.split("."):
            try:
                owner, target = target, getattr(target, part, None)
            except Exception as error:  # noqa: BLE001 - a lazy module or a descriptor may raise anything
                return f"{self.module}.{attribute} cannot be read: {error!r}"
            if target is None and part not in getattr(owner, "__dataclass_fields__", ()):
                return f"{self.module} has no {attribute}"
        if not parameters:
            return None
        name, (wanted, _, exactly) = f"{self.module}.{attribute}", parameters.partition(")")
        try:
            found = list(inspect.signature(target := inspect.unwrap(target)).parameters.values())
        except (TypeError, ValueError) as error:
            return f"{name} cannot be called with ({wanted}): {error}"
        if inspect.iscoroutinefunction(target) != (is_async := self.seam.startswith("async ")):
            return f"{name} {'is not' if is_async else 'is'} async"
        leading = found if exactly else found[: wanted.count(",") + 1]
        if wanted == ", ".join(one.name for one in leading if one.kind is one.POSITIONAL_OR_KEYWORD):
            return None
        bare = inspect.Signature([one.replace(annotation=one.empty, default=one.empty) for one in found])
        return f"{name}{bare} {'is not' if exactly else 'does not begin with'} ({wanted})"


with Path(__file__).with_name("seams.csv").open(encoding="utf-8", newline="") as _file:
    SEAMS = tuple(Seam(*row) for row in list(csv.reader(_file))[1:])

_recorded: dict[str, set[str]] = {}
"""From each problem that was found to the parts that it concerns."""


def problems(module: ModuleType, part: str) -> list[str]:
    """Problems of one part's seams in an imported module."""
    seams = [seam for seam in SEAMS if (seam.part, seam.module) == (part, module.__name__)]
    return [text for seam in seams if (text := seam.problem(module))]


def record(problem: str, part: str = "") -> None:
    """Remember a problem of a part, or of all parts. `check` raises it when a config needs that part."""
    _recorded.setdefault(problem, set()).add(part)


def check(what: str, *parts: str) -> None:
    """Raise a `VerlError` that names each changed seam of the parts that `what` needs, if there are any."""
    if found := _survey("", *parts):
        raise VerlError(
            f"{what} needs pv-rl's adapter, which cannot serve {version()}: {'; '.join(found)}. Install verl "
            f"{' or '.join(TESTED)}, or a pv-rl that supports this verl, or use verl's own modes and rewards."
        )


def check_run(config: Any, *, warn: bool = False) -> None:
    """Check what a run's config needs, and warn once of an untested verl. Called in the driver; ignores stock runs."""
    from pv_rl.trainer_hooks import names_our_reward, our_modes

    # This subclass of the legacy trainer does not read use_v1. It is imported only by a run that uses it.
    beneath = "verl.experimental.separation.ray_trainer" in sys.modules
    is_v1 = (config.get("trainer") or {}).get("use_v1", True) and not beneath
    trainer = "V1 trainer" if is_v1 else "legacy trainer"
    distills = "distillation" if (config.get("distillation") or {}).get("enabled") else ""
    needs = {
        f"loss_agg_mode={mode.spec}": ("weightings", distills, trainer if mode.scope == "prompt" else "")
        for mode in our_modes(config)
    }
    if names_our_reward(config):
        needs["a reward of pv_rl.rewards"] = ("rewards", trainer)
    if config.get("sentinel") is not None:
        needs["sentinel"] = ("log", trainer)
    for what, parts in needs.items():
        check(what, *parts)
    if needs and warn:
        _warn()


@cache
def _warn() -> None:
    if text := remark():
        logging.getLogger("pv_rl").warning(text)


def remark() -> str:
    """A remark if verl is not a tested version, or if seams that a run may do without have changed; otherwise ''."""
    _survey(*{seam.part for seam in SEAMS} - {"other trainers"})
    seams = (
        f"Parts that need these seams are off: {'; '.join(_recorded)}." if _recorded else "All seams hold."
    )
    if version().split()[1] in TESTED:
        return f"{version()}: {seams}" if _recorded else ""
    return (
        f"pv-rl was not tested with {version()} (tested: {', '.join(TESTED)}). {seams} Compare a short run with one "
        "on a tested version (docs/internals/verl.md)."
    )


def _survey(*parts: str) -> list[str]:
    """Problems of these parts' seams. Imports their modules, and the import hook of each module records them."""
    for seam in SEAMS:
        if seam.part in parts:
            try:
                importlib.import_module(seam.module)
            except Exception as error:  # noqa: BLE001 - verl may not need this module
                missing = (getattr(error, "name", None) or "") if isinstance(error, ImportError) else "verl"
                # Where it lacks another package, verl cannot run it either.
                if missing.partition(".")[0] == "verl":
                    record(f"{seam.module} cannot be imported: {error}", seam.part)
    return [problem for problem, about in _recorded.items() if about & {"", *parts}]


def version() -> str:
    """Version and folder of the verl that is imported, which need not be the one that pip has installed."""
    verl: Any = sys.modules.get("verl")
    folder = next(iter(getattr(verl, "__path__", ())), "?")
    return f"verl {getattr(verl, '__version__', '') or '?'} in {folder}"
