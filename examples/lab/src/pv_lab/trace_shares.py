"""Trace statistics: shares of kinds of traces in a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from functools import lru_cache

from pv_lab.evaluate import SHORT
from pv_lab.heads import answer_of
from pv_lab.samples import Sample
from pv_lab.tokenizer import EOS, VOCABULARY

__all__ = [
    "BARE",
    "KINDS",
    "TIMES",
    "WORDS_IN_A_ROW",
    "loops",
    "mean",
    "repetitive",
    "trace_shares",
]

EOS_ID = VOCABULARY[EOS]
BARE = 3
"""Tokens of `### True` and its end mark."""
WORDS_IN_A_ROW, TIMES = 6, 3
KINDS = {
    "short": f"at most {SHORT} tokens, the end mark included, which is too few to look at a step",
    "bare": "a verdict and nothing else",
    "cut_off": "as many tokens as are allowed, without an end mark",
    "repetitive": f"the same {WORDS_IN_A_ROW} words in a row, {TIMES} times or more",
}
"""The kinds of traces that are counted."""


@lru_cache(maxsize=2**16)
def loops(trace: tuple[int, ...]) -> bool:
    """`repetitive`, of ids that are asked about more than once."""
    return repetitive(trace)


def trace_shares(traces: list[list[int]], samples: list[Sample]) -> dict[str, float]:
    """Means and shares from 0 to 1 over traces of `samples`; NaN where there is none of a kind.

    Args:
        traces: ids of each trace with its end mark, without padding.
        samples: what each is a trace of.
    """
    verdicts = [answer_of("verdict", tuple(trace)).accepts for trace in traces]
    lengths = [len(trace) for trace in traces]
    labels = [sample.label for sample in samples]
    right = [verdict == label for verdict, label in zip(verdicts, labels, strict=True)]
    return {
        "reward": mean(right),
        "right_proofs": mean([r for r, label in zip(right, labels, strict=True) if label]),
        "wrong_proofs": mean([r for r, label in zip(right, labels, strict=True) if not label]),
        "label_true": mean(labels),
        "accepted": mean([verdict is True for verdict in verdicts]),
        "no_verdict": mean([verdict is None for verdict in verdicts]),
        "length": mean(lengths),
        "length_accepting": mean([n for n, v in zip(lengths, verdicts, strict=True) if v is True]),
        "length_rejecting": mean([n for n, v in zip(lengths, verdicts, strict=True) if v is False]),
        "short": mean([n <= SHORT for n in lengths]),
        "bare": mean([n <= BARE and v is not None for n, v in zip(lengths, verdicts, strict=True)]),
        "cut_off": mean([EOS_ID not in trace for trace in traces]),
        "repetitive": mean([loops(tuple(trace)) for trace in traces]),
    }


def mean(values: Sequence[float]) -> float:
    """NaN of none."""
    return sum(values) / len(values) if values else float("nan")


def repetitive(words: Sequence[Hashable]) -> bool:
    """Whether some `WORDS_IN_A_ROW` words occur `TIMES` times or more; places may overlap.

    The same look at a step three times is: `S2 +14 plus 5 = +19` are six words.
    """
    runs = Counter(zip(*(words[start:] for start in range(WORDS_IN_A_ROW)), strict=False))
    return max(runs.values(), default=0) >= TIMES
