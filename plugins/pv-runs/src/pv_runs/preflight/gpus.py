"""GPUs and CPUs that the run asks for, against those of this machine or of the Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omegaconf import DictConfig

from pv_rl.hookspecs import Finding
from pv_rl.recipes.choices import value
from pv_runs.preflight.findings import note, right, wrong
from pv_runs.preflight.machine import RAY_INIT, Machine

__all__ = ["check_gpus"]

CPUS_A_GPU = 3
"""CPUs that verl reserves with each GPU (`max_colocate_count`, verl/single_controller/ray/base.py:192)."""
SIZES = ("num_cpus", "num_gpus", "object_store_memory")
"""Arguments of `ray.init` for a Ray that it starts itself."""
POOLS = (
    ("training", "trainer"),
    ("rollouts", "actor_rollout_ref.rollout"),
    ("the reward model", "reward.reward_model"),
)


def check_gpus(config: DictConfig, machine: Machine) -> Iterator[Finding]:
    """Whether each group of GPUs fits on a node, and with it the CPUs that verl reserves."""
    sizes = [f"{RAY_INIT}.{one}" for one in SIZES if value(config, f"{RAY_INIT}.{one}") is not None]
    if machine.cluster and sizes and not machine.has("pv_cpu"):  # which leaves them out
        yield wrong(
            f"{', '.join(sizes)}: sizes of a Ray that starts here. ray.init refuses them where it joins a cluster, as "
            f"{machine.cluster}",
            "leave them out, and give them to `ray start` on each node",
        )
    pools = list(_pools(config))
    if not pools:  # of numbers that are none, which the settings' check reports
        return
    total = sum(nodes * each for _, nodes, each in pools)
    asked = " and ".join(f"{nodes * each} for {what} ({nodes} x {each})" for what, nodes, each in pools)
    where = f"the Ray cluster {machine.cluster}" if machine.cluster else "this machine"
    if machine.nodes is None:
        yield note(
            f"the run takes {total} GPUs: {asked}. {where} could not be asked for its GPUs",
            "check that the address is that of its head node (HOST:6379) and that the cluster is running",
        )
        return
    if not machine.nodes:
        yield wrong(
            f"the run would join {where}, and no head node listens there",
            "set RAY_ADDRESS to HOST:PORT of a cluster that runs, or to local. `ray stop` forgets one that has ended",
        )
        return
    free = [int(one.gpus) for one in machine.nodes]
    there = f"{where} has {sum(free)}" + (f" free on {len(free)} nodes" if machine.cluster else "")
    if not _fits([each for _, nodes, each in pools for _ in range(nodes)], free):
        remedy = "choose cluster=..., or set trainer.nnodes and trainer.n_gpus_per_node"
        yield wrong(
            f"the run takes {total} GPUs: {asked}; {there}",
            f"{remedy}. To train on a running Ray cluster, set RAY_ADDRESS"
            if not machine.cluster
            else remedy,
        )
        return
    widest = max(each for _, _, each in pools)
    cpus = [one.cpus for one in machine.nodes if one.gpus >= widest]
    if max(cpus) < widest * CPUS_A_GPU:
        yield wrong(
            f"verl reserves {CPUS_A_GPU} CPUs with each GPU, {widest * CPUS_A_GPU:g} on a node, and Ray has "
            f"{max(cpus):g} there: the run would wait forever",
            (
                f"start the nodes with `ray start --num-cpus={widest * CPUS_A_GPU + 2}`"
                if machine.cluster
                else f"set {RAY_INIT}.num_cpus={widest * CPUS_A_GPU + 2}"
            )
            + " (a number for Ray, not a limit)",
        )
        return
    yield right(f"{total} GPUs: {asked}; {there}")


def _pools(config: DictConfig) -> Iterator[tuple[str, int, int]]:
    """Name, nodes, and GPUs of each node, as verl reserves them."""
    for what, key in POOLS:
        if (
            key == "actor_rollout_ref.rollout"
            and value(config, "trainer.v1.trainer_mode") != "separate_async"
        ):
            continue
        if key == "reward.reward_model" and not (
            value(config, f"{key}.enable") and value(config, f"{key}.enable_resource_pool")
        ):
            continue
        nodes, each = value(config, f"{key}.nnodes"), value(config, f"{key}.n_gpus_per_node")
        if isinstance(nodes, int) and isinstance(each, int):
            yield what, nodes, each


def _fits(groups: Sequence[int], nodes: Sequence[int]) -> bool:
    """Whether groups can be placed on nodes, each whole: the largest first, where least room is left."""
    free = list(nodes)
    for group in sorted(groups, reverse=True):
        rooms = [one for one in free if one >= group]
        if not rooms:
            return False
        free.remove(min(rooms))
        free.append(min(rooms) - group)
    return True
