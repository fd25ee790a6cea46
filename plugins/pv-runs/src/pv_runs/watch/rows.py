"""Rows of the view: which numbers of a run are shown, in which order, and how."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from pv_judge.pages.text import plain
from pv_rl.hookspecs import NAME
from pv_runs import metric_names
from pv_runs.measures import KEYS, MEASURES, Measure
from pv_runs.metrics_log import Series
from pv_runs.watch.frame import Form, Row, Section

__all__ = ["KEPT", "MOST_OTHERS", "MOST_RULES", "OVER", "RULE", "fill", "matches"]

OVER = 10
"""Steps over which a change is shown."""
RULE = metric_names.RULE
"""What stands before a rule's name in the key of its share."""
MOST_RULES = 64
MOST_OTHERS = 60
"""Further metrics that are shown."""
SHARES = (
    "share of responses",
    "accuracy",
    "share of prompts",
    "share of the update",
    "share of questions",
    "share of tokens",
)
BY_NAME = {measure.name: measure for measure in MEASURES}


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A measure and its place."""

    measure: Measure
    rank: int = 1
    form: Form | None = None
    """None: a share or a number, by the unit."""
    zeros: bool = True
    """Whether it is shown where it has been 0 all along."""


def _ours(name: str, rank: int = 1, zeros: bool = True) -> Shown:
    """One that the report has too."""
    return Shown(measure=BY_NAME[name], rank=rank, zeros=zeros)


def _more(
    title: str, unit: str, key: str, rank: int = 2, zeros: bool = True, form: Form | None = None
) -> Shown:
    return Shown(
        measure=Measure(name=key, title=title, unit=unit, keys=(key,)), rank=rank, zeros=zeros, form=form
    )


RESPONSES, UPDATE = "share of responses", "share of the update"
SECTIONS = {
    "reward and accuracy": (
        _ours("reward"),
        _ours("held_out_right"),
        _ours("held_out_wrong"),
        _ours("held_out_balanced", 2),
        _ours("training_right"),
        _ours("training_wrong"),
        _more("verdict True", RESPONSES, metric_names.VERDICT_TRUE),
        _more("label True", RESPONSES, metric_names.LABEL_TRUE, 3),
    ),
    "responses": (
        _ours("length"),
        _ours("length_true"),
        _ours("length_false"),
        _ours("length_none", 2),
        _more("cut off", RESPONSES, "response_length/clip_ratio"),
        _more("no verdict", RESPONSES, metric_names.VERDICT_MISSING, 1),
    ),
    "vetoes": (
        _ours("vetoed"),
        _more("by the judge", RESPONSES, metric_names.VETOED_BY_JUDGE, zeros=False),
        _ours("abstained", 1, zeros=False),
        _more("reward failed", RESPONSES, metric_names.REWARD_FAILED, 1, zeros=False),
    ),
    "weights": (
        _ours("effective_responses"),
        _more("groups without signal", "share of prompts", metric_names.WITHOUT_SIGNAL),
        _more("shortest quarter", UPDATE, metric_names.SHORTEST),
        _more("longest quarter", UPDATE, metric_names.LONGEST),
        _more("verdict True", UPDATE, metric_names.WEIGHT_TRUE, 3),
        _more("verdict False", UPDATE, metric_names.WEIGHT_FALSE, 3),
        _more("no verdict", UPDATE, metric_names.WEIGHT_NONE, 3),
        _more("eta", "", metric_names.ETA, 3),
        _more("metrics failed", "", metric_names.METRICS_FAILED, 1, zeros=False),
    ),
    "judge": (
        _more("requests", "a step", metric_names.REQUESTS, 2, False, "count"),
        _more("latency, median", "s", metric_names.LATENCY_P50),
        _more("latency, 95 %", "s", metric_names.LATENCY_P95, 1),
        _more("waited for", "s a step", metric_names.EXPOSED_WAIT, zeros=False),
        _more("questions failed", "a step", metric_names.QUESTIONS_FAILED, 1, False, "count"),
        _more("no answer", RESPONSES, metric_names.JUDGE_FAILED, 1, zeros=False),
        _more("not asked", RESPONSES, metric_names.UNJUDGED, 1, zeros=False),
        _more("from the cache", "share of questions", metric_names.CACHE_HITS),
        Shown(
            measure=Measure(name="usd", title="cost", unit="$ a step", keys=(metric_names.COST,)),
            zeros=False,
        ),
        _more("unreachable", "", metric_names.UNREACHABLE, 1, zeros=False),
        _more("disk errors", "a step", metric_names.DISK_ERRORS, 1, False, "count"),
    ),
    "training": (
        _ours("kl", 2),
        _more("entropy", "nats", "actor/entropy"),
        _more("gradient norm", "", "actor/grad_norm"),
        _more("clipped", "share of tokens", "actor/pg_clipfrac"),
        _more("learning rate", "", "actor/lr"),
        _ours("seconds", 2),
        _more("throughput", "tokens/s a GPU", "perf/throughput"),
        _more("GPU memory", "GB, peak", "perf/max_memory_allocated_gb"),
        _more("GPU memory, reserved", "GB, peak", "perf/max_memory_reserved_gb", 3),
        _more("CPU memory", "GB", "perf/cpu_memory_used_gb", 3),
    ),
}
"""By title."""
KEPT = KEYS | {key for section in SECTIONS.values() for shown in section for key in shown.measure.keys}
"""What is kept of a run's metrics, beside the shares of the rules and the validations."""


