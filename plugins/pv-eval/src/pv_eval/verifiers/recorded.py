"""Recorded traces: a file of traces that were sampled before, or verl's dump of rollouts or of a validation.

A row belongs to a pair by its `pair_id`, by its problem and proof, by its prompt, which holds both, or by its `id`. It
has a trace (`trace`, `output`, `response`) or, as the verdict format wants it, a `verdict`, a `grade` in points or a
`first_error`, numbered as the format numbers steps. Samples of a pair are numbered in the order of the file, unless a
column `sample` numbers them. A column `logit` has the log of the odds of True over False, as `--score logit` takes it,
and `usd` what the trace cost.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pv_eval.sets.base import EvalSet, in_words
from pv_eval.sets.rows import read_rows
from pv_eval.sets.values import LABELS as LABEL_WORDS
from pv_eval.sets.values import is_missing, label_of, number_of, text_of
from pv_eval.verifiers.matching import IDS, PROMPTS, Matcher, first_of
from pv_eval.verifiers.trace_cache import Trace
from pv_eval.votes import Pair
from pv_judge.pages.text import plural
from pv_judge.rowfiles.steps import choose_file
from pv_rl.errors import ConfigError, DataError
from pv_rl.plugins import nearest
from pv_verdicts import Answer, VerdictFormat, build_format

__all__ = ["Recorded", "read_traces"]

TRACES = ("trace", "output", "response", "text")
WHO = ("verifier", "model")
"""Columns that may name the verifier; `model` may also name who wrote the proof, the same in all rows of a pair."""
SHOWN = 5
"""Names that an error shows."""
MOST_COLUMNS = 100
"""Columns that are remembered for an error."""
LABELS = ("label", "gts", "ground_truth")
TOKENS = ("tokens", "response_length", "completion_tokens")
ANSWER = frozenset({"verdict", "grade", "first_error"})
COLUMNS = (
    *(IDS[0], "problem", "proof", PROMPTS[0], TRACES[0], "verdict", "grade", "first_error"),
    *("sample", "logit", "usd", TOKENS[0], LABELS[0], WHO[0]),
)
"""What a column may be; of columns with the same meaning, the one that is read first."""
ANSWERS = {
    "label": LABEL_WORDS,
    "grade": "points, or empty for none",
    "first_error": "a number, 0 for no wrong step, or empty for none",
}
"""What an answer without a trace may be, by the format's truth."""
ALLOWED = {"sample": "a whole number from 0", "usd": "a finite number, 0 or more, or empty"}


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """Traces of a file, by the pairs of a set."""

    file: Path
    """Of a folder, the chosen one."""
    traces: dict[tuple[str, int], Trace]
    left_out: Mapping[str, int]
    """Rows by the reason why they are not votes."""
    other_labels: int
    """Rows whose label differs from their pair's."""
    counted: bool
    """Whether every trace has its number of tokens."""

    def notes(self) -> tuple[str, ...]:
        """Sentences for the report."""
        left = in_words(self.left_out)
        notes = [f"The traces are those of {self.file.name}; their sampling parameters are unknown."]
        notes += [f"Rows of the file of traces that are not votes: {left}."] if left else []
        if self.other_labels:
            notes.append(
                f"{plural(self.other_labels, 'row')} of the file of traces have another label than the set; "
                "the set's counts."
            )
        return tuple(notes)


