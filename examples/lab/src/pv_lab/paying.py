"""What the traces of a step are paid: the verdict's reward, a bug of it, and the veto of a judge that can fail.

The judge is `trace_shares.repetitive` on the ids, with mistakes as often as the run says. The rules of `pv_rl.rewards`
are not asked: they are made for texts, and find no loop in 2,000 looping traces of the lab.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random

from pv_lab.heads import paid_for
from pv_lab.loop_settings import Run
from pv_lab.samples import Sample, make_sample
from pv_lab.trace_shares import loops, mean

__all__ = ["Paid", "pay", "training_sample"]


@dataclass(frozen=True, kw_only=True)
class Paid:
    """Of a run's B traces."""

    scores: list[float]
    """(B,) 0 where a row abstains."""
    counts: list[bool]
    """(B,) False for a row that abstains."""
    vetoed: float
    """Share of traces that the judge vetoed."""

    @property
    def columns(self) -> dict[str, float]:
        """`score`: mean over rows that count, NaN without one; `vetoed` and `abstained`: shares of all rows."""
        counted = [score for score, counts in zip(self.scores, self.counts, strict=True) if counts]
        return {"score": mean(counted), "vetoed": self.vetoed, "abstained": 1 - mean(self.counts)}


def pay(
    run: Run, step: int, traces: Sequence[Sequence[int]], samples: Sequence[Sample], max_tokens: int
) -> Paid:
    """Pay the traces of one run and step.

    Example: a trace of 64 of 128 tokens with the right verdict earns 1.5 with `length_bonus` 1, and 0 where it loops
    and `veto` is `zero`.

    Args:
        run: its reward, judge and faults.
        step: counted from 1.
        traces: (B,) ids with the end mark, without padding.
        samples: (B,) with the label that the run is given, which may be wrong.
        max_tokens: of a response.
    """
    rng = Random(f"pv-rl lab judge {run.seed} {step}")
    scores, counts, vetoes = [], [], 0
    silent = run.veto != "none" and run.outage_from <= step < run.outage_to
    bonus = run.length_bonus if step >= run.fault_from else 0.0
    for trace, sample in zip(traces, samples, strict=True):
        score = paid_for("verdict", tuple(trace), sample) + bonus * len(trace) / max_tokens
        chance = (
            rng.random()
        )  # drawn for every trace, so that runs with other rates have the same mistakes and more
        vetoed = run.veto != "none" and not silent and _vetoes(run, trace, chance)
        gone = (vetoed and run.veto == "abstain") or (silent and run.on_failure == "abstain")
        nothing = vetoed or (silent and run.on_failure == "fail_closed")
        scores.append(0.0 if nothing or gone else score)
        counts.append(not gone)
        vetoes += vetoed
    return Paid(scores=scores, counts=counts, vetoed=vetoes / max(1, len(scores)))


def _vetoes(run: Run, trace: Sequence[int], chance: float) -> bool:
    return chance >= run.false_negative if loops(tuple(trace)) else chance < run.false_positive


def training_sample(run: Run, step: int, index: int, difficulty: int) -> Sample:
    """Training proof number `index` of a run, with the label that the run is given at this step."""
    sample = _sample(run.seed, difficulty, run.p_true, index)
    flipped = run.flip_right if sample.label else run.flip_wrong
    if step < run.fault_from or not Random(f"pv-rl lab label {run.seed} {index}").random() < flipped:
        return sample
    return replace(sample, label=not sample.label)


@lru_cache(maxsize=2**16)
def _sample(seed: int, difficulty: int, p_true: float, index: int) -> Sample:
    return make_sample(seed=seed, split="train", index=index, difficulty=difficulty, p_true=p_true)
