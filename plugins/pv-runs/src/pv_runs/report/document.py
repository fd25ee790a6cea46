"""The report as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pv_rl import __version__
from pv_runs.report.labels import is_numeric
from pv_runs.report.runs import Run
from pv_runs.report.settings import Result, Setting
from pv_runs.report.summary import Summary

__all__ = ["document"]


def document(summary: Summary) -> dict[str, Any]:
    """A tree of plain values, without NaN.

    Keys: `source`, `pv_rl` (version), `last`, `notes`, `numeric` (whether settings are values of one number);
    `measures`, by name with `title`, `unit`, `key` of verl's log and `kind` of the final value; `settings`, each with
    `label`, `runs`, `averaged` (names), `step` and `means` by measure (`mean`, `low`, `high`, `number`, or null);
    `runs`, each with `name`, `setting`, `averaged`, `seed`, `state`, `error`, `versions`, `mode`, `step`,
    `values` by measure, and `series` by measure: `step` and `value`, null where it is no finite number.
    """
    return {
        "source": summary.source,
        "pv_rl": __version__,
        "last": summary.last,
        "notes": list(summary.notes),
        "numeric": is_numeric([setting.label for setting in summary.settings]),
        "measures": {
            measure.name: {"title": measure.title, "unit": measure.unit, "key": key, "kind": measure.kind}
            for measure, key in summary.keys.items()
        },
        "settings": [_setting(setting) for setting in summary.settings],
        "runs": [
            _run(result, setting, summary) for setting in summary.settings for result in setting.results
        ],
    }


def _setting(setting: Setting) -> dict[str, Any]:
    return {
        "label": setting.label,
        "runs": [result.run.name for result in setting.results],
        "averaged": [result.run.name for result in setting.averaged],
        "step": setting.step,
        "means": {name: None if mean is None else asdict(mean) for name, mean in setting.means.items()},
    }


def _run(result: Result, setting: Setting, summary: Summary) -> dict[str, Any]:
    run: Run = result.run
    return {
        "name": run.name,
        "setting": setting.label,
        "averaged": result in setting.averaged,
        "seed": run.seed,
        "state": run.state,
        "error": run.error,
        "versions": dict(run.versions),
        "mode": run.mode,
        "step": run.log.last_step,
        "values": dict(result.values),
        "series": {
            measure.name: _series(run.log.series[key])
            for measure, key in summary.keys.items()
            if key in run.log.series
        },
    }


def _series(series: Mapping[int, float]) -> dict[str, list[Any]]:
    return {
        "step": list(series),
        "value": [value if math.isfinite(value) else None for value in series.values()],
    }
