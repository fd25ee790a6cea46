"""Hook specifications: how a package, ours included, adds to pv-rl. See `pv_rl.plugins`."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import pluggy

from pv_rl.errors import PluginError

if TYPE_CHECKING:
    import typer
    from torch import Tensor

    from pv_rl.rewards.base import Reward
    from pv_rl.rewards.judge import Judge

__all__ = [
    "DegenerationRule",
    "Finding",
    "JudgeEntry",
    "LossModeEntry",
    "Parameter",
    "RewardEntry",
    "Span",
    "TrainerHook",
    "hookimpl",
    "pv_rl_commands",
    "pv_rl_degeneration_rules",
    "pv_rl_doctor_checks",
    "pv_rl_judges",
    "pv_rl_loss_modes",
    "pv_rl_rewards",
    "pv_rl_trainer_hooks",
]

hookspec = pluggy.HookspecMarker("pv_rl")
hookimpl = pluggy.HookimplMarker("pv_rl")

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
RUN = re.compile(r"[\w.]+:\w+")

Span: TypeAlias = tuple[int, int]
"""Start and end of a piece of a text, in characters."""


def _check_name(what: str, name: object) -> None:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise PluginError(f"a {what} is named {name!r}; a name is a letter, then letters, digits, '_' or '-'")


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A number of a weighting, which a spec gives after a colon, or a threshold of a degeneration rule.

    Raises:
        PluginError: the name, the default or the bounds are wrong; so do the entries below.
    """

    name: str
    """The keyword argument, for example `eta`."""
    default: float | None = None
    """The value if a spec or config gives none; None if every spec has to give one."""
    low: float = 0.0
    """The smallest number allowed."""
    high: float = math.inf
    """The largest number allowed."""
    meaning: str = ""
    """A few words for the error message, for example `0 weighs by token, 1 by response`."""

    def __post_init__(self) -> None:
        numbers = [self.low, self.high] + ([] if self.default is None else [self.default])
        if not isinstance(self.name, str) or not self.name.isidentifier():
            raise PluginError(f"a parameter is named {self.name!r}; expected a keyword argument's name")
        if (
            not all(isinstance(number, int | float) for number in numbers)
            or not self.low <= numbers[-1] <= self.high
        ):
            raise PluginError(
                f"the parameter {self.name} has the default {self.default!r} and the bounds {self.low!r} and "
                f"{self.high!r}; they are numbers, and the default is None or within the bounds"
            )


@dataclass(frozen=True, kw_only=True)
class LossModeEntry:
    """A weighting, by the name before `:` and `@` in a spec."""

    name: str
    """Letters, digits, `_` and `-`."""
    weighting: Callable[..., Tensor]
    """`weighting(responses, batch, **parameters) -> (B,)`, for rows of length > 0. See `pv_rl.losses.balanced`."""
    parameters: tuple[Parameter, ...] = ()
    """The numbers that a spec may give, in the order of the spec; those without a default come first."""
    signs: bool = False
    """Whether the weighting uses `ResponseStats.sign`, so that it needs the advantages."""
    same_as: str = ""
    """For an alias: the name, numbers and scope that it means, for example `dapo@batch`."""

    def __post_init__(self) -> None:
        _check_name("loss mode", self.name)
        _check_function("loss mode", self.name, "weighting", self.weighting)
        _check_parameters("loss mode", self.name, "parameters", self.parameters)
        if not isinstance(self.same_as, str):
            raise PluginError(f"the loss mode {self.name!r} has same_as={self.same_as!r}; expected a spec")
        names = [parameter.name for parameter in self.parameters]
        optional = [parameter.default is not None for parameter in self.parameters]
        if len(set(names)) < len(names) or optional != sorted(optional):
            raise PluginError(
                f"the loss mode {self.name!r} has the parameters {', '.join(names)}; each needs a name of its own, and "
                "those without a default come first"
            )


@dataclass(frozen=True, kw_only=True)
class RewardEntry:
    """A reward, by the name in a config."""

    name: str
    """Letters, digits, `_` and `-`."""
    build: Callable[..., Reward]
    """`build(**options) -> Reward`, with the options of the config as keywords. It checks them and raises
    `ConfigError` (or TypeError for one that it does not know). Called once a process, before the first response."""
    meaning: str = ""
    """A few words for the list of rewards."""
    vetoes: bool = False
    """Whether it may give nothing to a response whose verdict is right."""
    cheap: bool = False
    """Whether `build` takes milliseconds and has no effect outside its process. The driver then also calls it before
    any worker starts, to check values of options and the data's labels. Of others it checks the options' names."""

    def __post_init__(self) -> None:
        _check_name("reward", self.name)
        _check_function("reward", self.name, "build", self.build)


@dataclass(frozen=True, kw_only=True)
class JudgeEntry:
    """A judge of the fluency veto. `verdict_fluency` asks the one named `fluency`."""

    name: str
    """Letters, digits, `_` and `-`."""
    build: Callable[..., Judge]
    """`build(**options) -> Judge`, with `pv_rl.rewards.fluency_veto.JUDGE_OPTIONS` of the config as keywords; it checks
    them and raises `ConfigError`."""

    def __post_init__(self) -> None:
        _check_name("judge", self.name)
        _check_function("judge", self.name, "build", self.build)


