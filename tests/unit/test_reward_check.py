"""Checks of the reward in the driver: name, options and labels are refused, and nothing that a worker could serve."""

from __future__ import annotations

import inspect
import logging
import sys
import types
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from added_rewards import adding
from omegaconf import OmegaConf

from pv_doctor import reward
from pv_doctor.reward import check_labels, check_reward
from pv_rl.errors import ConfigError, DataError, PluginError
from pv_rl.hookspecs import RewardEntry
from pv_rl.rewards import RewardInput, RewardOutput
from pv_rl.rewards.base import LabelKind

NAMED = "pkg://pv_rl.rewards.named"
FUNCTION = "reward.custom_reward_function"


def config(name: object = "verdict", path: str = NAMED, **others):
    function = {"path": path, "name": name, "reward_kwargs": others.pop("options", {})}
    return OmegaConf.create({"reward": {"custom_reward_function": function}, **others})


class Costly:
    """A reward that may not be built in the driver."""

    def __init__(self, words: int, *, lines: int = 3) -> None:
        raise AssertionError("it was built")

    async def score(self, sample: RewardInput) -> RewardOutput:
        raise AssertionError


def wrapped(**options: object) -> Costly:
    return Costly(1)


wrapped.__wrapped__ = Costly  # pyright: ignore[reportFunctionMemberAccess]


@pytest.mark.parametrize(
    ("name", "options", "error"),
    [
        (
            "verdct",
            {},
            f"{FUNCTION}.name=verdct: there is no reward 'verdct'. Did you mean verdict? Available: ",
        ),
        (None, {}, f"{FUNCTION}.name=None: there is no reward None."),
        (
            "verdict",
            {"jugde": 1},
            f"{FUNCTION}.reward_kwargs: the options of the reward 'verdict' do not fit it: ",
        ),
        ("verdict", "veto", "the options of the reward 'verdict' are 'veto'; expected options by name"),
        ("verdict_fluency", {"vetoo": 1}, "verdict_fluency has no option 'vetoo'. Did you mean veto?"),
        ("verdict_fluency", {"rules": {"loop": 1}}, "there is no degeneration rule 'loop'"),
        (
            "verdict_fluency",
            {"reward": "costly", "reward_options": {"word": 1}},
            "no option 'word'. Did you mean words",
        ),
        ("weighted", {"rewards": {"costly": 1}}, "the option words is missing. Options: words, lines"),
        (
            "costly",
            {"words": 1, "line": 2},
            "there is no option 'line'. Did you mean lines? Options: words, lines",
        ),
    ],
)
def test_a_wrong_name_or_option_is_refused_with_the_full_name_of_its_setting(name, options, error):
    with adding(RewardEntry(name="costly", build=Costly)), pytest.raises(ConfigError) as caught:
        check_reward(config(name, options=options))
    assert error in str(caught.value)
    assert str(caught.value).startswith(f"{FUNCTION}.")


class Aliased(Costly):
    """Like pydantic's models, it takes words that its `__signature__` lacks."""

    __signature__ = inspect.Signature()


@pytest.mark.parametrize("setting", ["name", "reward_kwargs"])
def test_a_setting_that_only_a_worker_can_resolve_is_left_to_it(setting):
    function = {"path": NAMED, "name": "verdict", setting: "${oc.env:PV_RL_TEST_ONLY_THE_WORKER_HAS_IT}"}
    assert check_reward(OmegaConf.create({"reward": {"custom_reward_function": function}})) == "any"


@pytest.mark.parametrize("path", ["pkg://pv_rl.rewards.nmaed", f"{NAMED}.verdict"])
def test_a_module_of_ours_that_does_not_exist_is_refused(path):
    with pytest.raises(ConfigError, match=rf"{FUNCTION}.path={path}: there is no such module\. .*{NAMED}"):
        check_reward(config(path=path))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("costly", {"words": 1}),
        ("weighted", {"rewards": {"costly": 1.0}, "options": {"costly": {"words": 1}}}),
        ("verdict_fluency", {"reward": "costly", "reward_options": {"words": 1, "lines": 2}}),
        ("wrapped", {"cache": True}),
        ("aliased", {"n_words": 1}),
        ("builtin", {"a": 1}),
        ("verdict_fluency", {"veto": "${oc.env:PV_RL_TEST_ONLY_THE_WORKER_HAS_IT}"}),
    ],
)
def test_a_reward_is_neither_built_nor_refused_where_only_a_worker_can_know(name, options):
    entries = [RewardEntry(name="costly", build=Costly), RewardEntry(name="wrapped", build=wrapped)]
    entries += [RewardEntry(name="aliased", build=Aliased), RewardEntry(name="builtin", build=dict)]
    with adding(*entries):  # dict has no signature
        assert check_reward(config(name, options=options)) == "any"


