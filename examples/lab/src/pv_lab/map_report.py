"""The tables and the figure of the map: `python -m pv_lab.map_report DIR --out REPORT`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pv_lab.many_runs import read_runs
from pv_rl.errors import DataError, PvRlError
from pv_rl.files import write_atomically
from pv_rl.losses import resolve_mode
from pv_runs.report.interval import mean_of_seeds

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLLAPSED", "outcomes", "write_report"]

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
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / "runs.csv", lambda path: table.round(4).to_csv(path, index=False))
    text = "\n\n".join([_accuracy(table), _endings(table), _lengths(table)]) + "\n"
    write_atomically(out / "map.md", lambda path: path.write_text(text))
    _draw(table, out / "map.png")


def _accuracy(table: pd.DataFrame) -> str:
    def cell(group: pd.DataFrame) -> str:
        low, high = group["balanced"].min(), group["balanced"].max()
        return f"{group['balanced'].mean():.3f} ({low:.2f} to {high:.2f})"

    return "Balanced accuracy at the end, mean (extremes of the seeds):\n\n" + _by_eta(table, cell)


def _endings(table: pd.DataFrame) -> str:
    def cell(group: pd.DataFrame) -> str:
        counts = group["ending"].value_counts()
        kinds = [f"{counts[kind]} {kind}" for kind in ("accepts", "rejects", "other") if kind in counts]
        return ", ".join(kinds) if kinds else "0"

    head = f"Runs that ended below {COLLAPSED} (accepting or rejecting 95 % and more, or otherwise):\n\n"
    return head + _by_eta(table, cell)


def _by_eta(table: pd.DataFrame, cell) -> str:
    etas = sorted(table["eta"].unique())
    lines = ["| right proofs | rate | " + " | ".join(f"eta {eta:g}" for eta in etas) + " |"]
    lines.append("|---|---|" + "---|" * len(etas))
    for share, rate, setting in _settings(table):
        groups = [setting[setting["eta"] == eta] for eta in etas]
        cells = ["-" if group.empty else cell(group) for group in groups]
        lines.append(f"| {share:.0%} | {rate:g} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _settings(table: pd.DataFrame) -> Iterator[tuple[float, float, pd.DataFrame]]:
    """Share of right proofs, rate, and the runs that have both."""
    for share in sorted(table["p_true"].unique()):
        for rate in sorted(table["lr"].unique()):
            runs = table.loc[(table["p_true"] == share) & (table["lr"] == rate)]
            if not runs.empty:
                yield share, rate, runs


def _lengths(table: pd.DataFrame) -> str:
    """How much longer responses are under eta 0 (dapo) than under eta 1 (grpo), seed by seed."""
    steps = sorted(int(name.split("_")[1]) for name in table if name.startswith("length_"))[1:]
    lines = ["| right proofs | rate | " + " | ".join(f"step {step}" for step in steps) + " |"]
    lines.append("|---|---|" + "---|" * len(steps))
    for share, rate, setting in _settings(table):
        ends = [setting[setting["eta"] == eta].set_index("seed") for eta in (0.0, 1.0)]
        cells = [_said((ends[0][f"length_{step}"] - ends[1][f"length_{step}"]).tolist()) for step in steps]
        lines.append(f"| {share:.0%} | {rate:g} | " + " | ".join(cells) + " |")
    head = "Tokens of a held-out response under `dapo` less those under `grpo`, same seed, mean (95 % interval):\n\n"
    return head + "\n".join(lines)


def _said(differences: list[float]) -> str:
    found = mean_of_seeds([one for one in differences if one == one])
    if found is None:
        return "-"
    interval = "" if found.low is None else f" ({found.low:.1f} to {found.high:.1f})"
    return f"{found.mean:.1f}{interval}"


def _draw(table: pd.DataFrame, path: Path) -> None:
    from matplotlib.figure import Figure

    shares, rates = sorted(table["p_true"].unique()), sorted(table["lr"].unique())
    figure = Figure(figsize=(4 * len(shares), 3.4), layout="constrained")
    for number, share in enumerate(shares, start=1):
        axes = figure.add_subplot(1, len(shares), number)
        for rate in rates:
            runs = table[(table["p_true"] == share) & (table["lr"] == rate)]
            colour = f"C{rates.index(rate)}"
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
    write_atomically(path, lambda part: figure.savefig(part, dpi=130, format="png"))


def main(
    runs: Annotated[
        Path, typer.Argument(help="Folder of Parquet files, of pv_lab.weighting_map for example.")
    ],
    out: Annotated[Path, typer.Option(help="Folder to write to.")],
) -> None:
    """Put the runs of a map side by side."""
    try:
        write_report(runs, out)
    except (PvRlError, OSError) as error:
        raise typer.BadParameter(str(error)) from error


if __name__ == "__main__":
    typer.run(main)
