"""Made-up validations, as a run logs them."""

from __future__ import annotations

from pv_runs.held_out_metrics import held_out_metrics

__all__ = ["validation"]


def validation(
    rows: int = 200, answers: int = 1, **accuracies: float | tuple[float, float]
) -> dict[str, float]:
    """What a validation logs for slices of so many rows: accuracy on right and on wrong proofs, or both in one."""
    sources, labels, right = [], [], []
    for name, given in accuracies.items():
        for label, accuracy in zip(
            (1.0, 0.0), given if isinstance(given, tuple) else (given,) * 2, strict=True
        ):
            half = rows // 2
            sources += [f"{name}/{'right' if label else 'wrong'}"] * half
            labels += [label] * half
            right += [float(number < round(accuracy * half)) for number in range(half)]
    infos = {
        "acc": right,
        "label_true": labels,
        "verdict_true": labels,
        "verdict_missing": [1 - one for one in right],
    }
    prompts = [f"{source} {number // answers}" for number, source in enumerate(sources)]
    return held_out_metrics(sources, infos, prompts=prompts)
