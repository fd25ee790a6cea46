"""Settings of `pv-rl lab run`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pv_rl.errors import ConfigError

__all__ = ["MODES", "OUT", "LabSettings"]

OUT = Path("runs/lab-whole")
MODES = ("grpo", "dapo", "balanced")
MOST_SEEDS = 1000
OURS = {
    "run": "the lab is the run",
    "seed": "say --seeds and --first-seed",
    "recipe": "say --modes and --eta",
    "actor_rollout_ref.actor.loss_agg_mode": "say --modes and --eta",
    "trainer.total_training_steps": "say --steps",
    "trainer.experiment_name": "each run is named after its weighting and seed",
    "trainer.default_local_dir": "say --out",
    "trainer.rollout_data_dir": "say --out; the report reads the traces there",
    "run_dir": "say --out",
    "hydra": "say --out",
    "sweep": "the weightings and the seeds are the sweep: say --modes, --eta and --seeds",
}
"""Overrides that the lab sets itself, and what to do instead."""


@dataclass(frozen=True, kw_only=True)
class LabSettings:
    """Which runs there are, and how long each is.

    Raises:
        ConfigError: a value that cannot be.
        LossModeError: a weighting that nobody knows; the nearest name is in the text.
    """

    out: Path = OUT
    """Folder of all runs, one folder a run in it."""
    modes: tuple[str, ...] = MODES
    """Weightings, each a `loss_agg_mode`, ours or verl's."""
    seeds: int = 3
    """Runs of each weighting, 1 to 1,000."""
    first_seed: int = 0
    """The seeds are this one and those after it, 0 or more. A seed picks the training data and their order."""
    steps: int = 24
    """Training steps of a run, 1 or more."""
    overrides: tuple[str, ...] = ()
    """Hydra's overrides of `run=lab`, the same for all runs."""

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ConfigError(
                f"--steps is {self.steps}; give 1 or more (3 have a start, a middle and an end)"
            )
        if not 1 <= self.seeds <= MOST_SEEDS:
            raise ConfigError(
                f"--seeds is {self.seeds}, the number of runs of a weighting; give 1 to {MOST_SEEDS:,}"
            )
        if self.first_seed < 0:
            raise ConfigError(f"--first-seed is {self.first_seed}; give 0 or more")
        if not self.modes:
            raise ConfigError("no weighting is named; name one or more, --modes grpo --modes dapo")
        _specs(self.modes)
        _check_overrides(self.overrides)

    @property
    def specs(self) -> tuple[str, ...]:
        """The weightings with nothing left to a default but the scope `prompt`: `balanced:0.6` for `balanced`."""
        return tuple(spec.removesuffix("@prompt") for spec in _specs(self.modes))

    @property
    def interval(self) -> int:
        """Steps between two validations and between two checkpoints: about six of each in a run.

        Example: 30 steps have 5, 2 have 1, 31 have 5.
        """
        return max(1, round(self.steps / 6))

    @property
    def all_overrides(self) -> tuple[str, ...]:
        """Those of every run: `cluster=cpu` and our own, which the user's come after and so win over."""
        return (
            *(() if any(one.startswith("cluster=") for one in self.overrides) else ("cluster=cpu",)),
            f"trainer.total_training_steps={self.steps}",
            f"trainer.test_freq={self.interval}",
            f"trainer.save_freq={self.interval}",
            "trainer.max_actor_ckpt_to_keep=2",  # with 1, verl has a moment without any
            *self.overrides,
        )


def _specs(modes: Sequence[str]) -> list[str]:
    from pv_rl.losses import resolve_mode
    from pv_rl.plugins import VERL_MODES

    known: dict[str, str] = {}
    for mode in modes:
        spec = mode if mode in VERL_MODES else resolve_mode(mode).spec
        if spec in known:
            raise ConfigError(
                f"{known[spec]} and {mode} are the same weighting, {spec}; leave out one of them"
            )
        known[spec] = mode
    return list(known)


def _check_overrides(overrides: Sequence[str]) -> None:
    for one in overrides:
        if one.startswith("-"):
            raise ConfigError(
                f"{one} is an option that pv-rl lab run does not have; pv-rl lab run --help lists them"
            )
        key = one.lstrip("+~").partition("=")[0].partition("@")[0]
        ours = key if key in OURS else key.partition(".")[0]
        if ours in OURS:
            raise ConfigError(f"{one}: pv-rl lab run sets {ours} itself; {OURS[ours]}")
