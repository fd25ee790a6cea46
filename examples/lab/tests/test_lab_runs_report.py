"""`pv-rl lab report` on made-up runs: kinds of traces, stages, the order of lengths, and what is written."""

from __future__ import annotations

import io
import json
import math
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure
from rich.console import Console
from scipy import stats

from pv_lab.runs.measures import LENGTH
from pv_lab.runs.order import find_orders, say_order
from pv_lab.runs.report import report_lab
from pv_lab.runs.stages import stages_of, value_at, windows
from pv_lab.runs.summary import summarise_lab
from pv_lab.runs.traces import describe_step, read_traces
from pv_rl.errors import DataError
from pv_runs.report.figure import band, draw_panel

CONFIG = """
seed: {seed}
data: {{max_response_length: 16}}
actor_rollout_ref: {{actor: {{loss_agg_mode: "{mode}"}}}}
"""
LONG = " ".join(f"w{n}" for n in range(12))
CUT = " ".join(f"w{n}" for n in range(20))
LOOP = "a b c d e f " * 3


def add_run(
    out,
    mode,
    seed,
    lengths,
    *,
    right=(),
    wrong=(),
    state="finished",
    traces=("### True", LONG),
    log_length=None,
):
    """A run whose step n has the n-th length, with `traces` in each step, validated at steps 0, 1, 2 ..."""
    run = out / f"{mode.replace(':', '-')}-seed-{seed}"
    (run / ".hydra").mkdir(parents=True)
    (run / "rollouts").mkdir()
    (run / ".hydra" / "config.yaml").write_text(CONFIG.format(seed=seed, mode=mode))
    (run / ".hydra" / "overrides.yaml").write_text(json.dumps([f"seed={seed}"]))
    (run / "run.json").write_text(json.dumps({"state": state}))
    rows = []
    for step in range(max(len(lengths) + 1, len(right))):
        data = {}
        if 1 <= step <= len(lengths):
            length = lengths[step - 1] if log_length is None else log_length
            data |= {"response_length/mean": length, "critic/score/mean": 0.5}
        if step < len(right):
            data |= {
                "val-core/lab/right/acc/mean@1": right[step],
                "val-core/lab/wrong/acc/mean@1": wrong[step],
            }
        rows.append({"step": step, "data": data})
    (run / "metrics.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows if row["data"]))
    for step in range(1, len(lengths) + 1):
        text = "".join(json.dumps({"output": trace, "step": step}) + "\n" for trace in traces)
        (run / "rollouts" / f"{step}.jsonl").write_text(text)
    return run


def setting(out, label):
    return next(one for one in summarise_lab(out).settings if one.label == label)


def test_traces_are_told_apart_by_their_words_and_the_end_mark():
    # Words: 2, 4, 12, 18, 20. Tokens with the end mark: 3, 5, 13, 19, and 20 of the one that was cut.
    traces = ["### True", "looks wrong ### False", LONG, LOOP, CUT]
    assert describe_step(traces, 20) == {
        "short": 2 / 5,
        "bare": 1 / 5,
        "cut_off": 1 / 5,
        "repetitive": 1 / 5,
        "length": 60 / 5,
    }


def test_a_bare_false_is_bare_too_and_seven_words_are_short():
    kinds = describe_step(["### False", "looks fine", " ".join("abcdefg"), " ".join("abcdefgh")], 16)
    assert (kinds["bare"], kinds["short"]) == (1 / 4, 3 / 4)


def test_a_response_that_ended_at_the_limit_is_not_cut_off():
    assert describe_step([" ".join("w" * 15)], 16)["cut_off"] == 0  # 15 words and the end mark


def test_a_step_that_is_not_written_to_its_end_is_left_out(tmp_path):
    (tmp_path / "1.jsonl").write_text('{"output": "### True"}\n')
    (tmp_path / "2.jsonl").write_text('{"output": "### True"}\n{"outp')
    (tmp_path / "4.jsonl").write_text('{"output": "### True"}\n')
    assert read_traces(tmp_path, 3, 16)["bare"] == {1: 1.0}  # 3 is not there; 4 is beyond the log


def test_a_broken_line_is_named(tmp_path):
    (tmp_path / "1.jsonl").write_text('{"text": "### True"}\n{"output": "### True"}\n')
    with pytest.raises(DataError, match=r"line 1 of .*1\.jsonl is not what verl writes.*no text `output`"):
        read_traces(tmp_path, 1, 16)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (30, [(1, 3), (14, 16), (28, 30)]),
        (20, [(1, 2), (10, 11), (19, 20)]),
        (3, [(1, 1), (1, 1), (3, 3)]),
        (2, [(1, 1), (1, 1), (2, 2)]),
        (1, [(1, 1), (1, 1), (1, 1)]),
    ],
)
def test_a_stage_is_a_tenth_of_the_run(steps, expected):
    assert list(windows(steps).values()) == expected