def read_traces(
    path: Path,
    found: EvalSet,
    *,
    step: int | None = None,
    form: VerdictFormat | None = None,
    columns: Mapping[str, str] | None = None,
) -> Recorded:
    """Traces of a JSONL, CSV or Parquet file, or of a folder with a file a step, as verl dumps it.

    Args:
        step: which of a folder; None for the last.
        form: verdict format of the answers that a row has instead of a trace.
        columns: by name of `COLUMNS`, those that have another name in the file. Such a column has no other meaning,
            and is read instead of all others of its meaning.

    Raises:
        ConfigError: `columns` has an unknown name, or an answer that the format does not have.
        DataError: the file or an answer cannot be read, votes are of several verifiers, a sample is numbered twice, or
            no row belongs to the set.
    """
    form = form or build_format()
    if step is not None and not path.is_dir():
        raise DataError(f"--step {step} is for a folder of dumps, and {path} is a file; leave it out")
    file = choose_file(path, step)[0] if path.is_dir() else path
    matcher = Matcher(found.pairs, form)
    traces: dict[tuple[str, int], Trace] = {}
    left: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    others, twice = 0, ""
    voters = _Voters(file)
    named = columns or {}
    _check_named(named, form)
    unread = _unread(named)
    there: dict[str, None] = {}
    absent = set(named.values())
    for where, row in read_rows(file):
        if len(there) < MOST_COLUMNS:
            there |= dict.fromkeys(row)
        absent -= row.keys()
        renamed = {name: row[column] for name, column in named.items() if column in row}
        row = {name: value for name, value in row.items() if name not in unread} | renamed
        pairs = matcher.find(row)
        trace = pairs if isinstance(pairs, str) else _trace(row, where, form)
        if isinstance(pairs, str) or isinstance(trace, str):
            left[str(trace)] += 1
            continue
        voters.add(row, pairs[0])
        label = label_of(first_of(row, LABELS))
        others += label is not None and label is not pairs[0].label
        sample = _number(row, "sample", where)
        for pair in pairs:
            key = (pair.pair_id, counts[pair.pair_id] if sample is None else int(sample))
            counts[pair.pair_id] += 1
            if key in traces:
                twice = twice or f"{where}: the pair {key[0]!r} already has a sample {key[1]}"
            traces[key] = trace
    voters.check()
    if absent and there:
        raise DataError(
            f"{file} has no column {sorted(absent)[0][:80]}, which --column names; it has {', '.join(there)[:300]}"
        )
    if twice:
        raise DataError(f"{twice}; number each sample once")
    if not traces:
        raise DataError(
            f"{file} has no vote on the set {found.name}: {_why_none(left, list(there), found, form)}"
        )
    counted = all(trace.tokens is not None for trace in traces.values())
    return Recorded(file=file, traces=traces, left_out=dict(left), other_labels=others, counted=counted)


def _check_named(named: Mapping[str, str], form: VerdictFormat) -> None:
    for name in named:
        if name not in COLUMNS:
            raise ConfigError(
                f"--column has no {name[:80]!r}.{nearest(name[:80], COLUMNS)} Expected {', '.join(COLUMNS)}"
            )
        if name in ANSWER - {_column(form)}:
            raise ConfigError(
                f"--column {name} does not fit --format {form.name}, which reads {_column(form)}; add --format {name}"
            )


def _unread(named: Mapping[str, str]) -> set[str]:
    """Columns without their usual meaning: those that are named, and those in whose place another is named."""
    unread = {*named, *named.values()}
    for same in (IDS, PROMPTS, TRACES, TOKENS, LABELS):
        unread.update(same if same[0] in named else ())
    if TRACES[0] not in named and named.keys() & ANSWER:
        unread.update(TRACES)
    if IDS[0] not in named and named.keys() & {"problem", "proof", PROMPTS[0]}:
        unread.update(IDS, ("id",))
    return unread


