"""Generation cost: answers, tokens and dollars by task, template, model and sampling, without reading the answers."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pv_data.export.storage import read_columns
from pv_data.records import Judgment, Proof
from pv_judge.files import load_json

__all__ = ["Asked", "spending"]

KEYS = ("template", "model", "revision", "sampling")
VALUES = ("usd", "prompt_tokens", "completion_tokens")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """All answers to one template by one model with the same sampling parameters."""

    task: str
    """`generate: rephrase` or `judge: r1`."""
    template: str
    model: str
    revision: str
    sampling: str
    """JSON, without a seed that differs from answer to answer."""
    answers: int
    usd: float
    prompt_tokens: int
    completion_tokens: int


def spending(proofs: Iterable[Path], judgments: Iterable[Path]) -> tuple[Asked, ...]:
    """Sum up the tables of a run (folders or parts); proofs that no model wrote are not in it."""
    sums = defaultdict[tuple[str, ...], list[float]](lambda: [0, 0.0, 0, 0])
    keys, values = [f"origin_{key}" for key in KEYS], [f"origin_{value}" for value in VALUES]
    for kind, tables, name, task in (
        (Proof, proofs, "method", "generate"),
        (Judgment, judgments, "judge", "judge"),
    ):
        for some in read_columns(tables, kind, [name, *keys, *values]):
            grouped = some.group_by([name, *keys], use_threads=False)
            for row in grouped.aggregate(
                [(name, "count"), *((value, "sum") for value in values)]
            ).to_pylist():
                template, model, revision, sampling = (row[key] for key in keys)
                if not (template or model):
                    continue
                sum_ = sums[f"{task}: {row[name]}", template, model, revision, _without_seed(sampling)]
                for place, value in enumerate([row[f"{name}_count"], *(row[f"{one}_sum"] for one in values)]):
                    sum_[place] += value
    return tuple(
        Asked(
            **dict(zip(("task", *KEYS), key, strict=True)),
            answers=int(sum_[0]),
            usd=sum_[1],
            prompt_tokens=int(sum_[2]),
            completion_tokens=int(sum_[3]),
        )
        for key, sum_ in sorted(sums.items())
    )


def _without_seed(sampling: str) -> str:
    if '"seed"' not in sampling:
        return sampling
    try:
        fields = load_json(sampling)
    except ValueError:
        return sampling
    if not isinstance(fields, dict):
        return sampling
    fields.pop("seed", None)
    return json.dumps(fields, sort_keys=True)
