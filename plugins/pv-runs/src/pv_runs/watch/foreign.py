"""View of a metrics file that another trainer wrote: the same frame as of a run, without a run folder."""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from pv_judge.pages.text import plain, plural
from pv_rl.errors import ConfigError
from pv_runs import metric_names
from pv_runs.growing_file import Replaced
from pv_runs.watch.frame import Alarm, Frame
from pv_runs.watch.metrics_file import Reader, open_metrics
from pv_runs.watch.rows import OVER, fill

__all__ = ["ALIASES", "FileView", "read_map"]

ALIASES: Mapping[str, str] = {
    # TRL's GRPO
    "reward": "critic/score/mean",
    "kl": "actor/kl_loss",
    "entropy": "actor/entropy",
    "grad_norm": "actor/grad_norm",
    "learning_rate": "actor/lr",
    "completions/mean_length": "response_length/mean",
    "completion_length": "response_length/mean",
    "completions/clipped_ratio": "response_length/clip_ratio",
    "clip_ratio/region_mean": "actor/pg_clipfrac",
    "clip_ratio": "actor/pg_clipfrac",
    "frac_reward_zero_std": metric_names.WITHOUT_SIGNAL,
    "step_time": "timing_s/step",
    # OpenRLHF and TRL's PPO
    "response_length": "response_length/mean",
    "actor_lr": "actor/lr",
    "lr": "actor/lr",
    "objective/kl": "actor/kl_loss",
    "objective/entropy": "actor/entropy",
    "policy/clipfrac_avg": "actor/pg_clipfrac",
}
"""verl's name of a metric by that of another trainer, without `train/` before it."""
PREFIXES = ("train/", "train_")
MOST_SERIES = 300
MOST_POINTS = 500_000
"""Numbers that are kept; with more, every second step of the older ones is dropped."""
SHOWN_ALARMS, MOST_ALARMS = 5, 1000
MOST_WATCHED = 20_000
"""Steps of one look that the sentinel reads, the last ones: it takes a quarter of a millisecond for each."""


class Watches(Protocol):
    """The part of `pv_runs.sentinel.Watcher` that is used here."""

    def observe(self, step: int, metrics: Mapping[str, Any]) -> Sequence[Any]: ...

    def validated(self, step: int, metrics: Mapping[str, Any]) -> Sequence[Any]: ...


def read_map(given: Sequence[str]) -> dict[str, str]:
    """`NAME=THEIRS` of the command line, as verl's name by theirs.

    Raises:
        ConfigError: a text has no `=` or an empty part.
    """
    found = {}
    for text in given:
        ours, _, theirs = text.partition("=")
        if not ours.strip() or not theirs.strip():
            raise ConfigError(
                f"--map is {text!r}; give NAME=THEIRS, for example actor/entropy=policy_entropy"
            )
        found[theirs.strip()] = ours.strip()
    return found


