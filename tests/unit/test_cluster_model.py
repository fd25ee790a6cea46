"""The discrete-event model of the benchmarks on cases that are worked by hand: every time is in seconds."""

from __future__ import annotations

import pytest

pytest.importorskip("simpy", reason="simpy is not installed; it is the model's alone: pip install simpy")
from cluster.judge import JudgePolicy
from cluster.trainer import Cluster, simulate


def cluster(mode, *groups, train_s=10.0, **options):
    """One prompt a step; its groups decode so long, the last of them again and again."""
    return Cluster(
        mode=mode,
        prompts=1,
        group=lambda number: list(groups[min(number, len(groups) - 1)]),
        train_s=train_s,
        poll_s=1.0,
        **options,
    )


def judge(seconds, **options):
    return JudgePolicy(latency=lambda rng: seconds, **{"concurrency": 1, **options})


def steps(of, policy=None, count=3):
    return simulate(of, policy, count, warm_up=0).step_s


def test_two_rollouts_wait_for_one_place_at_the_judge():
    # There at 2.5 and 4.5; judged 2.5 to 6.5 and from then to 10.5, which the trainer sees at 11.
    assert steps(cluster("sync", [2.5, 4.5]), judge(4)) == [21, 21, 21]


def test_with_two_places_the_last_rollout_waits_for_its_own_answer_alone():
    assert steps(cluster("sync", [2.5, 4.5]), judge(4, concurrency=2)) == [19, 19, 19]


def test_without_a_judge_a_step_is_the_longest_rollout_and_the_training():
    assert steps(cluster("sync", [2.5, 4.5])) == [15, 15, 15]


def test_the_trainer_looks_once_a_second():
    assert steps(cluster("sync", [0.5, 4.2])) == [15, 15, 15]


def test_an_asynchronous_trainer_hides_a_judge_that_is_done_before_the_update():
    # Groups 0 and 1 are there at 8.5; from then on the next is judged while one is trained on.
    assert steps(cluster("separate_async", [4.5]), judge(4, concurrency=2)) == [19, 10, 10]


def test_an_asynchronous_trainer_waits_for_a_judge_that_is_slower_than_the_update():
    # Begun at 0, 0, 45, 55 and there 34.5 later: trained on from 35, 45, 80, 90.
    assert steps(cluster("separate_async", [4.5]), judge(30, concurrency=2), 4) == [45, 10, 35, 10]


def test_a_larger_window_hides_it_again():
    window = cluster("separate_async", [4.5], warmup_batches=4)
    assert steps(window, judge(30, concurrency=9)) == [45, 10, 10]


def test_colocated_rollouts_pause_while_the_trainer_trains():
    # Group 1 has decoded 2 of 7.5 when group 0 is trained on, 2 to 12; group 2 (3.5) passes it and is trained on, 16 to
    # 26. Then it has 1.5 left.
    assert steps(cluster("colocate_async", [1.5], [7.5], [3.5], [20])) == [12, 14, 12]


def test_separate_rollouts_go_on_meanwhile():
    assert steps(cluster("separate_async", [1.5], [7.5], [3.5], [20])) == [12, 10, 10]


def test_one_step_off_begins_a_batch_when_it_takes_the_one_before():
    # Batch 1 is generated from 2, when batch 0 is taken, to 9.5 or 19.5; a shorter one would not overtake it.
    assert steps(cluster("one_step_off", [1.5], [7.5], [3.5])) == [12, 10, 10]
    assert steps(cluster("one_step_off", [1.5], [17.5], [3.5])) == [12, 18, 10]


def test_a_batch_that_is_judged_as_a_whole_is_judged_before_it_is_trained_on():
    # Two questions, one at a time: 5 to 13, then the update. The next batch is there at 9.5.
    assert steps(cluster("one_step_off", [2.5, 4.5]), judge(4, batched=True)) == [23, 18, 18]


def test_weights_are_brought_over_while_rollouts_pause():
    # Group 1 decodes 0 to 12 and, after the pause, 15 to 16.5; without the pause it were there at 13.5.
    assert steps(cluster("separate_async", [1.5], [13.5], sync_s=3.0), count=2) == [15, 15]


def test_a_request_that_fails_is_sent_again_until_no_attempt_is_left():
    result = simulate(
        cluster("sync", [0.5]), judge(4, failure_rate=1.0, attempts=3, backoff_s=0.0), 1, warm_up=0
    )
    assert result.step_s == [1 + 3 * 4 + 10]
    assert result.failed == 1.0


def test_a_request_ends_at_its_timeout_and_a_row_at_its_deadline():
    late = simulate(cluster("sync", [0.5]), judge(100, timeout_s=5.0), 1, warm_up=0)
    assert (late.step_s, late.failed) == ([16], 1.0)
    # The first is judged 0.5 to 6.5, the second from then to 10.5, ten seconds after it came.
    queued = simulate(cluster("sync", [0.5, 0.5]), judge(6, deadline_s=10.0, attempts=3), 1, warm_up=0)
    assert (queued.step_s, queued.failed) == ([21], 0.5)


def test_requests_of_a_minute_are_counted():
    # Two at 0.5, the third at 60.5.
    limited = judge(4, concurrency=3, per_minute=2)
    assert steps(cluster("sync", [0.5, 0.5, 0.5]), limited, 1) == [75]


def test_workers_share_nothing():
    # Eight rows in two workers of one place each: whoever has more takes longer than four turns.
    step = steps(cluster("sync", [0.5] * 8), judge(4, workers=2), 1)[0]
    shared = steps(cluster("sync", [0.5] * 8), judge(4, concurrency=2), 1)[0]
    assert shared == 1 + 4 * 4 + 10
    assert shared <= step < 1 + 8 * 4 + 10
    assert step % 4 == shared % 4
