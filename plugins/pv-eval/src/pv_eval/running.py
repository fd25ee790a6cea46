"""`pv-data eval`: a set, a verifier, and its votes on disk."""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console

from pv_data import __version__
from pv_data.records import content_id
from pv_eval.files import write_run
from pv_eval.run_info import RunInfo
from pv_eval.sets.base import EvalSet
from pv_eval.sets.named import open_set
from pv_eval.sets.overlap import find_overlap, settle, trained_on
from pv_eval.verifiers.gathering import gather
from pv_eval.verifiers.trace import to_vote
from pv_eval.wanted import Wanted
from pv_judge.pages.text import plain
from pv_rl.errors import ConfigError

__all__ = ["evaluate_verifier", "prepare_set"]


def evaluate_verifier(wanted: Wanted, console: Console) -> RunInfo:
    """Sample or read the votes and write the run's folder.

    Raises:
        PvRlError: something given or found is not what it should be; or the run was stopped and can go on.
        OSError: a file cannot be read or written.
    """
    found = prepare_set(wanted)
    for sentence in found.said():
        _say(console, sentence)
    wanted.out.mkdir(parents=True, exist_ok=True)
    made = gather(wanted, found, console)
    votes = [
        to_vote(
            pair, sample, made.traces[pair.pair_id, sample], unit=made.unit, keep_trace=wanted.keep_traces
        )
        for pair in found.pairs
        for sample in made.samples[pair.pair_id]
    ]
    info = RunInfo(
        verifier=made.name,
        set_name=found.name,
        length_unit=made.unit,
        temperature=made.temperature,
        seed=made.seed,
        notes=(*found.said(), *made.notes),
        settings={
            "pv_data": __version__,
            "set": {"spec": wanted.set_spec, "options": dict(wanted.set_options), **found.counts},
            **made.settings,
        },
    )
    write_run(wanted.out, found.pairs, votes, info)
    for note in made.notes:
        _say(console, note)
    return info


def _say(console: Console, sentence: str) -> None:
    """Without what a terminal would obey: names and rules come from files."""
    console.print(plain(sentence, 4000), highlight=False, markup=False, soft_wrap=True)


def prepare_set(wanted: Wanted) -> EvalSet:
    """The set, held against a training set and cut to the limit."""
    found = open_set(wanted.set_spec, wanted.set_options)
    if wanted.train is not None:
        found = settle(found, find_overlap(found, trained_on(wanted.train)), wanted.overlap)
    else:
        found = replace(found, notes=(*found.notes, "It was not held against a training set (--train)."))
    if wanted.limit is None or wanted.limit >= len(found.pairs):
        return found
    if wanted.limit < 1:
        raise ConfigError(f"--limit is {wanted.limit}; it is 1 or more pairs")
    # By a hash, so that a part is no choice of the file's order, and a larger part contains the smaller.
    order = sorted(found.pairs, key=lambda pair: content_id("limit", pair.pair_id))
    kept = {pair.pair_id for pair in order[: wanted.limit]}
    note = f"A part of {wanted.limit} of its {len(found.pairs)} pairs, drawn by a hash of their ids."
    return found.only(kept, note)