class FileView:
    """Of one file, which may still grow. Nothing in it is trusted.

    Args:
        path: a file, or a folder with TensorBoard's event files.
        names: verl's name by theirs, before `ALIASES`.
        show: patterns of names to show; none for all.
        final: the file is complete.
        make_watcher: of the sentinel that reads the steps.
    """

    def __init__(
        self,
        path: Path,
        *,
        names: Mapping[str, str] | None = None,
        show: Sequence[str] = (),
        final: bool = False,
        make_watcher: Callable[[], Watches],
    ) -> None:
        self.folder = path if path.is_dir() else path.parent
        self._path, self._show, self._final, self._make_watcher = path, show, final, make_watcher
        self._names = {**ALIASES, **(names or {})}
        self._begin()

    def _begin(self) -> None:
        self._reader: Reader = open_metrics(self._path)
        self._series: dict[str, dict[int, float]] = {}
        self._points = self._left_out = 0
        self._rows = 0
        self._watcher, self._alarms = self._make_watcher(), []
        self._unwatched: deque[tuple[int, dict[int, dict[str, float]]]] = deque([(0, {})])
        self._latest: dict[str, int] = {}
        self._resumed: list[int] = []
        self._waiting, self._dropped, self._seen = 0, 0, -1

    def look(self, now: float | None = None) -> Frame:
        """The file at this moment.

        Raises:
            DataError, ConfigError, OSError: see `open_metrics`.
        """
        try:
            self._read()
        except Replaced:
            self._begin()
            self._read()
        series = {key: dict(sorted(points.items())) for key, points in self._series.items()}
        last = max((max(points) for points in series.values() if points), default=None)
        times = [t for t in list(series.get("timing_s/step", {}).values())[-OVER:] if t > 0]
        return Frame(
            name=plain(self._path.resolve().name, 80),
            state="metrics file",
            note="" if last is not None else "no step was read yet",
            step=last,
            total=None,
            seconds=statistics.median(times) if times else None,
            left=None,
            wrote=self._path.stat().st_mtime,
            now=time.time() if now is None else now,
            usd=None,
            over=OVER,
            sections=fill(series, OVER, last, show=self._show or ("*",)),
            traces=(),
            traces_from="",
            alarms=[*reversed(self._alarms[-SHOWN_ALARMS:])],
            notes=self._notes(),
            alarmed=[alarm.step for alarm in self._alarms if alarm.step is not None],
            resumed=self._resumed[-MOST_ALARMS:],
        )

    def _read(self) -> None:
        for step, numbers in self._reader.look(self._final):
            self._rows += 1
            step = self._rows if step is None else step
            numbers = {self._rename(name): value for name, value in numbers.items()}
            self._keep(step, numbers)
            if any(step < self._latest.get(name, -1) for name in numbers):
                # The run was resumed from an earlier step. A metric with a clock of its own, such as a validation that
                # is logged by epoch, does not come here.
                self._resumed.append(step)
                self._unwatched.append((step, {}))
                self._latest = {}
            self._latest |= {name: step for name in numbers if name in self._series}
            _, attempt = self._unwatched[-1]
            self._waiting += step not in attempt
            attempt.setdefault(step, {}).update(numbers)
            if self._waiting >= 2 * MOST_WATCHED:
                self._forget_old()
        self._watch(hold=self._reader.in_parts and not self._final)

    def _rename(self, name: str) -> str:
        if name in self._names:
            return self._names[name]
        bare = next((name.removeprefix(one) for one in PREFIXES if name.startswith(one)), name)
        return self._names.get(bare, name)

    def _keep(self, step: int, numbers: Mapping[str, float]) -> None:
        for name, value in numbers.items():
            if name not in self._series and len(self._series) >= MOST_SERIES:
                self._left_out += 1
                continue
            points = self._series.setdefault(name, {})
            self._points += step not in points
            points[step] = value
        if self._points > MOST_POINTS:
            for name, points in self._series.items():
                self._series[name] = dict(sorted(points.items())[::-2][::-1])  # the last one stays
            self._points = sum(map(len, self._series.values()))

    def _forget_old(self) -> None:
        while self._waiting > MOST_WATCHED:
            _, attempt = self._unwatched[0]
            old = sorted(attempt)[: self._waiting - MOST_WATCHED]
            for step in old:
                del attempt[step]
            self._waiting -= len(old)
            self._dropped += len(old)
            if not attempt and len(self._unwatched) > 1:
                self._unwatched.popleft()
                self._begin_again(self._unwatched[0][0])

    def _begin_again(self, step: int) -> None:
        self._watcher, self._seen = self._make_watcher(), -1
        self._alarms = [one for one in self._alarms if one.step is not None and one.step < step]

    def _watch(self, *, hold: bool) -> None:
        """Feed the sentinel. `hold`: not the last step, whose further metrics may still come."""
        self._forget_old()
        while True:
            _, attempt = self._unwatched[0]
            last = len(self._unwatched) == 1
            steps = sorted(attempt)
            for step in steps[:-1] if hold and last else steps:
                numbers = attempt.pop(step)
                self._waiting -= 1
                # a validation may have a line of its own, which comes later
                look = self._watcher.observe if step > self._seen else self._watcher.validated
                self._seen = max(step, self._seen)
                self._alarms += [
                    Alarm(sign=one.sign, step=one.step, message=one.sentence) for one in look(step, numbers)
                ]
            if last:
                break
            self._unwatched.popleft()
            self._begin_again(self._unwatched[0][0])
        del self._alarms[:-MOST_ALARMS]

    def _notes(self) -> list[str]:
        notes = []
        if self._reader.skipped:
            notes.append(f"left out {plural(self._reader.skipped, 'line')} that could not be read")
        if self._left_out:
            notes.append(f"the file has more than {MOST_SERIES} metrics; the further ones are left out")
        if self._dropped:
            notes.append(f"the sentinel read the last {MOST_WATCHED} steps of the file")
        if self._resumed:
            notes.append(
                f"steps went back {plural(len(self._resumed), 'time')}: the last row of a step is shown, and the "
                "sentinel began anew there"
            )
        return notes
