"""Evaluation run (`pv-eval run`): a set, a verifier, and its votes on disk."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from rich.console import Console

from pv_data import __version__
from pv_data.records import content_id
from pv_eval.costs import cost_of
from pv_eval.provenance import provenance
from pv_eval.request import Request
from pv_eval.run_files import RunInfo, write_run
from pv_eval.sets.base import EvalSet
from pv_eval.sets.catalogue import open_set
from pv_eval.sets.overlap import find_overlap, settle, trained_on
from pv_eval.verifiers.gather import gather
from pv_eval.verifiers.trace_cache import to_vote
from pv_judge.pages.text import plain
from pv_rl.errors import ConfigError

__all__ = ["evaluate_verifier", "prepare_set"]


def evaluate_verifier(request: Request, console: Console) -> RunInfo:
    """Sample or read the votes and write the run's folder.

    Raises:
        PvRlError: an option or a file is wrong; or the run was stopped and can be resumed.
        OSError: a file cannot be read or written.
    """
    found = prepare_set(request)
    for sentence in found.describe():
        _say(console, sentence)
    request.out.mkdir(parents=True, exist_ok=True)
    traces, info = gather(request, found, console)
    samples: defaultdict[str, list[int]] = defaultdict(list)
    for pair_id, sample in sorted(traces):
        samples[pair_id].append(sample)
    unit, keep = info.length_unit, request.keep_traces
    votes = [
        to_vote(pair, sample, traces[pair.pair_id, sample], unit=unit, keep_trace=keep)
        for pair in found.pairs
        for sample in samples[pair.pair_id]
    ]
    for note in info.notes:
        _say(console, note)
    info = replace(
        info,
        set_name=found.name,
        notes=(*found.describe(), *info.notes),
        settings={
            "pv_data": __version__,
            **provenance(),
            "set": {"spec": request.set_spec, "options": dict(request.set_options), **found.counts},
            **info.settings,
        },
    )
    write_run(request.out, found.pairs, votes, info)
    cost = str(cost_of(votes, info))
    if cost:
        _say(console, f"A verdict took {cost} on average.")
    return info


def _say(console: Console, sentence: str) -> None:
    """Print without control characters: names and rules come from files."""
    console.print(plain(sentence, 4000), highlight=False, markup=False, soft_wrap=True)


def prepare_set(request: Request) -> EvalSet:
    """The set, compared with the training set and cut to the limit."""
    found = open_set(request.set_spec, request.set_options)
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
    note = f"A part of {request.limit} of its {len(found.pairs)} pairs, drawn by a hash of their ids."
    return found.only(kept, note)
