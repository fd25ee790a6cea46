"""Report of the study: tables, a figure and a line for every run: `python -m pv_lab.smol.report OUT --data DATA`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pv_judge.files import write_atomically
from pv_judge.pages.blocks import Block, Column, Paragraph, Table
from pv_judge.pages.figure import choose_colours, clean, new_figure
from pv_judge.pages.text import MISSING, estimate, plural
from pv_lab.many_runs import run_command
from pv_lab.map_report import write_files
from pv_lab.smol.outcomes import SETS, read_study
from pv_runs.report.interval import mean_of_seeds

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["FALL", "compare", "write_report"]

SETTING = ["start", "share", "veto", "changes", "mode"]
FALL = 0.10
"""A run is healthy unless its balanced accuracy on `chain2` ends this far below an earlier validation."""
ACCEPT_ALL = 0.5
"""Balanced accuracy of a verifier that accepts everything."""
MEASURES = {
    "right": "right proofs accepted",
    "wrong": "wrong proofs rejected",
    "balanced": "balanced",
    "auroc": "AUROC",
}


def compare(validations: pd.DataFrame) -> pd.DataFrame:
    """A row for each run and set: the first and the last validation side by side, with the suffixes `_start` and
    `_end`. Left out are runs that were cut before the last step that another run reached."""
    key = ["run", *SETTING, "seed", "set"]
    ordered = validations.sort_values("step").groupby(key, sort=False)
    both = ordered.head(1).merge(ordered.tail(1), on=key, suffixes=("_start", "_end"))
    last = validations["step"].max()
    return both[(both["step_start"] < last) & (both["step_end"] == last)].reset_index(drop=True)


def write_report(study: Path, data: Path, out: Path) -> None:
    """Write `smol.md`, `smol.png`, `smol_runs.csv` (a line for each run) and `smol_validations.csv` (a line for each
    run, validation and set) to `out`."""
    runs, validations = read_study(study, data)
    blocks = _blocks(runs, validations)
    write_files(out, "smol", runs, blocks, _draw(validations), runs="smol_runs", dpi=90)
    path = out / "smol_validations.csv"
    write_atomically(path, lambda file: validations.round(4).to_csv(file, index=False))


def _blocks(runs: pd.DataFrame, validations: pd.DataFrame) -> Iterator[Block]:
    states = ", ".join(f"{count} {state}" for state, count in runs["state"].value_counts().items())
    both = compare(validations)
    yield Paragraph(
        f"{plural(len(runs), 'run')} ({states}); {both['run'].nunique()} have a validation at the end."
    )
    for name in [name for name in SETS if name in set(both["set"])]:
        yield Paragraph(_sentence(name, both[both["set"] == name]))
    yield Paragraph("Held out before and after RL, mean over seeds (95 % interval over seeds):")
    yield _accuracies(both)
    yield Paragraph(
        "Training, mean of the first and of the last five steps over seeds, and alarms of the sentinel:"
    )
    yield _training(runs)
    yield Paragraph(_alarms(runs, validations))


def _sentence(name: str, both: pd.DataFrame) -> str:
    """What the runs gained on one set, over runs and in each run's own interval over proofs."""
    gain, end = _mean(both["balanced_end"] - both["balanced_start"]), _mean(both["balanced_end"])
    # where all resamples are equal there is no interval, and the value itself has to do
    before = both["balanced_high_start"].fillna(both["balanced_start"])
    after = both["balanced_low_end"].fillna(both["balanced_end"])
    clear, above = int((after > before).sum()), int((after > ACCEPT_ALL).sum())
    lower = int((both["balanced_end"] < both["balanced_start"]).sum())
    number = len(both)
    return (
        f"{name}, {int(both['proofs_end'].max())} proofs: balanced accuracy at the end {end} over "
        f"{plural(number, 'run')}, {gain} more than before RL. It fell in {lower}. In {clear} of {number} the interval "
        f"over proofs at the end is above the one before RL, in {above} of {number} above {ACCEPT_ALL} (accepting "
        "everything)."
    )


