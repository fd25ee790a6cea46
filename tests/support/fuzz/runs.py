"""Fuzz targets of files of a run and of configs: metrics, records, YAML groups."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from fuzz.checks import Refused, file_of, folder_of, json_of, outcome, parts_of, text_of
from pv_data.run.config import read_run as read_data_run
from pv_data.shell import load_yaml
from pv_judge.config import read_config as read_judge_config
from pv_judge.pages.writing import to_json
from pv_judge.rejudge.command import read_judge
from pv_judge.scoring.command import read_options
from pv_rl.rewards.build import build_reward
from pv_rl.rewards.degeneration import rules_from_config
from pv_runs.hydra_record import read_config, read_overrides, saved_config
from pv_runs.metrics_log import parse_line, read_log
from pv_runs.model_shape import read_model
from pv_runs.preflight.model import _folder
from pv_runs.report.content import document, printed
from pv_runs.report.summary import summarise
from pv_runs.run_record import read_about, read_record
from pv_runs.sentinel import SentinelConfig, Watcher
from pv_runs.sentinel.alarm_policy import AlarmPolicy, AlarmPolicyConfig
from pv_runs.typed_config import Settings
from pv_runs.watch.foreign import FileView
from pv_runs.watch.screen import to_page
from pv_runs.watch.view import View

METRICS = b'{"step": 1, "data": {"actor/entropy": 0.5, "critic/score/mean": 0.25}}\n'
RECORD = b'{"state": "finished", "attempts": 1}'
CONFIG = b"seed: 1\nrecipe:\n  eta: 0.6\n"
REWARDS = ("verdict", "weighted", "verdict_fluency", "grade", "first_error", "meta_verified")
SUFFIXES = (".jsonl", ".csv", ".json", ".tsv", ".txt")


def metrics(data: bytes) -> None:
    """A line of verl's log is read or refused; steps are whole numbers from 0."""
    for line in data.split(b"\n"):
        found = outcome(parse_line, line, errors=(ValueError,))
        assert isinstance(found, Refused) or 0 <= found[0] <= 10**12
    with folder_of(metrics_dot_jsonl=data) as folder:
        log = outcome(read_log, folder, lambda _: True)
        if not isinstance(log, Refused):
            assert all(list(series) == sorted(series) for series in log.series.values())


def run_folder(data: bytes) -> None:
    """`pv-rl report` and `pv-rl watch` of a run: what a file does not say is left out, and nothing else is lost."""
    log, record, config, overrides, sentinel = parts_of(data, 5)
    files = {"metrics_dot_jsonl": log or METRICS, "run_dot_json": record or RECORD}
    files |= {"_dot_hydra__config_dot_yaml": config or CONFIG}
    files |= {"_dot_hydra__overrides_dot_yaml": overrides} if overrides else {}
    files |= {"sentinel_dot_jsonl": sentinel} if sentinel else {}
    with folder_of(**files) as folder:
        summary = outcome(summarise, folder)
        if not isinstance(summary, Refused):
            assert len(summary.runs) == 1
            list(printed(summary))
            json.loads(to_json(document(summary))).keys()
        frame = View(folder).look(now=0.0)
        assert "<script" not in to_page(frame, refresh=None).partition("<body")[2].lower()


def metrics_file(data: bytes) -> None:
    """`pv-rl watch --metrics` of any trainer's file."""
    for suffix in SUFFIXES:
        with file_of(data, f"a{suffix}") as path:
            outcome(_watched, path)


def event_file(data: bytes) -> None:
    """The same, of TensorBoard."""
    with file_of(data, "events.out.tfevents.1") as path:
        outcome(_watched, path)


def _watched(path: Path) -> str:
    view = FileView(path, final=True, make_watcher=lambda: Watcher(_sentinel()))
    to_page(frame := view.look(now=0.0), refresh=None)
    return repr((frame.step, frame.sections, frame.alarms))


@cache
def _sentinel() -> SentinelConfig:
    return SentinelConfig(responses=128)


def rollouts_shown(data: bytes) -> None:
    """The last traces that `pv-rl watch` shows: of rollouts, and of a ledger."""
    for name in ("rollouts__1_dot_jsonl", "checkpoints__judge__ledger__journal-a_dot_jsonl"):
        with folder_of(metrics_dot_jsonl=METRICS, **{name: data}) as folder:
            to_page(View(folder).look(now=0.0), refresh=None)


def record(data: bytes) -> None:
    """run.json, as `report` reads it and as a resume does."""
    with folder_of(run_dot_json=data) as folder:
        outcome(read_about, folder / "run.json")
        outcome(read_record, folder)


def hydra_record(data: bytes) -> None:
    """Hydra's YAML: every value is text by its dotted key."""
    config, overrides = parts_of(data, 2)
    with folder_of(_dot_hydra__config_dot_yaml=config, _dot_hydra__overrides_dot_yaml=overrides) as folder:
        values = outcome(read_config, folder)
        if not isinstance(values, Refused):
            assert all(isinstance(one, str) for pair in values.items() for one in pair)
        outcome(read_overrides, folder)
        outcome(saved_config, folder, text_of(overrides).split("\n")[:3])


def yaml_groups(data: bytes) -> None:
    """Settings of each part, from YAML: built, or refused with a ConfigError."""
    text = text_of(data).encode("utf-8", "replace").decode()
    given = outcome(load_yaml, text, errors=(yaml.YAMLError, ValueError))
    if isinstance(given, Refused):
        return
    outcome(rules_from_config, given)
    outcome(AlarmPolicyConfig.read, given)
    if isinstance(given, dict):
        outcome(read_judge_config, given)
        outcome(read_data_run, given)
        outcome(AlarmPolicyConfig(watch=given).watching, 128)
        for name in REWARDS:
            outcome(_built, name, given)


def _built(name: str, options: dict[str, Any]) -> str:
    return type(build_reward(name, options).reward).__name__


def yaml_files(data: bytes) -> None:
    """The YAML files that a command takes."""
    text, settings = parts_of(data, 2)
    with file_of(text, "options.yaml") as path:
        outcome(read_options, path, text_of(settings).split("\n")[:3])
        outcome(_judge, path)


def _judge(path: Path) -> str:
    return repr(read_judge(path))


def model_config(data: bytes) -> None:
    """config.json of a model, as `pv-rl plan` and the preflight read it; and files of its weights."""
    from omegaconf import OmegaConf

    about, index, weights = parts_of(data, 3)
    files = {"config_dot_json": about, "a_dot_index_dot_json": index, "a_dot_safetensors": weights}
    with folder_of(**files) as folder:
        config = OmegaConf.create({"actor_rollout_ref": {"model": {"path": str(folder)}}})
        outcome(read_model, Settings(config=config))
        outcome(_folder, folder, "actor_rollout_ref.model.path", config)


def sentinel_state(data: bytes) -> None:
    """What the sentinel wrote beside a checkpoint: refused, or restored so that it can observe a step."""
    policy = AlarmPolicy(AlarmPolicyConfig(), Watcher(_sentinel()), Path("a"))
    known = json_of(data)
    if isinstance(known, dict) and not isinstance(outcome(policy.restore, known), Refused):
        policy.watcher.observe(10**13, {"actor/entropy": 0.5, "critic/score/mean": 0.25, "actor/lr": 1e-6})
