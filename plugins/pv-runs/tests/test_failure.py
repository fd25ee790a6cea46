"""The root cause of a run that failed, in logs as verl and Ray write them."""

from __future__ import annotations

import signal

import pytest

from pv_runs.train.failure import describe_failure

RAISED = """\
Traceback (most recent call last):
  File "/v/verl/trainer/main_ppo.py", line 40, in main
    run_ppo(config)
ray.exceptions.RayTaskError(ValueError): \x1b[36mray::TaskRunnerV1.run()\x1b[39m (pid=9, ip=10.0.0.1)
  File "/v/verl/trainer/main_ppo.py", line 99, in run
    trainer.fit()
ValueError: no such mode
"""
OUT_OF_MEMORY = """\
ray.exceptions.RayTaskError(OutOfMemoryError): \x1b[36mray::WorkerDict.update_actor()\x1b[39m (pid=9, ip=10.0.0.1)
  File "/v/verl/workers/engine_workers.py", line 40, in update_actor
    loss.backward()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.1 GiB
"""
LATER = """\
Traceback (most recent call last):
  File "/v/verl/trainer/main_ppo.py", line 40, in main
ray.exceptions.RayTaskError(RuntimeError): \x1b[36mray::TaskRunnerV1.run()\x1b[39m (pid=9, ip=10.0.0.1)
RuntimeError: Sync replay buffer selected terminal groups with no materializable trajectories.
"""
NODE = (
    "\x1b[36m(RewardLoopWorker pid=7, ip=10.0.0.2)\x1b[0m Traceback (most recent call last):\n"
    '\x1b[36m(RewardLoopWorker pid=7, ip=10.0.0.2)\x1b[0m   File "/v/verl/x.py", line 4, in score\n'
    "\x1b[36m(RewardLoopWorker pid=7, ip=10.0.0.2)\x1b[0m ModuleNotFoundError: No module named 'pv_rl' "
    "[repeated 12x across cluster] (Ray deduplicates logs by default.)\n"
)
DIED = "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n"
CHAIN = """\
Traceback (most recent call last):
  File "a.py", line 1, in <module>
FileNotFoundError: [Errno 2] No such file or directory: '/data/x'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "b.py", line 2, in <module>
datasets.exceptions.DatasetGenerationError: An error occurred while generating the dataset
"""
HALTED = """\
Traceback (most recent call last):
  File "a.py", line 1, in <module>
pv_rl.errors.RunHalted: the judge failed for 12 rows
"""
SHUTDOWN = """\
Exception ignored in: <function A.__del__ at 0x7>
Traceback (most recent call last):
  File "a.py", line 1, in __del__
TypeError: 'NoneType' object is not callable
"""
KILLED = "(raylet) [2026-11-29] Task was killed due to the node running low on memory.\n"
NOISE = (
    "INFO all is well\nUserWarning: torchtitan is not available: ModuleNotFoundError('torchtitan')\n" * 2000
)


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        (NOISE + RAISED, "ValueError: no such mode"),
        (OUT_OF_MEMORY + LATER, "torch.OutOfMemoryError: CUDA out of memory."),
        (NODE + NOISE + LATER, "ModuleNotFoundError: No module named 'pv_rl'"),
        (
            KILLED + NOISE + DIED,
            "[2026-11-29] Task was killed due to the node running low on memory.",
        ),
        (CHAIN, "FileNotFoundError: [Errno 2] No such file or directory: '/data/x'"),
        (HALTED + SHUTDOWN, "pv_rl.errors.RunHalted: the judge failed for 12 rows"),
        (RAISED + DIED, "ValueError: no such mode"),
        (DIED, "ray.exceptions.ActorDiedError: The actor died unexpectedly"),
        ("Traceback (most recent call last):\n  File x\njinja2.exceptions.TemplateNotFound: a\n", "jinja2"),
        ("OSError: [Errno 28] No space left on device\n" + LATER, "OSError: [Errno 28] No space left"),
    ],
)
def test_the_first_line_of_a_failure_is_its_cause(tmp_path, log, cause):
    (tmp_path / "verl.log").write_text(log)
    first, second, *others = describe_failure(1, tmp_path / "verl.log").splitlines()
    assert first.startswith(cause)
    assert second == f"verl ended with exit code 1; its log: {tmp_path / 'verl.log'}"
    assert all(one.startswith("then: ") for one in others)
    assert len(others) <= 2


def test_a_log_without_an_exception_is_shown_by_its_last_lines_and_a_signal_by_its_name(tmp_path):
    log = tmp_path / "verl.log"
    log.write_text("one\n\ntwo\n")
    assert describe_failure(3, log).splitlines() == [
        f"verl ended with exit code 3; its log: {log}",
        "one",
        "two",
    ]
    assert describe_failure(-signal.SIGKILL, log).startswith(
        "verl was ended by SIGKILL (is there enough memory?)"
    )
    assert describe_failure(3, log, "trl").startswith("trl ended with exit code 3")
    assert describe_failure(-signal.SIGKILL, log, "trl").startswith("trl was ended by SIGKILL")


def test_a_long_log_of_one_process_takes_linear_time(tmp_path):
    log = tmp_path / "verl.log"
    log.write_text(LATER + "a." * 200_000 + "Error\n" + "x " * 200_000 + "\n" + "E" * 200_000 + "\n")
    assert "terminal groups" in describe_failure(1, log)
