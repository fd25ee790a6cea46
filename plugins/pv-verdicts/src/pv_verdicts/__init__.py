"""Verdict formats: how a trace's conclusion is asked for, read and rewarded. Imports neither torch nor verl."""

from pv_verdicts.formats import Answer, VerdictFormat, build_format

__all__ = ["Answer", "VerdictFormat", "build_format"]