class _Voters:
    """Who gave the votes of a file, which have to be of one verifier."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._names: dict[str, dict[str, None]] = {column: {} for column in WHO}
        self._of_pair: dict[str, str] = {}
        self._mixed = False

    def add(self, row: Mapping[str, Any], pair: Pair) -> None:
        for column, names in self._names.items():
            if not is_missing(row.get(column)):
                names[str(row[column])] = None
        if not is_missing(row.get("model")):
            name = str(row["model"])
            self._mixed |= self._of_pair.setdefault(pair.pair_id, name) != name

    def check(self) -> None:
        """Refuse votes of several verifiers, which would be merged into one."""
        for column, names in self._names.items():
            if len(names) > 1 and (column != "model" or self._mixed):
                shown = ", ".join(name[:60] for name in list(names)[:SHOWN]) + ", ..." * (len(names) > SHOWN)
                raise DataError(
                    f"{self._file.name} has votes of {len(names)} verifiers (column {column}: {shown}); write one "
                    "file for each"
                )


def _why_none(left: Mapping[str, int], columns: Sequence[str], found: EvalSet, form: VerdictFormat) -> str:
    """Why a file has no votes, and what it needs."""
    why = f"in every row, {next(iter(left))}" if len(left) == 1 else in_words(left) or "it has no rows"
    if left and all(reason.endswith("not in the set") for reason in left):
        named = ". If they are in another column of the set's file, add --set-option columns.pair_id=COLUMN"
        by_id = any(reason.endswith("id is not in the set") for reason in left)
        return f"{why}. The set's pairs have ids such as {found.pairs[0].pair_id!r:.80}" + named * by_id
    has = f" It has the columns {', '.join(columns)[:300]}." if columns else ""
    if f"neither trace nor {_column(form)}" in left:
        has += "".join(f" To read {one}, add --format {one}." for one in sorted(ANSWER & {*columns}))
    return (
        f"{why}.{has} Write one vote a row: pair_id (or id, if the set has it), or problem and "
        f"proof, or the prompt that holds both (input); and a {TRACES[0]}, or {_column(form)}: {ANSWERS[form.truth]}. "
        f"Name a column that is called otherwise by --column {_column(form)}=COLUMN"
    )


def _column(form: VerdictFormat) -> str:
    """Of an answer without a trace."""
    return "verdict" if form.truth == "label" else form.truth


def _trace(row: Mapping[str, Any], where: str, form: VerdictFormat) -> Trace | str:
    """The trace of a row, or why it has none."""
    logit, usd = _number(row, "logit", where), _number(row, "usd", where)
    tokens = number_of(first_of(row, TOKENS))
    whole = int(tokens) if tokens is not None and tokens >= 0 and tokens == int(tokens) else None
    text = text_of(first_of(row, TRACES))
    if text is not None:
        return Trace(text=text, tokens=whole, known=True, logit=logit, usd=usd)
    column = _column(form)
    if column not in row:
        return f"neither trace nor {column}"
    given = row[column]
    word = given.strip().lower() if isinstance(given, str) else given
    if is_missing(given) and not (word == "none" and column == "first_error"):
        return Trace(text=None, tokens=whole, missing="no verdict", known=True, usd=usd)
    answer = _answer(word, form)
    if answer is None:
        allowed = ANSWERS[form.truth].replace("points", f"points from 0 to {max(form.grades or [0]):g}")
        raise DataError(f"{where}: its {column} is {given!r:.60}; expected {allowed}")
    return Trace(text=None, tokens=whole, answer=answer, known=True, logit=logit, usd=usd)


def _answer(given: object, form: VerdictFormat) -> Answer | None:
    """The answer that a column gives; None where it cannot be read."""
    if form.truth == "label":
        verdict = label_of(given)
        return None if verdict is None else Answer(accepts=verdict)
    number = -1.0 if given == "none" else number_of(given)
    try:
        truth = form.read_truth(given if number is None else number)
    except DataError:
        return None
    if form.truth == "first_error":
        return Answer(accepts=truth == 0, first_error=int(truth))
    return Answer(accepts=truth >= form.accept - 1e-9, grade=float(truth))


def _number(row: Mapping[str, Any], column: str, where: str) -> float | None:
    given = row.get(column)
    if given in (None, ""):
        return None
    number = number_of(given)
    bad = column in ALLOWED and (
        number is None or number < 0 or (column == "sample" and number != int(number))
    )
    if number is None or bad:
        allowed = ALLOWED.get(column, "a finite number, or empty")
        raise DataError(f"{where}: its {column} is {given!r:.60}; expected {allowed}")
    return number
