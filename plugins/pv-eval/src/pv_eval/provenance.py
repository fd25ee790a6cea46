"""Provenance of a run: its date, the versions and commit of our packages, and the fingerprint of its set."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from pv_eval.run_files import RunInfo
from pv_eval.votes import Pair
from pv_judge.pages.text import plain

__all__ = ["PACKAGES", "UNKNOWN", "provenance", "sampling_details", "set_fingerprint", "setting_of"]

PACKAGES = ("pv-eval", "pv-verdicts", "pv-data", "pv-judge", "pv-rl")
UNKNOWN = "unknown"
LONGEST = 80
"""Characters of a value."""
DIGITS = 12
"""Of a fingerprint and of a commit."""


def provenance() -> dict[str, object]:
    """The entries `date` (UTC), `versions` and `commit` of `RunInfo.settings`; a commit of "" is unknown."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {name: version for name in PACKAGES if (version := _version(name))},
        "commit": _installed_commit() or _commit_of_checkout(),
    }


def _version(name: str) -> str:
    try:
        return distribution(name).version
    except PackageNotFoundError:
        return ""


def _installed_commit() -> str:
    """Of a package that pip installed from a git address."""
    try:
        text = distribution("pv-eval").read_text("direct_url.json")
        return str(json.loads(text or "{}").get("vcs_info", {}).get("commit_id", ""))[:DIGITS]
    except (PackageNotFoundError, ValueError, AttributeError):
        return ""


def _commit_of_checkout() -> str:
    """Of the checkout that this file is part of, with `+changes` if its files differ from that commit."""
    here = Path(__file__)

    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["git", "-C", str(here.parent), *arguments],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )

    try:
        # the second name fails where a repository of somebody else holds this file, as one with a virtual environment
        found = git("rev-parse", "HEAD", f"HEAD:./{here.name}")
        if found.returncode:
            return ""
        changed = git("diff", "--quiet", "HEAD", "--", ".").returncode
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return found.stdout[:DIGITS] + "+changes" * bool(changed)


def set_fingerprint(pairs: Iterable[Pair]) -> str:
    """Hash of what a set's numbers depend on: ids, questions, labels, weights, grades and first errors of its pairs.

    The order of the pairs, their texts and their slices do not enter.
    """
    rows = sorted(
        [one.pair_id, one.question_id, one.label, float(one.weight), one.grade, one.first_error]
        for one in pairs
    )
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:DIGITS]


def sampling_details(info: RunInfo) -> tuple[str, ...]:
    """What makes two runs of one name two verifiers, in words: the model's revision, prompt and sampling."""
    temperature = info.temperature
    return (
        f"revision {setting_of(info, 'verifier', 'revision')}",
        f"temperature {UNKNOWN if temperature is None else f'{temperature:g}'}",
        f"prompt {setting_of(info, 'prompt')}",
        f"top_p {setting_of(info, 'sampling', 'top_p')}",
        f"max_tokens {setting_of(info, 'sampling', 'max_tokens')}",
        f"format {plain(info.verdict_format, LONGEST)}",
    )


def setting_of(info: RunInfo, *path: str) -> str:
    """A value of run.json's settings in words; `unknown` where it is missing, or neither a text nor a number."""
    value: Any = info.settings
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    known = isinstance(value, str | int | float) and not isinstance(value, bool)
    return (plain(value, LONGEST) if known else "") or UNKNOWN
