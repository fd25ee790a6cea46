"""Degeneration rules: find malformed passages of a trace, in time linear in its length.

A rule maps a text to spans of evidence. The rules know neither rewards nor trainers: they join `pv_rl` through its hook
`pv_rl_degeneration_rules`, as the rules of any plugin do, and come in the same wheel. See docs/concepts/rules.md.
"""

from pv_rl.hookspecs import DegenerationRule, hookimpl
from pv_rules.chatter import empty_announcements, meta_commentary, self_interruption
from pv_rules.loops import ngram_loop, sentence_loop
from pv_rules.marks import broken_encoding, chat_markup, script_soup
from pv_rules.repeats import phrase_loop, runaway_repetition
from pv_rules.verdict_place import empty_justification, text_after_verdict

__all__ = ["RULES", "pv_rl_degeneration_rules"]

RULES: tuple[DegenerationRule, ...] = (
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
"""In the order in which they are applied and listed in the metrics."""


@hookimpl
def pv_rl_degeneration_rules() -> list[DegenerationRule]:
    return list(RULES)
