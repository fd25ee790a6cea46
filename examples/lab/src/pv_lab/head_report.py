"""Report of the heads, tables and a figure: `python -m pv_lab.head_report RUNS --out REPORT`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from pv_judge.pages.blocks import Block, Column, Paragraph, Table
from pv_judge.pages.figure import choose_colours, clean, new_figure
from pv_judge.pages.text import MISSING, estimate
from pv_lab.loop_settings import Head
from pv_lab.many_runs import read_runs, run_command
from pv_lab.map_report import COLLAPSED, write_files
from pv_rl.errors import DataError
from pv_runs.report.interval import mean_of_seeds

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["outcomes", "write_report"]

MEASURES = {
    "right_proofs": "right proofs accepted",
    "wrong_proofs": "wrong proofs rejected",
    "balanced": "balanced",
    "exact_step": "for the exact step",
    "other_step": "for another step",
    "length": "tokens",
}
COMPARED = ("wrong_proofs", "balanced", "exact_step", "right_proofs", "length")
SETTING = ["start", "p_true", "lr"]


def outcomes(rows: pd.DataFrame) -> pd.DataFrame:
    """One row a run: start (`usual` or the name of its folder), p_true, lr, head, seed, `MEASURES` at the last held-out
    measurement, and `wrong_STEP` of each measurement.

    Args:
        rows: of `read_runs`.

    Raises:
        DataError: the runs have no head.
    """
    if "head" not in rows:
        raise DataError("these runs have no column head; give runs of pv_lab.head_runs")
    held_out = rows[rows["split"] == "held_out"].copy()
    held_out["start"] = [Path(start).name or "usual" for start in held_out["start"]]
    held_out["balanced"] = (held_out["right_proofs"] + held_out["wrong_proofs"]) / 2
    key = [*SETTING, "head", "seed"]
    last = held_out[held_out["step"] == held_out["step"].max()].set_index(key)[list(MEASURES)]
    wrong = held_out.pivot_table(index=key, columns="step", values="wrong_proofs").add_prefix("wrong_")
    return last.join(wrong).sort_index().reset_index()


def write_report(runs: Path, out: Path) -> None:
    """Write `heads.md`, a line of every run `heads_runs.csv`, and `heads.png` to `out`."""
    table = outcomes(read_runs(runs).to_pandas())
    write_files(out, "heads", table, _blocks(table), _draw(table), runs="heads_runs", dpi=80)


def _blocks(table: pd.DataFrame) -> Iterator[Block]:
    heads = [head for head in get_args(Head) if head in set(table["head"])]
    groups = [(*setting, head, runs) for *setting, head, runs in _groups(table, heads)]
    yield Paragraph("Held out at the end, mean over seeds (extremes):")
    yield Table.of(
        [
            *_names(),
            Column("head", lambda row: row[3], left=True),
            *(
                Column(title, lambda row, key=key: _extremes(row[4][key].tolist(), key), left=True)
                for key, title in MEASURES.items()
            ),
            Column(
                f"below {COLLAPSED}",
                lambda row: f"{(row[4]['balanced'] < COLLAPSED).sum()} of {len(row[4])}",
                left=True,
            ),
        ],
        groups,
        repeated=4,
    )
    base = {
        setting: runs
        for *setting_, head, runs in groups
        if head == "verdict"
        for setting in [tuple(setting_)]
    }
    yield Paragraph(
        "The head less the verdict, same seed: mean (95 % interval), and seeds in which it is more:"
    )
    yield Table.of(
        [
            *_names(),
            Column("head", lambda row: row[3], left=True),
            *(
                Column(
                    MEASURES[key],
                    lambda row, key=key: _difference(row[4], base[tuple(row[:3])], key),
                    left=True,
                )
                for key in COMPARED
            ),
        ],
        [row for row in groups if row[3] != "verdict" and tuple(row[:3]) in base],
        repeated=4,
    )


def _groups(table: pd.DataFrame, heads: Sequence[str]) -> Iterator[tuple]:
    for setting, runs in table.groupby(SETTING):
        for head in heads:
            if not (of_head := runs[runs["head"] == head]).empty:
                yield (*setting, head, of_head)


def _names() -> list[Column]:
    return [
        Column("start", lambda row: row[0], left=True),
        Column("right proofs", lambda row: f"{row[1]:.0%}", left=True),
        Column("rate", lambda row: f"{row[2]:g}", left=True),
    ]


def _form(key: str) -> str:
    return "{:.1f}" if key == "length" else "{:.3f}"


def _extremes(values: Sequence[float], key: str) -> str:
    form = _form(key).format
    return f"{form(sum(values) / len(values))} ({form(min(values))} to {form(max(values))})"


def _difference(runs: pd.DataFrame, others: pd.DataFrame, key: str) -> str:
    differences = (runs.set_index("seed")[key] - others.set_index("seed")[key]).dropna()
    found = mean_of_seeds(differences.tolist())
    if found is None:
        return MISSING
    more = f"{(differences > 0).sum()} of {len(differences)}"
    return f"{estimate(found.mean, found.low, found.high, _form(key).format)}, {more}"


def _draw(table: pd.DataFrame) -> Figure:
    """A panel a setting: wrong proofs rejected over steps; every run a thin line, the mean of a head a thick one."""
    steps = sorted(int(name.removeprefix("wrong_")) for name in table if name[6:].isdigit())
    settings = list(table.groupby(SETTING))
    heads = [head for head in get_args(Head) if head in set(table["head"])]
    figure = new_figure(3.2 * len(settings), 3.2)
    panels = figure.subplots(1, len(settings), squeeze=False, sharey=True)[0]
    for panel, ((start, p_true, lr), runs) in zip(panels, settings, strict=True):
        for head, colour in zip(heads, choose_colours(len(heads)), strict=True):
            lines = runs.loc[runs["head"] == head, [f"wrong_{step}" for step in steps]].to_numpy().T
            panel.plot(steps, lines, color=colour, lw=0.5, alpha=0.5)
            panel.plot(steps, lines.mean(axis=1), color=colour, lw=1.8, label=head)
        panel.set(title=f"{start}, {p_true:.0%} right, {lr:g}", xlabel="step", ylim=(0, 1))
        clean(panel)
    panels[0].set_ylabel("wrong proofs rejected, held out")
    panels[0].legend(frameon=False, fontsize=7, loc="lower right")
    return figure


def main(
    runs: Annotated[Path, typer.Argument(help="Folder of Parquet files of pv_lab.head_runs.")],
    out: Annotated[Path, typer.Option(help="Folder to write to.")],
) -> None:
    """Put the runs of the heads side by side."""
    write_report(runs, out)


if __name__ == "__main__":
    run_command(main)
