"""verl data set of a labelled set: `train.parquet` and `test.parquet` for the reward of a verdict format."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pv_data.export.prompt import VerifierPrompt
from pv_data.export.storage import ParquetStream, whole_folder
from pv_data.records import Problem
from pv_data.splits import SplitRules, split_problems
from pv_eval.sets.base import EvalSet, messages_of
from pv_eval.votes import Pair
from pv_rl.errors import ConfigError, DataError
from pv_verdicts import VerdictFormat

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["write_train_data"]


def write_train_data(
    folder: Path, found: EvalSet, form: VerdictFormat, prompt: VerifierPrompt, split: SplitRules
) -> Counter[str]:
    """Write the pairs that have the truth of a format, as rows of verl. The folder is written whole or not at all.

    A row's `reward_model.ground_truth` is what the format compares with, as text: True or False, points, or the first
    wrong step, counted from 1, with 0 for none. `extra_info` has problem, proof, and each truth that the pair has, so
    that `truth_key` can name another one.

    Args:
        prompt: shown to the verifier, with the pair's steps, reference solution and rubric where it asks for them.
        split: by question. Questions with the same text go the same way.

    Returns:
        Rows by split, and pairs by the reason why they were left out.

    Raises:
        DataError: no pair has the truth of the format.
        ConfigError: the folder holds something else, or the format does not read its truth as it is written.
    """
    problems = {pair.pair_id: _problem(pair, found.name) for pair in found.pairs}
    clusters = {problems[pair.pair_id].id: pair.question_id for pair in found.pairs}
    splits = split_problems(problems.values(), split, clusters=clusters)
    counts: Counter[str] = Counter()
    with whole_folder(folder) as new:
        with ExitStack() as open_files:
            streams: dict[str, ParquetStream] = {}
            for pair in found.pairs:
                if reason := _unfit(pair, form):
                    counts[reason] += 1
                    continue
                to = splits.of(problems[pair.pair_id].id)
                if to not in streams:
                    stream = ParquetStream(new / f"{to}.parquet", _schema())
                    streams[to] = open_files.enter_context(stream)
                streams[to].add(_row(pair, found.name, form, prompt, to, streams[to].rows))
        if not streams:
            reasons = "; ".join(f"{reason}: {number}" for reason, number in counts.items())
            raise DataError(
                f"no pair of the set {found.name} can be a row for the format {form.name} ({reasons}). Choose another "
                "format, or name the column of the truth by --set-option"
            )
        return Counter({name: stream.rows for name, stream in streams.items()}) + counts


def _problem(pair: Pair, source: str) -> Problem:
    return Problem(source=source, native_id=pair.question_id, text=pair.question)


def _unfit(pair: Pair, form: VerdictFormat) -> str:
    if getattr(pair, form.truth) is None:
        return {"label": "no label", "grade": "no grade", "first_error": "no first wrong step"}[form.truth]
    if form.truth == "first_error" and pair.first_error and not pair.steps:
        return "a first wrong step of a proof that is not in steps"
    if form.truth == "first_error" and (pair.first_error or 0) > len(pair.steps) > 0:
        return "a first wrong step behind the last one"
    return ""


def _row(
    pair: Pair, name: str, form: VerdictFormat, prompt: VerifierPrompt, split: str, index: int
) -> dict[str, Any]:
    truth = getattr(pair, form.truth)
    full = form.grades[-1] if form.grades else 1.0
    points = None if pair.grade is None else round(pair.grade * full, 9)
    text = f"{points:.12g}" if form.truth == "grade" else str(truth)
    if abs(form.read_truth(text) - truth) > 1e-6:
        raise ConfigError(
            f"the format {form.name} reads the truth {text!r} as {form.read_truth(text)!r}, expected {truth!r}. Leave "
            "out options that change how truths are read: steps are written counted from 1, grades in points"
        )
    right = {
        "label": bool(truth),
        "grade": points is not None and truth >= form.accept,
        "first_error": truth == 0,
    }
    messages = messages_of(pair, prompt, form)
    return {
        "data_source": f"{name}/train"
        if split == "train"
        else f"{name}/{'right' if right[form.truth] else 'wrong'}",
        "prompt": list(messages),
        "ability": "proof_verification",
        "reward_model": {"style": "rule", "ground_truth": text},
        "extra_info": {
            "id": pair.pair_id,
            "problem_id": pair.question_id,
            "slice": pair.slice,
            "split": split,
            "index": index,
            "template": prompt.template,
            "problem": pair.question,
            "proof": pair.proof,
            "label": pair.label,
            "grade": points,
            "first_error": pair.first_error,
        },
    }


def _schema() -> pa.Schema:
    import pyarrow as pa

    text = pa.string()
    texts = ("id", "problem_id", "slice", "split", "template", "problem", "proof")
    info = [
        *(pa.field(name, text) for name in texts),
        pa.field("index", pa.int64()),
        pa.field("label", pa.bool_()),
        pa.field("grade", pa.float64()),
        pa.field("first_error", pa.int64()),
    ]
    return pa.schema(
        [
            ("data_source", text),
            ("prompt", pa.list_(pa.struct([("role", text), ("content", text)]))),
            ("ability", text),
            ("reward_model", pa.struct([("style", text), ("ground_truth", text)])),
            ("extra_info", pa.struct(info)),
        ]
    )
