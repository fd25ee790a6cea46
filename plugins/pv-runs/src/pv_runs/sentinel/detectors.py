"""Detectors: what each reads from the metrics of a step, and the direction in which it must not move."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pv_runs import metric_names
from pv_runs.sentinel.path_length import PATH_LENGTH
from pv_runs.sentinel.reading import (
    ARCSINE,
    LOG,
    PLAIN,
    Reading,
    Scale,
    difference,
    logarithm,
    mean_of_two,
    not_finite,
    number,
    share,
    speed,
)

__all__ = ["DEFAULT_DETECTORS", "DETECTORS", "DIRECTIONS", "Detector", "Side"]

TIMES = math.log(1.35)
"""Slack of lengths, norms and entropy: a third more, or a quarter less."""
THREE_TIMES, TEN_TIMES = math.log(3), math.log(10)
POINTS, GAP = 0.10, 0.06
"""Slack of an accuracy, and of a difference of shares."""
SHARE = 0.04
"""Slack of a share on the arcsine scale: 1 point at 2 %, 3 at 20 %, 4 at 50 %."""
LEAST_ENTROPY = 1e-4
"""Nats: an entropy below it, which an estimate can be, counts as this."""
LEAST_KL = 1e-5
"""Nats: standard deviation of an update's KL divergence that is taken for granted; runs of one update a step have 0."""

Side = Literal["up", "down"]
DIRECTIONS: Mapping[Side, int] = {"up": 1, "down": -1}
Metrics = Mapping[str, Any]

LOOP_RULES = ("phrase_loop", "ngram_loop", "sentence_loop", "runaway_repetition")
"""Rules of `pv_rl.rewards.degeneration` that hit repetition."""
RIGHT = (metric_names.ACC_RIGHT, "right_proofs")
WRONG = (metric_names.ACC_WRONG, "wrong_proofs")
ACCEPTED = (metric_names.VERDICT_TRUE, "accepted")
LABELS = (metric_names.LABEL_TRUE, "label_true")
KL = ("actor/kl_loss", "kl_loss")


@dataclass(frozen=True, kw_only=True)
class Detector:
    """One thing that is watched."""

    name: str
    what: str
    """In words, as the subject of a sentence."""
    metrics: tuple[tuple[str, ...], ...]
    """What it needs; of each, the names to look for, first found first: verl's stream with pv-rl, the lab's loop."""
    read: Callable[[Metrics, int], Reading | None]
    """From the numbers of a step and the responses of a step; None where something is absent or impossible."""
    scale: Scale
    advice: str
    """What to look at first."""
    family: str
    """Signs of a family read the same responses and alarm together: several are one piece of evidence."""
    sides: tuple[Side, ...] = ("up",)
    """The directions in which it must not move. A move in the other direction is no alarm."""
    from_zero: bool = False
    """Only moves away from 0 are bad."""
    beyond_record: bool = False
    """Only a rise above the highest level so far is bad: it may fall and come back."""
    drifts: tuple[Side, ...] = ()
    """Sides to which it may move by a factor of 2 in `doubling_steps`. In a run's first steps (the warm-up and five
    more) it may move faster: by `farthest` in as many steps as the warm-up has."""
    slack: float = 0.0
    """A move that matters to nobody, on the chart's scale."""
    farthest: Mapping[Side, float] = field(default_factory=dict)
    """By side, how far it may be from the run's first level, on the chart's scale, however slowly it came there."""
    unit: str = ""
    finite: bool = False
    """A value that is NaN or infinite is an alarm by itself; else it is no observation."""

    def broken(self, metrics: Metrics) -> bool:
        """Whether it is one whose value is no finite number."""
        return self.finite and any(not_finite(metrics, name) for name in self.metrics[0])


def _first(metrics: Metrics, names: tuple[str, ...]) -> float | None:
    return next((value for name in names if (value := number(metrics, name)) is not None), None)


def _share_of(*names: str) -> dict[str, Any]:
    def read(metrics: Metrics, responses: int) -> Reading | None:
        value = _first(metrics, names)
        return None if value is None else share(value, responses)

    return {"metrics": (names,), "read": read, "scale": ARCSINE}


def _log_of(*names: str, least: float | None = None) -> dict[str, Any]:
    def read(metrics: Metrics, responses: int) -> Reading | None:
        value = _first(metrics, names)
        if value is not None and least is not None:
            value = max(value, least)
        return None if value is None else logarithm(value)

    return {"metrics": (names,), "read": read, "scale": LOG}


def _largest_share_of(names: tuple[str, ...], otherwise: str) -> dict[str, Any]:
    def read(metrics: Metrics, responses: int) -> Reading | None:
        values = [value for name in names if (value := number(metrics, name)) is not None]
        value = max(values) if values else number(metrics, otherwise)
        return None if value is None else share(value, responses)

    return {"metrics": ((*names, otherwise),), "read": read, "scale": ARCSINE}


def _classes(combine: Callable[[float, float, tuple[float, float]], Reading | None]) -> dict[str, Any]:
    def read(metrics: Metrics, responses: int) -> Reading | None:
        right, wrong, labels = (_first(metrics, names) for names in (RIGHT, WRONG, LABELS))
        if right is None or wrong is None:
            return None  # a step with proofs of one class only
        labels = labels if labels is not None and 0 <= labels <= 1 else 0.5
        return combine(right, wrong, (responses * labels, responses * (1 - labels)))

    return {"metrics": (RIGHT, WRONG), "read": read, "scale": PLAIN}


def _policy_speed(metrics: Metrics, responses: int) -> Reading | None:
    kl, length = _first(metrics, KL), number(metrics, PATH_LENGTH)
    return None if kl is None or length is None else speed(kl, length)


