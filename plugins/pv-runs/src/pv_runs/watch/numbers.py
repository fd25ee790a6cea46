"""Metrics of a run, read again and again while their files grow."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from pv_runs.growing_file import Replaced, Tail
from pv_runs.metrics_log import Collector, Log, attempt_of, parse_line
from pv_runs.watch.rows import KEPT, MOST_OTHERS, MOST_RULES, RULE, matches

__all__ = ["Numbers"]


class Numbers:
    """Reads the files of all attempts; what cannot be read is left out and counted.

    Args:
        show: patterns of metrics to keep beside those of the view.
    """

    def __init__(self, show: Sequence[str] = ()) -> None:
        self._show = show
        self._forget()

    def _forget(self) -> None:
        self._tails: list[Tail] = []
        self._rules: set[str] = set()
        self._others: set[str] = set()
        self.resumed: list[int] = []
        """First steps of the attempts after the first."""
        self._began = False
        self._collector = Collector(self._wanted)
        self._log = self._collector.log()
        self._damaged = 0

    @property
    def skipped(self) -> int:
        """Lines that are left out."""
        return self._damaged + sum(tail.skipped for tail in self._tails)

    def look(self, paths: Sequence[Path]) -> Log:
        """Everything up to now.

        Args:
            paths: of the attempts, in their order.
        """
        try:
            self._read(paths)
        except Replaced:  # verl's logger writes its file anew where a run is started again
            self._forget()
            with contextlib.suppress(Replaced):
                self._read(paths)
        return self._log

    def _read(self, paths: Sequence[Path]) -> None:
        known = [tail.path for tail in self._tails]
        if known != list(paths[: len(known)]):
            raise Replaced
        changed = False
        for place, path in enumerate(paths):
            if place == len(self._tails):
                self._tails.append(Tail(path))
                self._collector.begin_file(attempt_of(path))
                self._began = place > 0
            if place < len(paths) - 1 and place < len(known) - 1:
                continue  # an attempt that another one has followed says no more
            with contextlib.suppress(OSError):  # not there yet, or not any more
                for line in self._tails[place].look():
                    changed |= self._add(line)
        if changed:
            self._log = self._collector.log()

    def _add(self, line: bytes) -> bool:
        try:
            step, data = parse_line(line)
            self._collector.add(step, data)
            if self._began:
                self.resumed.append(step)
                self._began = False
        except ValueError:  # DataError is one
            self._damaged += 1
            return False
        return True

    def _wanted(self, key: str) -> bool:
        if key.startswith(RULE) and len(self._rules) < MOST_RULES:
            self._rules.add(key)
        if len(self._others) < 2 * MOST_OTHERS and matches(key, self._show):
            self._others.add(key)
        return key in KEPT or key in self._rules or key in self._others