def _accuracies(both: pd.DataFrame) -> Table:
    groups = [
        (*setting, name, part)
        for setting, of_setting in both.groupby(SETTING)
        for name in SETS
        if not (part := of_setting[of_setting["set"] == name]).empty
    ]
    return Table.of(
        [
            *_names(),
            Column("proofs", lambda row: row[len(SETTING)], left=True),
            Column("seeds", lambda row: str(len(row[-1])), left=True),
            *(
                Column(
                    title,
                    lambda row, key=key: (
                        f"{row[-1][f'{key}_start'].mean():.3f} to {_mean(row[-1][f'{key}_end'])}"
                    ),
                    left=True,
                )
                for key, title in MEASURES.items()
            ),
            Column(
                "no verdict",
                lambda row: (
                    f"{row[-1]['no_verdict_start'].mean():.3f} to {row[-1]['no_verdict_end'].mean():.3f}"
                ),
                left=True,
            ),
        ],
        groups,
        repeated=len(SETTING) + 1,
    )


def _training(runs: pd.DataFrame) -> Table:
    def change(key: str, form: str) -> Column[tuple]:
        return Column(
            key,
            lambda row: (
                f"{form.format(row[-1][f'{key}_first'].mean())} to {form.format(row[-1][f'{key}_last'].mean())}"
            ),
            left=True,
        )

    return Table.of(
        [
            *_names(),
            Column("runs", lambda row: str(len(row[-1])), left=True),
            change("reward", "{:.3f}"),
            change("length", "{:.0f}"),
            change("vetoed", "{:.1%}"),
            change("no_verdict", "{:.1%}"),
            Column("seconds a step", lambda row: f"{row[-1]['seconds_last'].mean():.1f}", left=True),
            Column("alarms", lambda row: str(row[-1]["alarms"].sum()), left=True),
        ],
        [(*setting, part) for setting, part in runs.groupby(SETTING)],
        repeated=len(SETTING),
    )


def _alarms(runs: pd.DataFrame, validations: pd.DataFrame) -> str:
    chain = validations[validations["set"] == "chain2"].sort_values("step")
    fell = {
        name
        for name, part in chain.groupby("run")
        if (part["balanced"].cummax() - part["balanced"]).iloc[-1] >= FALL
    }
    healthy = runs[~runs["run"].isin(fell)]
    alarmed = healthy[healthy["alarms"] > 0]
    which = "".join(f" {row.run}: {row.signs}." for row in alarmed.itertuples())
    return (
        f"Sentinel: {plural(int(healthy['alarms'].sum()), 'alarm')} in {plural(len(healthy), 'healthy run')} of "
        f"{int(healthy['steps'].sum())} steps in all; {plural(len(fell), 'run')} fell by {FALL} or more on chain2."
        f"{which}"
    )


def _names() -> list[Column]:
    return [
        Column("start", lambda row: row[0], left=True),
        Column("right proofs", lambda row: f"{row[1]} %", left=True),
        Column("veto", lambda row: "yes" if row[2] else "no", left=True),
        Column("changes", lambda row: row[3], left=True),
        Column("weighting", lambda row: row[4], left=True),
    ]


def _mean(values: pd.Series) -> str:
    found = mean_of_seeds(values.dropna().tolist())
    return MISSING if found is None else estimate(found.mean, found.low, found.high, "{:.3f}".format)


def _draw(validations: pd.DataFrame) -> Figure:
    """A panel a set: balanced accuracy over steps, a line for each run in the colour of its weighting. Where runs were
    cut, means of a weighting would be of other runs at each step."""
    names = [name for name in SETS if name in set(validations["set"])]
    modes = sorted(validations["mode"].unique())
    figure = new_figure(3.0 * len(names), 3.2)
    panels = figure.subplots(1, len(names), squeeze=False, sharey=True)[0]
    for panel, name in zip(panels, names, strict=True):
        for mode, colour in zip(modes, choose_colours(len(modes)), strict=True):
            part = validations[(validations["set"] == name) & (validations["mode"] == mode)]
            for number, (_, run) in enumerate(part.groupby("run")):
                label = "_" if number else mode  # a legend leaves out names with an underscore
                panel.plot(run["step"], run["balanced"], color=colour, lw=1.0, alpha=0.8, label=label)
        panel.axhline(ACCEPT_ALL, color="grey", lw=0.8, ls=":")
        panel.set(title=name, xlabel="step", ylim=(0, 1))
        clean(panel)
    panels[0].set_ylabel("balanced accuracy, held out")
    panels[0].legend(frameon=False, fontsize=7, loc="lower right")
    return figure


def main(
    study: Annotated[Path, typer.Argument(help="Folder of pv_lab.smol.runs.")],
    data: Annotated[Path, typer.Option(help="Folder of pv_lab.smol.data.")],
    out: Annotated[Path, typer.Option(help="Folder to write to.")],
) -> None:
    """Put the runs of the study side by side."""
    write_report(study, data, out)


if __name__ == "__main__":
    run_command(main)
