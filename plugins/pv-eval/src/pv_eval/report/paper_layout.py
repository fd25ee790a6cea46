"""Paper report (`pv-eval report --layout paper`): the paper's six tables and its figure, from runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pv_eval import __version__
from pv_eval.intervals import Intervals
from pv_eval.report.paper import PAPER
from pv_eval.report.paper_best_of import Panel, best_of_panels, draw_panels, lacking, panel_table
from pv_eval.report.paper_cells import PaperTable, blocks_of, missing_lines
from pv_eval.report.paper_runs import SPECS, Missing, Run, Runs, read_runs
from pv_eval.report.paper_tables import all_tables
from pv_judge.pages.blocks import Block, Heading, Items, Paragraph, Picture
from pv_judge.pages.writing import check_folder, write_pages

__all__ = ["FORMAT", "write_paper"]

FORMAT = 1
FIGURE = "paper_best_of_k"


def write_paper(
    folders: Sequence[Path], out: Path, how: Intervals | None = None, models: Path | None = None
) -> tuple[list[Block], list[Path]]:
    """Read runs, and write paper.html, .md, .json and, where there is a choice, paper_best_of_k.png; all or none.

    Args:
        folders: runs on disk, in the order of rows that the paper does not have; see `find_runs`.
        out: folder, made if need be; its parent has to be there.
        how: of the intervals.
        models: file of the verifiers' roles, see `read_models`.

    Returns:
        The page, and the files.

    Raises:
        PvRlError: something given or found is not what it should be.
        OSError: a file cannot be read or written.
    """
    check_folder(out)
    runs = read_runs(folders, how or Intervals(), models)
    tables, panels = all_tables(runs), best_of_panels(runs)
    pictures = {FIGURE: draw_panels(panels)} if panels else {}
    notes = [*runs.notes, *_unused(runs)]
    page = list(_page(runs, tables, panels, notes))
    return page, write_pages(out, page, _document(runs, tables, panels, notes), pictures, name="paper")


def _page(
    runs: Runs, tables: Sequence[PaperTable], panels: Sequence[Panel], notes: Sequence[str]
) -> Iterator[Block]:
    yield Heading("Results in the paper's layout", level=1)
    yield Paragraph(
        f'"paper" are the numbers as printed in "{PAPER}", without intervals; "measured" are those of these votes. '
        "Gains and averages are of unrounded numbers, gains on the pairs that both voted on."
    )
    yield Paragraph(
        f"paper.json has a cluster-t interval of {100 * runs.how.level:g} % for each measured number. By pv-eval "
        f"{__version__}."
    )
    for table in tables:
        yield from blocks_of(table)
    yield Heading("Best of k")
    yield Paragraph(
        "The paper has a figure without printed numbers, of 18 problems with 48 proofs each. Proofs "
        "with the same share of accepting votes are equally likely to be chosen."
    )
    if panels:
        yield Picture(
            FIGURE,
            "How often the chosen proof is right: solid a verifier, dashed an oracle, dotted a random choice. The band "
            "is between ties taken as right and as wrong.",
        )
    for panel in panels:
        yield Paragraph(f"{panel.text}.")
        yield panel_table(panel)
    if lacking(runs):
        yield Items(list(missing_lines(lacking(runs))))
    if notes:
        yield Heading("Notes")
        yield Items(notes)


def _unused(runs: Runs) -> Iterator[str]:
    """Runs that are in no table, verifiers without a role, and roles without a run."""
    verifiers = {run.verifier for run in runs.runs}
    for run in runs.runs:
        if run.set_name not in SPECS:
            yield (
                f"{run.where}: no table of the paper is on this set. Its sets are {', '.join(SPECS)}. If this is one "
                "of them, evaluate it again with --set-option name=SET."
            )
        elif run.folder not in runs.used:
            yield f"{run.where}: no table of the paper on this set has a row for it."
    for name, model in runs.models.items():
        if name in verifiers and not model.kind and not model.full:
            yield (
                f"{name} has no role, so it is under other, or in no table. Give its kind, its base or its row in a "
                "file by --models."
            )
        elif name not in verifiers and name != model.row:
            yield f"{name} of the file of --models has no run here."


def _document(
    runs: Runs, tables: Sequence[PaperTable], panels: Sequence[Panel], notes: Sequence[str]
) -> dict[str, Any]:
    """A tree of plain values: measured numbers are shares, the paper's are percent and points; null for no number.

    Keys: `format`, `pv_eval` (version), `intervals`, `paper` (its title), `runs`, `models`; `tables`, each with `name`,
    `columns`, `lines` (`label`, `row`, `group`, and by column the `cells` with `measured`, `gain`, `paper` and
    `paper_gain`) and `missing`; `best_of_k`, with `sets` and `missing`; `notes`.
    """
    shown = {run.verifier for run in runs.runs}
    return {
        "format": FORMAT,
        "pv_eval": __version__,
        "intervals": runs.how,
        "paper": PAPER,
        "runs": [_run(run) for run in runs.runs],
        "models": [model for name, model in runs.models.items() if name in shown],
        "tables": [{**asdict(table), "missing": _missing(table.missing)} for table in tables],
        "best_of_k": {
            "sets": [
                {
                    "set_name": panel.set_name,
                    "verifiers": [{"label": run.label, **asdict(best)} for run, best in panel.curves],
                }
                for panel in panels
            ],
            "missing": _missing(lacking(runs)),
        },
        "notes": list(notes),
    }


def _run(run: Run) -> dict[str, Any]:
    counts = run.counts
    return {
        "folder": str(run.folder),
        "label": run.label,
        "info": replace(run.info, settings={}),
        "pairs": len(counts.pairs),
        "questions": len(counts.questions),
        "right": int(counts.label.sum()),
        "votes": len(counts.votes),
    }


def _missing(missing: Sequence[Missing]) -> list[dict[str, str]]:
    return [{"verifier": one.verifier, "set_name": one.set_name, "command": one.command} for one in missing]
