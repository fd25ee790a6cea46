"""`pv-rl report` on a tree as `pv-rl train --multirun` leaves it: what is grouped, averaged, said, written."""

from __future__ import annotations

import io
import json
import math
import re

import pytest
from rich.console import Console

from pv_judge.pages.terminal import print_blocks
from pv_rl.errors import DataError
from pv_runs.measures import MEASURES, Measure
from pv_runs.report.command import report
from pv_runs.report.content import printed
from pv_runs.report.figure import mean_curve, panels
from pv_runs.report.summary import summarise

FILES = ["report.html", "report.json", "report.md", "report.png"]
CONFIG = """
seed: {seed}
recipe: {{name: "balanced-${{recipe.eta}}", eta: 0.6, scope: prompt}}
run_dir: ${{oc.env:PV_RL_NOT_SET}}/${{hydra:job.num}}
data: {{seed: "${{seed}}", train_batch_size: {batch}}}
actor_rollout_ref: {{actor: {{loss_agg_mode: "balanced:${{recipe.eta}}@${{recipe.scope}}"}}}}
trainer: {{default_local_dir: /runs/{seed}}}
"""


def add_run(
    sweep, name, *overrides, rewards=(0.5,), seed=0, state="finished", batch=16, error=None, data=None
):
    """A run whose step n has the n-th reward, and `data` beside."""
    run = sweep / name
    (run / ".hydra").mkdir(parents=True)
    (run / ".hydra" / "config.yaml").write_text(CONFIG.format(seed=seed, batch=batch))
    (run / ".hydra" / "overrides.yaml").write_text(json.dumps([*overrides, f"seed={seed}"]))
    lines = (
        json.dumps({"step": step, "data": {"critic/score/mean": reward, **(data or {})}})
        for step, reward in enumerate(rewards, start=1)
    )
    (run / "metrics.jsonl").write_text("".join(f"{line}\n" for line in lines))
    if state is not None:
        about = {
            "state": state,
            "exit_code": 0,
            "error": error,
            "versions": {"pv_rl": "0.1.0", "verl": "0.9.0"},
        }
        (run / "run.json").write_text(json.dumps(about))
    return run


def said(summary):
    return "\n".join(summary.notes)


def test_runs_are_grouped_by_what_differs_but_the_seed_in_the_order_of_the_numbers(tmp_path):
    job = 0
    for eta in ("2", "0.3", "0", "10"):
        for seed in (2, 1):
            add_run(tmp_path, str(job), "run=lab", f"recipe.eta={eta}", f"trainer.x_dir=/{job}", seed=seed)
            job += 1
    settings = summarise(tmp_path).settings
    assert [setting.label for setting in settings] == ["eta=0", "eta=0.3", "eta=2", "eta=10"]
    assert [[result.run.seed for result in setting.results] for setting in settings] == [["1", "2"]] * 4
    assert [result.run.name for result in settings[0].results] == ["5", "4"]


def resume(run, changed, rewards=(0.9,), number=2, first=3):
    """Another attempt, of the steps from `first` on, that changed something."""
    about = json.loads((run / "run.json").read_text())
    history = about.get("history", [{"attempt": 1, "first_step": 1, "changed": {}}])
    entry = {"attempt": number, "first_step": first, "changed": changed}
    (run / "run.json").write_text(json.dumps({**about, "history": [*history, entry]}))
    lines = (
        json.dumps({"step": s, "data": {"critic/score/mean": r}}) for s, r in enumerate(rewards, start=first)
    )
    (run / f"metrics-{number}.jsonl").write_text("".join(f"{line}\n" for line in lines))


