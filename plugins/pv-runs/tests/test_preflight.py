"""Mistakes planted in a run that has everything that it needs: each is found before the run starts, without Ray."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")
pytest.importorskip("pv_lab", reason="pv-lab is not installed: pip install ./examples/lab")

import pyarrow as pa
import pyarrow.parquet as pq
from omegaconf import OmegaConf

from pv_lab import MODEL_DIR
from pv_runs.model_shape import read_model
from pv_runs.preflight import Machine, Node, examine, faults, this_machine
from pv_runs.recipes import compose
from pv_runs.typed_config import Settings

PROMPT = [{"role": "user", "content": "p : x = 3\nc : x = 3"}]
LOCAL = (
    "data.max_prompt_length=64",
    "data.max_response_length=128",
    "actor_rollout_ref.rollout.max_model_len=192",
)
KWARGS = "reward.custom_reward_function.reward_kwargs"


def row(prompt=PROMPT, label="True", source="lab/right"):
    return {"data_source": source, "prompt": prompt, "reward_model": {"style": "rule", "ground_truth": label}}


def write(path: Path, rows) -> None:
    pq.write_table(rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(rows), path)


@pytest.fixture(scope="module")
def composed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("d")
    write(folder / "train.parquet", [row(label=one) for one in ("True", "False") * 8])
    write(folder / "test.parquet", [row(label="False")] * 3)
    places = [f"data_dir={folder}", f"model_path={MODEL_DIR}"]
    return compose("small", ["judge=deepseek", "logging=wandb", "sentinel=log", *places, *LOCAL])


@pytest.fixture
def run(composed, tmp_path, monkeypatch):
    """A config, a machine with all that it needs, and the folder of both."""

    def never(*_: object, **__: object) -> None:
        raise AssertionError("a check started Ray")

    monkeypatch.setattr("ray.init", never)
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-PLANTEDKEY-0123456789")
    config = composed.copy()
    OmegaConf.set_struct(config, False)
    config.run_dir = str(tmp_path / "run")
    return config, all_there(tmp_path), tmp_path


def all_there(folder: Path, gpus: int = 1, nodes: int = 1) -> Machine:
    return Machine(
        cwd=folder,
        environment={
            "WANDB_API_KEY": "wandb-PLANTEDKEY-01",
            "HOME": str(folder),
            "RAY_TMPDIR": "/tmp/r",
        },
        nodes=(Node(cpus=64, gpus=gpus),) * nodes,
        has=lambda module: True,
    )


def test_a_run_with_all_that_it_needs_is_clean(run):
    config, machine, folder = run
    before = sorted(folder.rglob("*"))
    found = examine(config, machine, [])
    assert faults(found) == []
    assert [one.text for findings in found.values() for one in findings if one.state == "note"] == [
        "data.val_files: every label is False"
    ]
    assert "data.train_files: 16 rows, labels False: 8, True: 8" in [one.text for one in found["data"]]
    assert sorted(folder.rglob("*")) == before


def set_value(key, given):
    return lambda config, machine, folder: OmegaConf.update(config, key, given)


def in_data(rows, name="train"):
    """A file of these rows in the place of `data.NAME_files`."""

    def plant(config, machine, folder):
        write(folder / f"{name}.parquet", rows)
        OmegaConf.update(config, f"data.{name}_files", f"{name}.parquet")

    return plant


def train_rows(*rows, keep=16):
    """Rows in the place of the first ones of the file."""
    return in_data([*rows, *[row() for _ in range(keep - len(rows))]])


def in_model(change):
    """A copy of the model, changed."""

    def plant(config, machine, folder):
        shutil.copytree(MODEL_DIR, folder / "m")
        change(folder / "m")
        config.model_path = str(folder / "m")

    return plant


def on_machine(**changes):
    return lambda config, machine, folder: replace(machine, **changes)


def environment(**changes):
    return lambda config, machine, folder: replace(machine, environment={**machine.environment, **changes})


def without(*modules):
    return on_machine(has=lambda module: module not in modules)


def judge_at(url):
    return set_value(f"{KWARGS}.judge.endpoints", [{"url": url, "model": "deepseek-chat"}])


def shard_missing(model: Path) -> None:
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (model / "model.safetensors.index.json").write_text(json.dumps(index))


def weights_cut(model: Path) -> None:
    file = next(model.glob("*.safetensors"))
    file.write_bytes(file.read_bytes()[:-1])


def no_tokenizer(model: Path) -> None:
    for file in [*model.glob("tokenizer*"), *model.glob("vocab*")]:
        file.unlink()


def cut_file(config, machine, folder):
    file = Path(config.data.train_files)
    (folder / "cut.parquet").write_bytes(file.read_bytes()[:-9])
    config.data.train_files = "cut.parquet"


def csv_file(config, machine, folder):
    (folder / "test.csv").write_text("prompt\n")
    config.data.val_files = "test.csv"


def file_in_the_way(config, machine, folder):
    (folder / "run").write_text("")


def huge(model: Path) -> None:
    """More than any disk: 800 layers of 8192, 0.7e12 parameters, 8 TB of a checkpoint."""
    edit(model, hidden_size=8192, num_hidden_layers=800, intermediate_size=28672)


def edit(model: Path, **values: object) -> None:
    file = model / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


def reward_in_file(text, name="f"):
    def plant(config, machine, folder):
        (folder / "reward.py").write_text(text)
        config.reward.custom_reward_function.update(path="file://reward.py", name=name)

    return plant


def saved(step, ranks, *, kept=True):
    def plant(config, machine, folder):
        actor = folder / f"run/checkpoints/global_step_{step if kept else step - 1}/actor"
        actor.mkdir(parents=True)
        (actor / f"model_world_size_{ranks}_rank_0.pt").write_bytes(b"x")
        (folder / "run/checkpoints/latest_checkpointed_iteration.txt").write_text(str(step))

    return plant


def sizes_on_a_cluster(config, machine, folder):
    config.ray_kwargs.ray_init.num_cpus = 32
    return replace(machine, cluster="10.0.0.1:6379", has=lambda module: module != "pv_cpu")


PLANTED = {
    # settings
    "checkpoint of other ranks": (
        saved(40, ranks=8),
        r"settings: .*was written by 8 ranks.*is 1.*resume on 8",
    ),
    "checkpoint that was deleted": (
        saved(40, ranks=1, kept=False),
        "settings: .*global_step_40, the newest .* is not there: verl would start again",
    ),
    "home": (set_value("trainer.rollout_data_dir", "~/r"), "settings: .*verl does not replace ~"),
    "truncation": (set_value("data.truncation", "eror"), r"settings: .*Did you mean error\?"),
    "device": (set_value("trainer.device", "cdua"), r"settings: .*Did you mean cuda\?"),
    "variable of the judge": (
        set_value(f"{KWARGS}.judge.endpoints", [{"url": "${oc.env:NO_SUCH_ONE}", "model": "m"}]),
        "settings: .*Fix: export NO_SUCH_ONE=",
    ),
    "reward's function": (
        reward_in_file("def compute(): ...", name="computee"),
        r"packages: .*nothing named computee\. Did you mean compute\?",
    ),
    "reward's syntax": (reward_in_file("def f(:"), "packages: .*cannot be read as Python"),
    "sizes of a local Ray on a cluster": (
        sizes_on_a_cluster,
        "gpus: .*num_cpus: sizes of a Ray that starts here",
    ),
    "CPUs of a cluster": (
        on_machine(nodes=(Node(cpus=2, gpus=1),), cluster="10.0.0.1:6379"),
        "gpus: .*Fix: start the nodes with `ray start --num-cpus=5`",
    ),
    "where it was started": (
        on_machine(cwd=Path("/proc/gone")),
        "folders: the run was started in /proc/gone",
    ),
    "wandb's folder": (environment(WANDB_DIR="/proc/w"), "folders: WANDB_DIR: cannot write to /proc/w"),
    "eta out of range": (
        set_value("actor_rollout_ref.actor.loss_agg_mode", "balanced:1.5"),
        "settings: .*eta",
    ),
    "variable of an interpolation": (
        set_value("trainer.project_name", "${oc.env:NO_SUCH_ONE}"),
        "settings: .*NO_SUCH",
    ),
    "secret in a file": (
        set_value("launch.env", {"HF_TOKEN": "hf_PLANTEDKEY"}),
        r"settings: launch\.env\.HF_TOKEN",
    ),
    "verl's own refusal": (
        set_value("actor_rollout_ref.actor.use_dynamic_bsz", False),
        "settings: verl refuses",
    ),
    "no step": (set_value("trainer.total_training_steps", 0), "settings: trainer.total_training_steps is 0"),
    "text for a number": (set_value("seed", "abc"), "settings: seed is 'abc'; it has to be a whole number"),
    "learning rate": (
        set_value("actor_rollout_ref.actor.optim.lr", "1e-5x"),
        r"settings: .*optim\.lr is '1e-5x'",
    ),
    "estimator": (set_value("algorithm.adv_estimator", "grppo"), r"settings: .*Did you mean grpo\?"),
    "engine's name": (set_value("actor_rollout_ref.rollout.name", "vlm"), r"settings: .*Did you mean vllm\?"),
    "checkpoint": (
        set_value("trainer.resume_mode", "resume_path"),
        "settings: .*there is no such checkpoint",
    ),
    # secrets
    "judge's key is empty": (None, "secrets: the environment variable DEEPSEEK_API_KEY .* not set or empty"),
    "logger's key": (environment(WANDB_API_KEY=""), "secrets: the logger wandb needs WANDB_API_KEY"),
    # packages and code
    "engine": (without("vllm"), "packages: .*rollout.name=vllm needs the package vllm"),
    "logger's package": (without("wandb"), "packages: the logger wandb needs the package wandb"),
    "logger's name": (set_value("trainer.logger", ["wandbb"]), r"packages: .*'wandbb'.*Did you mean wandb\?"),
    "reward's file": (
        set_value("data.custom_cls.path", "/nobody/rows.py"),
        r"packages: data\.custom_cls\.path: there is no file",
    ),
    # GPUs
    "no GPU": (on_machine(nodes=(Node(cpus=8, gpus=0),)), "gpus: the run takes 1 GPUs.* this machine has 0"),
    "more GPUs than there are": (set_value("trainer.n_gpus_per_node", 2), "gpus: the run takes 2 GPUs"),
    "a node that is too small": (
        lambda config, machine, folder: (
            OmegaConf.update(config, "trainer.n_gpus_per_node", 4),
            replace(machine, cluster="10.0.0.1:6379", nodes=(Node(cpus=64, gpus=2),) * 2),
        )[1],
        "gpus: the run takes 4 GPUs: 4 for training .1 x 4.; the Ray cluster 10.0.0.1:6379 has 4 free on 2 nodes",
    ),
    "a cluster that has ended": (
        on_machine(nodes=(), cluster="10.0.0.1:6379"),
        "gpus: .*10.0.0.1:6379, and no head node listens",
    ),
    "CPUs that verl reserves": (on_machine(nodes=(Node(cpus=2, gpus=1),)), "gpus: verl reserves 3 CPUs"),
    # model
    "model's folder": (set_value("model_path", "/nobody/model"), "model: .*there is no folder /nobody/model"),
    "model's name, offline": (
        lambda config, machine, folder: (
            OmegaConf.update(config, "model_path", "nobody/no-such-model"),
            replace(machine, environment={**machine.environment, "HF_HUB_OFFLINE": "1"}),
        )[1],
        "model: .*not in the cache",
    ),
    "no config.json": (
        in_model(lambda model: (model / "config.json").unlink()),
        "model: .* has no config.json",
    ),
    "config.json": (
        in_model(lambda model: (model / "config.json").write_text("{")),
        "model: .* cannot be read",
    ),
    "a config.json without an end": (
        in_model(lambda model: (model / "config.json").write_text("[" * 100_000)),
        "model: .* cannot be read",
    ),
    "rope parameters that are a list": (
        in_model(lambda model: edit(model, rope_parameters=[1], max_position_embeddings=16)),
        "model: .* is made for 16 tokens",
    ),
    "a shard": (in_model(shard_missing), "model: .* lacks 2 of 2 files of its weights"),
    "weights that were cut": (in_model(weights_cut), "model: .* is incomplete or damaged"),
    "no tokenizer": (in_model(no_tokenizer), "model: .* has no tokenizer"),
    "longer than the model": (
        set_value("actor_rollout_ref.rollout.max_model_len", 10**6),
        "model: .*max_model_len is 1,000,000, and",
    ),
    "no model": (set_value("model_path", ""), r"model: actor_rollout_ref\.model\.path is empty"),
    # data
    "no file": (set_value("data.train_files", None), "data: data.train_files is empty"),
    "fewer rows by a limit": (set_value("data.train_max_samples", 5), "data: data.train_files has 5 rows"),
    "data file": (
        set_value("data_dir", "nowhere"),
        "data: data.train_files: there is no file nowhere/train.parquet",
    ),
    "data file that was cut": (cut_file, "data: data.train_files: .*cannot be read as Parquet"),
    "format": (
        set_value("data.val_files", "d/test.csv"),
        "data: data.val_files: there is no file d/test.csv",
    ),
    "columns": (
        in_data([{"question": "x", "data_source": "s", "reward_model": {"style": "rule"}}]),
        "data: .* has no column prompt; it has question, data_source, reward_model",
    ),
    "label": (train_rows(row(label="maybe")), "data: .*row 1 of .*1 in all.*the label is 'maybe'"),
    "label that is missing": (train_rows(row(label=None), row()), "data: .*row 1 of .*the label is None"),
    "source": (train_rows(row(), row(source="")), "data: .*row 2 of .*data_source is empty"),
    "prompt that is text": (
        in_data([row(prompt="x = 3")] * 16),
        "data: .*prompt is a str; verl needs a list of messages",
    ),
    "fewer rows than a batch": (
        train_rows(row(), keep=15),
        "data: data.train_files has 15 rows, and a batch takes 16",
    ),
    "no row": (in_data(pa.Table.from_pylist([row()])[:0], "val"), "data: data.val_files: .*is empty"),
    "prompts that are filtered": (
        train_rows(*[row(prompt=[{"role": "user", "content": "x = 3\n" * 99}])] * 4),
        "data: data.train_files has 12 rows after 4 with longer prompts .* and a batch takes 16",
    ),
    "prompts that are cut": (
        lambda config, machine, folder: (
            OmegaConf.update(config, "data.filter_overlong_prompts", False),
            OmegaConf.update(config, "data.max_prompt_length", 3),
        )[0],
        "data: .*about 16 of 16 prompts are longer .*cuts their beginning",
    ),
    # folders
    "no checkpoints": (
        set_value("trainer.default_local_dir", None),
        "folders: trainer.default_local_dir is empty",
    ),
    "a file in the way": (
        file_in_the_way,
        "folders: run_dir, trainer.default_local_dir, .*: cannot write to .*/run",
    ),
    "a folder that is read-only": (
        set_value("trainer.rollout_data_dir", "/proc/rollouts"),
        r"folders: trainer\.rollout_data_dir: cannot write to /proc/rollouts",
    ),
    "ledger": (
        set_value(f"{KWARGS}.ledger", "/proc/ledger"),
        r"folders: reward_kwargs\.ledger: cannot write",
    ),
    "disk": (in_model(huge), "folders: checkpoints take 2 x .* GB, and .* free"),
    "Ray's folder": (environment(RAY_TMPDIR="/tmp/" + "r" * 90), "folders: Ray's folder is .* characters"),
    # ports
    "port": (set_value("ray_kwargs.ray_init.dashboard_port", 70000), "ports: .*dashboard_port is 70000"),
    "judge that does not listen": (
        judge_at("http://localhost:1/v1"),
        "ports: no server listens at http://localhost:1",
    ),
}


BOTH_FILES = ("data file", "prompts that are cut")


@pytest.mark.parametrize("mistake", PLANTED)
def test_a_planted_mistake_is_found(mistake, run, monkeypatch):
    config, machine, folder = run
    plant, expected = PLANTED[mistake]
    if plant is None:
        monkeypatch.setenv("DEEPSEEK_API_KEY", " ")
    changed = plant(config, machine, folder) if plant is not None else None
    machine = changed if isinstance(changed, Machine) else machine
    found = faults(examine(config, machine, [], only=[expected.partition(":")[0]]))
    said = "\n".join(found)
    assert re.search(expected, said), said
    assert len(found) == 1 or mistake in BOTH_FILES, said
    assert "PLANTEDKEY" not in said, "a key is printed"
    assert ". Fix: " in said or said.startswith("settings: "), said


QUIET = [{"role": "system", "content": ""}, *PROMPT]
CALL = [
    *PROMPT,
    {"role": "assistant", "content": None, "tool_calls": [{"name": "f"}]},
    {"role": "tool", "content": "3"},
]
VALID = {
    "an empty system message": in_data([row(prompt=QUIET)] * 16),
    "a call of a tool": in_data([row(prompt=CALL)] * 16),
    "files by a pattern": set_value("data.train_files", "d/tr*.parquet"),
    "a reward by file://": reward_in_file("from json import loads as f"),
    "a reward that only running the file defines": reward_in_file("globals()['f'] = print"),
    "a checkpoint of the same ranks": saved(40, ranks=1),
    "a name of a plugin": set_value("actor_rollout_ref.rollout.checkpoint_engine.backend", "my_own"),
    "sizes that pv-cpu leaves out": lambda *given: replace(
        sizes_on_a_cluster(*given), has=lambda module: True
    ),
}


@pytest.mark.parametrize("what", VALID)
def test_what_verl_accepts_is_not_called_wrong(what, run):
    config, machine, folder = run
    (folder / "d").symlink_to(Path(str(config.data_dir)))
    changed = VALID[what](config, machine, folder)
    machine = changed if isinstance(changed, Machine) else machine
    only = ["settings", "packages", "gpus", "data"]
    assert faults(examine(config, machine, [], only=only)) == []


@pytest.mark.parametrize(("votes", "noted"), [(1, False), (2, True)])
def test_votes_in_a_validation_that_verl_resamples_are_noted(votes, noted, run):
    config, machine, _ = run
    OmegaConf.update(config, "actor_rollout_ref.rollout.val_kwargs.n", votes, force_add=True)
    found = examine(config, machine, [], only=["settings"])["settings"]
    assert ["val_kwargs.n is 2: " in one.text for one in found if one.state == "note"].count(True) == noted


@pytest.mark.parametrize(("dtype", "each"), [("fp32", 12), ("bf16", 6)])
def test_a_checkpoint_holds_weights_and_moments_in_their_dtype(dtype, each, run):
    config, machine, folder = run
    in_model(huge)(config, machine, folder)
    config.actor_rollout_ref.actor.fsdp_config.model_dtype = dtype
    parameters = read_model(Settings(config=config))[0].parameters
    (text,) = faults(examine(config, machine, [], only=["folders"]))
    assert f"2 x {each * parameters / 1e9:,.1f} GB" in text


def test_a_port_in_use_is_found_and_a_judge_that_listens_is_right(run):
    config, machine, _ = run
    with socket.create_server(("localhost", 0)) as server:
        port = server.getsockname()[1]
        judge_at(f"http://localhost:{port}/v1")(config, machine, None)
        config.ray_kwargs.ray_init.dashboard_port = port
        found = faults(examine(config, machine, [], only=["ports"]))
        assert len(found) == 1
        assert f"dashboard_port={port}: the port is in use" in found[0]
        config.ray_kwargs.ray_init.include_dashboard = False
        assert faults(examine(config, machine, [], only=["ports"])) == []


def test_the_cluster_that_ray_would_join_is_looked_for_as_ray_does(composed, tmp_path, monkeypatch):
    config = composed.copy()
    OmegaConf.set_struct(config, False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    config.ray_kwargs.ray_init.num_cpus = 5
    alone = this_machine(config, tmp_path)
    assert (alone.cluster, [one.cpus for one in alone.nodes or ()]) == ("", [5])
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray/ray_current_cluster").write_text("127.0.0.1:1")  # of a `ray start` that was killed
    assert (this_machine(config, tmp_path).cluster, this_machine(config, tmp_path).nodes) == (
        "127.0.0.1:1",
        (),
    )
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:2")
    assert this_machine(config, tmp_path).cluster == "127.0.0.1:2"
    config.ray_kwargs.ray_init.address = "local"
    assert this_machine(config, tmp_path).cluster == ""


def test_more_gpus_than_the_machine_has_are_not_believed(composed, tmp_path, monkeypatch):
    config = composed.copy()
    OmegaConf.set_struct(config, False)
    config.ray_kwargs.ray_init.update(address="local", num_gpus=8)
    monkeypatch.setattr("pv_runs.preflight.machine._devices", lambda: 1)
    assert this_machine(config, tmp_path).nodes == (Node(cpus=os.cpu_count() or 1, gpus=1),)
    config.launch.env = {"VERL_PLATFORM": "cpu"}  # where they are numbers for Ray alone
    assert this_machine(config, tmp_path).nodes == (Node(cpus=os.cpu_count() or 1, gpus=8),)
