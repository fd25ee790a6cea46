"""verl's trainer on a CPU with a judge that fails in every way: what was trained on is what the policy says.

The judge is a real HTTP server (tests/support/judge_server). `make test` runs one of these, `make test-paths` the
others.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from pathlib import Path
from statistics import mean

import psutil
import pytest
from judge_server import Fault, JudgeServer, Latency, Script
from judged import KEY, check_no_key, check_trained_on, judged_run
from trainer import read_metrics

from pv_judge.ledger import read_ledger

pytestmark = pytest.mark.slow
pytest.importorskip("pv_cpu", reason="pv-cpu is not installed: pip install ./plugins/pv-cpu")

ANOMALOUS = (
    "bad so"  # the lab verifier's words where it rejects: the judge of these tests calls them degenerate
)
KINDS = (
    *(
        "status",
        "reset",
        "reset_at_once",
        "hang",
        "drip",
        "not_http",
        "invalid_json",
        "wrong_schema",
        "empty_choices",
    ),
    *("no_content", "content", "refusal", "truncated", "huge"),
)
STORM = [Fault(kind="status", status=429, retry_after=0.3, requests=range(20, 26), text="slow down")]
EVERY = [Fault(kind=kind, requests=[number], text="hm") for number, kind in enumerate(KINDS, start=1)] + STORM
# Each tenth answer: a code fence that never closes, on which a pattern that backtracks spends hours.
POISON = [Fault(kind="content", requests=range(30, 10_000, 10), text="```" + "\n" * 20_000 + "x")]
SOME = [
    Fault(kind=kind, probability=0.06, text="hm")
    for kind in ("status", "reset", "content", "refusal", "hang")
]


def kill_a_reward_worker(folder: Path, server: JudgeServer, killed: list[int]) -> None:
    """With -9, while it waits for answers."""
    while len(server.chats()) < 30:
        time.sleep(0.05)
    for process in psutil.process_iter():
        try:
            ours = process.environ().get("PV_RL_TEST_RECORD") == f"{folder}/record.jsonl"
            if ours and process.name().startswith("ray::RewardLoop"):
                process.kill()
                killed.append(process.pid)
                return
        except psutil.Error:
            pass


def test_no_reward_is_invented_and_no_row_lost_where_the_judge_fails_in_every_way_and_a_worker_is_killed(
    tmp_path,
):
    killed: list[int] = []
    script = Script(
        faults=EVERY + POISON + SOME, latency=Latency(median_s=0.2, sigma=0.3), key=KEY, marker=ANOMALOUS
    )
    log = tmp_path / "log"
    with JudgeServer(script) as server:
        killer = threading.Thread(target=kill_a_reward_worker, args=(tmp_path, server, killed), daemon=True)
        killer.start()
        workers = "reward.num_workers=2"
        done = judged_run(tmp_path, server, workers, "trainer.total_training_steps=4")
        log.write_text(done.stdout + done.stderr)
        chats = server.chats()
    assert done.returncode == 0, log.read_text()[-4000:]
    assert killed

    rows = check_trained_on(tmp_path, "abstain", steps=4)
    decisions = Counter(row["decision"] for row in rows)
    assert decisions["failed"] > 0
    assert decisions["vetoed"] > 0
    assert decisions["fluent"] > decisions["failed"]
    assert {"refusal", "truncated"} <= {row["failure"] for row in rows}
    poisoned = [chat for chat in chats if chat["number"] >= 30 and chat["number"] % 10 == 0]
    assert {chat["fault"] for chat in poisoned} == {"content"}
    met = {chat["fault"] for chat in chats}
    assert set(KINDS) <= met

    answered = Counter(str(chat["body"]["messages"]) for chat in chats if chat["fault"] is None)
    assert set(answered.values()) == {1}  # an answer that came is never asked for again, worker killed or not
    metrics = read_metrics(tmp_path)
    requests = sum(metrics[step]["pv_rl/judge/requests/sum"] for step in range(1, 5))
    assert 0 < requests <= len(chats)
    assert metrics[4]["pv_rl/judge/usd_run/max"] > 0
    assert all(chat["key"] for chat in chats)
    check_no_key(tmp_path)


@pytest.mark.paths
def test_halt_ends_the_run_with_a_checkpoint_after_a_step_that_trained_on_nothing(tmp_path):
    with JudgeServer(Script(faults=[Fault(kind="status", status=503)])) as server:
        halt = "{failure_rate:0.5,window:8}"
        options = "reward.custom_reward_function.reward_kwargs"
        done = judged_run(
            tmp_path,
            server,
            f"{options}.on_failure=halt",
            f"+{options}.halt={halt}",
            "trainer.total_training_steps=9",
        )
    output = done.stdout + done.stderr
    assert done.returncode != 0
    assert "of the last 8 judged rows got no answer, and the policy is halt at 50%" in output
    assert "A checkpoint of step 1 was written" in output
    assert (tmp_path / "checkpoints" / "latest_checkpointed_iteration.txt").read_text() == "1"
    assert set(read_metrics(tmp_path)) == {1}
    rows = check_trained_on(tmp_path, "halt", steps=1)
    assert {row["decision"] for row in rows} <= {"failed", "vetoed"}


@pytest.mark.paths
@pytest.mark.parametrize("policy", ["drop_group", "fail_open", "fail_closed"])
def test_a_policy_decides_what_a_row_without_an_answer_gets(tmp_path, policy):
    probability = 0.1 if policy == "drop_group" else 0.25  # of 16 rows, so that some groups are left
    faults = [Fault(kind="refusal", probability=probability)]
    with JudgeServer(Script(faults=faults, marker=ANOMALOUS)) as server:
        on_failure = f"reward.custom_reward_function.reward_kwargs.on_failure={policy}"
        done = judged_run(tmp_path, server, on_failure, "trainer.total_training_steps=2")
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    rows = check_trained_on(tmp_path, policy, steps=2)
    assert {"failed", "fluent"} <= {row["decision"] for row in rows}


@pytest.mark.paths
@pytest.mark.parametrize("mode", ["sync", "colocate_async"])
def test_a_step_in_which_no_row_counts_updates_nothing_and_the_run_goes_on(tmp_path, mode):
    """A refusal in each group drops it; verl's rollout correction would stop at a step without a token."""
    with JudgeServer(Script(faults=[Fault(kind="refusal")])) as server:
        on_failure = "reward.custom_reward_function.reward_kwargs.on_failure=drop_group"
        options = ("trainer.total_training_steps=2", f"trainer.v1.trainer_mode={mode}")
        done = judged_run(tmp_path, server, on_failure, *options)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    metrics = read_metrics(tmp_path)
    assert [metrics[step]["pv_rl/update_skipped"] for step in (1, 2)] == [1.0, 1.0]
    assert [metrics[step]["pv_rl/reward/abstained"] for step in (1, 2)] == [1.0, 1.0]