def test_a_run_that_was_resumed_with_another_eta_is_a_setting_of_its_own(tmp_path):
    for seed in (0, 1, 2, 3):
        run = add_run(tmp_path, str(seed), "recipe.eta=0.6", rewards=(0.5, 0.5), seed=seed)
        resume(
            run, {"recipe.eta": ["0.6", "0.3"]} if seed > 1 else {"trainer.total_training_steps": ["2", "3"]}
        )
    kept, changed = summarise(tmp_path).settings
    assert [kept.label, changed.label] == ["eta=0.6", "eta=0.6 then 0.3 from step 3"]
    assert [len(kept.averaged), len(changed.averaged)] == [2, 2]
    notes = said(summarise(tmp_path))
    assert "Trained under more than one setting: recipe.eta is 0.6 then 0.3 from step 3 in run 2, 3." in notes
    assert "trainer.total_training_steps is 2 then 3 from step 3 in run 0, 1." in notes


@pytest.mark.parametrize(
    ("changed", "label"),
    [
        ({"actor_rollout_ref.model.path": ["a", "b"]}, "path=a then b from step 3"),
        (
            {"content of data.train_files": ["12ab", "34cd"]},
            "content of data.train_files=12ab then 34cd from step 3",
        ),
        ({"trainer.n_gpus_per_node": ["8", "4"]}, "balanced:0.6@prompt"),
        ({"version of verl": ["0.9.1", "0.9.2"]}, "balanced:0.6@prompt"),
        ({"seed": ["0", "1"]}, "balanced:0.6@prompt"),
    ],
)
def test_what_changed_within_a_run_is_noted_and_splits_it_off_where_it_changes_what_is_learned(
    tmp_path, changed, label
):
    for seed in (0, 1):
        run = add_run(tmp_path, str(seed), rewards=(0.5, 0.5), seed=seed)
        resume(run, changed if seed == 0 else {})
    summary = summarise(tmp_path)
    (of_first,) = [one.label for one in summary.settings if any(r.run.name == "0" for r in one.results)]
    assert of_first == label
    ((key, (was, now)),) = changed.items()
    assert f"{key} is {was} then {now} from step 3" in said(summary)
    if key == "seed":
        assert summary.settings[0].results[0].run.seed == "0 then 1 from step 3"


def test_steps_that_verl_trained_without_pv_rl_train_are_told(tmp_path):
    run = add_run(tmp_path, "0", rewards=(0.5, 0.5))
    resume(run, {})
    (run / "metrics-3.jsonl").write_text('{"step": 4, "data": {"critic/score/mean": 0.5}}\n')
    summary = summarise(tmp_path)
    assert "launcher is pv-rl train then verl without pv-rl train from step 4" in said(summary)


def test_a_run_that_its_sentinel_rolled_back_is_averaged_and_told(tmp_path):
    for seed in (0, 1):
        data = {"pv_rl/sentinel/rolled_back_to": 1.0} if seed else {}
        add_run(tmp_path, str(seed), seed=seed, rewards=(0.5,), data=data)
    summary = summarise(tmp_path)
    assert len(summary.settings[0].averaged) == 2
    assert "run 1 was rolled back by its sentinel at step 1 to the checkpoint of step 1" in said(summary)


def test_keys_that_end_alike_keep_their_whole_name(tmp_path):
    add_run(tmp_path, "0", "actor.lr=1", "critic.lr=2")
    add_run(tmp_path, "1", "actor.lr=2", "critic.lr=2")
    add_run(tmp_path, "2", "actor.lr=2", "critic.lr=3", "+recipe=dapo")
    labels = [setting.label for setting in summarise(tmp_path).settings]
    assert labels == [
        "actor.lr=1, critic.lr=2",
        "actor.lr=2, critic.lr=2",
        "actor.lr=2, critic.lr=3, recipe=dapo",
    ]


def test_a_run_that_overrides_nothing_goes_by_its_mode(tmp_path):
    add_run(tmp_path, "0")
    add_run(tmp_path, "1", "recipe=dapo")
    assert [setting.label for setting in summarise(tmp_path).settings] == [
        "balanced:0.6@prompt",
        "recipe=dapo",
    ]


def test_by_names_the_keys_and_reads_the_config_where_nothing_is_overridden(tmp_path):
    add_run(tmp_path, "0", "recipe.eta=0", "x=1")
    add_run(tmp_path, "1", "x=2")
    assert [setting.label for setting in summarise(tmp_path, by=["recipe.eta"]).settings] == [
        "eta=0",
        "eta=0.6",
    ]
    with pytest.raises(DataError, match=r"--by recipe\.et: no run.*Overridden are: recipe\.eta, x"):
        summarise(tmp_path, by=["recipe.et"])


