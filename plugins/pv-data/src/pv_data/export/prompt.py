"""Verifier prompt: a problem and a proof, to be judged by `### True` or `### False` at the end.

Both are somebody else's text. They stand between lines with a mark that they cannot contain, a hash of themselves, and
what a chat template would take for its own (`<|im_end|>`, `<think>`, `[INST]`) is broken up by a blank.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from pv_data.prompt import FENCE, cleaned, mark_of
from pv_judge.answer import Messages
from pv_rl.errors import ConfigError

if TYPE_CHECKING:
    from jinja2 import Template

__all__ = ["VerifierPrompt"]

NEEDED = frozenset({"problem", "proof"})
GIVEN = NEEDED | {"mark"}


@dataclass(frozen=True, kw_only=True)
class VerifierPrompt:
    """A template of jinja2 with `{{ problem }}`, `{{ proof }}` and, if it likes, `{{ mark }}`."""

    name: str
    text: str

    @classmethod
    def load(cls, path: str | Path | None = None) -> VerifierPrompt:
        """Read a prompt file; ours if none is given.

        Raises:
            ConfigError: there is no such file, it is no template, or it does not show problem and proof.
        """
        try:
            source = Path(path) if path is not None else files("pv_data.export") / "prompts" / "verifier.txt"
            text = source.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"the verifier's prompt {path} cannot be read: {error}") from error
        prompt = cls(name=source.name.removesuffix(".txt"), text=text)
        prompt._check()
        return prompt

    @property
    def template(self) -> str:
        """Name and hash of the text and of how problem and proof are fenced, `verifier@...`."""
        digest = hashlib.sha256(f"{FENCE}\n{self.text}".encode()).hexdigest()
        return f"{self.name}@{digest[:16]}"

    def messages(self, problem: str, proof: str) -> Messages:
        """The chat: one message of the user, since some reasoning models want no system message."""
        problem, proof = cleaned(problem), cleaned(proof)
        content = self._compiled.render(problem=problem, proof=proof, mark=mark_of(problem, proof))
        return [{"role": "user", "content": content}]

    @cached_property
    def _compiled(self) -> Template:
        from jinja2 import StrictUndefined
        from jinja2.sandbox import SandboxedEnvironment

        return SandboxedEnvironment(undefined=StrictUndefined).from_string(self.text)

    def _check(self) -> None:
        from jinja2 import Environment, TemplateSyntaxError
        from jinja2.meta import find_undeclared_variables

        try:
            used = find_undeclared_variables(Environment().parse(self.text))
        except TemplateSyntaxError as error:
            raise ConfigError(f"the verifier's prompt {self.name} is not a template: {error}") from error
        if not NEEDED <= used <= GIVEN:
            raise ConfigError(
                f"the verifier's prompt {self.name} uses {', '.join(sorted(used)) or 'nothing'}; it has to show "
                "{{ problem }} and {{ proof }}, may show {{ mark }}, and knows no other name"
            )
