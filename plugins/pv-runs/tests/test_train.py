"""What `pv-rl train` does around verl: names, records, stopping, resuming, and a sweep in which a run fails.

verl is a small script here, started in the same way; the real one is in plugins/pv-runs/tests/test_real_runs.py.
"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from fork_server import run_fresh, run_module

pytest.importorskip("verl", reason="the runs stand on verl's configs: pip install 'pv-rl[verl]'")
pytest.importorskip("pv_cpu", reason="pv-cpu is not installed: pip install ./plugins/pv-cpu")

from hydra import compose, initialize
from omegaconf import OmegaConf
from rich.console import Console

from pv_judge.override import override
from pv_rl.errors import ConfigError, DataError, PvRlError, SetupError
from pv_rl.stop_file import ask_to_stop, asked_to_stop, forget
from pv_runs.in_force import describe, in_force
from pv_runs.metrics_log import read_log
from pv_runs.recipes.compose import compose as compose_run
from pv_runs.recipes.compose import split_run
from pv_runs.run_folder import RunFolder, locked, run_folders
from pv_runs.run_record import Record, next_record, read_record, write_record
from pv_runs.train.attempt import attempt, shell_script, verl_command
from pv_runs.train.command import resume, train
from pv_runs.train.progress import Progress, say

FAKE = """
import json, os, sys, time
from pathlib import Path
import hydra
from pv_rl.recipes.choices import check_choices

@hydra.main(version_base=None)
def main(config):
    check_choices(config)  # as verl does, with the adapter
    metrics = Path(os.environ["VERL_FILE_LOGGER_PATH"])
    checkpoints = Path(config.trainer.default_local_dir)
    checkpoints.mkdir(parents=True, exist_ok=True)
    saved = checkpoints / "latest_checkpointed_iteration.txt"
    first = int(saved.read_text()) + 1 if saved.exists() else 1
    if config.seed == 7:
        raise RuntimeError("seed 7 brings no luck")
    with metrics.open("w", buffering=1) as file:
        for step in range(first, config.trainer.total_training_steps + 1):
            time.sleep(0.2)
            last = (checkpoints / "pv_rl_stop").exists()
            file.write(json.dumps({"step": step, "data": {"critic/score/mean": 0.5, "seed": config.seed}}) + "\\n")
            if last:
                (checkpoints / f"global_step_{step}").mkdir()
                saved.write_text(str(step))
                return

main()
"""


def pv_rl_train(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run `pv-rl train` in a folder, with a module in verl's place; its exit code and what it prints."""
    (folder / "fake_verl.py").write_text(FAKE)
    done = run_fresh(run_module("pv_rl.cli", "train", *arguments), path=folder, cwd=folder)
    return done.returncode, done.stdout + done.stderr


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """The same as a process, to be interrupted."""
    (folder / "fake_verl.py").write_text(FAKE)
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen(
        [sys.executable, "-m", "pv_rl.cli", "train", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=heed,
    )


def refused(folder: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    """The error of `pv-rl train` in this process, which leaves nothing in the folder that it is called in."""
    monkeypatch.chdir(folder)
    before = sorted(folder.rglob("*"))
    with pytest.raises(PvRlError) as error:
        train(arguments, Console())
    assert sorted(folder.rglob("*")) == before
    return str(error.value)


@pytest.fixture(autouse=True)
def _no_ray_cluster_of_this_machine(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path_factory.getbasetemp().parent / "ray"))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)