def test_a_final_value_is_the_mean_of_the_last_steps_and_a_setting_that_of_its_seeds(tmp_path):
    add_run(tmp_path, "0", rewards=(9, 0.1, 0.2, 0.3), seed=0)
    add_run(tmp_path, "1", rewards=(9, 0.5, 0.6, 0.7), seed=1)
    summary = summarise(tmp_path, last=3)
    (setting,) = summary.settings
    assert [result.values["reward"] for result in setting.results] == pytest.approx([0.2, 0.6])
    mean = setting.means["reward"]  # s / sqrt(2) = 0.2
    assert (mean.mean, mean.low, mean.high) == pytest.approx((0.4, 0.4 - 2.5412, 0.4 + 2.5412), abs=1e-4)
    assert "fewer than 3 seeds" in said(summary)


def test_the_last_validation_and_the_sum_of_the_cost(tmp_path):
    run = add_run(tmp_path, "0", rewards=(0.5,) * 4, data={"pv_rl/judge/usd/sum": 0.25})
    with (run / "metrics.jsonl").open("a") as file:
        for step, right in ((2, 0.6), (4, 0.8)):
            held_out = {"val-core/lab/right/acc/mean@4": right, "val-core/lab/wrong/acc/mean@4": 0.4}
            file.write(json.dumps({"step": step, "data": held_out}) + "\n")
    values = summarise(tmp_path).settings[0].results[0].values
    assert (values["held_out_right"], values["held_out_wrong"]) == (0.8, 0.4)
    assert values["held_out_balanced"] == pytest.approx(0.6)
    assert values["judge_usd"] == 1.0


@pytest.mark.parametrize("state", ["failed", "stopped", "running"])
def test_a_run_that_did_not_end_well_is_not_averaged_and_is_named(tmp_path, state):
    add_run(tmp_path, "0", rewards=(0.2, 0.2), seed=0)
    add_run(tmp_path, "1", rewards=(0.4, 0.4), seed=1)
    add_run(tmp_path, "2", rewards=(0.9, 0.9), seed=2, state=state, error="no memory\nleft")
    summary = summarise(tmp_path)
    (setting,) = summary.settings
    assert setting.means["reward"].mean == pytest.approx(0.3)
    assert [result.run.name for result in setting.results] == ["0", "1", "2"]
    assert f"not averaged: run 2 ({state} at step 2: no memory left)" in said(summary)


def test_a_shorter_run_is_not_averaged_and_is_named(tmp_path):
    add_run(tmp_path, "0", rewards=(0.2, 0.2, 0.2), seed=0, state=None)
    add_run(tmp_path, "1", rewards=(0.9, 0.9), seed=1)
    summary = summarise(tmp_path)
    (setting,) = summary.settings
    assert (setting.means["reward"].mean, setting.step) == (pytest.approx(0.2), 3)
    assert "not averaged: run 1 (finished at step 2 of 3)" in said(summary)


def test_a_setting_of_which_no_run_ended_has_no_mean(tmp_path):
    add_run(tmp_path, "0", state="failed", rewards=())
    summary = summarise(tmp_path)
    assert summary.settings[0].step is None
    assert "run 0 (failed, no step logged). This setting has no run to average." in said(summary)


def test_what_makes_means_doubtful_is_said(tmp_path):
    add_run(tmp_path, "0", "recipe.eta=0", seed=1, batch=16)
    add_run(tmp_path, "1", "recipe.eta=0", seed=1, batch=32)
    add_run(tmp_path, "2", "recipe.eta=1", seed=1, rewards=(0.5, 0.5))
    notes = said(summarise(tmp_path))
    assert "eta=0: seed 1 in 2 runs" in notes
    assert "eta=0: its runs differ in more than the seed: data.train_batch_size." in notes
    assert "ended at different steps (1, 2)" in notes


