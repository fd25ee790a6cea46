"""Rule gate of the fluency veto: applies degeneration rules to a trace. The rules themselves are in `pv_rules`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeAlias

from pv_rl.errors import ConfigError, PluginError
from pv_rl.hookspecs import DegenerationRule, Parameter
from pv_rl.plugins import RULES, nearest
from pv_rl.rewards.judge import Anomaly

BUILTIN_RULES: tuple[DegenerationRule, ...]
"""The rules of `pv_rules`, in the order in which they are applied; see `__getattr__`."""

__all__ = [
    "BUILTIN_RULES",
    "MOST_SPANS",
    "Anomaly",
    "DegenerationRule",
    "RuleSettings",
    "apply_rule",
    "find_anomalies",
    "rules_from_config",
]

MOST_SPANS = 16
"""Further spans of a rule are left out: one is enough for a veto, and a ledger keeps them all."""

RuleSettings: TypeAlias = Mapping[str, Mapping[str, float] | bool | None]
"""By rule: False to leave it out, thresholds by name, or True or nothing for its defaults."""


def find_anomalies(text: str, rules: Sequence[DegenerationRule] | None = None) -> list[Anomaly]:
    """What is malformed in a trace, in order of the start; empty where it is fluent.

    Args:
        text: the trace, untrusted and of any length. Takes time linear in it.
        rules: those to apply; by default `BUILTIN_RULES`, those of `pv_rules`.

    Raises:
        PluginError: a rule failed, or gave something that is no span of the text.
    """
    rules = RULES.own() if rules is None else rules
    found = [anomaly for rule in rules for anomaly in apply_rule(rule, text)]
    return sorted(found, key=lambda anomaly: (anomaly.start, anomaly.end, anomaly.rule))


def rules_from_config(
    settings: RuleSettings, rules: Sequence[DegenerationRule] | None = None
) -> tuple[DegenerationRule, ...]:
    """Return `rules` with thresholds changed and rules left out, as the settings say.

    Example: `rules_from_config({"sentence_loop": {"times": 5}, "broken_encoding": False, "of_a_plugin": True})`.

    Args:
        settings: by the rule's name.
        rules: by default ours, and those of plugins that the settings name: a rule that is only installed does nothing.

    Raises:
        ConfigError: (a ValueError) a rule or threshold that is not there, or a value out of bounds.
        PluginError: two plugins claim a name of these rules.
    """
    if not isinstance(settings, Mapping):
        raise ConfigError(f"rules is {settings!r}; it is thresholds by rule, or NAME: false to leave one out")
    if rules is None:
        clashes = [name for name, why in RULES.refused().items() if str(RULES.builtin) in why]
        for name in (*settings, *clashes):  # else a rule of ours is off without a message
            RULES.named(name)
        own = RULES.own()
        rules = [rule for rule in RULES.entries().values() if rule in own or rule.name in settings]
    elif unknown := [name for name in settings if name not in {rule.name for rule in rules}]:
        there = ", ".join(rule.name for rule in rules)
        raise ConfigError(f"there is no degeneration rule {unknown[0]!r}. Available: {there}")
    return tuple(_set(one, settings.get(one.name)) for one in rules if settings.get(one.name) is not False)


def _set(rule: DegenerationRule, given: object) -> DegenerationRule:
    if given is None or given is True:
        return rule
    if not isinstance(given, Mapping):
        raise ConfigError(
            f"the degeneration rule {rule.name} is set to {given!r}; it is false, true, or thresholds by name: "
            f"{_offer(rule.thresholds)}"
        )
    allowed = {one.name: one for one in rule.thresholds}
    for name, value in given.items():
        if name not in allowed:
            raise ConfigError(
                f"the degeneration rule {rule.name} has no threshold {name!r}.{nearest(str(name), list(allowed))} "
                f"Thresholds: {_offer(rule.thresholds)}"
            )
        _check(rule, allowed[name], value)
    changed = (replace(one, default=given.get(one.name, one.default)) for one in rule.thresholds)
    return replace(rule, thresholds=tuple(changed))


def _check(rule: DegenerationRule, threshold: Parameter, value: object) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
    if not number or not threshold.low <= value <= threshold.high:  # pyright: ignore[reportOperatorIssue]
        raise ConfigError(
            f"{rule.name}.{threshold.name} is {value!r} ({threshold.meaning}); it is a number from {threshold.low:g} "
            f"to {threshold.high:g}"
        )


def _offer(thresholds: Sequence[Parameter]) -> str:
    return ", ".join(f"{one.name} ({one.meaning}; {one.default:g})" for one in thresholds) or "none"


def apply_rule(rule: DegenerationRule, text: str) -> list[Anomaly]:
    """The first `MOST_SPANS` things that a rule finds in a text.

    Raises:
        PluginError: the rule failed, or gave something that is not a span of the text.
    """
    given = {one.name: one.default for one in rule.thresholds}
    try:
        spans = list(islice(rule.find(text, **given), MOST_SPANS))
    except Exception as error:
        raise PluginError(f"the degeneration rule {rule.name!r} failed: {error!r}") from error
    return [_anomaly(rule.name, span, len(text)) for span in spans]


def _anomaly(name: str, span: object, length: int) -> Anomaly:
    match span:
        case (int(start), int(end)) if 0 <= start < end <= length:
            return Anomaly(rule=name, start=start, end=end)
    raise PluginError(
        f"the degeneration rule {name!r} gave {span!r}; it gives (start, end) with 0 <= start < end <= {length}, the "
        "length of the text in characters"
    )


def __getattr__(name: str) -> tuple[DegenerationRule, ...]:
    if name == "BUILTIN_RULES":  # loads the plugins, which an import should not
        return RULES.own()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
