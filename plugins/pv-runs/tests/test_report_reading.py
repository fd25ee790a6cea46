"""What `pv-rl report` reads of a run's folder, and the interval over seeds."""

from __future__ import annotations

import json
import math
import os

import pytest

from pv_rl.errors import DataError
from pv_runs.growing_file import LONGEST_LINE
from pv_runs.hydra_record import look_up, read_config, read_overrides, saved_config
from pv_runs.metrics_log import read_log
from pv_runs.report.interval import mean_of_seeds
from pv_runs.run_folder import find_runs

REWARD = "critic/score/mean"


def write_metrics(folder, *lines, name="metrics.jsonl", end="\n"):
    folder.mkdir(parents=True, exist_ok=True)
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    (folder / name).write_text("\n".join(texts) + end)


def line(step, **data):
    return {"step": step, "data": {REWARD: data.pop("reward"), **data} if "reward" in data else data}


def rewards(folder):
    return read_log(folder).series[REWARD]


def test_a_resumed_run_repeats_steps_and_the_later_file_wins(tmp_path):
    write_metrics(tmp_path, *(line(step, reward=step / 10) for step in (1, 2, 3, 4)))
    write_metrics(
        tmp_path, line(3, reward=0.9), line(4, reward=0.8), line(5, reward=0.7), name="metrics-2.jsonl"
    )
    assert rewards(tmp_path) == {1: 0.1, 2: 0.2, 3: 0.9, 4: 0.8, 5: 0.7}


def test_the_tenth_resume_comes_after_the_second(tmp_path):
    write_metrics(tmp_path, line(1, reward=0.1))
    write_metrics(tmp_path, line(1, reward=0.3), name="metrics-10.jsonl")
    write_metrics(tmp_path, line(1, reward=0.2), name="metrics-2.jsonl")
    assert rewards(tmp_path) == {1: 0.3}


def test_steps_of_a_policy_that_was_thrown_away_are_not_of_the_run(tmp_path):
    write_metrics(tmp_path, *(line(step, reward=0.1) for step in (9, 10, 11, 12)))
    write_metrics(tmp_path, line(11, reward=0.2), name="metrics-2.jsonl")
    assert rewards(tmp_path) == {9: 0.1, 10: 0.1, 11: 0.2}
    assert read_log(tmp_path).last_step == 11


def test_the_validation_before_a_resumed_training_keeps_the_numbers_of_its_step(tmp_path):
    write_metrics(tmp_path, line(10, reward=0.4))
    write_metrics(tmp_path, line(10, **{"val-core/lab/right/acc/mean@1": 0.5}), name="metrics-2.jsonl")
    assert rewards(tmp_path) == {10: 0.4}
    assert read_log(tmp_path).series["held_out/right"] == {10: 0.5}


def test_a_last_line_that_was_cut_off_is_left_out(tmp_path):
    write_metrics(tmp_path, line(1, reward=0.1), '{"step": 2, "data": {"critic/sc', end="")
    assert rewards(tmp_path) == {1: 0.1}


def test_a_whole_last_line_without_a_line_break_counts(tmp_path):
    write_metrics(tmp_path, line(1, reward=0.1), line(2, reward=0.2), end="")
    assert rewards(tmp_path) == {1: 0.1, 2: 0.2}


@pytest.mark.parametrize(
    "broken",
    ['{"step": 2, "da', "[]", '{"step": -1, "data": {}}', '{"step": true, "data": {}}', '{"step": 2}'],
)
def test_a_broken_line_elsewhere_is_named(tmp_path, broken):
    write_metrics(tmp_path, line(1, reward=0.1), broken, line(3, reward=0.1))
    with pytest.raises(DataError, match=r"line 2 of .*metrics\.jsonl is not what verl writes"):
        read_log(tmp_path)


def test_a_line_without_an_end_is_not_read_into_memory(tmp_path):
    (tmp_path / "metrics.jsonl").write_bytes(b" " + b"x" * (2 * LONGEST_LINE))
    with pytest.raises(DataError, match=f"line 1 .* longer than {LONGEST_LINE} bytes"):
        read_log(tmp_path)


@pytest.mark.parametrize(
    ("former", "present"),
    [
        ("pv_rl/reward/acc/label_true", "pv_rl/reward/acc_label_true"),
        ("pv_rl/held_out/slice/a/b/acc/label_false", "pv_rl/held_out/slice/a/b/acc_label_false"),
        ("pv_rl/weight_share/length_q4/verdict_none", "pv_rl/weight_share/length_q4_verdict_none"),
        ("pv_rl/held_out/length", "pv_rl/held_out/length/all"),
        ("pv_rl/held_out/length/right", "pv_rl/held_out/length/right"),
        ("val-core/acc/label_true", "val-core/acc/label_true"),
    ],
)
def test_a_log_of_an_earlier_version_is_read_under_the_names_of_today(tmp_path, former, present):
    write_metrics(tmp_path, line(1, **{former: 0.5}))
    assert read_log(tmp_path, lambda key: True).series == {present: {1: 0.5}}


def test_only_what_is_needed_is_kept(tmp_path):
    write_metrics(tmp_path, line(1, reward=0.1, other=1.0, **{"val-aux/lab/right/acc/mean@1": 0.5}))
    assert read_log(tmp_path).series == {REWARD: {1: 0.1}}


def test_what_is_no_finite_number_is_nan_and_what_is_no_number_is_nothing(tmp_path):
    texts = ["NaN", "null", "-Infinity", "1e999", '"high"', "true", "0.5"]
    write_metrics(tmp_path, *(f'{{"step": {n}, "data": {{"{REWARD}": {x}}}}}' for n, x in enumerate(texts)))
    known = rewards(tmp_path)
    assert [step for step, value in known.items() if math.isnan(value)] == [0, 1, 2, 3]
    assert {step: value for step, value in known.items() if not math.isnan(value)} == {6: 0.5}