def heed() -> None:
    """A shell that puts the tests into the background has them ignore Ctrl-C, and what they start with them."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


LAB = (
    "run=lab",
    "cluster=cpu",
    "launch.module=fake_verl",
    "trainer.total_training_steps=3",
)

RATE = "actor_rollout_ref.actor.optim.lr"
MODE = "actor_rollout_ref.actor.loss_agg_mode"


def steps(path: Path) -> list[int]:
    return [json.loads(line)["step"] for line in path.read_text().splitlines()]


def test_a_sweep_goes_on_when_a_run_of_it_fails_and_the_exit_code_says_so(tmp_path):
    exit_code, said = pv_rl_train(tmp_path, *LAB, "--multirun", "seed=7,1", "hydra.sweep.dir=s")
    assert exit_code == 1, said
    records = [read_record(one) for one in run_folders(tmp_path / "s")]
    assert [one.state for one in records] == ["failed", "finished"]
    assert "seed 7 brings no luck" in (records[0].error or "")
    assert "1 of 2 runs failed" in said
    assert not (tmp_path / "s/0/metrics.jsonl").exists()
    lines = (tmp_path / "s/1/metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["data"]["seed"] for line in lines] == [1, 1, 1]


def test_the_first_ctrl_c_asks_for_a_checkpoint_and_resume_goes_on_from_it(tmp_path):
    process = start(tmp_path, *LAB, f"{MODE}=dapo", "trainer.total_training_steps=1000", "hydra.run.dir=r")
    assert process.stdout is not None
    for line in process.stdout:
        if "step 3 of" in line:
            break
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert "with a checkpoint" in said, said
    record = read_record(tmp_path / "r")
    assert (record.state, record.exit_code, record.attempts) == ("stopped", 0, 1)
    assert not (tmp_path / "r/checkpoints/pv_rl_stop").exists()
    stopped = steps(tmp_path / "r/metrics.jsonl")[-1]

    total = stopped + 2
    extra = (f"trainer.total_training_steps={total}", f"{RATE}=1e-3")
    exit_code, said = pv_rl_train(tmp_path, "--resume", "r", *extra)
    assert exit_code == 0, said
    assert f"{RATE}: 0.0002 before, 0.001 from step {stopped + 1}" in said
    assert steps(tmp_path / "r/metrics-2.jsonl") == [stopped + 1, stopped + 2]
    assert steps(tmp_path / "r/metrics.jsonl")[-1] == stopped  # verl starts its file anew: ours is another
    record = read_record(tmp_path / "r")
    assert (record.state, record.attempts) == ("finished", 2)
    assert [(one["state"], one["first_step"], one["last_step"]) for one in record.history] == [
        ("stopped", 1, stopped),
        ("finished", stopped + 1, total),
    ]
    assert record.history[1]["changed"] == {
        RATE: ["0.0002", "0.001"],
        "trainer.total_training_steps": ["1000", str(total)],
    }

    exit_code, said = pv_rl_train(tmp_path, "--resume", "r")
    assert (exit_code, "nothing to resume" in said) == (0, True), said

    # By hand: verl empties the metrics file that it is given.
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    subprocess.run(["sh", "r/command.sh"], cwd=tmp_path, env=environment, check=True, capture_output=True)
    assert (
        steps(tmp_path / "r/metrics-2.jsonl") == steps(tmp_path / "r/metrics-3.jsonl") == [stopped + 1, total]
    )
    found = in_force(json.loads((tmp_path / "r/run.json").read_text()), read_log(tmp_path / "r").starts, {})
    assert describe(found[RATE]) == f"0.0002 then 0.001 from step {stopped + 1}"
    assert describe(found["launcher"]) == f"pv-rl train then verl without pv-rl train from step {stopped + 1}"


def test_a_ctrl_c_right_after_the_first_step_asks_for_a_checkpoint(tmp_path):
    process = start(tmp_path, *LAB, "trainer.total_training_steps=1000", "hydra.run.dir=r")
    metrics = tmp_path / "r/metrics.jsonl"
    while process.poll() is None and not (metrics.exists() and metrics.read_bytes()):
        time.sleep(0.001)  # long before the next look at the file, which is twice a second
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert "with a checkpoint" in said, said
    assert (tmp_path / "r/checkpoints/latest_checkpointed_iteration.txt").is_file()


def test_a_second_ctrl_c_ends_a_run_at_once(tmp_path):
    slow = FAKE.replace("time.sleep(0.2)", "time.sleep(0.2 if step < 3 else 600)")
    process = start(tmp_path, *LAB, "trainer.total_training_steps=1000", "hydra.run.dir=r")
    (tmp_path / "fake_verl.py").write_text(slow)
    assert process.stdout is not None
    for line in process.stdout:
        if "step 2 of" in line:
            break
    process.send_signal(signal.SIGINT)
    for line in process.stdout:
        if "with a checkpoint" in line:
            break
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert read_record(tmp_path / "r").state == "stopped"


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        ([], "data_dir is missing"),
        (["recipe.eta=0.3", f"{MODE}=balanced"], "undoes the recipe, which asks for balanced:0.3@prompt"),
    ],
)
def test_a_config_that_cannot_be_run_starts_nothing(tmp_path, monkeypatch, overrides, says):
    assert says in refused(tmp_path, monkeypatch, "run=8b", "judge=rules", "hydra.run.dir=r", *overrides)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "run=NAME (none was given); there are 14b, 32b, 8b, lab, sft_small, small"),
        (["run=8b", "run=14b"], "2 were given"),
        (["run=8"], "no run named '8'"),
    ],
)
def test_a_run_has_to_be_named_once(arguments, says):
    with pytest.raises(ConfigError) as error:
        split_run(arguments)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["sweep=eta"], "sweep=... needs --multirun"),
        (["--multirun", "sweep=eta", "--cfg", "job"], "--multirun starts runs"),
        (["--multirun", "sweep=eta_seeds", "seed=7"], "sweep=eta_seeds already sweeps over seed"),
        (
            ["--multirun", "recipe.eta=0.3,1.5,0.6"],
            "settings: recipe.eta=1.5: loss_agg_mode",
        ),  # nothing of .3 is trained
        (["--multirun", "seed=0,1", "recipe=balanced,dappo"], "there is no recipe named 'dappo'"),
        (["--multirun", "recipe.etaa=0.3,0.6"], "Did you mean recipe.eta?"),
        (["--multirun", "hydra/launcher=nobody"], "nobody"),
        (["--config-dir", "nofolder"], "--config-dir nofolder is not a folder"),
        (["launch.prepare._target_=nobody.knows"], "launch.prepare._target_: there is no module nobody"),
        (["+launch.env.MY_API_KEY=sk-planted-9"], "launch.env.MY_API_KEY looks like a secret"),
        (["trainer.default_local_dir=/proc/c"], "trainer.default_local_dir: cannot write to /proc/c"),
    ],
)
def test_a_mistake_starts_no_run_of_a_command_and_leaves_no_folder(tmp_path, monkeypatch, arguments, says):
    (tmp_path / "fake_verl.py").write_text(FAKE)
    monkeypatch.syspath_prepend(tmp_path)
    said = refused(tmp_path, monkeypatch, *LAB, *arguments)
    assert says in said
    assert "sk-planted" not in said


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["trainer.total_epochz=3"], "the config has no trainer.total_epochz. Correct the name"),
        (["seed=["], "'seed=[' cannot be read. Expected KEY=VALUE"),
        (["--config-dir", "nofolder"], "nofolder' not found"),
        (["hydra/launcher=nobody"], "there is no config hydra/launcher/nobody"),
        (
            ["--resolve", "trainer.experiment_name=${no.key}"],
            "refers to no.key, which the config does not have",
        ),
    ],
)
def test_what_hydra_refuses_to_print_is_one_line(tmp_path, arguments, says):
    exit_code, said = pv_rl_train(tmp_path, *LAB, "--cfg", "job", *arguments)
    assert exit_code == 1
    assert says in said
    assert said.count("\n") == 1


def test_groups_of_ones_own_are_checked_too(tmp_path, monkeypatch):
    (tmp_path / "mine/recipe").mkdir(parents=True)
    (tmp_path / "mine/recipe/other.yaml").write_text(
        "# @package _global_\nrecipe: {name: other}\nactor_rollout_ref: {actor: {loss_agg_mode: nosuchmode}}\n"
    )
    said = refused(tmp_path, monkeypatch, *LAB, "recipe=other", "--config-dir", "mine")
    assert "nosuchmode" in said


def test_a_run_that_runs_is_not_resumed_and_verl_alone_keeps_it(tmp_path):
    write_record(tmp_path, Record(state="running", attempts=1))
    config = OmegaConf.create(
        {"trainer": {"default_local_dir": "c", "total_training_steps": 1}, "launch": {"env": {}}}
    )
    (tmp_path / ".hydra").mkdir()
    (tmp_path / ".hydra/config.yaml").write_text("a: 1\n")
    config.launch.module = "nobody"
    with locked(tmp_path) as lock:
        verl = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], pass_fds=[lock])
    try:
        with pytest.raises(SetupError, match="is running: another pv-rl train, or the verl"):
            attempt(tmp_path, config, next_record(read_record(tmp_path)), Console())
        assert read_record(tmp_path).attempts == 1
    finally:
        verl.kill()
        verl.wait()
    with locked(tmp_path):
        pass


def test_a_folder_that_holds_a_run_is_not_used_again(tmp_path, monkeypatch):
    (tmp_path / "r").mkdir()
    write_record(tmp_path / "r", Record(state="finished", attempts=1))
    assert "--resume r" in refused(tmp_path, monkeypatch, *LAB, "hydra.run.dir=r")


def test_a_run_whose_preparation_fails_is_written_down(tmp_path):
    exit_code, said = pv_rl_train(tmp_path, *LAB, "launch.prepare._target_=json.loads", "hydra.run.dir=r")
    assert exit_code == 1, said
    assert "Traceback" not in said
    assert "missing 1 required positional argument" in (read_record(tmp_path / "r").error or "")


def test_every_problem_is_in_one_error(tmp_path, monkeypatch):
    arguments = ("run=8b", "judge=rules", "data_dir=nowhere", "hydra.run.dir=r", f"{MODE}=dr_grpo:480")
    said = refused(tmp_path, monkeypatch, *arguments)
    assert "data.train_files: there is no file nowhere/train.parquet" in said
    assert "the run takes 80 GPUs: 32 for training (4 x 8) and 48 for rollouts (6 x 8)" in said


def test_a_check_prints_what_it_looked_at_and_starts_nothing(tmp_path, monkeypatch, capsys):
    def never(*_: object, **__: object) -> None:
        raise AssertionError("the check started Ray")

    monkeypatch.setattr("ray.init", never)
    monkeypatch.chdir(tmp_path)
    assert train(["run=lab", "cluster=cpu"], Console(width=500), only_check=True)
    said = capsys.readouterr().out
    names = ("settings", "secrets", "packages", "gpus", "model", "data", "folders", "ports")
    assert all(f"ok    {name}" in said for name in names), said
    assert not train(
        ["run=lab", "cluster=cpu", "trainer.n_gpus_per_node=9"], Console(width=500), only_check=True
    )
    assert (
        "wrong gpus     the run takes 9 GPUs: 9 for training (1 x 9); this machine has 8. Fix: "
        in capsys.readouterr().out
    )
    assert not list(tmp_path.iterdir())


def test_a_check_of_a_resume_reads_the_saved_config(tmp_path, monkeypatch, capsys):
    config = compose_run("lab", ["cluster=cpu", "run_dir=."])
    (tmp_path / ".hydra").mkdir()
    (tmp_path / ".hydra/config.yaml").write_text(OmegaConf.to_yaml(config))
    write_record(tmp_path, replace(next_record(None), state="stopped"))
    assert resume(tmp_path, [], Console(width=500), only_check=True)
    assert not resume(tmp_path, ["trainer.n_gpus_per_node=9"], Console(width=500), only_check=True)
    assert "the run takes 9 GPUs" in capsys.readouterr().out
    with pytest.raises(ConfigError, match=r"Did you mean trainer\.total_training_steps"):
        resume(tmp_path, ["trainer.total_traning_steps=9"], Console(), only_check=True)


def test_a_finished_run_says_what_can_be_done_and_is_checked_only_for_further_steps(
    tmp_path, monkeypatch, capsys
):
    write_record(tmp_path, replace(next_record(None), state="finished"))
    with pytest.raises(DataError, match=r"config\.yaml is missing.*quickstart"):
        resume(tmp_path, [], Console(), only_check=True)
    (tmp_path / ".hydra").mkdir()
    config = compose_run("lab", ["cluster=cpu", "run_dir=."])
    (tmp_path / ".hydra/config.yaml").write_text(OmegaConf.to_yaml(config))
    for only_check in (True, False):
        assert resume(tmp_path, [], Console(width=500), only_check=only_check)
        said = capsys.readouterr().out
        assert "there is nothing to resume. To train more steps, add trainer.total_training_steps=" in said
        assert f"pv-rl report {tmp_path}" in said
    assert resume(tmp_path, ["trainer.total_training_steps=40"], Console(width=500), only_check=True)
    assert "ok    gpus" in capsys.readouterr().out
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=r"contains a run; to continue it: pv-rl train --resume \."):
        train([], Console(), only_check=True)
    monkeypatch.chdir(tmp_path.parent)  # a run, or another command's run.json, in a folder of this one
    with pytest.raises(ConfigError, match="name one run, run=NAME"):
        train(["runn=lab"], Console(), only_check=True)


def test_a_check_of_a_resume_refuses_a_run_that_is_in_progress_and_not_one_that_was_killed(tmp_path):
    write_record(tmp_path, next_record(None))
    (tmp_path / ".hydra").mkdir()
    config = compose_run("lab", ["cluster=cpu", "run_dir=."])
    (tmp_path / ".hydra/config.yaml").write_text(OmegaConf.to_yaml(config))
    with locked(tmp_path), pytest.raises(SetupError, match="is running: another pv-rl train"):
        resume(tmp_path, [], Console(), only_check=True)
    assert resume(tmp_path, [], Console(), only_check=True)


def test_what_a_resume_changes_is_kept_by_the_next(tmp_path):
    first = replace(next_record(None), state="stopped")
    second = next_record(first, ("trainer.x=1",))
    third = next_record(second, ("trainer.y=2",))
    assert (third.attempts, third.overrides, third.cwd) == (3, ("trainer.x=1", "trainer.y=2"), os.getcwd())
    write_record(tmp_path, third)
    assert read_record(tmp_path) == third


@pytest.mark.parametrize("wrong", ["seed=1", "recipe=./x", "~trainer.x", "--multirun"])
def test_a_resume_takes_single_values_alone(tmp_path, wrong):
    with pytest.raises(ConfigError, match="only overrides of single values"):
        resume(tmp_path, [wrong], Console())


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[1]",
        b'{"step": "x"}',
        b'{"step": 1}',
        b'{"step": 1, "data": {"val-core/[/math]/acc/mean@1": 1.0}}',
    ],
)
def test_a_line_that_cannot_be_shown_ends_no_run(tmp_path, line):
    (tmp_path / "m.jsonl").write_bytes(line + b'\n{"step": 2, "data": {}}\n')
    progress = Progress(tmp_path / "m.jsonl", 2, Console())
    progress.look()
    assert progress.complete()


def test_a_validation_of_several_answers_is_shown_by_its_mean(tmp_path):
    shown = {
        "lab/right/acc/mean@2": 0.9,
        "lab/right/acc/best@2/mean": 1.0,
        "lab/right/acc/maj@2/mean": 0.8,
        "x/score/mean@1": 0.2,
    }
    line = {"step": 2, "data": {f"val-core/{name}": value for name, value in shown.items()}}
    (tmp_path / "m.jsonl").write_text(json.dumps(line) + "\n")
    console = Console(file=io.StringIO())
    Progress(tmp_path / "m.jsonl", 9, console).look()
    assert console.file.getvalue() == "step 2 of 9  lab/right 0.900  x 0.200\n"


def test_what_pv_rl_train_prints_has_no_control_characters():
    console = Console(file=io.StringIO(), force_terminal=True)
    say(console, "ValueError: \x1b]0;owned\x07\x1b[2J\u202e [bold]x\nverl ended")
    assert console.file.getvalue() == "ValueError: \\x1b]0;owned\\x07\\x1b[2J\\u202e [bold]x\nverl ended\n"


def test_metrics_that_are_written_anew_are_read_from_their_start(tmp_path):
    path = tmp_path / "m.jsonl"
    path.write_text('{"step": 1, "data": {}}\n')
    progress = Progress(path, 2, Console())
    progress.look()
    path.write_text('{"step": 2, "data": {"actor/lr": 1.0}}\n')
    progress.look()  # notices it
    progress.look()
    assert progress.complete()


def test_a_run_without_a_known_last_step_is_complete_unless_it_was_asked_to_stop(tmp_path):
    progress = Progress(tmp_path / "m.jsonl", None, Console())
    assert (progress.complete(), progress.complete(asked=True)) == (True, False)


@pytest.mark.parametrize("text", ["a\\", "a\\'b", "\\${x}", "${x}", "it's", "a,b = [c]", "\\\\"])
def test_any_text_survives_as_an_override(text):
    with initialize(version_base=None):
        config = compose(overrides=[override("+key", text)])
    assert config.key == text


def test_each_attempt_has_a_metrics_file_of_its_own():
    assert [RunFolder(Path("r")).metrics(n).name for n in (1, 2, 3)] == [
        "metrics.jsonl",
        "metrics-2.jsonl",
        "metrics-3.jsonl",
    ]


def test_a_record_comes_back_as_it_was_written(tmp_path):
    record = Record(
        state="failed",
        attempts=2,
        exit_code=-9,
        started="then",
        ended="now",
        error="why",
        versions={"a": "1"},
    )
    write_record(tmp_path, record)
    assert read_record(tmp_path) == record


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "contains no run"),
        ("{", "not what pv-rl"),
        ('{"x": 1}', "not what pv-rl"),
        ("[]", "a JSON list.*Restore the file"),
        ('{"state": "failed", "attempts": true}', "attempts True"),
        ('{"state": "failed", "attempts": 1, "overrides": "a.b=1"}', "overrides 'a.b=1' is no list"),
        ('{"state": "failed", "attempts": 1, "history": [{"attempt": "x"}]}', "its history is no list"),
    ],
)
def test_what_is_no_record_is_said(tmp_path, text, says):
    if text is not None:
        (tmp_path / "run.json").write_text(text)
    with pytest.raises(DataError, match=says):
        read_record(tmp_path)


def test_a_stop_can_be_asked_for_and_taken_back(tmp_path):
    checkpoints = tmp_path / "not there yet"
    assert not asked_to_stop(checkpoints)
    ask_to_stop(checkpoints)
    assert asked_to_stop(checkpoints)
    forget(checkpoints)
    forget(checkpoints)
    assert not asked_to_stop(checkpoints)


def test_the_script_beside_a_run_starts_the_same_command(tmp_path):
    folder = tmp_path / "it's a run"
    (folder / ".hydra").mkdir(parents=True)
    (folder / ".hydra/config.yaml").write_text("a: 1\n")
    config = OmegaConf.create({"launch": {"module": "pv_rl.cli"}})
    command = verl_command(folder, config, {"NAME": "a b"}, ("x.y=1",))
    assert command[1:3] == ["-m", "pv_rl.cli"]
    assert command[-1] == "x.y=1"
    assert override("run_dir", folder) in command
    printed = shell_script(["printf", "%s\\n", *command[3:]], {"NAME": "a b"}, f"cd {tmp_path}")
    done = subprocess.run(["sh", "-c", printed], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == command[3:]
