"""Label Studio export: the annotations of a project's JSON export as marks of the run.

People finish at different times, so the same project is exported and recorded several times. A mark is never written
twice and never removed: what was deleted in Label Studio stays recorded.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pv_data.audit.marks import latest_marks
from pv_data.records import AuditMark, Label, content_id
from pv_data.run.label_studio import Draw, draws, fingerprint
from pv_data.run.reading_list import ANSWERS, MARKS, agreed_labels, all_marks, check_name
from pv_data.table import write_part
from pv_judge.rowfiles import open_rows
from pv_rl.errors import DataError

__all__ = ["Taken", "record_export"]

VERDICTS = {name: value for value, name in ANSWERS.items()}
DAY_S = 86_400.0
UNNAMED = re.compile(r"user ([0-9]+)", re.IGNORECASE)


@dataclass(kw_only=True)
class Taken:
    """What an export came to."""

    recorded: int = 0
    unchanged: int = 0
    """Marks that were recorded before."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Annotations and tasks that are no mark, by the reason."""
    drawn: int = 0
    """Proofs of the draws that the export is of."""
    absent: list[str] = field(default_factory=list)
    """Ids in `names` by which there is no mark, which may be a mistake."""
    read_by: Counter[int] = field(default_factory=Counter)
    """These proofs by the number of their readers, after recording."""


def record_export(
    run: Path, exports: Sequence[Path], names: Mapping[str, str] | None = None, *, older: bool = False
) -> Taken:
    """Add the annotations of exports to the run's marks: all of them, or none where one cannot be read.

    Args:
        run: the run's folder.
        exports: files of Label Studio's export as JSON, of one server: the same person has the same id in all of them.
        names: of people, by their user id in Label Studio; who has none is called `user ID`.
        older: take an export also where the run has drawn again since.

    Raises:
        DataError: a file is no such export, is of no draw of this run, or of an earlier one.
    """
    names = {user.strip(): name.strip() for user, name in (names or {}).items()}
    if len(set(names.values())) < len(names) or not all(names.values()):
        raise DataError(f"--auditor names {names}; give each person a name of their own")
    before = all_marks(run)
    for user, name in names.items():
        if (unnamed := UNNAMED.fullmatch(name)) and unnamed[1] != user:
            raise DataError(
                f"--auditor {user}={name}: the user {unnamed[1]} is called {name!r}; give another name"
            )
        check_name(name, [*names.values(), *(mark.auditor for mark in before)])
    known, labels, taken = draws(run), agreed_labels(run), Taken()
    found, of = list[AuditMark](), set[str]()
    people = set[str]()
    for path in exports:
        for task in _tasks(path):
            draw, why = _draw_of(task, known, labels)
            if draw is None:
                taken.left_out[why] += 1
                continue
            of.add(draw.id)
            label = labels[task["data"]["proof_id"]]
            for annotation in task["annotations"]:
                mark = _mark(annotation, task["data"]["round"], draw.third, label)
                if isinstance(mark, str):
                    taken.left_out[mark] += 1
                else:
                    people.add(mark.auditor)
                    found.append(mark)
    _check_draws(exports, known, of, taken, older)
    new = _new_marks(found, before, names, taken)
    if new:
        last = max(mark.time for mark in new)
        name = f"{last.replace(':', '')}-{content_id('export', *(f'{mark.id} {mark.time}' for mark in new))}.parquet"
        write_part(run / MARKS / name, AuditMark, new)
    proofs = {proof for one in of for proof in known[one].tasks}
    read = latest_marks(all_marks(run))
    taken.recorded, taken.drawn, taken.absent = len(new), len(proofs), sorted(names.keys() - people)
    taken.read_by = Counter(len(read.get(proof, ())) for proof in proofs)
    return taken


def _tasks(path: Path) -> Iterator[dict[str, Any]]:
    how = "In Label Studio choose Export, then JSON (not JSON-MIN, not CSV)"
    number = 0
    for number, row in enumerate(open_rows(path, suffixes=(".json",)).rows(), start=1):  # noqa: B007
        task = row.values
        if "annotation_id" in task and "annotations" not in task:
            raise DataError(f"{path} is an export as JSON-MIN, which leaves out what is needed. {how}")
        annotations, data = task.get("annotations"), task.get("data")
        if not (
            isinstance(annotations, list)
            and isinstance(data, dict)
            and all(isinstance(one, dict) for one in annotations)
        ):
            raise DataError(f"{row.where} is no task with its annotations. {how}")
        yield task
    if not number:
        raise DataError(f"{path} has no task. {how}, of the project that the tasks were imported into")


def _draw_of(
    task: Mapping[str, Any], known: Mapping[str, Draw], labels: Mapping[str, Label]
) -> tuple[Draw | None, str]:
    """The draw of a task, or why it is of none."""
    data = task["data"]
    draw, proof = data.get("draw"), data.get("proof_id")
    one = known.get(draw) if isinstance(draw, str) else None
    if one is None or not isinstance(proof, str) or proof not in one.tasks:
        return None, "tasks that this run has not drawn"
    if one.tasks[proof] != fingerprint(data):
        return None, "tasks whose text was changed after the draw"
    if proof not in labels:
        return None, "tasks whose proof has no label any more"
    return one, ""


