"""What was in force in which steps: histories of run.json, and what an attempt writes into them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("omegaconf", reason="omegaconf is not installed: pip install 'pv-rl[verl]'")

from omegaconf import OmegaConf
from rich.console import Console

from pv_runs.in_force import describe, in_force, is_setting
from pv_runs.metrics_log import read_log
from pv_runs.run_folder import RunFolder
from pv_runs.run_record import next_record, read_about, write_record
from pv_runs.train.fingerprints import fingerprint
from pv_runs.train.provenance import add_provenance

ETA = "recipe.eta"


def history(*changes: dict, first: tuple = (1, 41, 61)) -> dict:
    entries = [
        {"attempt": number, "first_step": step, "changed": changed}
        for number, (changed, step) in enumerate(zip(changes, first, strict=False), start=1)
    ]
    return {"history": entries}


@pytest.mark.parametrize(
    ("changes", "starts", "expected"),
    [
        ([{}, {ETA: ["0.6", "0.3"]}], {1: 1, 2: 41}, "0.6 then 0.3 from step 41"),
        ([{}, {}, {ETA: ["0.6", "0.3"]}], {1: 1, 2: 41, 3: 61}, "0.6 then 0.3 from step 61"),
        # The first attempt failed before it trained a step: the run has one setting, the later one.
        ([{}, {ETA: ["0.6", "0.3"]}], {2: 41}, "0.3"),
        # The second failed, and a third takes the value back; or keeps it.
        ([{}, {ETA: ["0.6", "0.3"]}, {ETA: ["0.3", "0.6"]}], {1: 1, 3: 61}, "0.6"),
        ([{}, {ETA: ["0.6", "0.3"]}, {}], {1: 1, 3: 61}, "0.6 then 0.3 from step 61"),
        # Nothing was trained yet.
        ([{}, {ETA: ["0.6", "0.3"]}], {}, "0.3"),
    ],
)
def test_a_value_holds_from_the_first_step_that_was_trained_with_it(changes, starts, expected):
    phases = in_force(history(*changes), starts, {})
    assert {key: describe(one) for key, one in phases.items()} == {ETA: expected}


def test_a_run_json_without_a_history_tells_no_step():
    about = {"attempts": 3, "overrides": ["recipe.eta=0.3", "+trainer.save_freq=5"]}
    phases = in_force(about, {1: 1, 2: 41, 3: 61}, {ETA: "0.6", "trainer.save_freq": "5"})
    assert {key: describe(one) for key, one in phases.items()} == {ETA: "0.6 then 0.3 from a resume"}


@pytest.mark.parametrize(
    ("starts", "expected"),
    [
        ({1: 1, 2: 41}, {}),
        ({1: 1, 2: 41, 3: 50}, "pv-rl train then verl without pv-rl train from step 50"),
        ({1: 9, 2: 41}, "verl without pv-rl train then pv-rl train from step 41"),  # its file was emptied
    ],
)
def test_steps_of_a_verl_that_was_started_by_hand_are_told(starts, expected):
    found = {key: describe(one) for key, one in in_force(history({}, {}), starts, {}).items()}
    assert found == ({"launcher": expected} if expected else {})


@pytest.mark.parametrize(
    "about",
    [
        {"history": 3},
        {"history": [3, {}, {"attempt": "1"}, {"attempt": -1}, {"attempt": True}]},
        {"history": [{"attempt": 1, "changed": [1]}, {"attempt": 2, "changed": {ETA: "x"}}]},
        {"history": [{"attempt": 10**9, "changed": {}}]},
        {"overrides": {"a": 1}},
    ],
)
def test_a_history_that_is_none_is_left_out(about):
    assert in_force(about, {999_999_999: 1}, {}).keys() <= {"launcher"}


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (ETA, True),
        ("actor_rollout_ref.actor.optim.lr", True),
        ("actor_rollout_ref.model.path", True),
        ("content of data.train_files", True),
        ("trainer.v1.trainer_mode", True),
        ("trainer.n_gpus_per_node", False),
        ("trainer.total_training_steps", False),
        ("actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", False),
        ("actor_rollout_ref.actor.ppo_mini_batch_size", True),
        ("version of verl", False),
        ("seed", False),
        ("actor_rollout_ref.rollout.seed", False),
        ("data_dir", False),
        ("launcher", True),
        ("launch.module", True),
        ("launch.env.X", False),
    ],
)
def test_what_a_run_learns_tells_settings_apart_and_where_it_runs_does_not(key, expected):
    assert is_setting(key, {"actor_rollout_ref.actor.optim.lr_scheduler_type": "constant"}) is expected


@pytest.mark.parametrize(
    ("schedule", "value"), [("lr_scheduler_type", "cosine"), ("lr_warmup_steps_ratio", "0.1")]
)
def test_the_last_step_is_a_setting_where_the_learning_rate_depends_on_it(schedule, value):
    assert is_setting("trainer.total_training_steps", {f"actor_rollout_ref.actor.optim.{schedule}": value})


def write_steps(path: Path, *steps: int, data: dict | None = None) -> None:
    path.write_text("".join(json.dumps({"step": s, "data": data or {"a": 1}}) + "\n" for s in steps))


def test_the_steps_of_an_attempt_are_those_that_no_later_one_repeats(tmp_path):
    write_steps(tmp_path / "metrics.jsonl", *range(1, 11))
    write_steps(tmp_path / "metrics-2.jsonl", 9, 10, 11)
    assert read_log(tmp_path).starts == {1: 1, 2: 9}
    write_steps(tmp_path / "metrics-3.jsonl", 8, data={"val-core/lab/right/acc/mean@1": 0.5})
    assert read_log(tmp_path).starts == {1: 1}
    with (tmp_path / "metrics-3.jsonl").open("a") as file:
        file.write('{"step": 9, "data": {"a": 1}}\n')
    assert read_log(tmp_path).starts == {1: 1, 3: 9}


def train(run: Path, overrides: tuple[str, ...] = (), before=None, logged: int = 0, **changes):
    """An attempt's record as `pv-rl train` has it when verl starts, and what it printed."""
    (run / ".hydra").mkdir(parents=True, exist_ok=True)
    config = OmegaConf.create(
        {
            "run_dir": str(run),
            "recipe": {"eta": 0.6},
            "judge": {"api_key": "sk-planted"},
            "data": {"train_files": str(run / "train.parquet")},
            "trainer": {"default_local_dir": str(run / "checkpoints"), "nnodes": 1, "n_gpus_per_node": 2},
        }
    )
    record = next_record(before, overrides, logged)
    config.merge_with(OmegaConf.from_dotlist(list(record.overrides)))
    console = Console(record=True, width=500, file=(run / "said.txt").open("w"))
    record = add_provenance(run, config, record, console)
    write_record(run, record)
    return record, console.export_text()