def test_nan_is_left_out_and_said(tmp_path):
    add_run(tmp_path, "0", rewards=(0.2, math.nan, 0.4))
    summary = summarise(tmp_path)
    assert summary.settings[0].means["reward"].mean == pytest.approx(0.3)
    assert "reward: NaN, infinite or null in 1 step of run 0; these steps are left out" in said(summary)


def test_a_measure_is_read_from_the_same_key_in_all_runs(tmp_path):
    add_run(tmp_path, "0", seed=0, data={"actor/kl_loss": 0.1, "actor/ppo_kl": 0.5})
    add_run(tmp_path, "1", seed=1, data={"actor/ppo_kl": 0.7})
    summary = summarise(tmp_path)
    assert summary.settings[0].means["kl"].mean == pytest.approx(0.6)
    assert "KL is read from actor/ppo_kl, because not all runs have actor/kl_loss." in said(summary)


def test_our_reward_comes_before_verls(tmp_path):
    add_run(tmp_path, "0", rewards=(0.1,), data={"pv_rl/reward/score": 0.9})
    assert summarise(tmp_path).settings[0].means["reward"].mean == 0.9


def test_panels_without_data_are_left_out_and_named(tmp_path):
    data = {"response_length/mean": 20, "pv_rl/reward/acc_label_true": 0.5}
    add_run(tmp_path, "0", data=data)
    summary = summarise(tmp_path)
    assert [measure.name for measure in panels(summary)] == ["reward", "training_right", "length"]
    assert re.search(r"No run has: held out, right proofs;.* vetoed;.* KL;", said(summary))


def test_held_out_and_verdict_panels_take_the_place_of_coarser_ones(tmp_path):
    data = {
        "response_length/mean": 20,
        "pv_rl/response_length/verdict_true": 10,
        "pv_rl/reward/acc_label_true": 0.5,
        "val-core/lab/right/acc/mean@1": 0.5,
    }
    add_run(tmp_path, "0", data=data)
    assert [measure.name for measure in panels(summarise(tmp_path))] == [
        "reward",
        "held_out_right",
        "length_true",
    ]


def test_the_mean_curve_has_the_steps_that_all_runs_have():
    assert mean_curve([{1: 0.2, 2: 0.4, 3: 0.6}, {1: 0.4, 2: math.nan, 3: 0.8, 4: 1.0}]) == {
        1: pytest.approx(0.3),
        3: pytest.approx(0.7),
    }
    assert mean_curve([]) == {}


