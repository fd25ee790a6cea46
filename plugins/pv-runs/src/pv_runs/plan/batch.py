"""What a step takes in, and how many steps there are."""

from __future__ import annotations

from dataclasses import dataclass

from pv_rl.errors import ConfigError
from pv_runs.plan.settings import Settings

__all__ = ["MODES", "Batch", "read_batch"]

MODES = ("sync", "colocate_async", "separate_async")
"""verl's trainers (`trainer.v1.trainer_mode`)."""


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
            "trainer.use_v1 is false; the plan knows verl's V1 trainer alone, so set trainer.use_v1=True"
        )
    mode = settings.choice("trainer.v1.trainer_mode", MODES)
    actor, sampler = "actor_rollout_ref.actor", "trainer.v1.sampler"
    waits = mode != "sync" and settings.value(f"{sampler}.max_off_policy_strategy", "drop") == "wait"
    spans = settings.value(f"{sampler}.max_off_policy_threshold", None) if waits else None
    steps = settings.value("trainer.total_training_steps", None)
    warmup = settings.number(f"trainer.v1.{mode}.num_warmup_batches", 1) if mode != "sync" else 0.0
    return Batch(
        mode=mode,
        prompts=settings.integer("data.train_batch_size", least=1),
        n=settings.integer("actor_rollout_ref.rollout.n", least=1),
        mini_batch=settings.integer(f"{actor}.ppo_mini_batch_size", least=1),
        ppo_epochs=settings.integer(f"{actor}.ppo_epochs", 1, least=1),
        sync_step=settings.integer(f"trainer.v1.{mode}.parameter_sync_step", 1, least=1),
        warmup=warmup,
        waits_for_old=None
        if spans is None
        else settings.integer(f"{sampler}.max_off_policy_threshold", least=1),
        max_prompt=settings.integer("data.max_prompt_length", least=1),
        max_response=settings.integer("data.max_response_length", least=1),
        steps=None if steps is None else settings.integer("trainer.total_training_steps", least=1),
        epochs=settings.integer("trainer.total_epochs", 30, least=1),
    )