APART = (  # rollout in a process of its own, which gets the weights through a file
    "actor_rollout_ref.rollout.checkpoint_engine.backend=pv_cpu_file",
    "actor_rollout_ref.rollout.nnodes=1",
    "actor_rollout_ref.rollout.n_gpus_per_node=1",
)
MODES = {
    "colocate_async": ("trainer.v1.trainer_mode=colocate_async",),
    "separate_async": (
        *APART,
        "trainer.v1.trainer_mode=separate_async",
        "trainer.v1.separate_async.parameter_sync_step=1",
    ),
}


@pytest.mark.paths
@pytest.mark.parametrize("mode", MODES)
def test_an_asynchronous_trainer_keeps_to_the_policy_too(tmp_path, mode):
    with JudgeServer(
        Script(faults=SOME, latency=Latency(median_s=0.5, sigma=0.5), marker=ANOMALOUS)
    ) as server:
        done = judged_run(tmp_path, server, *MODES[mode], "trainer.total_training_steps=3")
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    rows = check_trained_on(tmp_path, "abstain", steps=3)
    assert {"failed", "fluent"} <= {row["decision"] for row in rows}


@pytest.mark.paths
def test_an_outage_of_a_minute_is_waited_out_by_those_who_may_and_the_run_recovers(tmp_path):
    with JudgeServer(Script(outages=[(0.2, 60.2)], latency=Latency(median_s=0.3))) as server:
        judge = {"deadline_s": 20, "retries": {"attempts": 1000, "backoff_s": 0.5, "max_backoff_s": 2}}
        done = judged_run(tmp_path, server, "trainer.total_training_steps=6", judge=judge)
        chats = server.chats()
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    rows = check_trained_on(tmp_path, "abstain", steps=6)
    by_step = [{row["decision"] for row in rows if row["step"] == step} for step in range(1, 7)]
    assert "failed" in by_step[0]
    assert "failed" not in by_step[5]
    assert len(chats) < 150  # the breaker kept most of what waited from knocking


LEGACY = {
    "legacy": ("trainer.use_v1=False",),
    "one_step_off": (
        APART[0],
        "+rollout.nnodes=1",
        "+rollout.n_gpus_per_node=1",
        "actor_rollout_ref.hybrid_engine=False",
        "actor_rollout_ref.rollout.calculate_log_probs=True",
        "trainer.rollout_data_dir=null",  # verl 0.9.1 cannot dump here: the trainer has no _dump_executor
    ),
}


@pytest.mark.paths
@pytest.mark.parametrize("trainer", LEGACY)
def test_the_legacy_trainers_keep_to_the_policy_too(tmp_path, trainer):
    """Their rows carry no keys, so that rows are counted: as many abstain as have no answer, and no other."""
    module = (
        "verl.experimental.one_step_off_policy.main_ppo"
        if trainer == "one_step_off"
        else "verl.trainer.main_ppo"
    )
    with JudgeServer(Script(faults=[Fault(kind="refusal", probability=0.25)], marker=ANOMALOUS)) as server:
        steps = "trainer.total_training_steps=2"
        done = judged_run(tmp_path, server, *LEGACY[trainer], steps, module=module)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    updates = [json.loads(line) for line in (tmp_path / "record.jsonl").read_text().splitlines()]
    metrics = read_metrics(tmp_path)
    for step, update in enumerate(updates, start=1):
        absent = mean(length == 0 for length in update["lengths"])
        assert absent == metrics[step]["pv_rl/reward/abstained"] == metrics[step]["pv_rl/reward/judge_failed"]
    assert sum(one["pv_rl/judge/requests/sum"] for one in metrics.values()) > 0
    rows = read_ledger(tmp_path / "ledger").to_pylist()
    failed = sum(row["decision"] == "failed" for row in rows)
    trained = sum(length == 0 for update in updates for length in update["lengths"])
    assert 0 < trained <= failed  # one step is ahead when the run ends