def test_stages_are_means_over_seeds_with_students_interval(tmp_path):
    lengths = [[10, 20, 30], [12, 20, 36], [11, 20, 42]]
    for seed, one in enumerate(lengths):
        add_run(
            tmp_path, "grpo", seed, one, right=(0.9, 0.8, 0.7, 0.6), wrong=(0.3, 0.4, 0.5, 0.8 + seed / 10)
        )
    summary = summarise_lab(tmp_path)
    (grpo,) = summary.settings
    by_name = {measure.name: (measure, key) for measure, key in summary.keys.items()}
    length = stages_of(grpo, *by_name["length"])
    assert [stage.mean.mean for stage in length.values()] == [11, 11, 36]
    ends = [one[-1] for one in lengths]
    low, high = stats.t.interval(0.95, 2, loc=np.mean(ends), scale=stats.sem(ends))
    assert (length["end"].mean.low, length["end"].mean.high) == pytest.approx((low, high))

    wrong = stages_of(grpo, *by_name["held_out_wrong"])  # 1 and 2 are as near to 1.5: the earlier one
    assert [(stage.first, stage.last) for stage in wrong.values()] == [(0, 0), (1, 1), (3, 3)]
    assert [stage.mean.mean for stage in wrong.values()] == pytest.approx([0.3, 0.4, 0.9])
    assert stages_of(grpo, *by_name["held_out_balanced"])["end"].mean.mean == pytest.approx(0.75)
    assert stages_of(grpo, *by_name["traces_bare"])["start"].mean.mean == 0.5


def test_a_window_leaves_out_what_is_no_number(tmp_path):
    add_run(tmp_path, "grpo", 0, [10, math.nan, 30])
    run = summarise_lab(tmp_path).settings[0].results[0].run
    assert value_at(run, "response_length/mean", 1, 3) == 20
    assert value_at(run, "response_length/mean", 2, 2) is None


def test_a_run_that_did_not_end_is_in_no_stage_and_in_no_order(tmp_path):
    for mode in ("grpo", "dapo"):
        add_run(tmp_path, mode, 0, [10, 10])
        add_run(tmp_path, mode, 1, [99, 99], state="stopped")
    summary = summarise_lab(tmp_path)
    assert setting(tmp_path, "grpo").means["length"].mean == 10
    assert [order.seeds for order in find_orders(summary.settings)] == [("0",), ("0",)]


def three(out, ends):
    """Runs of dapo, balanced and grpo with 10 steps; `ends` has their last lengths, a line a seed."""
    for seed, line in enumerate(ends):
        for mode, end in zip(("dapo", "balanced:0.6", "grpo"), line, strict=True):
            add_run(out, mode, seed, [20] * 9 + [end])


def test_the_order_is_there_if_every_seed_and_every_interval_has_it(tmp_path):
    ends = [(46, 42, 40), (48, 45, 42), (44, 41, 38)]
    three(tmp_path, ends)
    middle, end = find_orders(summarise_lab(tmp_path).settings)
    assert end.labels == ("dapo", "balanced:0.6", "grpo")
    assert (end.first, end.last) == (10, 10)
    assert end.in_order == ("0", "1", "2")
    columns = np.array(ends).T
    for (at, other), pair in zip(pairwise(range(3)), pairwise(end.labels), strict=True):
        low, high = stats.t.interval(
            0.95, 2, loc=(columns[at] - columns[other]).mean(), scale=stats.sem(columns[at] - columns[other])
        )
        found = end.differences[pair]
        assert (found.low, found.high) == pytest.approx((low, high))
    assert end.differences["dapo", "grpo"].mean == pytest.approx(6)  # 6, 6, 6
    assert end.there
    text = say_order(end)
    assert text.startswith(
        "End (step 10): the order of lengths dapo > balanced:0.6 > grpo holds in 3 of 3 seeds"
    )
    assert "dapo - grpo is 6.00 tokens (95 % interval 6.00 to 6.00)" in text
    assert "in 1 of 6 seeds" in text

    assert middle.in_order == ()  # all are 20 tokens long there
    assert not middle.there
    assert "Middle (step 5): the order of lengths dapo > balanced:0.6 > grpo holds only in 0 of 3 seeds" in (
        say_order(middle)
    )


def test_an_order_in_every_seed_whose_interval_holds_0_is_not_shown(tmp_path):
    three(tmp_path, [(41, 40, 38), (60, 41, 40), (42, 41, 40)])
    _, end = find_orders(summarise_lab(tmp_path).settings)
    assert end.in_order == end.seeds
    assert not end.there
    assert "in 3 of 3 seeds, but an interval of a difference between neighbours holds 0" in say_order(end)


def test_an_order_in_some_seeds_is_said_with_how_many(tmp_path):
    three(tmp_path, [(46, 42, 40), (48, 45, 42), (44, 45, 38)])
    _, end = find_orders(summarise_lab(tmp_path).settings)
    assert end.in_order == ("0", "1")
    assert "holds only in 2 of 3 seeds" in say_order(end)


def test_one_seed_shows_nothing(tmp_path):
    three(tmp_path, [(46, 42, 40)])
    _, end = find_orders(summarise_lab(tmp_path).settings)
    assert not end.there
    assert "one seed has no interval, so it is not significant" in say_order(end)


