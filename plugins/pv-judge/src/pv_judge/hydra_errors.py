"""Composition messages: why Hydra, OmegaConf or PyYAML refuses a config, in our words."""

from __future__ import annotations

import re

__all__ = ["unreadable"]

MESSAGES = (
    (r"resolving interpolation: Missing mandatory value: (\S+)", "{0} has no value. Set it: {0}=VALUE"),
    (r"Missing mandatory value: \S+", "{key} has no value. Set it: {key}=VALUE"),
    (
        r"Environment variable '([^']*)' not found",
        "{key} needs the environment variable {0}, which is not set. Fix: export {0}=..., or set {key}=VALUE",
    ),
    (
        r"Interpolation key '([^']*)' not found",
        "{key} refers to {0}, which the config does not have. Correct the name, or set {key}=VALUE",
    ),
    (
        r"Unsupported interpolation type (\S+)",
        "{key} contains ${{{0}:...}}, which does not exist. Expected ${{KEY}} or ${{oc.env:NAME}}",
    ),
    (r"Recursive interpolation", "{key} refers to itself. Set {key}=VALUE"),
    (
        r"GrammarParseError",
        r"{key} contains a ${{...}} that cannot be read. Close it, or write \${{ for the text",
    ),
    (r"Could not override ''", "an override begins with =. Expected KEY=VALUE"),
    (
        r"Could not override '([^']+)'",
        "the config has no {0}. Correct the name, or write +{0}=VALUE to add it",
    ),
    (r"Could not delete from config. '([^']*)'", "the config has no {0}, so that ~{0} removes nothing"),
    (
        r"Ambiguous value for argument '\+*([^=']*)",
        "{0} has several values. Put a text with a comma in quotes inside the shell's, a list in [ ]; "
        "a sweep over values needs `pv-rl train --multirun`",
    ),
    (r"Could not (?:load|find) '([^']*)'", "there is no config {0}. Correct the name, or hydra.searchpath"),
    (r"must be a DictConfig", "expected settings by name (KEY: VALUE)"),
)
"""Pattern of a message, and ours."""
REST = re.compile(
    r"(?:See https?://\S{1,200} for details|(?:full_key|object_type|reference_type)[:=].*)", re.DOTALL
)


def unreadable(error: BaseException) -> str:
    """One line: the setting, what is wrong with it, what to do."""
    override = getattr(error, "override", None)
    if isinstance(override, str):
        return (
            f"{override.removeprefix('++')!r:.200} cannot be read. Expected KEY=VALUE; a value with = , ( ) [ ] {{ }} "
            "or quotes needs quotes inside those of the shell: 'KEY=\"VALUE\"'"
        )
    text = f"{type(error).__name__}: {error}"
    if not str(error).strip() and error.__cause__ is not None:  # Hydra's, around OmegaConf's
        return unreadable(error.__cause__)
    key = getattr(error, "full_key", None) or "a value"
    for pattern, ours in MESSAGES:
        if found := re.search(pattern, text):
            there = getattr(error, "options", None)  # of a group
            return ours.format(*found.groups(), key=key) + (f". It has {', '.join(there)}" if there else "")
    mark = getattr(error, "problem_mark", None)
    if mark is not None:  # PyYAML's
        return f"line {mark.line + 1}, column {mark.column + 1}: {getattr(error, 'problem', '')}"
    return " ".join(REST.sub("", str(error)).split()) or type(error).__name__
