"""The paper's tables of models: main results, transfer, and head to head."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pv_eval.report.paper import ODD, printed
from pv_eval.report.paper_cells import NONE, Cell, Lacks, Line, PaperTable, gain_over, label_of
from pv_eval.report.paper_models import KINDS
from pv_eval.report.paper_parts import ablation_tables, slice_tables
from pv_eval.report.paper_runs import Run, Runs

__all__ = ["all_tables"]


def all_tables(runs: Runs) -> list[PaperTable]:
    """In the paper's order. Of error types, style and ablation, one for each verifier that has votes for it."""
    return [
        _models(
            runs,
            "main",
            "Main results",
            {"curated": "Accuracy"},
            "Avg@8 on the set curated. In parentheses, the gain over the base model.",
        ),
        _models(
            runs,
            "transfer",
            "Transfer",
            {"opc": "OPC", "proofbench": "ProofBench"},
            "Avg@8 on the sets opc and proofbench. In parentheses, the gain over the base model. The average of the "
            "two sets is not in the paper.",
        ),
        *slice_tables(runs, "error_types"),
        _models(
            runs,
            "head_to_head",
            "Head to head",
            {"curated": "Curated", "opc": "OPC"},
            "Avg@8 on the sets curated and opc, and their mean.",
        ),
        *slice_tables(runs, "style"),
        *ablation_tables(runs),
    ]


def _models(runs: Runs, name: str, title: str, sets: Mapping[str, str], text: str) -> PaperTable:
    """A row a model, a column a set and, of several sets, their average."""
    theirs, lacks = printed(name), Lacks()
    average, gains = len(sets) > 1, name != "head_to_head"
    lines = [
        _line(runs, lacks, one, theirs.get(one[0], {}), list(sets), gains)
        for one in _rows(runs, list(theirs), list(sets), every_set=not gains)
    ]
    order = list(KINDS.values())
    columns = {set_name: (head, head) for set_name, head in sets.items()}
    columns |= {"average": ("Avg", "" if gains else "Avg")} if average else {}
    return PaperTable(
        name=name,
        title=title,
        text=text,
        rows="Model",
        columns=columns,
        lines=sorted(lines, key=lambda line: order.index(line.group)) if gains else lines,
        missing=list(lacks.missing),
        notes=[*lacks.notes, *ODD.get(name, ())],
    )


def _rows(
    runs: Runs, theirs: Sequence[str], sets: Sequence[str], *, every_set: bool
) -> Iterator[tuple[str, str, str]]:
    """The paper's row, verifier and tag of each row: first the paper's rows, then verifiers that it does not have.

    Args:
        every_set: whether the latter need votes on every set.
    """
    given: dict[tuple[str, str], set[str]] = {}
    for run in runs.runs:
        if run.set_name in sets and not runs.models[run.verifier].full:
            given.setdefault((run.verifier, run.tag), set()).add(run.set_name)
    for row in theirs:
        beside = [one for one in given if runs.models[one[0]].row == row]
        for verifier, tag in beside or [(runs.resolve(row), "")]:
            yield row, verifier, tag
    for (verifier, tag), on in given.items():
        if not runs.models[verifier].row and (len(on) == len(sets) or not every_set):
            yield "", verifier, tag


def _line(
    runs: Runs,
    lacks: Lacks,
    which: tuple[str, str, str],
    paper: Mapping[str, float],
    sets: Sequence[str],
    gains: bool,
) -> Line:
    row, verifier, tag = which
    model = runs.models[verifier]
    gains_here = gains and model.kind == "trained"
    cells: dict[str, Cell] = {}
    measured: list[tuple[Run | None, Run]] = []
    for set_name in sets:
        run = runs.find(verifier, set_name, tag)
        base = runs.base_of(run) if run and gains_here else None
        if run:
            measured.append((base, run))
            if gains_here and not base:
                lacks.base(runs, run)
        elif not tag and (not row or set_name in paper):
            lacks.votes(verifier, set_name)
        cells[set_name] = Cell(
            measured=runs.accuracy(run.counts) if run else NONE,
            gain=gain_over(runs, base, run),
            paper=paper.get(set_name),
            paper_gain=paper.get(f"{set_name} gain"),
        )
    if len(sets) > 1:
        complete = len(measured) == len(sets)
        pairs = [runs.paired(base, run) if base else None for base, run in measured]
        both = [pair for pair in pairs if pair]
        cells["average"] = Cell(
            measured=runs.accuracy(*(run.counts for _, run in measured)) if complete else NONE,
            gain=runs.gain(*both) if len(both) == len(sets) else NONE,
            paper=paper.get("average"),
        )
    group = KINDS[model.kind] if gains else ""
    return Line(label=label_of(verifier, tag, row), row=row, cells=cells, group=group)
