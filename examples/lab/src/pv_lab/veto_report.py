"""Report of the veto experiment, tables and a figure: `python -m pv_lab.veto_report RUNS --out REPORT`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pv_judge.files import write_atomically
from pv_judge.pages.blocks import Block, Column, Paragraph, Table
from pv_judge.pages.figure import choose_colours, new_figure, save_figure
from pv_judge.pages.markdown import to_markdown
from pv_judge.pages.text import MISSING, estimate
from pv_lab.many_runs import RUN, read_runs, run_command
from pv_lab.map_report import COLLAPSED
from pv_rl.errors import DataError
from pv_runs.report.interval import mean_of_seeds

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["outcomes", "write_report"]

MEASURES = {
    "balanced": "balanced accuracy",
    "right_proofs": "right proofs",
    "wrong_proofs": "wrong proofs",
    "repetitive": "repetitive",
    "length": "tokens",
    "cut_off": "cut off",
}
"""Held out, at the end: columns of the table and of the CSV file."""
TRAINED = ("vetoed", "abstained")
"""Means over the training steps."""
DRAWN = ("balanced", "repetitive")
WITH_INTERVAL = ("balanced", "repetitive", "length")


def outcomes(rows: pd.DataFrame) -> pd.DataFrame:
    """One row a run, in the order in which they were trained: name, seed, `MEASURES` at the last held-out measurement,
    `TRAINED` over all training steps, `learned_by`: the first measurement at which balanced accuracy was 0.8 or more.

    Args:
        rows: of `read_runs`.

    Raises:
        DataError: a run has no name of the form EXPERIMENT/VARIANT.
    """
    odd = sorted({name for name in rows["name"] if str(name).count("/") != 1})
    if odd:
        raise DataError(
            f"a run is called {odd[0]!r}; give runs of pv_lab.veto_runs, named EXPERIMENT/VARIANT"
        )
    rows = rows.assign(balanced=(rows["right_proofs"] + rows["wrong_proofs"]) / 2)
    key = ["name", "seed"]
    held_out, train = (rows.loc[rows["split"] == split] for split in ("held_out", "train"))
    last = held_out[held_out["step"] == held_out["step"].max()].set_index(key)[list(MEASURES)]
    trained = train.groupby(key, sort=False)[list(TRAINED)].mean()
    learned = held_out[held_out["balanced"] >= 0.8].groupby(key)["step"].min().rename("learned_by")
    return last.join(trained).join(learned).reset_index()


def write_report(runs: Path, out: Path) -> None:
    """Write `veto.md`, a line of every run `veto_runs.csv`, and `veto.png` to `out`."""
    rows = read_runs(runs).to_pandas()
    missing = {*RUN, *TRAINED} - set(rows)
    if missing:
        raise DataError(f"the runs of {runs} have no {sorted(missing)[0]}; train them with pv_lab.veto_runs")
    found = outcomes(rows)
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / "veto_runs.csv", lambda path: found.round(4).to_csv(path, index=False))
    text = to_markdown(_blocks(found))
    write_atomically(out / "veto.md", lambda path: path.write_text(text))
    save_figure(_draw(rows), out / "veto.png", dpi=130)


def _blocks(found: pd.DataFrame) -> Iterator[Block]:
    """A table for each experiment, a row for each of its variants."""
    variants = {str(name): group for name, group in found.groupby("name", sort=False)}
    columns: list[Column[str]] = [
        Column("", lambda name: name.split("/")[1], left=True),
        Column("runs", lambda name: str(len(variants[name])), left=True),
        *(
            Column(title, lambda name, key=key: _said(variants[name][key].dropna().tolist(), key), left=True)
            for key, title in {**MEASURES, "vetoed": "vetoed in training", "abstained": "abstained"}.items()
        ),
        Column(
            f"below {COLLAPSED}",
            lambda name: f"{(variants[name]['balanced'] < COLLAPSED).sum()} of {len(variants[name])}",
            left=True,
        ),
        Column("0.8 reached by step", lambda name: _steps(variants[name]["learned_by"].tolist()), left=True),
    ]
    for experiment in dict.fromkeys(name.split("/")[0] for name in variants):
        yield Paragraph(experiment, "strong")
        yield Table.of(columns, [name for name in variants if name.split("/")[0] == experiment])


def _said(values: Sequence[float], column: str) -> str:
    """The mean over seeds, of some columns with its 95 % interval."""
    found = mean_of_seeds(values)
    if found is None:
        return MISSING
    low, high = (found.low, found.high) if column in WITH_INTERVAL else (None, None)
    return estimate(found.mean, low, high, ("{:.1f}" if column == "length" else "{:.3f}").format)


def _steps(values: Sequence[float]) -> str:
    """The latest of the seeds, and how many never came there."""
    reached = sorted(int(value) for value in values if value == value)
    never = f", {len(values) - len(reached)} never" if len(reached) < len(values) else ""
    return f"{reached[0]} to {reached[-1]}{never}" if reached else "never"


def _draw(rows: pd.DataFrame) -> Figure:
    """A column an experiment; every run a thin line, the mean of a variant a thick one."""
    held_out = rows[rows["split"] == "held_out"]
    held_out = held_out.assign(balanced=(held_out["right_proofs"] + held_out["wrong_proofs"]) / 2)
    names = list(dict.fromkeys(held_out["name"]))
    experiments = list(dict.fromkeys(name.split("/")[0] for name in names))
    figure = new_figure(3.4 * len(experiments), 6.4)
    axes = figure.subplots(len(DRAWN), len(experiments), squeeze=False, sharey="row")
    for column, experiment in enumerate(experiments):
        variants = [name for name in names if name.split("/")[0] == experiment]
        for line, measure in enumerate(DRAWN):
            panel = axes[line][column]
            for name, colour in zip(variants, choose_colours(len(variants)), strict=True):
                runs = held_out[held_out["name"] == name].pivot_table(
                    index="step", columns="seed", values=measure
                )
                panel.plot(runs.index, runs, color=colour, lw=0.5, alpha=0.5)
                label = name.split("/")[1] if line == 0 else None
                panel.plot(runs.index, runs.mean(axis=1), color=colour, lw=1.8, label=label)
            panel.set(ylim=(0, 1), title=experiment if line == 0 else "", xlabel="step" if line else "")
            panel.spines[["top", "right"]].set_visible(False)
            if column == 0:
                panel.set_ylabel(f"{MEASURES[measure]}, held out")
        axes[0][column].legend(frameon=False, fontsize=6, loc="lower right")
    return figure


def main(
    runs: Annotated[Path, typer.Argument(help="Folder of Parquet files of pv_lab.veto_runs.")],
    out: Annotated[Path, typer.Option(help="Folder to write to.")],
) -> None:
    """Put the runs of the veto experiment side by side."""
    write_report(runs, out)


if __name__ == "__main__":
    run_command(main)
