"""Training of many runs side by side: sample, weigh, update the logits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pv_lab.mechanism.policy import BEHAVIOURS, CHANCES, first_logits, probabilities, score
from pv_lab.mechanism.sampling import Proofs, respond
from pv_lab.mechanism.settings import Setting
from pv_lab.mechanism.weighing import advantages, prompt_mode, token_weights
from pv_rl.errors import ConfigError
from pv_rl.losses import LossMode

__all__ = ["History", "Run", "train"]


@dataclass(frozen=True, kw_only=True)
class Run:
    """A setting under a weighting."""

    setting: Setting
    mode: str
    """A spec of `pv_rl.losses`, such as `grpo`, `dapo` or `balanced:0.6`."""


@dataclass(frozen=True, kw_only=True)
class History:
    """R runs over S training steps, each before the update of that step."""

    length: NDArray[np.float64]
    """(R, S) mean tokens of a response."""
    reward: NDArray[np.float64]
    """(R, S) share of verdicts that are right."""
    right: NDArray[np.float64]
    """(R, S) share of right proofs that are accepted; NaN where there is none."""
    wrong: NDArray[np.float64]
    """(R, S) share of wrong proofs that are rejected; NaN where there is none."""
    behaviour: NDArray[np.float64]
    """(R, S, 3) probabilities of `BEHAVIOURS`, exact and not counted."""
    chance: NDArray[np.float64]
    """(R, S, 5) probabilities of `CHANCES`, exact and not counted."""


def train(runs: Sequence[Run], seed: int | Sequence[int]) -> History:
    """Gradient ascent on the logits of every run: `z += rate * sum_i w_i A_i d log pi(o_i) / d z`.

    Each sample is used once, so every ratio of probabilities is 1 and no clip acts. All runs draw from one stream of
    random numbers: the same runs in the same order with the same seed give the same numbers.

    Raises:
        ConfigError: there is no run, a mode has the scope `batch`, or runs differ in `prompts`, `group` or
            `train_steps`.
        LossModeError: a mode that cannot be read.
    """
    of_mode: dict[LossMode, list[int]] = {}
    for place, run in enumerate(runs):
        of_mode.setdefault(prompt_mode(run.mode), []).append(place)
    shapes = {(run.setting.prompts, run.setting.group, run.setting.train_steps) for run in runs}
    if len(shapes) != 1:
        raise ConfigError(
            f"{len(runs)} runs with (prompts, group, train_steps) {sorted(shapes)}; give one run or more, and train "
            "runs that differ in these apart"
        )
    prompts, group, train_steps = shapes.pop()
    rng = np.random.default_rng(seed)
    settings = [run.setting for run in runs]
    logits = first_logits(settings)
    rate = np.stack([_rates(setting) for setting in settings])
    of_run = np.repeat(np.arange(len(runs)), prompts * group)
    max_length = np.array([setting.max_length for setting in settings])[of_run]
    rows = []
    for _ in range(train_steps):
        policy = probabilities(logits)
        proofs = _draw_proofs(rng, settings, prompts, group)
        responses = respond(rng, proofs, policy, of_run, max_length)
        correct = responses.correct(proofs)
        advantage = advantages(correct.reshape(-1, group).astype(float)).reshape(len(runs), -1)
        length = responses.length.reshape(len(runs), -1)
        weight = np.empty(length.shape)
        for mode, places in of_mode.items():
            weight[places] = token_weights(mode, length[places], group, advantage[places])
        gradient = score(responses.counts, policy, of_run).reshape(len(runs), prompts * group, -1)
        rows.append(
            (length.mean(axis=1), *_accuracy(correct, proofs, len(runs)), policy.behaviour, policy.chance)
        )
        logits = logits + rate * np.einsum("rn,rnz->rz", weight * advantage, gradient)
    columns = [np.stack(column, axis=1) for column in zip(*rows, strict=True)]
    names = ("length", "reward", "right", "wrong", "behaviour", "chance")
    return History(**dict(zip(names, columns, strict=True)))


def _rates(setting: Setting) -> NDArray[np.float64]:
    """(8,) step size of each logit."""
    relative = [1.0 if name == "again" else setting.skill_rate for name in CHANCES]
    return setting.learning_rate * np.array([1.0] * len(BEHAVIOURS) + relative)


def _draw_proofs(rng: np.random.Generator, settings: Sequence[Setting], prompts: int, group: int) -> Proofs:
    """`prompts` proofs a run, each `group` times in a row."""
    low, high, p_true = (
        np.repeat([getattr(setting, name) for setting in settings], prompts)
        for name in ("steps_low", "steps_high", "p_true")
    )
    steps = rng.integers(low, high + 1)
    wrong = np.where(rng.random(len(steps)) < p_true, -1, rng.integers(0, steps))
    return Proofs(steps=np.repeat(steps, group), wrong=np.repeat(wrong, group))


def _accuracy(correct: NDArray[np.bool_], proofs: Proofs, runs: int) -> list[NDArray[np.float64]]:
    """(R,) each: share correct of all proofs, of the right ones and of the wrong ones."""
    hits, right = correct.reshape(runs, -1), (proofs.wrong < 0).reshape(runs, -1)
    shares = []
    for chosen in (np.ones_like(right), right, ~right):
        count = chosen.sum(axis=1)
        shares.append(np.where(count, (hits & chosen).sum(axis=1) / np.maximum(count, 1), np.nan))
    return shares