@dataclass(frozen=True, kw_only=True)
class DegenerationRule:
    """A rule of the fluency veto."""

    name: str
    """Letters, digits, `_` and `-`; the key in the config and in the metrics."""
    find: Callable[..., Iterable[Span]]
    """`find(text, **thresholds)` gives the pieces of the text that are evidence. The text is untrusted and of any
    length: take linear time."""
    thresholds: tuple[Parameter, ...] = ()
    """Each with a default, the bounds and a few words on what it means."""
    meaning: str = ""
    """What the rule finds, in a few words."""

    def __post_init__(self) -> None:
        _check_name("degeneration rule", self.name)
        _check_function("degeneration rule", self.name, "find", self.find)
        _check_parameters("degeneration rule", self.name, "thresholds", self.thresholds)
        if any(one.default is None for one in self.thresholds):
            raise PluginError(f"the degeneration rule {self.name!r} has a threshold without a default")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What one check of `pv-rl doctor` found."""

    state: Literal["ok", "note", "wrong"]
    """`wrong` makes the exit code 1; `note` is only worth knowing."""
    text: str
    remedy: str = ""
    """How to fix it."""


def _check_function(what: str, name: str, field: str, value: object) -> None:
    if not callable(value):
        raise PluginError(f"the {what} {name!r} has {field}={value!r}; expected a function or a class")


def _check_parameters(what: str, name: str, field: str, value: object) -> None:
    if not isinstance(value, tuple) or not all(isinstance(one, Parameter) for one in value):
        raise PluginError(
            f"the {what} {name!r} has {field}={value!r}; expected a tuple of pv_rl.hookspecs.Parameter"
        )


@dataclass(frozen=True, kw_only=True)
class TrainerHook:
    """A function that the verl adapter calls at a point of a run. A `PluginError` says what is wrong with it."""

    name: str
    """Letters, digits, `_` and `-`; no two hooks have the same."""
    point: str
    """When it is called, one of `pv_rl.trainer_hooks.POINTS`."""
    run: str
    """`module:function`. The function takes the `pv_rl.step_state.StepState` and changes it. The module is
    imported at the first call, so that a process which only lists hooks does not load it."""
    condition: str = ""
    """Which runs: `mode` (the config names a loss mode of pv-rl), `reward` (a reward of pv-rl), else the name of a key
    that the config has to have, for example `sentinel`. Empty: every run, also a stock one."""
    needs: tuple[str, ...] = ()
    """Values that have to be there: of the point (`POINTS`), or of what other hooks give. It runs after those hooks."""
    gives: tuple[str, ...] = ()
    """Values that it sets: attributes of the state, or names of its own."""
    failed: str = ""
    """Metric that becomes 1 where the function raises, which is logged once. Empty: its exception ends the run."""

    def __post_init__(self) -> None:
        _check_name("trainer hook", self.name)
        if not isinstance(self.run, str) or not RUN.fullmatch(self.run):
            raise PluginError(f"the trainer hook {self.name!r} has run={self.run!r}; write 'module:function'")
        if not isinstance(self.needs, tuple) or not isinstance(self.gives, tuple):
            raise PluginError(f"the trainer hook {self.name!r}: needs and gives are tuples of names")


@hookspec
def pv_rl_loss_modes() -> list[LossModeEntry]:  # pyright: ignore[reportReturnType]
    """The loss-aggregation modes that this plugin adds. Called once a process, when a spec is first read."""


@hookspec
def pv_rl_rewards() -> list[RewardEntry]:  # pyright: ignore[reportReturnType]
    """The rewards that this plugin adds. Called once a process, when a reward is first named."""


@hookspec
def pv_rl_judges() -> list[JudgeEntry]:  # pyright: ignore[reportReturnType]
    """The judges that this plugin adds. Called once a process, when a reward that may ask one is first built."""


@hookspec
def pv_rl_degeneration_rules() -> list[DegenerationRule]:  # pyright: ignore[reportReturnType]
    """The rules that this plugin adds to the fluency veto, for configs that name them. Called once a process."""


@hookspec
def pv_rl_commands() -> typer.Typer:  # pyright: ignore[reportReturnType]
    """The commands and groups of commands that this plugin adds to `pv-rl`. Called by the command line alone."""


@hookspec
def pv_rl_doctor_checks(run: tuple[str, ...]) -> Mapping[str, Callable[[], Finding]]:  # pyright: ignore[reportReturnType]
    """The checks that this plugin adds to `pv-rl doctor RUN ...`, by a name of at most 9 characters. One named as a
    check of the core takes its place."""


@hookspec
def pv_rl_trainer_hooks() -> list[TrainerHook]:  # pyright: ignore[reportReturnType]
    """The hooks that this plugin adds to verl's trainers. Called once in the process of the trainer."""
