"""The experiments of the lab as grids of runs, and what is read off their files."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from places import ROOT
from typer.testing import CliRunner

pytest.importorskip("transformers", reason="transformers is not installed: pip install 'pv-rl[verl]'")
import typer

from pv_lab import collapse_runs, sentinel_table, veto_runs
from pv_lab.loop_settings import Run
from pv_lab.many_runs import _part
from pv_lab.sentinel_table import Watched, smoothed, table, watch_run
from pv_lab.veto_report import write_report
from pv_lab.weighting_map import fresh_runs, rates_of
from pv_rl.errors import DataError
from pv_runs.sentinel import SentinelConfig

STARTS = Path("starts")
MAP = ROOT / "docs" / "studies" / "data" / "map_runs.csv"


def row(run: Run, step: int, split: str, right: float, wrong: float, **columns: float | None):
    measured = {
        "right_proofs": right,
        "wrong_proofs": wrong,
        "repetitive": 0.25,
        "length": 40.0,
        "cut_off": 0.0,
    }
    trained = {"vetoed": 0.1 * step, "abstained": 0.0} if split == "train" else {}
    return asdict(run) | {"step": step, "split": split} | measured | trained | columns


def write(folder: Path, rows: list[dict]) -> Path:
    folder.mkdir(exist_ok=True)
    names = list(dict.fromkeys(name for one in rows for name in one))
    pq.write_table(pa.table({name: [one.get(name) for one in rows] for name in names}), folder / "a.parquet")
    return folder


def test_every_cell_of_the_veto_has_its_seeds_and_a_name_of_its_own():
    runs = veto_runs.grid(STARTS)
    assert len(set(runs)) == len(runs) == 105
    assert set(Counter(run.name for run in runs).values()) == {5}
    assert {run.name.split("/")[0] for run in runs if run.veto == "none"} == {
        *("exploit", "length is paid", "only loops work", "nothing loops, false positives 20%")
    }
    away = [run for run in runs if run.outage_to > run.outage_from]
    assert {(run.on_failure, run.veto) for run in away} == {
        *(("abstain", "zero"), ("fail_open", "zero"), ("fail_closed", "zero"))
    }


def test_collapses_and_healthy_runs_are_split_into_two_halves_alike():
    tune, confirm = (
        collapse_runs.runs(STARTS, [*seeds]) for seeds in (collapse_runs.TUNE, collapse_runs.CONFIRM)
    )
    for runs in (tune, confirm):
        counted = Counter(run.name for run in runs)
        assert counted.pop("healthy") == 20
        assert len(counted) == 5
        assert set(counted.values()) == {5}
    assert {run.seed for run in tune}.isdisjoint(run.seed for run in confirm)
    same = [replace(run, seed=0, mode="") for run in tune]
    assert same == [replace(run, seed=0, mode="") for run in confirm]


def test_slow_causes_have_the_faults_of_sudden_ones_at_the_same_steps():
    sudden, slow = (collapse_runs.runs(STARTS, [3, 102], causes) for causes in ("sudden", "slow"))
    at = {(run.name, run.seed): run.fault_from for run in sudden}
    broken = {(run.name, run.seed): run.fault_from for run in slow if run.fault_from > 1}
    assert {key: step for key, step in broken.items() if key[0] != "labels, right"}.items() <= at.items()
    assert all(broken["labels, right", seed] == broken["labels", seed] for seed in (3, 102))
    assert len(broken) == 8
    assert Counter(run.name for run in slow if run.fault_from == 1) == {
        "healthy, warmed up": 2,
        "healthy, loops": 2,
    }
    with pytest.raises(DataError, match="sudden or slow"):
        collapse_runs.runs(STARTS, [0], "quick")


@pytest.mark.parametrize(("part", "stacks"), [("1/1", [0, 1, 2, 3]), ("1/3", [0, 3]), ("3/3", [2])])
def test_parts_share_the_stacks(part, stacks):
    given = [[Run(seed=seed)] for seed in range(4)]
    assert _part(given, part) == [given[one] for one in stacks]


@pytest.mark.parametrize("part", ["0/3", "4/3", "1", "a/b", ""])
def test_a_part_that_is_none_is_refused(part):
    with pytest.raises(DataError, match="give 1/3, 2/3 or 3/3"):
        _part([], part)


def test_the_report_of_the_veto_says_means_and_endings_by_hand(tmp_path):
    none, zero = Run(name="exploit/no veto"), Run(name="exploit/zero", veto="zero")
    rows = []
    for run, seed, right, wrong in (
        (none, 0, 0.9, 0.1),
        (none, 1, 0.8, 0.4),
        (zero, 0, 0.9, 0.9),
        (zero, 1, 1.0, 1.0),
    ):
        run = replace(run, seed=seed)
        rows += [row(run, 0, "held_out", 0.9, 0.3), row(run, 2, "held_out", right, wrong)]
        rows += [row(run, step, "train", right, wrong) for step in (1, 2)]
    write_report(write(tmp_path / "runs", rows), tmp_path / "out")
    text = (tmp_path / "out" / "veto.md").read_text()
    # .5 and .6: mean .55, s / sqrt(2) = .05, t = 12.706. Vetoed: the mean of .1 and .2.
    assert "| no veto | 2 | 0.550 (-0.085 to 1.185) | 0.850 | 0.250 | 0.250 (0.250 to 0.250) | 40.0" in text
    assert "| 0.150 | 0.000 | 1 of 2 | never |" in text
    assert "| zero | 2 | 0.950 (0.315 to 1.585) |" in text
    assert "| 0 of 2 | 2 to 2 |" in text
    lines = list(csv.DictReader((tmp_path / "out" / "veto_runs.csv").open()))
    assert [(one["name"], one["balanced"], one["learned_by"]) for one in lines][:3] == [
        *(("exploit/no veto", "0.5", ""), ("exploit/no veto", "0.6", ""), ("exploit/zero", "0.9", "2.0"))
    ]
    assert (tmp_path / "out" / "veto.png").stat().st_size > 1000


def test_runs_of_something_else_are_refused(tmp_path):
    rows = [row(Run(), 0, "held_out", 0.9, 0.3), row(Run(), 1, "train", 0.9, 0.3)]
    with pytest.raises(DataError, match="named EXPERIMENT/VARIANT"):
        write_report(write(tmp_path, rows), tmp_path / "out")
    without = [{name: value for name, value in one.items() if name != "vetoed"} for one in rows]
    with pytest.raises(DataError, match=r"have no vetoed; train them with pv_lab\.veto_runs"):
        write_report(write(tmp_path, without), tmp_path / "out")


def test_the_rates_of_an_earlier_map_are_read_from_its_table(tmp_path):
    table = tmp_path / "runs.csv"
    table.write_text(
        "eta,lr,p_true,seed,balanced\n0.0,1e-4,0.6,0,0.8\n0.0,2e-4,0.6,0,0.7\n0.0,2e-4,0.6,1,0.95\n"
    )
    assert rates_of(table) == {("balanced:0.0", 0.6): 2e-4}  # .825 on average
    committed = rates_of(MAP)
    assert len(committed) == 15
    assert {run.lr for run in fresh_runs(committed)} <= {1e-4, 2e-4, 4e-4}  # 8e-4 always collapses
    for text in ("", "eta,lr\n", "eta,lr,p_true,balanced\n0,1,1,much\n", "a,b\n1,2\n"):
        table.write_text(text)
        with pytest.raises(DataError, match=r"runs\.csv"):
            rates_of(table)


def test_accuracies_are_averaged_over_five_steps_and_not_over_twenty():
    every_step = list(enumerate([0.6, 0.8, 0.7, 0.9, 0.5, 0.4], 1))
    assert smoothed(every_step)[2] == (3, pytest.approx(0.7))
    assert smoothed(every_step)[0] == (1, pytest.approx(0.7))
    assert smoothed([(0, 0.6), (10, 0.9)]) == [(0, 0.6), (10, 0.9)]


def falling(run: Run, jumps: int):
    """Verdicts go missing at step `jumps`; held-out accuracy falls at step 30."""
    for step in range(1, 41):
        yield row(run, step, "train", 0.8, 0.8, no_verdict=0.02 if step < jumps else 0.4, reward=0.8)
        accuracy = 0.8 if step < 30 else 0.5
        yield row(run, step, "held_out", accuracy, accuracy)


def test_an_alarm_before_the_fault_is_a_false_one_and_no_lead():
    config = SentinelConfig(responses=128)
    sound = watch_run(list(falling(Run(), 21)), config)
    assert sound.first in (21, 22)
    assert (sound.false, sound.signs) == (0, ("missing_verdicts",))
    assert sound.fall == pytest.approx(29, abs=1)  # the mean of five passes .7 between two steps
    assert sound.due is None  # one family
    late = watch_run(list(falling(Run(flip_wrong=0.5, fault_from=25), 21)), config)
    assert (late.alarms, late.false, late.first, late.lead) == (sound.alarms, sound.alarms, None, None)


def test_the_table_counts_early_alarms_by_kind_of_run():
    def one(first, fall, alarms=1):
        return Watched(alarms=alarms, false=0, first=first, signs=("cut_off",), due=first, fall=fall)

    found = {
        "rate": [(60, one(20, 25.0)), (60, one(21, 25.0)), (60, one(None, 25.0, 0))],
        "healthy": [(60, one(None, None, 0))],
    }
    lines = table(found).splitlines()
    assert lines[2] == "| rate | 3 | 180 | 2 | 0 | 2 | 3 | 1 of 3 | 4.5 (4.0 to 5.0) | `cut_off` | 1 of 3 |"
    assert lines[3] == "| healthy | 1 | 60 | 0 | 0 | 0 | 0 | - | - | - | - |"


def test_the_table_is_of_the_seeds_that_are_asked_for(tmp_path):
    rows = [line for seed in (3, 103) for line in falling(Run(name="rate", seed=seed), 21)]
    app = typer.Typer()
    app.command()(sentinel_table.main)
    arguments = [
        str(write(tmp_path / "runs", rows)),
        "--seeds",
        "confirm",
        "--out",
        str(tmp_path / "runs.csv"),
    ]
    said = CliRunner().invoke(app, arguments)
    assert said.exit_code == 0
    assert "| rate | 1 | 40 |" in said.output
    assert [one["seed"] for one in csv.DictReader((tmp_path / "runs.csv").open())] == ["103"]
    for bad in (
        ["--seeds", "some"],
        ["--by", "colour"],
        ["--watch", '{"shift": 9}'],
        ["--watch", "{"],
        ["--watch", "[1]"],
    ):
        assert CliRunner().invoke(app, [arguments[0], *bad]).exit_code == 2