def test_a_reward_of_a_plugin_that_is_cheap_is_built_for_its_values_and_its_label():
    class Cheap:
        label_kind = "number"

        def __init__(self, words: int = 1) -> None:
            if words < 1:
                raise ConfigError(f"words={words}; expected 1 or more")

        async def score(self, sample: RewardInput) -> RewardOutput:
            raise AssertionError

    with adding(RewardEntry(name="cheap", build=Cheap, cheap=True)):
        assert check_reward(config("cheap")) == "number"
        assert check_reward(config("verdict_fluency", options={"reward": "cheap"})) == "number"
        with pytest.raises(ConfigError, match=rf"{FUNCTION}.reward_kwargs: .*words=0; expected 1 or more"):
            check_reward(config("cheap", options={"words": 0}))
    said = f"{FUNCTION}.name=verdict: the reward 'verdict' is claimed by"
    with adding(RewardEntry(name="verdict", build=Cheap)), pytest.raises(PluginError, match=said):
        check_reward(config())


@pytest.mark.parametrize(
    "environment",
    [
        {"pip": ["theirs"]},
        {"working_dir": "."},
        {"env_vars": {"PYTHONPATH": "/theirs"}},
        {"env_vars": "${oc.env:PV_RL_UNSET}"},
        "wrong",
    ],
)
def test_a_package_that_only_the_workers_have_is_left_to_them(environment, monkeypatch):
    elsewhere = config("theirs", ray_kwargs={"ray_init": {"runtime_env": environment}})
    check_reward(elsewhere)
    with pytest.raises(ConfigError):
        check_reward(
            config("theirs", ray_kwargs={"ray_init": {"runtime_env": {"env_vars": {"A": "1"}, "pip": None}}})
        )
    context = types.SimpleNamespace(get_actor_id=lambda: "the task runner's")
    ray = types.SimpleNamespace(is_initialized=lambda: True, get_runtime_context=lambda: context)
    monkeypatch.setitem(sys.modules, "ray", ray)
    with pytest.raises(ConfigError):
        check_reward(elsewhere)


def test_a_reward_that_is_not_ours_is_left_alone():
    assert check_reward(config("compute_score", path="/mine/reward.py", options={"x": 1})) == "any"
    assert check_reward(OmegaConf.create({})) == "any"


def write(path: Path, labels: list[object], column: str = "reward_model", field: str = "ground_truth") -> str:
    pq.write_table(
        pa.table({column: [{field: label} for label in labels], "prompt": ["p"] * len(labels)}), path
    )
    return str(path)


RIGHT, WRONG = ["True", "False", "True", "1"], ["good", "bad", "good", "True"]


def check(kind: LabelKind = "verdict", **settings: object) -> None:
    trainer = {
        name: settings.pop(name) for name in ("val_only", "val_before_train", "test_freq") if name in settings
    }
    ray = settings.pop("ray_init", {})
    rollout = {"agent": {"agent_loop_config_path": settings.pop("agent", None)}}
    check_labels(
        config(
            data=settings,
            trainer=trainer,
            ray_kwargs={"ray_init": ray},
            actor_rollout_ref={"rollout": rollout},
        ),
        kind,
    )


@pytest.mark.parametrize("setting", ["train_files", "val_files"])
def test_labels_that_the_reward_cannot_read_are_refused_with_file_row_and_value(tmp_path, setting):
    files = [
        write(tmp_path / "a.parquet", ["True"]),
        write(tmp_path / "b.parquet", ["True", "x" * 900, *WRONG]),
    ]
    with pytest.raises(DataError) as caught:
        check(**{setting: files})
    text = str(caught.value)
    assert text.startswith(
        f"data.{setting}: the reward cannot read the labels of 4 of 7 rows. The first: row 2 of "
    )
    assert "b.parquet: the label is 'xxx" in text
    assert "True or False (or 1 or 0). Correct the label" in text
    assert len(text) < 500 + len(files[1])


def test_labels_are_read_as_the_reward_reads_them(tmp_path):
    numbers = write(tmp_path / "n.parquet", [0.5, 0.25, 2.0])
    check("number", train_files=numbers)
    check("text", train_files=numbers)
    check("any", train_files=write(tmp_path / "none.parquet", [None]))
    with pytest.raises(DataError, match=r"2 of 3 rows\. The first: row 1 of .* the label is 0.5"):
        check("verdict", train_files=write(tmp_path / "m.parquet", [0.5, 0.25, 1.0]))


