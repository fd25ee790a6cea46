"""`examples/loss_plugin` and `examples/reward_plugin`, installed as strangers' packages are."""

from __future__ import annotations

import ast
import asyncio
import json
import shutil
from pathlib import Path
from statistics import mean

import pytest
from fork_server import run_fresh
from places import ROOT
from wheels import install_into

pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")

from trainer import check_step_metrics, check_weights, read_metrics, train

from pv_rl import plugins
from pv_rl.errors import ConfigError
from pv_rl.losses import mode, response_weights
from pv_rl.rewards import build_reward, named

EXAMPLES = ROOT / "examples"
CACHES = (mode._resolve, named.scorer, named._built)


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A folder for PYTHONPATH that holds the packages and their metadata, as site-packages would."""
    folder, sources = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("source")
    for name in ("loss_plugin", "reward_plugin", "judge_plugin"):
        shutil.copytree(EXAMPLES / name, sources / name)  # a build leaves its files beside the sources
    install_into(folder, *sources.iterdir())
    return folder


def forget():
    plugins.forget_plugins(reload=True)
    for cached in CACHES:
        cached.cache_clear()


@pytest.fixture
def in_this_process(installed, monkeypatch):
    monkeypatch.syspath_prepend(installed)
    forget()
    yield
    monkeypatch.undo()
    forget()


def test_the_example_gives_the_weights_that_it_says(in_this_process):
    assert response_weights("power:0.5", [1, 4], "aa").tolist() == pytest.approx([1 / 3, 1 / 6])
    lengths, groups = [1, 2, 5, 9], "aaab"
    for ours, same in (("power:0", "grpo"), ("power:1", "dapo"), ("power:1@batch", "dapo@batch")):
        expected = response_weights(same, lengths, groups).tolist()
        assert response_weights(ours, lengths, groups).tolist() == pytest.approx(expected)


def test_the_guide_shows_the_module():
    guide = (ROOT / "docs/guides/loss_mode.md").read_text()
    shown = ast.parse(guide.split("```python\n")[1].split("```")[0])
    module = ast.parse((EXAMPLES / "loss_plugin" / "pv_rl_loss_plugin_example.py").read_text())
    for node in (module, module.body[5]):  # the page leaves out the docstrings
        assert isinstance(node.body.pop(0).value, ast.Constant)
    assert ast.unparse(shown) == ast.unparse(module)


def test_the_example_gives_the_reward_that_it_says(in_this_process):
    def score(count: int, **options) -> float:
        row = asyncio.run(named.brevity("", "word " * count, True, **options))
        assert row["words"] == count
        return row["score"]

    assert [score(50, words=100), score(400, words=100), score(400)] == [1.0, 0.25, 0.5]
    with pytest.raises(ConfigError, match="above 0"):
        build_reward("brevity", {"words": 0})


@pytest.mark.parametrize(
    ("response", "truth", "reward"),
    [
        ("Half of 144 is 72.", "72", 1.0),
        ("Half of 144 is 71.", "72", 0.0),
        ("990 + 10 = $1000", "1,000", 1.0),
        ("1,000", "1000.00", 1.0),
        ("that leaves 0.75", "3/4", 1.0),
        ("x = -5", "-5", 1.0),
        ("5 - 4 = 1", "1", 1.0),
        ("I do not know.", "0", 0.0),
        ("1/0", "0", 0.0),
        ("True", "1", 0.0),
        ("7" * 100_000, "7", 0.0),
    ],
)
def test_the_example_compares_numbers_and_no_ground_truth_is_taken_for_a_verdict(
    in_this_process, response, truth, reward
):
    alone = asyncio.run(named.final_number("", response, truth))
    options = {"rewards": {"final_number": 2.0, "brevity": 1.0}, "options": {"brevity": {"words": 9}}}
    both = asyncio.run(named.weighted("", response, truth, **options))
    assert (alone["score"], alone["acc"], alone["reward_error"]) == (reward, reward, 0)
    assert alone["number_missing"] == float(response in ("I do not know.", "1/0", "True", "7" * 100_000))
    assert (both["score"], both["reward_error"]) == (2 * reward + 1, 0)


def test_a_ground_truth_without_a_number_is_counted_and_gets_no_reward(in_this_process, caplog):
    row = asyncio.run(named.final_number("", "72", "seventy-two"))
    assert (row["reward_valid"], row["reward_error"]) == (0, 1)
    assert "pv-rl-reward-plugin-example" in caplog.text
    assert "the ground truth 'seventy-two' has no number in it" in caplog.text


def test_the_example_of_a_judge_vetoes_what_it_finds_and_a_wrong_answer_is_a_failure(in_this_process):
    pytest.importorskip("pv_judge", reason="pv-judge is not installed: pip install ./plugins/pv-judge")
    from judge_server import Fault, JudgeServer, Script

    answers = {
        '{"invented": [], "confidence": 1}': (1.0, 0.0, 0.0),
        '{"invented": ["the lemma of Nobody"], "confidence": 0.9}': (0.0, 1.0, 0.0),
        '{"invented": ["the lemma of Nobody"], "confidence": 0.4}': (1.0, 0.0, 0.0),
        '{"fluent": true, "anomalies": [], "confidence": 1}': (0.0, 0.0, 1.0),
    }
    for answer, expected in answers.items():
        with JudgeServer(Script(faults=[Fault(kind="content", text=answer)])) as server:
            judge = {"endpoints": [{"url": server.url, "model": "m"}], "retries": {"attempts": 1}}
            row = asyncio.run(
                named.verdict_citations("", "It divides by 0.\n### False", "False", judge=judge)
            )
            (chat,) = server.chats()
        assert "citations" in chat["body"]["messages"][0]["content"]
        assert (row["score"], row["vetoed_by_judge"], row["judge_failed"]) == expected


def test_verl_knows_the_mode_where_the_package_is_installed_and_nowhere_else(installed):
    code = (
        "from verl.workers.config import ActorConfig\n"
        "ActorConfig(loss_agg_mode='power:0.3', strategy='fsdp2', rollout_n=2, ppo_micro_batch_size_per_gpu=1)\n"
    )

    assert run_fresh(code, path=installed).returncode == 0
    assert "loss_agg_mode 'power:0.3' names no mode that pv-rl knows." in run_fresh(code).stderr


@pytest.mark.slow
def test_the_examples_train_in_driver_and_workers_of_verls_legacy_trainer(
    tmp_path, installed, in_this_process
):
    pytest.importorskip("pv_cpu", reason="pv-cpu is not installed: pip install ./plugins/pv-cpu")
    kwargs = "reward.custom_reward_function.reward_kwargs"
    train(
        tmp_path,
        "actor_rollout_ref.actor.loss_agg_mode=power",
        "trainer.use_v1=False",
        "reward.custom_reward_function.name=weighted",
        f"+{kwargs}.rewards={{verdict:1.0,brevity:0.5}}",
        f"+{kwargs}.options.brevity.words=10",
        PYTHONPATH=str(installed),
    )
    check_weights(tmp_path, "power:0.5")
    check_step_metrics(tmp_path, "power:0.5")
    for step in (1, 2):
        rows = [
            json.loads(line) for line in (tmp_path / "rollouts" / f"{step}.jsonl").read_text().splitlines()
        ]
        for row in rows:
            words = len(row["output"].split())
            right = row["output"].split()[-1] == row["gts"]
            assert row["score"] == pytest.approx(right + 0.5 * min(1, 10 / words))
        metrics = read_metrics(tmp_path)[step]
        assert metrics["pv_rl/reward/score"] == pytest.approx(mean(row["score"] for row in rows))
        assert metrics["pv_rl/reward/brevity_score"] == pytest.approx(
            mean(row["brevity_score"] for row in rows)
        )
