"""Runs of verl's trainer with a judge on loopback that fails, and what they have to have trained on."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pytest
from judge_server import JudgeServer
from trainer import PROMPTS, RESPONSES, main_ppo, read_metrics

from pv_judge.ledger import read_ledger
from pv_rl.losses import response_weights

KEY_ENV, KEY = "PV_RL_TEST_JUDGE_KEY", "sk-planted-4711"
JUDGE = "reward.custom_reward_function.reward_kwargs"
QUICK = {  # of a judge that is given up on within seconds
    "timeouts": {"connect_s": 2, "first_byte_s": 2, "total_s": 3},
    "deadline_s": 15,
    "retries": {"attempts": 4, "backoff_s": 0.1, "max_backoff_s": 0.5},
    "breaker": {"failures": 20, "probe_after_s": 0.5},
    "max_answer_bytes": 100_000,
    "prices": {"judge": {"input": 1.0, "output": 2.0}},
}


def judged_run(
    folder: Path, server: JudgeServer, *overrides: str, judge: Mapping[str, Any] | None = None, **options: Any
):
    """`main_ppo` under `verdict_fluency`, asking `server`; rows that the update is given are recorded."""
    settings = {
        **QUICK,
        "endpoints": [{"url": server.url, "model": "judge", "api_key_env": KEY_ENV}],
        "cache": f"{folder}/cache.sqlite",
        **(judge or {}),
    }
    return main_ppo(
        folder,
        "reward=verdict_fluency",
        f"+{JUDGE}.judge={_hydra(settings)}",
        f"{JUDGE}.ledger={folder}/ledger",
        f"trainer.default_local_dir={folder}/checkpoints",
        "trainer.test_freq=-1",
        *overrides,
        record=True,
        **{KEY_ENV: KEY, **options},
    )


def _hydra(value: Any) -> str:
    """A value in the grammar of Hydra's command line."""
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{name}:{_hydra(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_hydra, value)) + "]"
    return f"'{value}'" if isinstance(value, str) else str(value).lower()


def check_trained_on(
    folder: Path, policy: str, steps: int, spec: str = "balanced:0.6"
) -> list[dict[str, Any]]:
    """Each row of each update has the reward, the advantage and the weight that the policy says; none is missing.

    Returns:
        The ledger's rows that were trained on.
    """
    ledger: dict[tuple[str, int], dict[str, Any]] = {}
    for row in read_ledger(folder / "ledger").to_pylist():
        # A reward worker that died may have left an earlier row of the same sample behind.
        ledger[row["uid"], row["session"]] = row
    updates = [json.loads(line) for line in (folder / "record.jsonl").read_text().splitlines()]
    metrics = read_metrics(folder)
    skipped = {step for step in range(1, steps + 1) if "pv_rl/update_skipped" in metrics[step]}
    assert all(metrics[step]["pv_rl/reward/abstained"] == 1.0 for step in skipped)
    updated = [step for step in range(1, steps + 1) if step not in skipped]
    trained = []
    for step, update in zip(updated, updates, strict=True):
        assert len(update["keys"]) == PROMPTS * RESPONSES
        rows = []
        for key, length, advantage in zip(
            update["keys"], update["lengths"], update["advantages"], strict=True
        ):
            uid, session, _ = key.rsplit("_", 2)
            rows.append({**ledger[uid, int(session)], "length": length, "advantage": advantage})
        failed = {row["uid"] for row in rows if row["decision"] == "failed"}
        for row in rows:
            _check_reward(row, policy)
            gone = not row["valid"] or (policy == "drop_group" and row["uid"] in failed)
            assert row["length"] == (0 if gone else len(row["trace"].split()) + 1)
        _check_advantages(rows)
        _check_numbers(metrics[step], rows, spec)
        trained += rows
    return trained


def _check_reward(row: Mapping[str, Any], policy: str) -> None:
    right = row["verdict"] is row["label"]
    if row["decision"] == "fluent":
        assert (row["score"], row["valid"]) == (float(right), True)
    elif row["decision"] == "vetoed":
        assert (row["score"], row["valid"]) == (0.0, True)
        assert row["rules"] or row["judge_fluent"] is False
    else:
        assert row["decision"] == "failed"
        assert row["failure"]
        by_policy = {"fail_open": (float(right), True), "fail_closed": (0.0, True)}
        assert (row["score"], row["valid"]) == by_policy.get(policy, (0.0, False))


def _check_advantages(rows: list[dict[str, Any]]) -> None:
    """GRPO's, over the rows of a group that are left."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["length"]:
            groups[row["uid"]].append(row)
        else:
            assert row["advantage"] == 0.0
    for group in groups.values():
        scores = [row["score"] for row in group]
        baseline, spread = (mean(scores), stdev(scores)) if len(group) > 1 else (0.0, 1.0)
        for row in group:
            expected = (row["score"] - baseline) / (spread + 1e-6)
            assert row["advantage"] == pytest.approx(expected, rel=1e-4, abs=1e-6)


def _check_numbers(metrics: Mapping[str, float], rows: list[dict[str, Any]], spec: str) -> None:
    absent = [row["length"] == 0 for row in rows]
    assert metrics["pv_rl/reward/abstained"] == mean(absent)
    assert metrics["pv_rl/reward/judge_failed"] == mean(row["decision"] == "failed" for row in rows)
    assert metrics["pv_rl/reward/vetoed"] == mean(row["decision"] == "vetoed" for row in rows)
    assert not all(absent)
    scores = [row["score"] for row, gone in zip(rows, absent, strict=True) if not gone]
    assert metrics["pv_rl/reward/score"] == pytest.approx(mean(scores))
    weights = response_weights(spec, [row["length"] for row in rows], [row["uid"] for row in rows])
    assert metrics["actor/pv_rl/update_mass"] == pytest.approx(1.0, rel=1e-5)
    assert metrics["actor/pv_rl/token_weight_max"] == pytest.approx(weights.max().item(), rel=1e-5)
    assert math.isfinite(metrics["actor/grad_norm"])


def check_no_key(folder: Path) -> None:
    """The judge's key is in nothing that a run leaves behind."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any(path.suffix == ".parquet" for path in files)
    for path in files:
        assert KEY.encode() not in path.read_bytes(), path