def fill(
    series: Mapping[str, Series], over: int, step: int | None = None, show: Sequence[str] = ()
) -> list[Section]:
    """The sections that have numbers.

    Args:
        series: by key, of which the steps are in order.
        over: steps over which a change is told, 1 or more.
        step: the run's; a row whose last value is of an earlier one says of which.
        show: patterns of further metrics to show, `fnmatch`'s.
    """
    sections = []
    for title, section in SECTIONS.items():
        shown = [*section, *(_rules(series) if title == "vetoes" else ())]
        rows = [row for one in shown if (row := _row(one, series, over, step)) is not None]
        asked = series.get(metric_names.REQUESTS, {})
        if rows and (title != "judge" or any(value > 0 for value in asked.values()) or _trouble(rows)):
            sections.append(Section(title=title, rows=rows))
    others = sorted(
        key for key in series if key not in KEPT and not key.startswith(RULE) and matches(key, show)
    )
    further = (_more(plain(key, 60), "", key) for key in others[:MOST_OTHERS])
    if rows := [row for one in further if (row := _row(one, series, over, step)) is not None]:
        left = len(others) - MOST_OTHERS
        title = "other metrics" + (f" ({left} more: choose with --show)" if left > 0 else "")
        sections.append(Section(title=title, rows=rows))
    return sections


def matches(key: str, patterns: Sequence[str]) -> bool:
    """Whether a metric's name matches one of the patterns."""
    return any(fnmatchcase(key, pattern) for pattern in patterns)


def _trouble(rows: list[Row]) -> bool:
    """Whether a judge that was never asked has something to say all the same."""
    return any(row.rank == 1 for row in rows)


def _rules(series: Mapping[str, Series]) -> Iterator[Shown]:
    """Those that have hit; a rule's name has to be one, since a metrics file may hold any key."""
    keys = [key for key in series if key.startswith(RULE) and NAME.fullmatch(key.removeprefix(RULE))]
    for key in keys[:MOST_RULES]:
        yield _more(key.removeprefix(RULE)[:40], RESPONSES, key, 2, zeros=False)


def _row(shown: Shown, series: Mapping[str, Series], over: int, step: int | None) -> Row | None:
    key = shown.measure.choose_key([series])
    points = series.get(key or "", {})
    if not points or not (shown.zeros or any(value != 0 for value in points.values())):
        return None
    steps, values = list(points), list(points.values())
    before = next((place for place in range(len(steps) - 2, -1, -1) if steps[place] <= steps[-1] - over), 0)
    unit = shown.measure.unit
    if step is not None and steps[-1] != step:
        unit = f"{unit}, step {steps[-1]}".removeprefix(", ")
    change = values[-1] - values[before] if len(steps) > 1 else None
    return Row(
        title=shown.measure.title,
        unit=unit,
        form=shown.form or ("share" if shown.measure.unit in SHARES else "number"),
        rank=shown.rank,
        steps=steps,
        values=values,
        change=change if change is not None and math.isfinite(change) else None,
    )
