"""The paper's tables of one verifier: by kind of error, by style of the proof, and by its training data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pv_eval.counts import VoteCounts
from pv_eval.intervals import Estimate
from pv_eval.report.paper import ODD, VERIFIER, printed
from pv_eval.report.paper_cells import NONE, Cell, Lacks, Line, PaperTable, gain_over, label_of, unpaired
from pv_eval.report.paper_runs import Run, Runs
from pv_judge.pages.text import plain

__all__ = ["ablation_tables", "slice_tables"]

TEXTS = {
    "error_types": "Avg@8 on the wrong proofs of the set error_types by kind of error, and the share of each kind.",
    "style": "Avg@8 on the set style by style of the proof.",
}
TITLES = {
    "error_types": ("Error types", "Error Type", "Base Model Acc", "ProofVerifier Acc"),
    "style": ("Proof style", "Proof Style", "Base 8B", "ProofVerifier-8B"),
}
"""Of the table, of its rows, and of the printed columns."""
MOST = 50
"""Rows of slices that the paper does not have."""
FULL = "Full Dataset"
"""The row of the verifier that was trained on all the data."""


def slice_tables(runs: Runs, name: str) -> Iterator[PaperTable]:
    """A row a slice of the set `style` or `error_types`; a column for the base model, one for that trained from it."""
    trained = [
        (run.verifier, run.tag)
        for run in runs.on(name)
        if runs.models[run.verifier].kind == "trained" and not runs.models[run.verifier].full
    ]
    for verifier, tag in trained or [(runs.resolve(VERIFIER), "")]:
        lacks, run = Lacks(), runs.find(verifier, name, tag)
        base_name = runs.resolve(runs.models[verifier].base)
        base = runs.base_of(run) if run else runs.find(base_name, name)
        if run is None:
            lacks.votes(verifier, name)
        if base is None and run is not None:
            lacks.base(runs, run)
        elif base is None and base_name:
            lacks.votes(base_name, name)
        title, rows, head, second = TITLES[name]
        columns = {"share": ("Percentage", "Percentage")} if name == "error_types" else {}
        yield PaperTable(
            name=name,
            title=title,
            text=f"{TEXTS[name]} In parentheses, the gain over the base model.",
            rows=rows,
            columns={
                **columns,
                "base": (base.label if base else base_name or "base model", head),
                "verifier": (verifier + tag, second),
            },
            lines=list(_slices(runs, name, base, run)),
            missing=list(lacks.missing),
            notes=[*lacks.notes, *ODD.get(name, ())],
        )


def _slices(runs: Runs, name: str, base: Run | None, run: Run | None) -> Iterator[Line]:
    """The paper's slices in its order, then others of the set."""
    theirs, wrong = printed(name), name == "error_types"
    given = [one for one in (run, base) if one]
    pair = runs.paired(base, run) if base and run else None
    row_of = {row.lower(): row for row in theirs}
    wholes = [one.counts.part(_mask(one.counts, None, wrong)) for one in given]
    own = Counter(_key(one.slice) for counts in wholes for one in counts.pairs)
    others = sorted(own.keys() - row_of.keys(), key=lambda part: (-own[part], part))
    if len(others) > MOST:
        runs.notes[f"{name}: {len(others) - MOST} slices have no row, beyond the {MOST} largest."] = None
    for part in (*row_of, *sorted(others[:MOST])):
        row = row_of.get(part, "")
        paper = theirs.get(row, {})
        masks = {one.folder: _mask(one.counts, part, wrong) for one in given}
        first, second = (
            runs.accuracy(one.counts.part(masks[one.folder])) if one else NONE for one in (base, run)
        )
        gain = unpaired(first, second)
        if pair:
            same = _mask(pair[1], part, wrong)  # a run may have other slices than its base's
            gain = runs.gain((pair[0].part(same), pair[1].part(same)))
        cells: dict[str, Cell] = {}
        if wrong:
            share = sum(masks[given[0].folder]) / max(1, len(wholes[0].pairs)) if given else NONE.value
            cells["share"] = Cell(measured=Estimate(value=share), paper=paper.get("share"))
        cells["base"] = Cell(measured=first, paper=paper.get("base"))
        cells["verifier"] = Cell(
            measured=second, gain=gain, paper=paper.get("verifier"), paper_gain=paper.get("gain")
        )
        for one in given:
            if not any(masks[one.folder]):
                runs.notes[f"{one.where}: no proof has the slice {plain(part, 80)!r}."] = None
        yield Line(label=row or plain(part, 500) or "(no slice)", row=row, cells=cells)


def _mask(counts: VoteCounts, part: str | None, wrong: bool) -> list[bool]:
    """(P,) which pairs are in a slice, in any for None; `wrong` for wrong proofs only."""
    return [
        part in (None, _key(pair.slice)) and not (wrong and label)
        for pair, label in zip(counts.pairs, counts.label, strict=True)
    ]


def _key(name: str) -> str:
    return " ".join(name.lower().split())


def ablation_tables(runs: Runs) -> Iterator[PaperTable]:
    """A row a verifier that was trained on part of the data, below the one that was trained on all."""
    ablated: dict[str, list[Run]] = {}
    for run in runs.on("curated"):
        if full := runs.models[run.verifier].full:
            ablated.setdefault(runs.resolve(full), []).append(run)
    for full, these in (ablated or {runs.resolve(VERIFIER): []}).items():
        lacks, theirs = Lacks(), printed("ablation")
        whole = runs.find(full, "curated")
        if whole is None:
            lacks.votes(full, "curated")
        lines = [
            Line(
                label=label_of(FULL if full == VERIFIER else full, "", FULL),
                row=FULL,
                cells=_ablation(FULL, runs, whole, whole, 100.0),
            )
        ]
        for row in list(theirs)[1:]:
            beside = [run for run in these if runs.models[run.verifier].row == row]
            if not beside:
                lacks.votes(runs.resolve(row), "curated")
                lines.append(Line(label=row, row=row, cells=_ablation(row, runs, whole, None, None)))
            lines += [_ablated(runs, run, row) for run in beside]
        lines += [_ablated(runs, run, "") for run in these if not runs.models[run.verifier].row]
        yield PaperTable(
            name="ablation",
            title="Data ablation",
            text="Avg@8 on the set curated of verifiers that were trained on part of the data, and how far it drops. "
            "How much of the data was kept is as the file of --models gives it.",
            rows="Dataset",
            columns={
                "accuracy": ("Accuracy", "Accuracy"),
                "kept": ("Data Retained", "Data Retained"),
                "drop": ("Drop", "Drop"),
            },
            lines=lines,
            missing=list(lacks.missing),
            notes=list(lacks.notes),
        )


def _ablated(runs: Runs, run: Run, row: str) -> Line:
    model = runs.models[run.verifier]
    label = label_of(run.verifier, run.tag, row)
    runs.used.add(run.folder)
    cells = _ablation(row, runs, runs.alike(model.full, run), run, model.kept)
    return Line(label=label, row=row, cells=cells)


def _ablation(
    row: str, runs: Runs, whole: Run | None, run: Run | None, kept: float | None
) -> dict[str, Cell]:
    paper = printed("ablation").get(row, {})
    drop = Estimate(value=0.0) if run and run is whole else gain_over(runs, run, whole)
    return {
        "accuracy": Cell(measured=runs.accuracy(run.counts) if run else NONE, paper=paper.get("accuracy")),
        "kept": Cell(measured=NONE if kept is None else Estimate(value=kept / 100), paper=paper.get("kept")),
        "drop": Cell(measured=drop, paper=paper.get("drop")),
    }
