"""Environment variables that verl, Ray and torch need on a CPU, so that the user sets only one.

They are set in the driver, when ``import verl`` loads this package. Ray starts its daemons and
workers as children of the driver, so all of them inherit the values. A value that the user has set
is left alone.
"""

import os

__all__ = ["DEFAULTS", "apply", "usable_cores"]

MAX_THREADS = 4
"""More threads than this do not help the matrix products of a model that a laptop can train."""


def usable_cores() -> int:
    """Cores that this process may run on, which in a container are fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


DEFAULTS = {
    # EngineRegistry knows FSDP engines for "cuda" and "npu" only (workers/engine/fsdp/
    # transformer_impl.py:1143) and lets this variable name the device (workers/engine/base.py:404).
    "VERL_ENGINE_DEVICE": "cuda",
    # Ray would write CUDA_VISIBLE_DEVICES="" into actors that hold no (logical) GPU.
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    # Ray starts one idle worker a logical core at start-up: with 32 of them, the first minute is spent
    # importing Python.
    "RAY_prestart_worker_first_driver": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    # Seconds. On busy cores a worker can wait longer than Ray's 60 for the imports of `pv_cpu.forks`.
    "RAY_worker_register_timeout_seconds": "300",
    # Ray sets this to the logical cores of an actor (one for a trainer, none for a rollout server).
    # In the synchronous trainer both take turns, so each may use all cores.
    "OMP_NUM_THREADS": str(min(usable_cores(), MAX_THREADS)),
    # By default OpenMP's threads spin while they wait for each other. Two processes that do so on the
    # same cores, a trainer and a rollout server of an asynchronous run, all but stop: 1000 times slower
    # was measured.
    "OMP_WAIT_POLICY": "PASSIVE",
    # GNU's OpenMP, which torch brings, spins this many times before it waits: some microseconds, enough
    # for the next of many small operations, and too few to take a core from somebody else.
    "GOMP_SPINCOUNT": "10000",
    # TransferQueue's threads for a copy, 8 by default; it warns at each transfer if the machine has fewer cores.
    "TQ_NUM_THREADS": str(min(usable_cores(), MAX_THREADS)),
    # Tokenizing a prompt of a hundred tokens is not worth a thread pool in each process.
    "TOKENIZERS_PARALLELISM": "false",
}


def apply() -> None:
    """Set every default that the user has not set."""
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
