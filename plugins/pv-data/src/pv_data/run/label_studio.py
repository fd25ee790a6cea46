"""Label Studio tasks: the proofs to read next as a project's JSON import, with the labeling configuration beside it.

Texts of models are HTML without a tag of their own (`mathml.to_html`). Each task carries the id of its draw, and the
run keeps what was drawn in `draws/`: an export of other tasks, or of tasks whose text was changed, is recognized.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from pv_data.audit import Drawn, Rounds
from pv_data.audit.mathml import to_html
from pv_data.records import AuditMark, content_id
from pv_data.run.reading_list import ANSWERS, ToRead, reading_list, time_after
from pv_judge.files import check_target, load_json, write_together
from pv_judge.pages.text import visible
from pv_rl.errors import DataError

__all__ = ["Draw", "draw_tasks", "draws", "fingerprint"]

DRAWS = "draws"
THIRD = """<Header value="What the readers before you found" size="4"/>
  <HyperText name="earlier" value="$earlier" inline="true"/>"""
SHOWN = ("proof_id", "round", "problem", "proof", "as_written", "earlier")
KEPT = '<div style="white-space: pre-wrap; overflow-wrap: anywhere; overflow-x: auto">{}</div>'
"""Line breaks of a text are shown. Browsers do not break formulas: a long one is scrolled to."""


@dataclass(frozen=True, kw_only=True)
class Draw:
    """What a task file holds."""

    id: str
    time: str
    third: bool
    tasks: Mapping[str, str]
    """The `fingerprint` of each task, by proof id."""


def draws(run: Path) -> dict[str, Draw]:
    """The draws of a run for Label Studio, by id, the latest last.

    Raises:
        DataError: a file of `draws/` that cannot be read.
    """
    found = []
    for path in sorted((run / DRAWS).glob("*.json")):
        try:
            one = Draw(**load_json(path.read_text(encoding="utf-8")))
            if not (isinstance(one.time, str) and isinstance(one.tasks, dict)):
                raise TypeError("a time and tasks are missing")
            found.append(one)
        except (OSError, ValueError, TypeError) as error:
            raise DataError(f"{path} cannot be read as a draw ({error}); restore it") from error
    return {one.id: one for one in sorted(found, key=lambda one: one.time)}


def draw_tasks(
    run: Path,
    tasks: Path,
    *,
    third: bool = False,
    pilot: float = 0.05,
    seed: int = 0,
    rounds: Rounds | None = None,
) -> Drawn:
    """Write the proofs that are to be read next as tasks, and the labeling configuration beside them (`.xml`).

    Where nothing is to be read, no file is written. The same draw again has the same id.

    Args:
        run: the run's folder.
        tasks: the `.json` file that is written; one that is there is not overwritten.
        third: see `reading_list`, as for the rest.
        pilot: part of each source's questions.
        seed: of the pilot and of the sample.
        rounds: None: the paper's.

    Raises:
        DataError: a file is there, the name does not end in `.json`, or the run has no labels.
        ConfigError: no such part.
    """
    if tasks.suffix != ".json":
        raise DataError(
            f"--out {tasks} does not end in .json; name the file of the tasks, for example tasks.json"
        )
    config = tasks.with_suffix(".xml")
    for path in (tasks, config):
        check_target("--out", path)
        if path.exists():
            raise DataError(f"{path} exists. Record what was drawn before, and choose another file")
    drawn, wanted = reading_list(run, third=third, pilot=pilot, seed=seed, rounds=rounds)
    if not wanted:
        return drawn
    data = [_data(one) for one in wanted]
    printed = {one["proof_id"]: fingerprint(one) for one in data}
    number = content_id("draw", third, *printed.values())
    (run / DRAWS).mkdir(exist_ok=True)
    kept = Draw(
        id=number, time=time_after(one.time for one in draws(run).values()), third=third, tasks=printed
    )
    content = [{"data": one | {"draw": number}} for one in data]
    labeling = files("pv_data.run").joinpath("labeling.xml").read_text(encoding="utf-8")
    labeling = labeling.replace("<!-- earlier -->\n  ", f"{THIRD}\n  " if third else "")
    write_together(
        {
            tasks: json.dumps(content, ensure_ascii=False, indent=1).encode("utf-8", "replace"),
            config: labeling.encode(),
            run / DRAWS / f"{number}.json": json.dumps(vars(kept), indent=1).encode(),
        }
    )
    return drawn


def _data(one: ToRead) -> dict[str, Any]:
    texts = (one.problem, one.proof)
    problem, proof = (KEPT.format(to_html(text)) for text in texts)
    written = KEPT.format("<hr>".join(escape(visible(text)) for text in texts))
    seen = {"earlier": _earlier(one.earlier)} if one.earlier else {}
    return {
        "proof_id": one.proof_id,
        "round": one.round,
        "problem": problem,
        "proof": proof,
        "as_written": written,  # `$source` would show Label Studio's own record of the task, with who annotated it
        **seen,
    }


def _earlier(marks: Iterable[AuditMark]) -> str:
    """What the readers before found, without their names."""
    made = list[str]()
    for number, mark in enumerate(marks, start=1):
        made.append(f"<p><b>Reader {number}: {ANSWERS[mark.human]}</b></p>")
        said = (("Kind of fault", mark.fault), ("First wrong step", mark.step), ("Comment", mark.note))
        made += [f"<p>{head}:</p>{KEPT.format(to_html(text))}" for head, text in said if text]
    return "".join(made)


def fingerprint(data: Mapping[str, Any]) -> str:
    """Of what a task shows. Label Studio gives a task's data back as it was imported, beside columns of its users."""
    shown = {name: value for name, value in data.items() if name in SHOWN}
    return content_id("task", json.dumps(shown, sort_keys=True))
