"""Our verdict formats, entered through the hook that plugins use."""

from __future__ import annotations

from pv_verdicts.first_error import FirstError
from pv_verdicts.grade import Grade
from pv_verdicts.hookspecs import FormatEntry, hookimpl
from pv_verdicts.verdict import Verdict

__all__ = ["pv_verdict_formats"]


@hookimpl
def pv_verdict_formats() -> list[FormatEntry]:
    return [
        FormatEntry(name="verdict", build=Verdict, meaning="True or False"),
        FormatEntry(name="grade", build=Grade, meaning="points, for example 0 to 7"),
        FormatEntry(name="first_error", build=FirstError, meaning="the first wrong step, or none"),
    ]
