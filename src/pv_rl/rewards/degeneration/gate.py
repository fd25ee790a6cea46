"""Rule gate: the built-in rules, their settings, and what they find in a trace."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from pv_rl.errors import ConfigError
from pv_rl.hookspecs import DegenerationRule, Parameter, hookimpl
from pv_rl.plugins import RULES, nearest
from pv_rl.rewards.degeneration.chatter import empty_announcements, meta_commentary, self_interruption
from pv_rl.rewards.degeneration.loops import ngram_loop, sentence_loop
from pv_rl.rewards.degeneration.marks import broken_encoding, chat_markup, script_soup
from pv_rl.rewards.degeneration.repeats import phrase_loop, runaway_repetition
from pv_rl.rewards.degeneration.rule import apply
from pv_rl.rewards.degeneration.verdict_place import empty_justification, text_after_verdict
from pv_rl.rewards.judge import Anomaly

__all__ = ["BUILTIN_RULES", "RuleSettings", "find_anomalies", "pv_rl_degeneration_rules", "rules_from_config"]

BUILTIN_RULES: tuple[DegenerationRule, ...] = (
    phrase_loop,
    ngram_loop,
    sentence_loop,
    empty_announcements,
    self_interruption,
    runaway_repetition,
    meta_commentary,
    chat_markup,
    empty_justification,
    text_after_verdict,
    broken_encoding,
    script_soup,
)

RuleSettings: TypeAlias = Mapping[str, Mapping[str, float] | bool | None]
"""By rule: False to leave it out, thresholds by name, or True or nothing for its defaults."""


def find_anomalies(text: str, rules: Sequence[DegenerationRule] | None = None) -> list[Anomaly]:
    """What is malformed in a trace, in order of the start; empty where it is fluent.

    Args:
        text: the trace, untrusted and of any length. Takes time linear in it.
        rules: those to apply; by default `BUILTIN_RULES`.

    Raises:
        PluginError: a rule failed, or gave something that is no span of the text.
    """
    found = [anomaly for rule in (BUILTIN_RULES if rules is None else rules) for anomaly in apply(rule, text)]
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
    """
    if rules is None:
        offered = RULES.entries()
        rules = [rule for rule in offered.values() if rule in BUILTIN_RULES or rule.name in settings]
    else:
        offered = {rule.name: rule for rule in rules}
    for name in settings:
        if name not in offered:
            raise ConfigError(
                f"there is no degeneration rule {name!r}.{nearest(str(name), offered)} Rules: {', '.join(offered)}"
            )
    return tuple(
        _set(rule, settings.get(rule.name)) for rule in rules if settings.get(rule.name) is not False
    )


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
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not number or not threshold.low <= value <= threshold.high:  # pyright: ignore[reportOperatorIssue]
        raise ConfigError(
            f"{rule.name}.{threshold.name} is {value!r} ({threshold.meaning}); it is a number from {threshold.low:g} "
            f"to {threshold.high:g}"
        )


def _offer(thresholds: Sequence[Parameter]) -> str:
    return ", ".join(f"{one.name} ({one.meaning}; {one.default:g})" for one in thresholds) or "none"


@hookimpl
def pv_rl_degeneration_rules() -> list[DegenerationRule]:
    return list(BUILTIN_RULES)