def test_an_eta_list_is_ordered_by_eta_and_other_modes_stay_out(tmp_path):
    for mode in ("grpo", "balanced:0.3", "token-mean", "dapo", "dapo@batch", "balanced:0.10"):
        add_run(tmp_path, mode, 0, [20, 20])
    order, _ = find_orders(summarise_lab(tmp_path).settings)
    assert order.labels == ("dapo", "balanced:0.10", "balanced:0.3", "grpo")


def test_weightings_that_ended_at_different_steps_have_no_order(tmp_path):
    add_run(tmp_path, "grpo", 0, [20, 20])
    add_run(tmp_path, "dapo", 0, [20, 20, 20])
    assert find_orders(summarise_lab(tmp_path).settings) == []


def test_the_band_is_the_interval_over_seeds_at_steps_that_all_have(tmp_path):
    add_run(tmp_path, "grpo", 0, [10, 20])
    add_run(tmp_path, "grpo", 1, [14, math.nan])
    low, high = stats.t.interval(0.95, 1, loc=12, scale=stats.sem([10, 14]))
    assert band(setting(tmp_path, "grpo"), "response_length/mean") == {1: pytest.approx((low, high))}


def test_a_panel_is_as_high_as_the_lines_of_all_weightings_and_not_as_their_bands(tmp_path):
    for seed, apart in enumerate((0, 2)):
        add_run(tmp_path, "balanced:0.6", seed, [8, 9])
        add_run(tmp_path, "dapo", seed, [8, 40 + apart])  # its interval is 28.3 to 53.7
    axes = Figure().subplots()
    settings = summarise_lab(tmp_path).settings
    draw_panel(axes, settings, LENGTH, "response_length/mean", ["C0", "C1"], bands=True)
    low, high = axes.get_ylim()
    assert low < 8
    assert 42 < high < 45
    assert len(axes.collections) == 2  # the bands are there


def test_a_run_whose_words_are_no_tokens_is_named(tmp_path):
    add_run(tmp_path, "grpo", 0, [8, 8])  # as long as its traces: 3 and 13 tokens
    add_run(tmp_path, "grpo", 1, [8, 8], log_length=40)
    notes = "\n".join(summarise_lab(tmp_path).notes)
    assert "Traces that are not as long as verl says" in notes
    assert "shares mean little: grpo-seed-1." in notes


def test_a_run_without_traces_is_named(tmp_path):
    run = add_run(tmp_path, "grpo", 0, [8, 8])
    for file in (run / "rollouts").iterdir():
        file.unlink()
    notes = "\n".join(summarise_lab(tmp_path).notes)
    assert "No traces in rollouts/, so that nothing is said of their kinds: grpo-seed-0." in notes


def test_a_report_is_written_whole_with_all_that_it_says(tmp_path):
    ends = [(46, 42, 40), (48, 45, 42), (44, 41, 38)]
    three(tmp_path, ends)
    console = Console(file=io.StringIO(), width=200)
    report_lab(tmp_path, console=console)
    folder = tmp_path / "report"
    assert sorted(file.name for file in folder.iterdir()) == [
        f"report.{kind}" for kind in ("html", "json", "md", "png")
    ]
    assert (folder / "report.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")

    text = (folder / "report.md").read_text()
    assert "| response length | tokens | grpo | 1, 5, 10 | 20.0 (20.0 to 20.0) |" in text
    assert "| bare traces | share of responses | dapo | 1, 5, 10 | 0.500 (0.500 to 0.500) |" in text
    assert "the order of lengths dapo \\> balanced:0.6 \\> grpo holds in 3 of 3 seeds" in text
    assert "## Runs" in text  # what pv-rl report says comes after
    assert text.count("![report](report.png)") == 1
    assert "holds in 3 of 3 seeds" in console.file.getvalue()

    known = json.loads((folder / "report.json").read_text())
    end = known["order"][1]
    assert (end["stage"], end["there"], end["in_order"]) == ("end", True, ["0", "1", "2"])
    stage = known["stages"]["length"]["dapo"]["end"]
    assert (stage["first"], stage["mean"]["mean"], stage["mean"]["number"]) == (10, 46, 3)
    assert known["runs"][0]["series"]["traces_short"] == {"step": list(range(1, 11)), "value": [0.5] * 10}
    report_lab(tmp_path, console=console)  # what an earlier one wrote is no run


def test_a_lab_that_has_just_begun_has_a_report(tmp_path):
    add_run(tmp_path, "grpo", 0, [], state="running")
    report_lab(tmp_path, console=Console(file=io.StringIO()))
    assert "No order: this needs" in (tmp_path / "report" / "report.md").read_text()


def test_what_is_no_lab_is_refused(tmp_path):
    run = add_run(tmp_path, "grpo", 0, [8])
    (run / ".hydra" / "config.yaml").write_text("seed: 0\n")
    (run / ".hydra" / "overrides.yaml").write_text('["actor_rollout_ref.actor.loss_agg_mode=grpo"]')
    with pytest.raises(
        DataError, match=r"grpo-seed-0 is no run of pv-rl lab run: its config has no data\.max_resp"
    ):
        report_lab(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="has no run in it"):
        report_lab(tmp_path / "empty")
