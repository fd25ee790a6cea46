"""What a batch of the lab's traces is like, in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from functools import lru_cache

from pv_rl.lab.evaluate import SHORT
from pv_rl.lab.samples import Sample
from pv_rl.lab.tokenizer import EOS, VOCABULARY, WORDS

from pv_rl.verdict import parse_verdict

__all__ = ["BARE", "repeats", "trace_shares", "verdict_of"]

EOS_ID = VOCABULARY[EOS]
BARE = 3
"""Tokens of `### True` and its end mark."""


@lru_cache(maxsize=2**16)
def verdict_of(trace: tuple[int, ...]) -> bool | None:
    """The verdict of a trace that is given as ids."""
    return parse_verdict(" ".join(WORDS[i] for i in trace if i != EOS_ID))


def trace_shares(traces: list[list[int]], samples: list[Sample]) -> dict[str, float]:
    """Means and shares from 0 to 1 over traces of `samples`; NaN where there is none of a kind.

    Args:
        traces: ids of each trace with its end mark, without padding.
        samples: what each is a trace of.
    """
    verdicts = [verdict_of(tuple(trace)) for trace in traces]
    lengths = [len(trace) for trace in traces]
    labels = [sample.label for sample in samples]
    right = [verdict == label for verdict, label in zip(verdicts, labels, strict=True)]
    return {
        "reward": _mean(right),
        "right_proofs": _mean([r for r, label in zip(right, labels, strict=True) if label]),
        "wrong_proofs": _mean([r for r, label in zip(right, labels, strict=True) if not label]),
        "label_true": _mean(labels),
        "accepted": _mean([verdict is True for verdict in verdicts]),
        "no_verdict": _mean([verdict is None for verdict in verdicts]),
        "length": _mean(lengths),
        "length_accepting": _mean([n for n, v in zip(lengths, verdicts, strict=True) if v is True]),
        "length_rejecting": _mean([n for n, v in zip(lengths, verdicts, strict=True) if v is False]),
        "short": _mean([n <= SHORT for n in lengths]),
        "bare": _mean([n <= BARE and v is not None for n, v in zip(lengths, verdicts, strict=True)]),
        "cut_off": _mean([EOS_ID not in trace for trace in traces]),
        "repetitive": _mean([repeats(trace, 6, 3) for trace in traces]),
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else float("nan")


def repeats(words: Sequence[Hashable], length: int, times: int) -> bool:
    """Whether some `length` words in a row occur at least `times` times; places may overlap."""
    runs = Counter(zip(*(words[start:] for start in range(length)), strict=False))
    return max(runs.values(), default=0) >= times