def save(run: Path, step: int, ranks: int = 2) -> None:
    actor = run / f"checkpoints/global_step_{step}/actor"
    actor.mkdir(parents=True)
    (actor / f"model_world_size_{ranks}_rank_0.pt").write_bytes(b"x")
    (run / "checkpoints/latest_checkpointed_iteration.txt").write_text(str(step))


@pytest.fixture
def run(tmp_path):
    (tmp_path / "train.parquet").write_bytes(b"rows")
    return tmp_path


def test_a_resume_with_another_eta_is_recorded_and_told(run):
    first, said = train(run)
    assert (first.history[0]["changed"], first.history[0]["first_step"], said) == ({}, 1, "")
    save(run, 40)
    write_steps(run / "metrics.jsonl", *range(1, 41))
    second, said = train(run, ("recipe.eta=0.3",), first)
    assert second.history[0] == first.history[0]
    entry = second.history[1]
    assert entry["changed"] == {ETA: ["0.6", "0.3"]}
    assert (entry["first_step"], entry["overrides"], entry["logs_as"]) == (41, ["recipe.eta=0.3"], 2)
    assert "recipe.eta: 0.6 before, 0.3 from step 41" in said
    assert "more than one setting" in said
    assert "eta: 0.3" in RunFolder(run).attempt_config(2).read_text()
    assert "eta: 0.6" in RunFolder(run).attempt_config(1).read_text()