def _update_kl(metrics: Metrics, responses: int) -> Reading | None:
    value = number(metrics, "actor/ppo_kl")
    return None if value is None else Reading(value=value, scaled=value, least=LEAST_KL**2)


def _accepting_bias(metrics: Metrics, responses: int) -> Reading | None:
    accepted, labels = _first(metrics, ACCEPTED), _first(metrics, LABELS)
    if accepted is None or labels is None:
        return None
    return difference(accepted, labels, (responses, float("inf")))  # labels are given, not sampled


def _length(name: str, kind: str, metric: str) -> Detector:
    return Detector(
        name=name,
        family="length",
        what=f"the mean length of {kind}responses",
        **_log_of(metric, name),
        sides=("up", "down"),
        drifts=("up",),
        farthest={"up": THREE_TIMES, "down": THREE_TIMES},
        slack=TIMES,
        unit=" tokens",
        advice=f"Read short and long {kind}traces: checks are being skipped, or repeated for nothing",
    )


_ALL = (
    Detector(
        name="veto_rate",
        family="malformed",
        what="the share of vetoed responses",
        **_share_of(metric_names.VETOED, "vetoed"),
        slack=SHARE,
        advice="Read the last vetoed traces: a looping or malformed style is spreading, or the judge has changed",
    ),
    Detector(
        name="missing_verdicts",
        family="unfinished",
        what="the share of responses without a verdict",
        **_share_of(metric_names.VERDICT_MISSING, "no_verdict"),
        slack=SHARE,
        advice="Read traces without a verdict: they are cut off, or the format is being lost",
    ),
    _length("length", "", "response_length/mean"),
    _length("length_accepting", "accepting ", metric_names.LENGTH_TRUE),
    _length("length_rejecting", "rejecting ", metric_names.LENGTH_FALSE),
    Detector(
        name="cut_off",
        family="unfinished",
        what="the share of responses that reach the length limit",
        **_share_of("response_length/clip_ratio", "cut_off"),
        slack=SHARE,
        advice="Read the longest traces: lengths are running away, or the limit is too low",
    ),
    Detector(
        name="bare_verdicts",
        family="malformed",
        what="the share of responses that are a verdict and nothing else",
        **_share_of(metric_names.RULE + "empty_justification", "bare"),
        slack=SHARE,
        advice="Proofs are no longer checked; look at the accuracy on wrong proofs, and weigh short responses less",
    ),
    Detector(
        name="weight_evenness",
        family="weights",
        what="the effective number of responses, as a fraction of all",
        **_log_of(metric_names.EFFECTIVE_FRACTION),
        sides=("down",),
        advice="Few responses carry the update: look at the spread of lengths and at eta",
    ),
    Detector(
        name="accepting_bias",
        family="accuracy",
        what="the share of accepting verdicts less the share of right proofs",
        metrics=(ACCEPTED, LABELS),
        read=_accepting_bias,
        scale=PLAIN,
        sides=("up", "down"),
        from_zero=True,
        slack=GAP,
        advice="The verifier learns to say one thing: look at both classes and at the labels",
    ),
    Detector(
        name="class_gap",
        family="accuracy",
        what="the accuracy on right proofs less that on wrong ones",
        **_classes(difference),
        sides=("up", "down"),
        from_zero=True,
        slack=GAP,
        advice="One class is learned at the cost of the other, which the mean reward may hide",
    ),
    Detector(
        name="balanced_accuracy",
        family="accuracy",
        what="the mean of the accuracies on right and on wrong proofs",
        **_classes(mean_of_two),
        sides=("down",),
        slack=POINTS,
        advice="The policy is getting worse: lower the learning rate, or go back to the last good checkpoint",
    ),
    Detector(
        name="repetition",
        family="malformed",
        what="the share of responses that loop",
        **_largest_share_of(tuple(f"{metric_names.RULE}{rule}" for rule in LOOP_RULES), "repetitive"),
        slack=SHARE,
        advice="Read looping traces: if they are paid, turn the veto on",
    ),
    Detector(
        name="gradient_norm",
        family="gradient",
        what="the norm of the gradient",
        **_log_of("actor/grad_norm", "grad_norm"),
        beyond_record=True,  # where most groups are all right or all wrong the norm is small, and scatters more
        finite=True,
        slack=TIMES,
        advice="Updates are getting larger: lower the learning rate",
    ),
    Detector(
        name="entropy",
        family="entropy",
        what="the entropy of the policy",
        **_log_of("actor/entropy", "entropy", least=LEAST_ENTROPY),
        sides=("up", "down"),
        drifts=("down",),
        farthest={"down": TEN_TIMES},
        finite=True,
        unit=" nats",
        slack=TIMES,
        advice="If it rises, responses get random: lower the learning rate. If it falls, they get alike: raise "
        "clip_ratio_high or add an entropy bonus",
    ),
    Detector(
        name="policy_speed",
        family="policy",
        what="the root of the KL term over the learning rates so far, the speed at which the policy leaves its start,",
        metrics=(KL,),  # and the path length, which the watcher adds
        read=_policy_speed,
        scale=LOG,
        finite=True,
        advice="The policy leaves its start faster and faster: lower the learning rate, and look at what is paid",
    ),
    Detector(
        name="update_kl",
        family="policy",
        what="the KL divergence of a step's updates",
        metrics=(("actor/ppo_kl",),),
        read=_update_kl,
        scale=PLAIN,
        finite=True,
        advice="A step changes the policy more than it did: lower the learning rate, or clip more",
    ),
)

DETECTORS: Mapping[str, Detector] = {sign.name: sign for sign in _ALL}
"""Every sign by name."""
DEFAULT_DETECTORS = tuple(DETECTORS)
"""All of them. One whose metric is absent from a stream costs a little power and nothing else."""
