"""Verdict format: the conclusion that a trace is asked for, its reader, and its score against the truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, get_args

from pv_rl.errors import ConfigError, PluginError
from pv_rl.plugins import Registry, misfit

__all__ = ["FORMATS", "Answer", "Truth", "VerdictFormat", "build_format"]

Truth: TypeAlias = Literal["label", "grade", "first_error"]
"""What an answer is compared with: whether the proof is right, its points, or its first wrong step."""

FORMATS = Registry(
    hook="pv_verdict_formats",
    what="verdict format",
    entry="pv_verdicts.hookspecs:FormatEntry",
    builtin="pv_verdicts.builtin",
    project="pv_verdicts",
    reserved=dict.fromkeys(("verdict_fluency", "weighted", "meta_verified"), "which is a reward of ours"),
)


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a trace concludes. A field is None where the trace does not give it, or the format does not have it."""

    accepts: bool | None = None
    """True: the proof is right."""
    grade: float | None = None
    """Share of the full points, 0 to 1."""
    first_error: int | None = None
    """Number of the first wrong step, counted from 1; 0: no step is wrong."""


class VerdictFormat(Protocol):
    """One verdict format with its options."""

    name: str
    truth: Truth
    grades: tuple[float, ...]
    """The grades that it allows, in points, ascending; the last is full points. Empty where it has no grades."""
    accept: float
    """Share of the full points from which a proof counts as right. 1 where it has no grades."""
    prompt: Path | None
    """Template that asks for such an answer, see `pv_data.export.prompt.VerifierPrompt`; None: that one's default."""

    def read(self, trace: str) -> Answer:
        """Read a trace, which is untrusted text of any length, in linear time."""
        ...

    def read_truth(self, value: object) -> float | int | bool:
        """Read the truth of a row: a bool, a share of the full points, or a step, as in `Answer`.

        Raises:
            DataError: the value is not one.
        """
        ...

    def score(self, answer: Answer, truth: float | int | bool) -> float:
        """The reward, 0 to 1. An answer that is missing gets 0."""
        ...


MEMBERS = ("name", "truth", "grades", "accept", "prompt", "read", "read_truth", "score")


def build_format(name: str = "verdict", options: Mapping[str, Any] | None = None) -> VerdictFormat:
    """Build a format by its name.

    Raises:
        ConfigError: nobody adds the format, or an option is unknown or out of bounds.
        PluginError: two packages claim the name, or what a package builds is not a format.
    """
    if not isinstance(name, str) or not isinstance(options, Mapping | None):
        raise ConfigError(
            f"a verdict format is given as {name!r:.80} with the options {options!r:.80}; expected a name "
            "and options by name"
        )
    entry = FORMATS.named(name)
    try:
        form = entry.build(**(options or {}))
    except TypeError as error:
        why = misfit(entry.build, options or {}, error)
        raise ConfigError(f"the options of the verdict format {name} do not fit it: {why}") from error
    lacks = [one for one in MEMBERS if not hasattr(form, one)]
    if lacks or form.truth not in get_args(Truth):
        raise PluginError(
            f"the verdict format {name} of {FORMATS.owner(name)} lacks {', '.join(lacks) or 'a known truth'}; expected "
            f"the attributes {', '.join(MEMBERS)}, and truth one of {', '.join(get_args(Truth))}"
        )
    return form
