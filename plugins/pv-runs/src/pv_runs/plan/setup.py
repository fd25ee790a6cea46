"""Run setup: everything that memory and time are computed from.

A change to try is a `dataclasses.replace` of a `Setup`.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field
from pydantic.dataclasses import dataclass as checked_dataclass

from pv_judge.config import STRICT, read_config
from pv_rl.errors import ConfigError
from pv_runs.model_shape import ModelShape, read_model
from pv_runs.plan.assumed import Assumed
from pv_runs.plan.engines import Rollout, Training, read_rollout, read_training
from pv_runs.typed_config import Settings

__all__ = [
    "GIB",
    "MODES",
    "Batch",
    "Cluster",
    "Gpu",
    "Layout",
    "Setup",
    "layout_of",
    "read_batch",
    "read_cluster",
    "read_setup",
]


MODES = ("sync", "colocate_async", "separate_async")
"""verl's trainers (`trainer.v1.trainer_mode`)."""
GIB = 2**30
"""Bytes of a GiB."""


@checked_dataclass(frozen=True, kw_only=True, config=STRICT)
class Gpu:
    """One GPU, from its data sheet."""

    name: str
    memory_gib: float = Field(gt=0)
    bf16_tflops: float = Field(gt=0)
    """Dense bf16 peak, 1e12 operations a second, without sparsity."""
    bandwidth_tb_s: float = Field(gt=0)
    """Of its memory, 1e12 bytes a second."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """What there is, not what the run takes of it."""

    nodes: int
    gpus_per_node: int
    gpu: Gpu
    host_memory_gib: float | None
    """GiB of a node; none: what a node needs is told and not checked."""


def read_cluster(settings: Settings) -> Cluster:
    """Read `cluster`.

    Raises:
        ConfigError: there is none, or a value is not what it should be.
    """
    gpu = settings.node("cluster.gpu", "choose one, for example by cluster=paper80")
    host = settings.value("cluster.host_memory_gib", None)
    return Cluster(
        nodes=settings.integer("cluster.nodes", least=1),
        gpus_per_node=settings.integer("cluster.gpus_per_node", least=1),
        gpu=read_config(gpu, Gpu, "cluster.gpu"),
        host_memory_gib=None if host is None else settings.number("cluster.host_memory_gib"),
    )


@dataclass(frozen=True, kw_only=True)
class Batch:
    """The data side of a step."""

    mode: str
    """One of `MODES`."""
    prompts: int
    """`data.train_batch_size`, prompts a step."""
    n: int
    """Responses a prompt."""
    mini_batch: int
    """`ppo_mini_batch_size`, prompts an update."""
    ppo_epochs: int
    """Times that a response is trained on."""
    sync_step: int
    """`parameter_sync_step`, updates between two syncs of the rollout's weights; 1 but for separate_async."""
    warmup: float
    """`num_warmup_batches`, batches in flight ahead of the one that trains; 0 for sync."""
    waits_for_old: int | None
    """Policy versions after which an unfinished response is waited for; None: it is not (`max_off_policy_strategy`)."""
    max_prompt: int
    """Tokens."""
    max_response: int
    """Tokens."""
    steps: int | None
    """`trainer.total_training_steps`; None: verl takes it from the data, which the plan may not know."""
    epochs: int
    """`trainer.total_epochs`, over the data."""

    @property
    def rollouts(self) -> int:
        """Responses a step, the paper's batch size."""
        return self.prompts * self.n

    @property
    def longest(self) -> int:
        """Tokens of the longest row that can come."""
        return self.max_prompt + self.max_response

    @property
    def separate(self) -> bool:
        """Whether the rollout has GPUs of its own."""
        return self.mode == "separate_async"


def read_batch(settings: Settings) -> Batch:
    """Read it from verl's config (verl/trainer/config/ppo_trainer.yaml).

    Raises:
        ConfigError: a value is missing or not what it should be.
    """
    if not settings.flag("trainer.use_v1", True):
        raise ConfigError(
            "trainer.use_v1 is false; pv-rl plan supports only verl's V1 trainer. Set trainer.use_v1=True"
        )
    mode = settings.choice("trainer.v1.trainer_mode", MODES)
    actor, sampler = "actor_rollout_ref.actor", "trainer.v1.sampler"
    waits = mode != "sync" and settings.value(f"{sampler}.max_off_policy_strategy", "drop") == "wait"
    warmup = settings.number(f"trainer.v1.{mode}.num_warmup_batches", 1) if mode != "sync" else 0.0
    return Batch(
        mode=mode,
        prompts=settings.integer("data.train_batch_size", least=1),
        n=settings.integer("actor_rollout_ref.rollout.n", least=1),
        mini_batch=settings.integer(f"{actor}.ppo_mini_batch_size", least=1),
        ppo_epochs=settings.integer(f"{actor}.ppo_epochs", 1, least=1),
        sync_step=settings.integer(f"trainer.v1.{mode}.parameter_sync_step", 1, least=1),
        warmup=warmup,
        waits_for_old=settings.optional_integer(f"{sampler}.max_off_policy_threshold") if waits else None,
        max_prompt=settings.integer("data.max_prompt_length", least=1),
        max_response=settings.integer("data.max_response_length", least=1),
        steps=settings.optional_integer("trainer.total_training_steps"),
        epochs=settings.integer("trainer.total_epochs", 30, least=1),
    )


@dataclass(frozen=True, kw_only=True)
class Setup:
    """A run, as far as the plan looks at it."""

    model: ModelShape
    model_source: str
    """Where the shape was read."""
    cluster: Cluster
    batch: Batch
    training: Training
    rollout: Rollout
    assumed: Assumed

    @property
    def gpus(self) -> int:
        """All that are taken; those that train and generate count once."""
        return self.training.gpus + (self.rollout.gpus if self.batch.separate else 0)


def read_setup(settings: Settings) -> Setup:
    """Read a composed config.

    Raises:
        ConfigError: a value is missing or not what it should be.
        DataError: the model's config.json cannot be read.
    """
    given = settings.value("plan", {})
    assumed = (
        {key: value for key, value in given.items() if key != "model"} if isinstance(given, dict) else given
    )
    cluster = read_cluster(settings)
    batch = read_batch(settings)
    model, source = read_model(settings)
    return Setup(
        model=model,
        model_source=source,
        cluster=cluster,
        batch=batch,
        training=read_training(settings, batch.longest),
        rollout=read_rollout(settings, batch.separate),
        assumed=read_config(assumed, Assumed, "plan"),
    )


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Who does what."""

    mode: str
    train_gpus: int
    rollout_gpus: int
    """In sync and colocate_async they are the ones that train."""
    total_gpus: int
    """Each counted once."""
    shards: int
    """GPUs that share one copy of the weights and of Adam's states (FSDP)."""
    data_parallel: int
    """Groups of GPUs with rows of their own."""
    sequence_parallel: int
    """GPUs of such a group, which share a row (Ulysses)."""
    tensor_parallel: int
    """GPUs of the rollout that share a layer."""
    replicas: int
    """Of the rollout."""


def layout_of(setup: Setup) -> Layout:
    """Read it off."""
    training, rollout = setup.training, setup.rollout
    return Layout(
        mode=setup.batch.mode,
        train_gpus=training.gpus,
        rollout_gpus=rollout.gpus,
        total_gpus=setup.gpus,
        shards=training.shards,
        data_parallel=training.data_parallel,
        sequence_parallel=training.ulysses,
        tensor_parallel=rollout.tensor_parallel,
        replicas=rollout.replicas,
    )
