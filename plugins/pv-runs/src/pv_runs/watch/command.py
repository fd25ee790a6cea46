"""Command `pv-rl watch`: a live view on a terminal, a line a step elsewhere, and an HTML page."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.live import Live

from pv_judge.files import write_atomically
from pv_judge.pages.terminal import print_line, standard_output
from pv_judge.pages.text import one_line
from pv_rl.errors import ConfigError, DataError
from pv_runs.watch.foreign import FileView
from pv_runs.watch.frame import Alarm, Frame
from pv_runs.watch.places import choose_run
from pv_runs.watch.screen import Screen, new_lines, to_page
from pv_runs.watch.view import View

__all__ = ["PAGE", "watch"]

PAGE = "watch.html"
"""The page's name, in the run's folder."""
UNBOUND = 110
"""Columns of a frame where there is no terminal."""


def watch(
    folder: Path | None,
    *,
    file: FileView | None = None,
    show: Sequence[str] = (),
    once: bool = False,
    html: Path | bool = False,
    interval: float = 2.0,
    console: Console | None = None,
) -> None:
    """Show a run until it ends or Ctrl-C is pressed: live on a terminal, else a line a step.

    Args:
        folder: of the run, or one that holds just one; None with `file`.
        file: a view of a metrics file, in the place of a run.
        show: patterns of further metrics to show.
        once: show one frame and return.
        html: a file to keep a page in; True for `watch.html` in the run's folder.
        interval: seconds between looks, 0.2 or more.
        console: where to write; standard output by default.

    Raises:
        ConfigError: the interval is too short, or the page has no folder.
        DataError: the folder is no run.
        OSError: the page cannot be written.
    """
    if not 0.2 <= interval <= 3600:
        raise ConfigError(f"--interval is {interval:g}; give a number of seconds from 0.2 to 3600")
    if isinstance(html, Path) and not html.parent.is_dir():
        raise ConfigError(f"--html-file {html}: there is no folder {html.parent}; create it first")
    if (folder is None) == (file is None):
        raise ConfigError("pv-rl watch: give the folder of a run or --metrics FILE, one of the two")
    view = View(choose_run(folder), show) if folder is not None else file
    assert view is not None
    page = view.folder / PAGE if html is True else html or None
    console = console or _console()
    if once:
        frame = view.look()
        _write(page, frame, None)
        console.print(Screen(frame))
        return
    run = _live if console.is_terminal else _lines
    frame = None

    def look() -> Frame:
        nonlocal frame
        try:
            frame = view.look()
        except OSError as error:  # a network's file system that is away for a while ends no view
            if frame is None:
                raise
            frame = replace(frame, now=time.time(), notes=[f"cannot be read now: {one_line(str(error))}"])
        _write(page, frame, None if frame.over_for_good else max(interval, 2.0))
        return frame

    try:
        run(look, interval, console)
    except KeyboardInterrupt:
        pass  # the way to leave; the run is no concern of ours
    finally:
        if frame is not None and not frame.over_for_good:
            _write(page, frame, None)  # a page that nobody writes any more must not look alive


def _live(look: Callable[[], Frame], interval: float, console: Console) -> None:
    frame = look()
    with Live(Screen(frame, fit=True), console=console, auto_refresh=False, vertical_overflow="crop") as live:
        while not frame.over_for_good:
            time.sleep(interval)
            frame = look()
            live.update(Screen(frame, fit=True), refresh=True)


def _lines(look: Callable[[], Frame], interval: float, console: Console) -> None:
    said = -1
    state = ""
    alarms: set[Alarm] = set()
    while True:
        frame = look()
        if frame.step is not None and frame.step < said:
            said = frame.step - 1  # the run went back to a checkpoint
        for step, line in list(new_lines(frame, said)):
            said = step
            print_line(console, line)
        for alarm in reversed(frame.alarms or ()):
            if alarm not in alarms:
                alarms.add(alarm)
                text = f"alarm  step {alarm.step}  {alarm.sign}  {alarm.message}"
                print_line(console, text)
        if frame.state != state:
            state = frame.state
            text = f"{frame.name}: {state}" + (f": {frame.note}" if frame.note else "")
            print_line(console, text)
        if frame.over_for_good:
            return
        time.sleep(interval)


def _write(page: Path | None, frame: Frame, refresh: float | None) -> None:
    """Put the page in place, whole: a browser may load it at any moment."""
    if page is None:
        return
    if page.is_dir():
        raise DataError(f"{page} is a folder; choose a file for the page")
    text = to_page(frame, refresh=refresh)
    write_atomically(page, lambda temporary: temporary.write_text(text, encoding="utf-8", errors="replace"))


def _console() -> Console:
    """Standard output. What its encoding lacks is shown as `?` and ends no view."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    return standard_output(UNBOUND)