@pytest.mark.parametrize(
    ("column", "field", "text"),
    [
        (
            "label",
            "ground_truth",
            r"there is no column reward_model; the file has \['label', 'prompt'\]\. verl",
        ),
        ("reward_model", "label", r"reward_model has no ground_truth; it has \['label'\]\. verl"),
    ],
)
def test_a_file_without_labels_is_refused_for_each_reward(tmp_path, column, field, text):
    with pytest.raises(DataError, match=rf"4 of 4 rows\. The first: row 1 of .*{text}"):
        check("any", train_files=write(tmp_path / "a.parquet", RIGHT, column, field))


def test_a_few_wrong_labels_are_a_warning_since_the_run_would_go_on(tmp_path, caplog):
    check(train_files=[write(tmp_path / "a.parquet", RIGHT), write(tmp_path / "b.parquet", WRONG)])
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "of 3 of 8 rows. The first: row 1 of" in record.getMessage()


def test_only_rows_that_a_step_reads_count(tmp_path):
    wrong, mixed = write(tmp_path / "w.parquet", WRONG), write(tmp_path / "m.parquet", [*RIGHT, *WRONG * 3])
    check(val_files=wrong, val_before_train=False, test_freq=-1)
    check(train_files=wrong, val_only=True)
    check(train_files=mixed, train_max_samples=5, shuffle=False)
    for shuffled in ({"train_max_samples": 5, "shuffle": True}, {"train_max_samples": -1, "shuffle": False}):
        with pytest.raises(DataError):
            check(train_files=mixed, **shuffled)
    with pytest.raises(DataError):
        check(val_files=wrong, val_before_train=False, test_freq=1)


def test_files_are_found_as_verl_finds_them(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path / "w.parquet", WRONG)
    for name in ("~/w.parquet", f"{tmp_path}/*.parquet"):
        with pytest.raises(DataError):
            check(train_files=name)


def test_what_cannot_be_read_here_is_left_to_verl(tmp_path, monkeypatch):
    wrong, broken = write(tmp_path / "w.parquet", WRONG), tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1")
    labels = pa.ExtensionArray.from_storage(pa.json_(), pa.array(['"True"']))  # `datasets` gives verl True
    pq.write_table(
        pa.table({"reward_model": pa.StructArray.from_arrays([labels], ["ground_truth"])}),
        tmp_path / "json.parquet",
    )
    (tmp_path / "a.jsonl").write_text("{}")
    texts = pa.table({"reward_model": ["{}", "{}"]})
    pq.write_table(texts, tmp_path / "texts.parquet")
    for name in (
        "s3://bucket/a.parquet",
        "/no/a.parquet",
        f"{tmp_path}/a.jsonl",
        broken,
        tmp_path / "texts.parquet",
        tmp_path / "json.parquet",
    ):
        check(train_files=str(name))
    check(train_files=[wrong, "hdfs://a.parquet"])
    check(train_files=3)
    unset = "${oc.env:PV_RL_TEST_ONLY_THE_WORKER_HAS_IT}"
    check(train_files=f"{unset}/a.parquet")
    check(train_files=[wrong, f"{unset}/a.parquet"])
    check(train_files=wrong, ray_init={"address": unset})
    check(train_files=wrong, custom_cls={"path": "mine.py"})
    check(train_files=wrong, agent="mine.yaml")
    check(train_files=wrong, ray_init={"address": "ray://head:10001"})
    check(train_files=wrong, ray_init={"runtime_env": {"working_dir": "."}})
    monkeypatch.setenv("RAY_ADDRESS", "ray://head:10001")
    check(train_files=wrong)


def test_labels_that_were_not_read_are_taken_for_right(tmp_path, monkeypatch, caplog):
    pq.write_table(pa.table({"reward_model": ["{}"] * 3}), tmp_path / "texts.parquet")  # verl may decode them
    check(train_files=[write(tmp_path / "w.parquet", WRONG), str(tmp_path / "texts.parquet")])
    times = iter([0.0] * 4)
    monkeypatch.setattr(reward, "time", types.SimpleNamespace(monotonic=lambda: next(times, 9.0)))
    check(train_files=write(tmp_path / "sorted.parquet", [*WRONG, *RIGHT]))
    said = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert ["of 3 of 7 rows. The first" in said[0], "of 3 of 8 rows. The first" in said[1]] == [True, True]


def test_reading_stops_when_its_time_is_over(tmp_path, monkeypatch):
    wrong = write(tmp_path / "w.parquet", WRONG)
    monkeypatch.setattr(reward, "BUDGET_S", -1.0)
    check(train_files=wrong)