def test_a_resume_that_changes_no_setting_continues_in_its_loggers_unless_it_repeats_a_step(run):
    first, _ = train(run)
    save(run, 40)
    write_steps(run / "metrics.jsonl", *range(1, 41))
    second, said = train(run, ("trainer.total_training_steps=80",), first)
    assert second.history[1]["logs_as"] == 1
    assert "trainer.total_training_steps" in said
    assert "more than one setting" not in said
    write_steps(run / "metrics-2.jsonl", 41, 42)
    third, said = train(run, (), second)  # 41 and 42 come again
    assert (third.history[2]["logs_as"], third.history[2]["changed"], said) == (3, {}, "")


@pytest.mark.parametrize("gone", ["run.json", "run.json .hydra/attempt-1.yaml"])
def test_a_lost_run_json_hides_no_change(run, gone):
    first, _ = train(run)
    RunFolder(run).config.write_text(RunFolder(run).attempt_config(1).read_text())
    train(run, ("recipe.eta=0.3", "judge.api_key=sk-planted-2"), first)
    for name in gone.split():
        (run / name).unlink()
    phases = in_force(read_about(RunFolder(run).record), {1: 1, 2: 41}, {ETA: "0.6"})
    assert {key: describe(one) for key, one in phases.items()} == {
        ETA: "0.6 then 0.3 from step 41",
        "judge.api_key": "hidden",
    }


def test_files_that_change_behind_their_paths_are_told(run):
    first, _ = train(run)
    (run / "train.parquet").write_bytes(b"other")
    second, said = train(run, (), first)
    ((key, (was, now)),) = second.history[1]["changed"].items()
    assert key == "content of data.train_files"
    assert (was, now) == (first.history[0]["files"]["data.train_files"], fingerprint(run / "train.parquet"))
    assert "content of data.train_files" in said
    (run / "train.parquet").write_bytes(b"other")  # another time, the same content
    assert train(run, (), second)[0].history[2]["changed"] == {}


def test_a_path_that_an_earlier_version_did_not_look_at_has_not_changed(run):
    first, _ = train(run)
    first.history[0]["files"] = {"model_path": "12ab"}
    second, said = train(run, (), first)
    assert (second.history[1]["changed"], said) == ({}, "")


@pytest.mark.parametrize("text", [None, "{["])
def test_an_attempt_whose_config_cannot_be_read_is_not_taken_for_equal(run, text):
    first, _ = train(run)
    save(run, 40)
    write_steps(run / "metrics.jsonl", *range(1, 41))
    path = RunFolder(run).attempt_config(1)
    path.unlink() if text is None else path.write_text(text)
    second, said = train(run, (), first)
    assert second.history[1]["changed"].keys() == {"config"}
    assert "config: unreadable before" in said
    assert "more than one setting (config)" in said


def test_a_secret_that_changes_is_not_shown(run):
    first, _ = train(run)
    second, said = train(run, ("judge.api_key=sk-planted-2",), first)
    assert second.history[1]["changed"] == {"judge.api_key": ["hidden", "hidden"]}
    assert "sk-planted" not in said


def test_a_metrics_file_of_a_start_by_hand_is_an_attempt(run):
    first, _ = train(run)
    assert next_record(first, (), 3).attempts == 4
    assert next_record(first, (), 1).attempts == 2


def test_a_folders_fingerprint_is_of_names_and_contents(tmp_path):
    (tmp_path / "a").write_text("1")
    before = fingerprint(tmp_path)
    (tmp_path / "a").rename(tmp_path / "b")
    renamed = fingerprint(tmp_path)
    (tmp_path / "b").write_text("2")
    assert len({before, renamed, fingerprint(tmp_path)}) == 3
