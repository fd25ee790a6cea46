"""Evaluation run (`pv-eval run`): a set, a verifier, and its votes on disk."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Set
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from pv_data import __version__
from pv_data.records import content_id
from pv_eval.costs import cost_of
from pv_eval.provenance import provenance
from pv_eval.request import Request
from pv_eval.run_files import RUN, RunInfo, read_info, read_run, write_run
from pv_eval.sets.base import EvalSet
from pv_eval.sets.catalogue import open_set
from pv_eval.sets.overlap import find_overlap, settle, trained_on
from pv_eval.verifiers.gather import gather
from pv_eval.verifiers.trace_cache import to_vote
from pv_judge.pages.text import plain, plural
from pv_rl.errors import ConfigError, DataError
from pv_verdicts import VerdictFormat

__all__ = ["evaluate_verifier", "prepare_set", "run_folder"]

SHOWN = 10
"""Full points that a note names."""


def evaluate_verifier(request: Request, console: Console) -> Path:
    """Sample or read the votes and write the run.

    Returns:
        The run's folder, see `run_folder`.

    Raises:
        PvRlError: an option or a file is wrong; or the run was stopped and can be resumed.
        OSError: a file cannot be read or written.
    """
    found = prepare_set(request)
    request = replace(request, verdict_format=request.verdict_format or "verdict")
    for sentence in found.describe():
        _say(console, sentence)
    traces, info = gather(request, found, console)
    samples: defaultdict[str, list[int]] = defaultdict(list)
    for pair_id, sample in sorted(traces):
        samples[pair_id].append(sample)
    votes = [
        to_vote(pair, sample, traces[pair.pair_id, sample], unit=info.length_unit, form=request.form)
        for pair in found.pairs
        for sample in samples[pair.pair_id]
    ]
    for note in info.notes:
        _say(console, note)
    if silent := len(found.pairs) - len({vote.pair_id for vote in votes}):
        _say(console, f"{silent} of {plural(len(found.pairs), 'pair')} have no votes, and are in no number.")
    info = replace(
        info,
        set_name=found.name,
        verdict_format=request.verdict_format,
        grades=request.form.grades,
        notes=(*found.describe(), *info.notes),
        settings={
            "pv_data": __version__,
            **provenance(),
            "set": {"spec": request.set_spec, "options": dict(request.set_options), **found.counts},
            "format": {"name": request.verdict_format, "options": dict(request.format_options)},
            **info.settings,
        },
    )
    folder = run_folder(request.out, info, {(vote.pair_id, vote.sample) for vote in votes})
    if folder != request.out:
        there = read_info(request.out)
        on = "" if there.set_name == info.set_name else f" on the set {there.set_name}"
        of = "" if there.verifier == info.verifier else f" of {info.verifier}"
        _say(console, f"{request.out} holds a run of {there.verifier}{on}; this run{of} is in {folder}.")
    write_run(folder, found.pairs, votes, info)
    if cost := cost_of(votes, info):
        _say(console, f"A verdict took {cost} on average.")
    return folder


def run_folder(out: Path, info: RunInfo, votes: Set[tuple[str, int]]) -> Path:
    """Folder that a run is written to, so that no other run's votes are overwritten.

    It is `out` itself, or a folder in it that is named for what differs, such as `temperature=1`, where `out` has votes
    of another verifier, set, prompt or sampling. A run replaces its own votes where it has all of them and perhaps
    more: more samples, or a larger `--limit`.

    Args:
        votes: pair id and sample of each.

    Raises:
        DataError: `out` has a run that cannot be read.
    """
    if not (out / RUN).exists():
        return out
    own = _identity(info)
    first = _identity(read_info(out))
    for folder in (out, *sorted(path.parent for path in out.glob(f"*/{RUN}"))):
        if _identity(read_info(folder)) != own:
            continue
        if {(vote.pair_id, vote.sample) for vote in read_run(folder)[1]} <= votes:
            return folder
    differ = [f"{key}={value}" for key, value in own.items() if first.get(key) != value]
    name = re.sub(r"[^\w=.,-]+", "-", ",".join(differ), flags=re.ASCII).strip("-.")[:80] or "fewer votes"
    number = 1
    while (folder := out / (name if number == 1 else f"{name},{number}")).exists():
        number += 1
    return folder


def _identity(info: RunInfo) -> dict[str, str]:
    """What makes votes those of one run, by name."""
    sampling = dict(info.settings.get("sampling", {}))
    for name in ("n", "rule"):
        sampling.pop(name, None)
    verifier = dict(info.settings.get("verifier", {}))
    parts = {
        "set": info.set_name,
        "set.options": dict(info.settings.get("set", {})).get("options", {}),
        "format": info.verdict_format,
        "format.grades": list(info.grades),
        "prompt": info.settings.get("prompt", ""),
        **{f"verifier.{name}": verifier[name] for name in sorted(verifier)},
        "verifier.shown": info.verifier,
        **sampling,
    }
    return {name: str(value) for name, value in parts.items()}


def _say(console: Console, sentence: str) -> None:
    """Print without control characters: names and rules come from files."""
    console.print(plain(sentence, 4000), highlight=False, markup=False, soft_wrap=True)


def prepare_set(request: Request) -> EvalSet:
    """The pairs of the set that have the truth of the verdict format, compared with the training set, cut to the limit.

    Raises:
        PvRlError: an option or the set is wrong, or no pair has the format's truth.
    """
    found = open_set(request.set_spec, request.set_options)
    if not request.verdict_format and any(pair.grade is not None for pair in found.pairs):
        points = "".join(f" --format-option points={one:g}" for one in found.full if len(found.full) == 1)
        raise ConfigError(
            f"the set {found.name} has grades. Add --format grade{points} to ask for points, or --format verdict to "
            "ask whether a proof is right (has all points, or those of --set-option positive=N)"
        )
    found = _with_truth(found, request.form)
    full = request.form.grades[-1:]
    if full and (others := sorted(found.full - {*full})):
        points = ", ".join(f"{one:g}" for one in others[:SHOWN]) + ", ..." * (len(others) > SHOWN)
        note = (
            f"The set's full points are {points}; the verifier's are {full[0]:g} (--format-option points=N). Grades "
            "are compared as shares of the full points."
        )
        found = replace(found, notes=(*found.notes, note))
    if request.train is not None:
        found = settle(found, find_overlap(found, trained_on(request.train)), request.overlap)
    else:
        found = replace(found, notes=(*found.notes, "It was not compared with a training set (--train)."))
    if request.limit is None or request.limit >= len(found.pairs):
        return found
    if request.limit < 1:
        raise ConfigError(f"--limit is {request.limit}; expected 1 or more pairs")
    # By a hash: the part does not depend on the file's order, and a larger part contains the smaller.
    order = sorted(found.pairs, key=lambda pair: content_id("limit", pair.pair_id))
    kept = {pair.pair_id for pair in order[: request.limit]}
    note = (
        f"A part of {request.limit} of its {plural(len(found.pairs), 'pair')}, drawn by a hash of their ids."
    )
    return found.only(kept, note)


def _with_truth(found: EvalSet, form: VerdictFormat) -> EvalSet:
    """The pairs that an answer of the format can be compared with."""
    if form.truth == "grade" and len(form.grades) < 2:
        raise ConfigError(f"the verdict format {form.name} lists no grades, so that they cannot be compared")
    words = {"label": "label", "grade": "grade", "first_error": "first wrong step"}[form.truth]
    kept = {pair.pair_id for pair in found.pairs if getattr(pair, form.truth) is not None}
    if not kept:
        raise DataError(
            f"no pair of the set {found.name} has a {words}, which --format {form.name} is compared with. Give a set "
            "that has them, or another --format"
        )
    if len(kept) == len(found.pairs):
        return found
    note = f"Of its {plural(len(found.pairs), 'pair')} {len(kept)} have a {words}; the others were not asked."
    return found.only(kept, note, reason=f"no {words}")