def _check_draws(
    exports: Sequence[Path], known: Mapping[str, Draw], of: set[str], taken: Taken, older: bool
) -> None:
    files = ", ".join(map(str, exports))
    if not of:
        whys = ", ".join(f"{number} {why}" for why, number in taken.left_out.items())
        raise DataError(
            f"{files}: no task is of a draw of this run ({whys}). Give the export of the project into "
            "which the tasks of `pv-data audit draw --to label-studio` were imported"
        )
    latest = {draw.third: draw for draw in known.values()}  # they are in order of time
    late = [known[one] for one in of if latest[known[one].third].id not in of]
    if late and not older:
        raise DataError(
            f"{files}: the tasks are of the draw {late[0].id} of {late[0].time[:16]}, and the run has drawn again at "
            f"{latest[late[0].third].time[:16]}. Give the export of the later tasks, or add --older to record these too"
        )


def _mark(annotation: Mapping[str, Any], number: int, third: bool, label: Label) -> AuditMark | str:
    """The mark of an annotation, whose auditor is a user id; or why it is none."""
    who = annotation.get("completed_by")
    who = who.get("id") if isinstance(who, dict) else who
    if isinstance(who, bool) or not isinstance(who, int):
        return "annotations without a user"
    if annotation.get("was_cancelled"):
        return "tasks that were skipped"
    if annotation.get("parent_annotation") or annotation.get("parent_prediction"):
        return "annotations that were copied from another"
    if annotation.get("updated_by") not in (None, who):
        return "annotations that somebody else changed"
    time = _time(annotation.get("updated_at") or annotation.get("created_at"))
    if time is None:
        return "annotations without a time, or with one in the future"
    given = _answers(annotation.get("result"))
    if given is None or len(given.get("verdict", ())) != 1:
        return "annotations without a verdict, or with several"
    (verdict,) = given["verdict"]
    if verdict not in VERDICTS:
        return "annotations with a choice that the labeling configuration does not have"
    seconds = annotation.get("lead_time")
    timed = isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and 0 < seconds <= DAY_S
    human = VERDICTS[verdict]
    return AuditMark(
        proof_id=label.proof_id,
        problem_id=label.problem_id,
        slice=label.slice,
        auditor=str(who),
        round=number,
        label=bool(label.value),
        human=human,
        note="\n".join(given.get("comment", ())),
        time=time,
        fault="\n".join(given.get("fault", ())) if human is False else "",
        step="\n".join(given.get("step", ())) if human is False else "",
        seconds=float(seconds) if timed else None,
        third=third,
    )


def _answers(result: object) -> dict[str, list[str]] | None:
    """The texts of each tag; None where the result is not of Label Studio's form."""
    found: dict[str, list[str]] = {}
    for one in result if isinstance(result, list) else [None]:
        if isinstance(one, dict) and "from_name" not in one:
            continue  # a relation
        if not isinstance(one, dict) or not isinstance(one.get("value"), dict):
            return None
        value = one["value"]
        texts = value.get("choices", value.get("text", []))
        texts = [texts] if isinstance(texts, str) else texts
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            return None
        # as the table stores them: half of a surrogate pair would be another text at the next recording
        stored = (text.encode("utf-8", "replace").decode() for text in texts)
        found.setdefault(str(one["from_name"]), []).extend(stored)
    return found


def _time(text: object) -> str | None:
    """In UTC, with microseconds, so that times can be compared as texts."""
    try:
        time = datetime.fromisoformat(text.replace("Z", "+00:00") if isinstance(text, str) else "")
        time = (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    if time.year < 2000 or time > datetime.now(UTC) + timedelta(days=1):
        return None
    return time.isoformat(timespec="microseconds")


def _new_marks(
    found: Sequence[AuditMark], before: Sequence[AuditMark], names: Mapping[str, str], taken: Taken
) -> list[AuditMark]:
    """Of each person and proof the last mark, under the person's name, where it is not recorded yet."""
    there = {_said(mark): mark.auditor for mark in before}
    kinds = {mark.id: mark.third for mark in before}
    last = dict[tuple[str, bool], AuditMark]()
    for mark in sorted(found, key=lambda one: one.time):
        mark = replace(mark, auditor=names.get(mark.auditor, f"user {mark.auditor}"))
        other = there.get(_said(mark), mark.auditor)
        if other != mark.auditor:
            raise DataError(
                f"marks of {mark.auditor!r} were recorded before as those of {other!r}, and would count as two "
                "readers'. Give --auditor the same name again"
            )
        if kinds.setdefault(mark.id, mark.third) != mark.third:
            taken.left_out["marks by a person who had read the proof, or seen the others' reasons"] += 1
            continue
        if (mark.id, mark.third) in last:
            taken.left_out["annotations that a later one of the same person replaces"] += 1
        last[mark.id, mark.third] = mark
    new = [mark for mark in last.values() if _said(mark) not in there]
    taken.unchanged = len(last) - len(new)
    return new


def _said(mark: AuditMark) -> tuple[Any, ...]:
    """Of an annotation, whoever it is said to be by: times have microseconds."""
    return (mark.proof_id, mark.time, mark.human, mark.note, mark.fault, mark.step)
