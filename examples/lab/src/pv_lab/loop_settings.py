"""Settings of the reference loop: those of each run, and those that all runs share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from pv_rl.errors import ConfigError

__all__ = ["Policy", "Run", "Settings", "Veto"]

Veto = Literal["none", "zero", "abstain"]
Policy = Literal["abstain", "fail_open", "fail_closed"]
SHARES = ("p_true", "flip_right", "flip_wrong", "false_positive", "false_negative")


@dataclass(frozen=True, kw_only=True)
class Run:
    """What one run has for itself."""

    mode: str = "balanced:0.6"
    """Loss-aggregation mode, as in verl's config."""
    lr: float = 2e-4
    """Learning rate of AdamW, constant after its warm-up."""
    lr_warm_up: int = 0
    """Steps in which the rate rises on a straight line; 0 for none."""
    p_true: float = 0.6
    """Share of right proofs among those to train on."""
    seed: int = 0
    """Of the proofs, the wrong labels and the judge's mistakes. Sampling is seeded by the loop."""
    kl: float = 0.001
    """Weight of the KL term to the start (low_var_kl)."""
    name: str = ""
    """What a report calls it; runs that differ in their seed alone share one."""
    start: str = ""
    """Folder of the verifier that it starts from, of `warmstart --out`; none: the committed one."""
    fault_from: int = 1
    """First step with wrong labels and the length bonus: what is broken often breaks later."""
    flip_right: float = 0.0
    """Share of right training proofs that are labelled wrong, 0 to 1."""
    flip_wrong: float = 0.0
    """Share of wrong training proofs that are labelled right, 0 to 1."""
    length_bonus: float = 0.0
    """A bug of the reward: so much is paid for a response of `max_tokens`, in proportion for a shorter one, whatever
    its verdict. 0 or more; a right verdict is paid 1."""
    veto: Veto = "none"
    """What a trace earns that the judge calls repetitive: `zero`, or `abstain`, no reward at all: its row leaves the
    baseline of its group, the weights and the loss."""
    false_positive: float = 0.0
    """Share of the judge's vetoes among traces that do not loop, 0 to 1."""
    false_negative: float = 0.0
    """Share of traces that loop and pass the judge, 0 to 1."""
    outage_from: int = 0
    """First step in which the judge gives no answer."""
    outage_to: int = 0
    """First step in which it answers again; the same as `outage_from` for no outage."""
    on_failure: Policy = "abstain"
    """What a row gets without an answer, as in docs/concepts/judge.md."""

    def __post_init__(self) -> None:
        for name in SHARES:
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(
                    f"a run of the lab has {name} {getattr(self, name)!r}; give a share from 0 to 1"
                )
        for name in ("lr", "kl", "length_bonus"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ConfigError(f"a run of the lab has {name} {getattr(self, name)!r}; give 0 or more")
        for name, kinds in (("veto", Veto), ("on_failure", Policy)):
            allowed = get_args(kinds)
            if getattr(self, name) not in allowed:
                raise ConfigError(
                    f"a run of the lab has {name} {getattr(self, name)!r}; give one of {', '.join(allowed)}"
                )


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the runs of a loop share; the defaults are those of `runs/lab`."""

    steps: int = 60
    prompts: int = 16
    """P, prompts a step."""
    responses: int = 8
    """G, responses a prompt."""
    mini_batches: int = 1
    """Updates a step."""
    difficulty: int = 2
    max_tokens: int = 128
    """Of a response."""
    clip: tuple[float, float] = (3e-3, 4e-3)
    """Of the ratio, below and above 1."""
    sequence_ratio: bool = True
    """GSPO (arXiv 2507.18071); False is PPO's ratio of each token."""
    eval_every: int = 10
    """Steps from one held-out measurement to the next; the first is before step 1 and the last at the end."""
    eval_proofs: int = 256
    """Held-out proofs, half of them right, the same for all runs."""
    eval_seed: int = 1_000_003
    """Of the held-out proofs; all that was measured before `--eval-seed` came is on this one."""
    sampling_seed: int = 0
