"""Ray cluster of one slot: several runs of verl on one GPU, each in a cluster of its own.

verl's vLLM rollout takes its weights over a socket whose name ends in the Ray job id, and the first job of every new
cluster has the same id: two runs that each start Ray would share `/tmp/rl-colocate-zmq-01000000-replica-0-rank-0.sock`,
and one run's engine could load the other run's weights. So the driver starts the cluster of a slot and uses up job ids
until those of its run are the slot's own.

    python -m pv_lab.smol.ray_slot FOLDER CPUS       # prints the address, and runs until it is ended
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from pv_judge.processes import process_tree
from pv_rl.errors import SetupError

__all__ = ["ENVIRONMENT", "ray_slot"]

ENVIRONMENT = {
    "RAY_AUTH_MODE": "disabled",  # else a driver needs the token of the cluster that it joins
    "RAY_prestart_worker_first_driver": "0",
}
JOBS = 4
"""Job ids of a slot: of the run, of its check of the machine, and spare ones."""
START_S = 120.0
POLL_S = 0.1
OBJECTS = 1_000_000_000
"""Bytes of a cluster's object store, through which batches pass."""
USE_UP = """
import sys, ray
while True:
    ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
    job = int.from_bytes(bytes.fromhex(ray.get_runtime_context().get_job_id()), "little")
    ray.shutdown()
    if job >= int(sys.argv[2]):
        break
"""


@contextlib.contextmanager
def ray_slot(number: int, folder: Path, environment: Mapping[str, str], *, cpus: int) -> Iterator[str]:
    """A Ray cluster with one GPU; yields its address, and ends it with all that runs in it.

    Args:
        number: of the slot, 0 or more. Clusters that exist at the same time have different numbers; 0 is also that of
            a run which starts Ray itself.
        folder: of Ray's files; its path has to be short, since Unix sockets are in it.
        environment: of every process in the cluster.
        cpus: logical cores.

    Raises:
        SetupError: Ray does not start.
    """
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "slot.log"
    log.unlink(missing_ok=True)
    variables = {**environment, **ENVIRONMENT}
    command = [sys.executable, "-W", "ignore", "-m", "pv_lab.smol.ray_slot", str(folder), str(cpus)]
    with process_tree(command, env=variables, cwd=Path.cwd(), log=log) as head:
        deadline = time.monotonic() + START_S
        while not (address := _address(log)):
            if head.poll() is not None or time.monotonic() > deadline:
                raise SetupError(f"Ray did not start within {START_S:g} s. Read {log} for the cause")
            time.sleep(POLL_S)
        if number:
            use_up = [sys.executable, "-W", "ignore", "-c", USE_UP, address, str(JOBS * number)]
            try:
                subprocess.run(use_up, env=variables, check=True, capture_output=True, timeout=START_S)
            except subprocess.SubprocessError as error:
                raise SetupError(f"no job could join the Ray cluster at {address}: {error}") from error
        yield address


def _address(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return next((line.partition("=")[2] for line in lines if line.startswith("address=")), "")


def main() -> None:
    import ray

    folder, cpus = sys.argv[1:]
    context = ray.init(
        num_cpus=int(cpus),
        num_gpus=1,
        include_dashboard=False,
        object_store_memory=OBJECTS,
        _temp_dir=os.path.join(folder, "ray"),
        log_to_driver=False,
    )
    sys.stdout.write(f"address={context.address_info['gcs_address']}\n")
    sys.stdout.flush()
    while True:
        time.sleep(3600)


if __name__ == "__main__":
    main()
