"""Search of one fuzz target with atheris.

A failing input is kept and the search continues. It is one finding for each type of error and line of ours that raised
it: `found/NAME-LINE` has the input, and `.txt` beside it the error. Now and then an input is repeated to two sizes, to
find work that is not linear.
"""

from __future__ import annotations

import logging
import os
import re
import time
import traceback
import warnings
from pathlib import Path

import atheris

from fuzz.corpus import LARGEST, first_inputs
from fuzz.targets import TARGETS, Target

__all__ = ["search"]

ROOT = Path(__file__).parents[3]
EVERY = 400
"""Runs between two checks of time; they take at most a tenth of all of it."""
SIZES = (8_192, 32_768)
MOST_GROWTH, LEAST_S = 10, 0.5
"""Four times the input may take ten times as long; what takes less than half a second is fast enough."""
LONGEST_S, MEMORY_MB = 60, 8000


def search(name: str, folder: Path, seconds: float, log: Path) -> None:
    """Run a target for so many seconds of processor time, and end the process: with 0, or what atheris ends it with if
    an input takes more than `LONGEST_S` or `MEMORY_MB`, or kills it.

    Args:
        name: of the target.
        folder: gets `corpus/NAME` and `found`.
        seconds: of processor time, at least.
        log: gets what atheris prints, and a last line `RUNS number`.
    """
    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    logging.disable()
    warnings.simplefilter("ignore")
    time.sleep = lambda _: None  # of readers that wait for a writer
    corpus, found = folder / "corpus" / name, folder / "found"
    for one in (corpus, found):
        one.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(first_inputs(TARGETS[name])):
        (corpus / f"first-{number}").write_bytes(data)
    options = {
        "max_len": LARGEST,
        "timeout": LONGEST_S,
        "rss_limit_mb": MEMORY_MB,
        "artifact_prefix": f"{found}/{name}-",
    }
    arguments = [f"-{key}={value}" for key, value in options.items()]
    atheris.Setup(["fuzz", *arguments, str(corpus)], Search(name, TARGETS[name], found, seconds))
    atheris.Fuzz()


class Search:
    """Runs a target on one input after another, and keeps what fails."""

    def __init__(self, name: str, target: Target, found: Path, seconds: float) -> None:
        self.name, self.target, self.found, self.seconds = name, target, found, seconds
        self.runs, self.began, self.measured = 0, time.process_time(), 0.0
        self.known = set[str]()

    def __call__(self, data: bytes) -> None:
        """Run one input; after the last one the process ends."""
        if time.process_time() - self.began > self.seconds:
            os.write(1, f"\nRUNS {self.runs}\n".encode())
            os._exit(0)  # libFuzzer has no other way to end before its own time
        self.runs += 1
        try:
            self.target.run(data)
        except Exception as error:  # noqa: BLE001 - whatever a reader lets through is what is looked for
            self._keep(data, error)
        if self.runs % EVERY == 0 and self.measured < 0.1 * (time.process_time() - self.began):
            start = time.process_time()
            self._measure(data[:256])
            self.measured += time.process_time() - start

    def _keep(self, data: bytes, error: Exception) -> None:
        frames = [
            one for one in traceback.extract_tb(error.__traceback__) if one.filename.startswith(str(ROOT))
        ]
        ours = [one for one in frames if "/tests/" not in one.filename] or frames
        place = f"{Path(ours[-1].filename).stem}-{ours[-1].lineno}"
        if isinstance(error, AssertionError):
            place = f"{frames[-1].name}-{frames[-1].lineno}-{place}"
        self._write(f"{type(error).__name__}-{place}", data, "".join(traceback.format_exception(error)))

    def _write(self, kind: str, data: bytes, text: str) -> None:
        if kind not in self.known:
            self.known.add(kind)
            path = self.found / re.sub(r"[^\w.-]", "_", f"{self.name}-{kind}")
            path.write_bytes(data)
            path.with_name(f"{path.name}.txt").write_text(text, errors="backslashreplace")

    def _measure(self, part: bytes) -> None:
        for _ in range(2 if part else 0):  # what the machine does beside counts once
            small, large = (self._seconds(part * (size // len(part))) for size in SIZES)
            if large < LEAST_S or large < MOST_GROWTH * small:
                return
        if part:
            self._write(
                "not-linear", part, f"{SIZES} bytes take {small:.2f} and {large:.2f} s, this input repeated"
            )

    def _seconds(self, data: bytes) -> float:
        start = time.process_time()
        try:
            self.target.run(data)
        except Exception as error:  # noqa: BLE001 - see above
            self._keep(data, error)
        return time.process_time() - start
