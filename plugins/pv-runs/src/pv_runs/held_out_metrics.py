"""Held-out accuracy by class, by slice and by length, for verl's metric stream at each validation.

verl itself logs `val-core/DATA_SOURCE/acc/mean@N`: one number over right and wrong proofs, which a verifier that
accepts everything may raise. A data source is a slice; `SLICE/right` and `SLICE/wrong` are one slice in two classes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pv_rl.rewards.named import VALID
from pv_runs.metric_names import HELD_OUT

if TYPE_CHECKING:
    from pv_rl.step_state import StepState

__all__ = ["add_metrics", "held_out_metrics"]

CLASSES = ("/right", "/wrong")
MOST_SLICES = 100
"""Of a metric stream; with more, none is shown by itself."""
THIRDS = ("short", "middle", "long")


def held_out_metrics(
    data_sources: Sequence[Any],
    infos: Mapping[str, Sequence[Any]],
    lengths: Sequence[int] | None = None,
    prompts: Sequence[str] = (),
) -> dict[str, float]:
    """The numbers of one validation, each a mean over rows. A row without a reward (it abstains) is in none of them.

    Args:
        data_sources: (B,) verl's `data_source` of each row.
        infos: by name, (B,) values of the reward's extra info. Without `acc`, `label_true`, `verdict_true` and
            `verdict_missing` (`pv_rl.rewards.ProofVerdict` gives them) there is nothing to say.
        lengths: (B,) characters of each response.
        prompts: (B,) texts of the prompts; rows with the same one are answers to the same proof.

    Returns:
        Under `pv_rl/held_out/`: `acc`; `acc_label_true` over right proofs and `acc_label_false` over wrong ones;
        `balanced`, the mean of these two; `accepted`, `missing`, shares of all verdicts; `rows`; with prompts
        `proofs_label_true` and `proofs_label_false`, different proofs of each class; and `abstained`, a share of all
        rows. Under `slice/NAME/` the same but `abstained`, where there is more than one. With lengths: `length/OF`,
        means over `all` rows, over `right` and `wrong` verdicts, over `accepted`, `rejected` and `missing`;
        `length/short/acc` (`middle`, `long`), the accuracy of each third of the rows by length; equal lengths are in
        the same third, the shortest that holds one of them. A number that has no rows is not there.
    """
    rows = _rows(data_sources, infos, lengths, prompts)
    if not rows:
        return {}
    counted = [row for row in rows if row["valid"]]
    found = _accuracies(counted) | {"abstained": 1 - len(counted) / len(rows)}
    slices: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in counted:
        slices[row["slice"]].append(row)
    if 1 < len(slices) <= MOST_SLICES:
        for name, part in sorted(slices.items()):
            found |= {f"slice/{name}/{key}": value for key, value in _accuracies(part).items()}
    if lengths is not None and len(lengths) == len(data_sources):
        found |= _by_length(counted)
    return {HELD_OUT + name: value for name, value in found.items()}


def add_metrics(state: StepState) -> None:
    """Hook: log `held_out_metrics` with the metrics of a validation."""
    if state.validation is not None:
        state.metrics |= held_out_metrics(*state.validation)


def _rows(
    data_sources: Sequence[Any],
    infos: Mapping[str, Sequence[Any]],
    lengths: Sequence[int] | None,
    prompts: Sequence[str],
) -> list[dict[str, Any]]:
    """Rows that say a label; those of another reward do not."""
    names = ("acc", "label_true", "verdict_true", "verdict_missing")
    if any(len(infos.get(name, ())) != len(data_sources) for name in names):
        return []
    counts = lengths if lengths is not None and len(lengths) == len(data_sources) else [0] * len(data_sources)
    valid = infos.get(VALID) or [1.0] * len(data_sources)
    proofs = prompts if len(prompts) == len(data_sources) else [None] * len(data_sources)
    columns = zip(data_sources, counts, valid, proofs, *(infos[name] for name in names), strict=True)
    return [
        {
            "slice": _slice(str(source)),
            "length": length,
            "proof": proof,
            # verl fills in None where a row has not what others have
            "valid": bool(is_valid) and acc is not None,
            "acc": acc,
            "label": label == 1,
            "accepted": accepted == 1,
            "missing": missing == 1,
        }
        for source, length, is_valid, proof, acc, label, accepted, missing in columns
        if label is not None
    ]


def _slice(source: str) -> str:
    for end in CLASSES:
        if source == end[1:]:
            return "all"
        source = source.removesuffix(end)
    return source


def _accuracies(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    if not rows:
        return {"rows": 0.0}
    found = {"rows": float(len(rows)), "acc": _mean(rows, "acc")}
    for name, label in (("label_true", True), ("label_false", False)):
        if of_class := [row for row in rows if row["label"] is label]:
            found[f"acc_{name}"] = _mean(of_class, "acc")
            if proofs := {row["proof"] for row in of_class} - {None}:
                found[f"proofs_{name}"] = float(len(proofs))
    if "acc_label_true" in found and "acc_label_false" in found:
        found["balanced"] = (found["acc_label_true"] + found["acc_label_false"]) / 2
    return found | {"accepted": _mean(rows, "accepted"), "missing": _mean(rows, "missing")}


def _by_length(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    if not rows:
        return {}
    parts = {
        "right": [row for row in rows if row["acc"] == 1],
        "wrong": [row for row in rows if row["acc"] != 1 and not row["missing"]],
        "accepted": [row for row in rows if row["accepted"]],
        "rejected": [row for row in rows if not row["accepted"] and not row["missing"]],
        "missing": [row for row in rows if row["missing"]],
    }
    found = {"length/all": _mean(rows, "length")}
    found |= {f"length/{name}": _mean(part, "length") for name, part in parts.items() if part}
    order = sorted(row["length"] for row in rows)
    ends = [order[-(-len(order) * third // 3) - 1] for third in (1, 2, 3)]
    for name, above, end in zip(THIRDS, (-1, *ends), ends, strict=False):
        if part := [row for row in rows if above < row["length"] <= end]:
            found[f"length/{name}/acc"] = _mean(part, "acc")
    return found


def _mean(rows: Sequence[Mapping[str, Any]], name: str) -> float:
    return sum(float(row[name]) for row in rows) / len(rows)