def test_a_report_of_one_run_is_written_whole(tmp_path, capsys):
    run = add_run(tmp_path, "7", rewards=(0.25,) * 6, seed=3)
    report(run)
    assert sorted(file.name for file in (run / "report").iterdir()) == FILES
    assert (run / "report" / "report.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    text = (run / "report" / "report.md").read_text()
    assert "| balanced:0.6@prompt | 1: 3 | 1 finished | 6 | 0.250 (-) |" in text
    assert "| balanced:0.6@prompt | 7 | 3 | finished | 6 | 0.250 |" in text
    printed = capsys.readouterr().out
    assert "1 run of 1 setting" in printed
    assert "wrote" in printed
    report(run)  # what an earlier one wrote is no run


def test_the_numbers_are_in_the_json(tmp_path):
    add_run(tmp_path, "0", "recipe.eta=0", rewards=(0.2, math.nan), seed=0, data={"actor/kl_loss": 0.1})
    add_run(tmp_path, "1", "recipe.eta=0", rewards=(0.4, 0.4), seed=1)
    add_run(tmp_path, "2", "recipe.eta=1", rewards=(0.4,), seed=0, state="failed", error="boom")
    (tmp_path / "to").mkdir()
    report(tmp_path, out=tmp_path / "to" / "here", last=2)
    known = json.loads((tmp_path / "to" / "here" / "report.json").read_text())
    first, second = known["settings"]
    assert (first["label"], first["averaged"], first["step"]) == ("eta=0", ["0", "1"], 2)
    assert first["means"]["reward"]["mean"] == pytest.approx(0.3)
    assert first["means"]["kl"] == {"mean": 0.1, "low": None, "high": None, "number": 1}
    assert second["means"]["reward"] is None
    assert known["numeric"] is True
    assert known["measures"]["kl"]["key"] == "actor/kl_loss"
    assert known["runs"][0]["series"]["reward"] == {"step": [1, 2], "value": [0.2, None]}
    assert (known["runs"][2]["state"], known["runs"][2]["error"]) == ("failed", "boom")


def test_the_terminal_shows_the_settings_and_the_notes(tmp_path):
    for seed in (0, 1):
        add_run(tmp_path, f"[red]{seed}", "a=[bold]", seed=seed, data={"timing_s/step": 3})
    add_run(tmp_path, "2", "a=x", state="failed", error="[red]no")
    terminal = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
    print_blocks(printed(summarise(tmp_path)), terminal)
    text = terminal.file.getvalue()
    assert "0.500 (0.500 to 0.500)" in text
    assert "3.00 (3.00 to 3.00)" in text
    assert "a=[bold]" in text
    assert "[red]no" in text


def test_a_new_column_is_in_every_form_of_the_report(tmp_path, capsys):
    added = [
        Measure(name="entropy", title="entropy", unit="nats", keys=("actor/entropy",), panel=True),
        Measure(
            name="speed",
            title="speed",
            unit="thousand tokens / s",
            keys=("perf/total_num_tokens", "timing_s/step"),
            per_step=lambda tokens, seconds: tokens / seconds / 1000,
            show=lambda value: f"{value:.1f}",
        ),
    ]
    data = {"actor/entropy": 1.5, "perf/total_num_tokens": 24_690, "timing_s/step": 2}
    add_run(tmp_path, "0", seed=0, data=data)
    add_run(tmp_path, "1", seed=1, data={**data, "timing_s/step": 0})  # no speed, and no error
    report(tmp_path, measures=(*MEASURES, *added))
    known = json.loads((tmp_path / "report" / "report.json").read_text())
    assert known["runs"][0]["values"]["speed"] == pytest.approx(12.345)
    assert known["runs"][0]["series"]["entropy"] == {"step": [1], "value": [1.5]}
    assert known["runs"][1]["series"]["speed"] == {"step": [1], "value": [None]}
    for text in (
        capsys.readouterr().out,
        (tmp_path / "report" / "report.md").read_text(),
        re.sub("</?span[^>]*>", "", (tmp_path / "report" / "report.html").read_text()),
    ):
        assert "1.50 (1.50 to 1.50)" in text
        assert "thousand tokens / s" in text
        assert "12.3 (-) of 1 run" in text
    assert "entropy" in [measure.name for measure in panels(summarise(tmp_path, measures=added))]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"last": 0}, "--last is 0; give"),
        ({"out": "missing/there"}, "there is no folder"),
        ({"out": "0/metrics.jsonl"}, "is not a folder"),
    ],
)
def test_options_that_cannot_be_are_refused(tmp_path, options, text):
    add_run(tmp_path, "0")
    if "out" in options:
        options = {"out": tmp_path / options["out"]}
    with pytest.raises(DataError, match=text):
        report(tmp_path, **options)


def test_a_sweep_that_has_logged_nothing_yet_has_a_report(tmp_path):
    add_run(tmp_path, "0", rewards=(), state="running")
    report(tmp_path)
    assert "| balanced:0.6@prompt | 0 | 0 | running | - |" in (tmp_path / "report" / "report.md").read_text()


def test_a_folder_without_runs_gets_no_report(tmp_path):
    with pytest.raises(DataError, match="has no run in it"):
        report(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_broken_state_is_named(tmp_path):
    run = add_run(tmp_path, "0")
    (run / "run.json").write_text('{"state": "fin')
    with pytest.raises(DataError, match=r"run\.json is not JSON"):
        summarise(tmp_path)
    (run / "run.json").write_text('{"state": ["odd"], "versions": 3}')
    assert summarise(tmp_path).runs[0].state == "unknown"