def test_held_out_accuracies_are_by_class_and_the_mean_over_its_sources(tmp_path):
    data = {
        "val-core/lab/right/acc/mean@4": 0.9,
        "val-core/hard/right/acc/mean@4": 0.5,
        "val-core/lab/wrong/acc/mean@4": 0.3,
        "val-core/lab/upright/acc/mean@4": 0.0,
        "val-core/lab/right/acc/best@4/mean": 0.0,
    }
    write_metrics(tmp_path, line(5, **data))
    log = read_log(tmp_path)
    assert log.series["held_out/right"] == {5: pytest.approx(0.7)}
    assert log.series["held_out/wrong"] == {5: 0.3}
    assert log.series["held_out/balanced"] == {5: pytest.approx(0.5)}
    assert log.sources == ("lab/right", "hard/right", "lab/wrong")


def test_a_pipe_in_place_of_a_log_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "metrics.jsonl")
    assert read_log(tmp_path).last_step is None


def test_runs_are_found_in_folders_of_folders_in_natural_order(tmp_path):
    for name in ("b/10", "b/9", "a/x/y", "a/x/z/too_deep", "a/.hidden"):
        write_metrics(tmp_path / name, line(1))
    write_metrics(tmp_path / "b" / "9" / "inside", line(1))
    assert [str(run.relative_to(tmp_path)) for run in find_runs(tmp_path)] == ["a/x/y", "b/9", "b/10"]


def test_loops_and_second_names_of_a_run_do_no_harm(tmp_path):
    write_metrics(tmp_path / "z", line(1))
    (tmp_path / "a").symlink_to(tmp_path / "z")
    (tmp_path / "up").symlink_to(tmp_path)
    (tmp_path / "self").symlink_to("self")
    assert find_runs(tmp_path) == [tmp_path / "z"]


def test_a_run_that_failed_before_its_first_line_is_a_run(tmp_path):
    (tmp_path / "3").mkdir()
    (tmp_path / "3" / "run.json").write_text("{}")
    assert find_runs(tmp_path) == [tmp_path / "3"]


def test_a_folder_without_runs_says_what_was_looked_for(tmp_path):
    (tmp_path / "multirun.yaml").write_text("{}")
    with pytest.raises(
        DataError, match=r"has no run.*down to 3 levels.*metrics\.jsonl, run\.json, \.hydra/config"
    ):
        find_runs(tmp_path)
    with pytest.raises(DataError, match="is not a folder"):
        find_runs(tmp_path / "multirun.yaml")


def write_hydra(folder, name, text):
    (folder / ".hydra").mkdir(exist_ok=True)
    (folder / ".hydra" / name).write_text(text)


def test_references_are_filled_in_and_the_environment_is_not(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET", "hunter2")
    write_hydra(
        tmp_path,
        "config.yaml",
        "recipe: {eta: 0.3, scope: batch}\nmode: balanced:${recipe.eta}@${recipe.scope}\n"
        "leak: ${key}\nkey: ${oc.env:SECRET}\nunset: ${oc.env:NOT_SET}\nround: ${round}\n",
    )
    config = read_config(tmp_path)
    assert look_up(config, "mode") == "balanced:0.3@batch"
    assert look_up(config, "leak") == "${oc.env:SECRET}"
    assert look_up(config, "round") == "${round}"
    assert look_up(config, "nothing") is None


def test_aliases_that_stand_for_very_much_are_refused(tmp_path):
    lines = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 60))]
    write_hydra(tmp_path, "config.yaml", "\n".join(lines))
    with pytest.raises(DataError, match="YAML aliases"):
        read_config(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "a: !!int ''",
        "a: !!bool so",
        "a: !!timestamp so",
        "a: &a [*a]",
        "- " * 900,
        "{a: " * 101 + "1" + "}" * 101,
    ],
)
def test_yaml_that_hydra_does_not_write_is_refused(tmp_path, text):
    write_hydra(tmp_path, "config.yaml", text)
    with pytest.raises(DataError, match="is not what Hydra writes"):
        read_config(tmp_path)
    with pytest.raises(DataError, match=r"cannot be read|is not a config"):
        saved_config(tmp_path, ())


def test_overrides_are_read_by_key(tmp_path):
    write_hydra(tmp_path, "overrides.yaml", "- recipe.eta=0.3\n- ++a.b=x=y\n- ~c\n- reward@reward=verdict\n")
    assert read_overrides(tmp_path) == {
        "recipe.eta": "0.3",
        "a.b": "x=y",
        "c": "removed",
        "reward@reward": "verdict",
    }
    write_hydra(tmp_path, "overrides.yaml", "a: 1")
    with pytest.raises(DataError, match="not a list of overrides"):
        read_overrides(tmp_path)


def test_the_interval_of_two_and_of_three_seeds():
    two = mean_of_seeds([0.5, 0.7])  # s / sqrt(2) = 0.1
    assert (two.mean, two.low, two.high) == pytest.approx((0.6, 0.6 - 1.2706, 0.6 + 1.2706), abs=1e-4)
    three = mean_of_seeds([1, 2, 3])  # s = 1, 4.3027 / sqrt(3) = 2.4841
    assert (three.mean, three.low, three.high) == pytest.approx((2, -0.4841, 4.4841), abs=1e-4)
    assert (two.number, three.number) == (2, 3)


def test_one_seed_has_no_interval_and_none_no_mean():
    one = mean_of_seeds([0.5])
    assert (one.mean, one.low, one.high, one.number) == (0.5, None, None, 1)
    assert mean_of_seeds([]) is None
