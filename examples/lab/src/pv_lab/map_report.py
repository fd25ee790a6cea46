"""Report of the weighting map, tables and a figure: `python -m pv_lab.map_report DIR --out REPORT`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pv_judge.files import write_atomically
from pv_judge.pages.blocks import Block, Column, Paragraph, Table
from pv_judge.pages.figure import choose_colours, new_figure, save_figure
from pv_judge.pages.markdown import to_markdown
from pv_judge.pages.text import MISSING, estimate
from pv_lab.many_runs import read_runs, run_command
from pv_rl.errors import DataError
from pv_rl.losses import resolve_mode
from pv_runs.report.interval import mean_of_seeds

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["COLLAPSED", "outcomes", "write_files", "write_report"]

COLLAPSED = 0.6
"""A run ends collapsed below this balanced accuracy; it starts at about .62, and saying one thing always gives .50."""


def outcomes(rows: pd.DataFrame) -> pd.DataFrame:
    """One row a run: what was held out at its end, how it ended, and its lengths.

    Args:
        rows: of `read_runs`.

    Returns:
        Columns eta, lr, p_true, seed, balanced, right_proofs, wrong_proofs, ending (`learned`, `accepts`, `rejects` or
        `other`), length_middle, length_end (held out, tokens), and length_STEP of each measurement.
    """
    held_out = rows[rows["split"] == "held_out"].copy()
    held_out["eta"] = held_out["mode"].map(_eta)
    key = ["eta", "lr", "p_true", "seed"]
    last = held_out[held_out["step"] == held_out["step"].max()].set_index(key)
    lengths = held_out.pivot_table(index=key, columns="step", values="length")
    balanced = (last["right_proofs"] + last["wrong_proofs"]) / 2
    ending = balanced.map(lambda value: "learned" if value >= COLLAPSED else "other")
    ending[(balanced < COLLAPSED) & (last["accepted"] > 0.95)] = "accepts"
    ending[(balanced < COLLAPSED) & (last["accepted"] < 0.05)] = "rejects"
    columns = {
        "balanced": balanced,
        "right_proofs": last["right_proofs"],
        "wrong_proofs": last["wrong_proofs"],
    }
    steps = {f"length_{step}": lengths[step] for step in lengths.columns}
    return last[[]].assign(**columns, ending=ending, **steps).reset_index()


def _eta(mode: str) -> float:
    resolved = resolve_mode(mode)
    eta = {"grpo": 1.0, "dapo": 0.0}.get(resolved.name, resolved.eta)
    if eta is None:
        raise DataError(f"the map is of mixtures, and {mode!r} is none; train balanced:ETA, grpo or dapo")
    return eta


def write_report(runs: Path, out: Path) -> None:
    """Write `map.md`, its table of every run `runs.csv`, and `map.png` to `out`."""
    table = outcomes(read_runs(runs).to_pandas())
    write_files(out, "map", table, _blocks(table), _draw(table), runs="runs", dpi=130)


def write_files(
    out: Path, name: str, table: pd.DataFrame, blocks: Iterator[Block], figure: Figure, *, runs: str, dpi: int
) -> None:
    """Write `NAME.md`, `NAME.png` and the table of every run, `RUNS.csv`."""
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / f"{runs}.csv", lambda path: table.round(4).to_csv(path, index=False))
    text = to_markdown(blocks)
    write_atomically(out / f"{name}.md", lambda path: path.write_text(text))
    save_figure(figure, out / f"{name}.png", dpi=dpi)


def _blocks(table: pd.DataFrame) -> Iterator[Block]:
    etas = sorted(table["eta"].unique())
    steps = sorted(int(name.split("_")[1]) for name in table if name.startswith("length_"))[1:]
    yield Paragraph("Balanced accuracy at the end, mean (extremes of the seeds):")
    yield _by_setting(table, {f"eta {eta:g}": partial(_of_eta, eta, _accuracy) for eta in etas})
    yield Paragraph(
        f"Runs that ended below {COLLAPSED} (accepting or rejecting 95 % and more, or otherwise):"
    )
    yield _by_setting(table, {f"eta {eta:g}": partial(_of_eta, eta, _endings) for eta in etas})
    yield Paragraph(
        "Tokens of a held-out response under `dapo` less those under `grpo`, same seed, mean (95 % interval):"
    )
    yield _by_setting(table, {f"step {step}": partial(_longer, step) for step in steps})


def _by_setting(table: pd.DataFrame, cells: Mapping[str, Callable[[pd.DataFrame], str]]) -> Table:
    """A row for each share of right proofs and rate; a cell shows the runs that have both."""
    settings = [
        (share, rate, runs)
        for share in sorted(table["p_true"].unique())
        for rate in sorted(table["lr"].unique())
        if not (runs := table.loc[(table["p_true"] == share) & (table["lr"] == rate)]).empty
    ]
    columns: list[Column[tuple[float, float, pd.DataFrame]]] = [
        Column("right proofs", lambda row: f"{row[0]:.0%}", left=True),
        Column("rate", lambda row: f"{row[1]:g}", left=True),
        *(Column(title, lambda row, show=show: show(row[2]), left=True) for title, show in cells.items()),
    ]
    return Table.of(columns, settings, repeated=2)


def _of_eta(eta: float, show: Callable[[pd.DataFrame], str], runs: pd.DataFrame) -> str:
    group = runs[runs["eta"] == eta]
    return MISSING if group.empty else show(group)


def _accuracy(group: pd.DataFrame) -> str:
    low, high = group["balanced"].min(), group["balanced"].max()
    return f"{group['balanced'].mean():.3f} ({low:.2f} to {high:.2f})"


def _endings(group: pd.DataFrame) -> str:
    counts = group["ending"].value_counts()
    kinds = [f"{counts[kind]} {kind}" for kind in ("accepts", "rejects", "other") if kind in counts]
    return ", ".join(kinds) or "0"


def _longer(step: int, runs: pd.DataFrame) -> str:
    """How much longer responses are under eta 0 (dapo) than under eta 1 (grpo), seed by seed."""
    long, short = (runs[runs["eta"] == eta].set_index("seed")[f"length_{step}"] for eta in (0.0, 1.0))
    found = mean_of_seeds((long - short).dropna().tolist())
    return MISSING if found is None else estimate(found.mean, found.low, found.high, "{:.1f}".format)


def _draw(table: pd.DataFrame) -> Figure:
    shares, rates = sorted(table["p_true"].unique()), sorted(table["lr"].unique())
    figure = new_figure(4 * len(shares), 3.4)
    for number, share in enumerate(shares, start=1):
        axes = figure.add_subplot(1, len(shares), number)
        for rate, colour in zip(rates, choose_colours(len(rates), ordered=True), strict=True):
            runs = table[(table["p_true"] == share) & (table["lr"] == rate)]
            axes.plot(
                runs["eta"] + 0.012 * (rates.index(rate) - 1.5),
                runs["balanced"],
                "o",
                ms=3,
                alpha=0.6,
                color=colour,
            )
            means = runs.groupby("eta")["balanced"].mean()
            axes.plot(means.index, means, color=colour, label=f"rate {rate:g}")
        axes.set(title=f"{share:.0%} right proofs", xlabel="eta: 0 dapo, 1 grpo", ylim=(0.4, 1.0))
        axes.spines[["top", "right"]].set_visible(False)
        if number == 1:
            axes.set_ylabel("balanced accuracy at the end")
            axes.legend(frameon=False, loc="center left")
    return figure


def main(
    runs: Annotated[
        Path, typer.Argument(help="Folder of Parquet files, of pv_lab.weighting_map for example.")
    ],
    out: Annotated[Path, typer.Option(help="Folder to write to.")],
) -> None:
    """Put the runs of a map side by side."""
    write_report(runs, out)


if __name__ == "__main__":
    run_command(main)
