"""Metrics of a judge service between two reports, and its rate-limited log of failures."""

from __future__ import annotations

import logging
import math
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pv_judge.answer import Answer, JudgeFailure

__all__ = ["FailureLog", "Metrics", "RowId", "Span", "exposed_wait", "percentile"]

logger = logging.getLogger("pv_rl")

RowId = tuple[str, int | None]
"""A prompt's uid and which of its responses it is."""
Span = tuple[float, float]
"""When something began and ended, in seconds since the epoch."""

LINES_A_MINUTE = 10
REMIND_S = 600.0
SPANS_KEPT = 100_000
CLIENT = ("retries", "hedges", "failovers", "breaker_openings", "usage_capped")
"""Counters of the client that a report contains, beside the requests that failed, `failures/KIND`."""


@dataclass
class Metrics:
    """Counts since the last report; spans of rows until the report that asks for them."""

    counts: Counter[str] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)
    usd: float = 0.0
    of_client: Counter[str] = field(default_factory=Counter)
    """`JudgeClient.counters` at the last report."""
    spans: OrderedDict[RowId, Span] = field(default_factory=OrderedDict)

    def add(self, answer: Answer | JudgeFailure) -> None:
        """Count a question that was sent to a server."""
        self.counts["requests"] += answer.requests
        self.counts["tokens"] += answer.usage.prompt_tokens + answer.usage.completion_tokens
        self.usd += answer.usd
        if isinstance(answer, JudgeFailure):
            self.counts[f"failed/{answer.kind}"] += 1
        else:
            self.latencies.append(answer.latency_s)

    def add_span(self, row: RowId, span: Span) -> None:
        """When the reward of a row began, right after its last token, and when it was ready."""
        self.spans[row] = span
        while len(self.spans) > SPANS_KEPT:
            self.spans.popitem(last=False)

    def since_last(self, counters: Mapping[str, int]) -> dict[str, float]:
        """Increase of `JudgeClient.counters` since the last call."""
        new, self.of_client = Counter(counters) - self.of_client, Counter(counters)
        names = [*CLIENT, *sorted(name for name in new if name.startswith("failures/"))]
        return {f"{name}/sum": float(new[name]) for name in names}

    def report(self, rows: Iterable[RowId] = (), window: Span | None = None) -> dict[str, float]:
        """The numbers since the last report.

        Names end in `/sum` or `/max` where several reports make one step of verl's, which adds up or takes the largest
        by the name (verl/trainer/ppo/v1/utils.py, MetricsAggregator).

        Args:
            rows: those of a step.
            window: from when to when the trainer waited for them.
        """
        hits, misses = self.counts["cache_hits"], self.counts["cache_misses"]
        failed = {name: n for name, n in self.counts.items() if name.startswith("failed/")}
        numbers: dict[str, float] = {
            "requests/sum": self.counts["requests"],
            "tokens/sum": self.counts["tokens"],
            "usd/sum": self.usd,
            "failed/sum": sum(failed.values()),
            **{f"{name}/sum": n for name, n in sorted(failed.items())},
            "disk_errors/sum": self.counts["disk_errors"],
        }
        if hits + misses:
            numbers["cache_hit_rate"] = hits / (hits + misses)
        if self.latencies:
            for share in (0.5, 0.95):
                numbers[f"latency_p{100 * share:.0f}_s"] = percentile(self.latencies, share)
        spans = [span for row in rows if (span := self.spans.pop(row, None)) is not None]
        if spans and window is not None:
            numbers["exposed_wait_s/sum"] = exposed_wait(spans, window)
        self.counts, self.latencies, self.usd = Counter(), [], 0.0
        return numbers


def exposed_wait(spans: Sequence[Span], window: Span) -> float:
    """Seconds of a wait in which only rewards were missing.

        max(0, min(window end, last reward ready) - max(window begin, last response ready))

    Before the last response the trainer waits for rollouts anyway, and a reward that is done before the trainer waits
    costs nothing: with an asynchronous trainer this is the only cost of a judge in time.

    Example: responses end at 10 s and 20 s, and their rewards are ready at 25 s and 24 s. A trainer that waits from 5 s
    to 25 s is exposed for 25 - 20 = 5 s; one that comes at 23 s for 2 s, one that comes at 30 s not at all.
    """
    begun, ended = max(begin for begin, _ in spans), max(end for _, end in spans)
    return max(0.0, min(window[1], ended) - max(window[0], begun))


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of the values do not exceed (nearest rank)."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


class FailureLog:
    """Logs a failure if its kind or status differs from the last one logged, or after ten minutes."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lines: deque[float] = deque([-float("inf")], maxlen=LINES_A_MINUTE)
        self._last: tuple[str, int | None] | None = None
        self._unlogged = 0

    def add(self, failure: JudgeFailure) -> None:
        """Log a failure, or count it for the next line."""
        now, this = self._clock(), (failure.kind, failure.status)
        due = this != self._last or now - self._lines[-1] >= REMIND_S
        if not due or (len(self._lines) == LINES_A_MINUTE and now - self._lines[0] < 60):
            self._unlogged += 1
            return
        more = f" ({self._unlogged} failures since the last such line)" if self._unlogged else ""
        logger.warning("judge failure of kind %s%s: %s", failure.kind, more, failure)
        self._lines.append(now)
        self._last, self._unlogged = this, 0
