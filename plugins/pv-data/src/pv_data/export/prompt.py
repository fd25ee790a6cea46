"""Verifier prompt: a problem and a proof, to be judged by `### True` or `### False` at the end.

Both are somebody else's text. They stand between lines with a mark that they cannot contain, a hash of themselves, and
what a chat template would take for its own (`<|im_end|>`, `<think>`, `[INST]`) is broken up by a blank.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
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

PARAGRAPH = re.compile(r"\n[ \t]*\n")
MATERIAL = frozenset({"problem", "proof", "steps", "reference", "rubric"})
"""Texts of a row, from outside."""
GIVEN = MATERIAL | {"mark", "grades", "full"}


@dataclass(frozen=True, kw_only=True)
class VerifierPrompt:
    """A template of jinja2 with `{{ problem }}`, `{{ proof }}` or `{{ steps }}`, and if wanted `{{ mark }}`.

    For grades and first wrong steps it may show `{{ reference }}`, `{{ rubric }}`, `{{ grades }}` and `{{ full }}`: an
    empty text where a row or format has none, so `{% if rubric %}` leaves it out.
    """

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

    def messages(
        self,
        problem: str,
        proof: str,
        *,
        steps: Sequence[str] = (),
        reference: str = "",
        rubric: str = "",
        grades: Sequence[float] = (),
    ) -> Messages:
        """The chat: one message of the user, since some reasoning models want no system message.

        Args:
            steps: of the proof; they are numbered from 1. Without them the paragraphs of the proof are its steps.
            reference: a solution that is right.
            rubric: the marking scheme.
            grades: the allowed grades in points, ascending; the last is full points.
        """
        parts = list(steps) or [part for part in PARAGRAPH.split(proof.strip()) if part.strip()]
        texts = {
            "problem": problem,
            "proof": proof,
            "steps": "\n\n".join(f"Step {n}: {part.strip()}" for n, part in enumerate(parts, 1)),
            "reference": reference,
            "rubric": rubric,
        }
        clean = {name: cleaned(text) for name, text in texts.items()}
        # problem and proof alone where nothing else is shown: such prompts are in caches and recorded traces
        further = [text for name, text in clean.items() if name in self.shows - {"problem", "proof"} and text]
        shown = [f"{grade:g}" for grade in grades]
        content = self._compiled.render(
            **clean,
            mark=mark_of(clean["problem"], clean["proof"], *further),
            grades=", ".join(shown),
            full=shown[-1] if shown else "",
        )
        return [{"role": "user", "content": content}]

    @cached_property
    def _compiled(self) -> Template:
        from jinja2 import StrictUndefined
        from jinja2.sandbox import SandboxedEnvironment

        return SandboxedEnvironment(undefined=StrictUndefined).from_string(self.text)

    @cached_property
    def shows(self) -> frozenset[str]:
        """Names that the template uses: `problem`, `proof`, `reference`, ..."""
        from jinja2 import Environment, TemplateSyntaxError
        from jinja2.meta import find_undeclared_variables

        try:
            return frozenset(find_undeclared_variables(Environment().parse(self.text)))  # noqa: S701 - only parsed
        except TemplateSyntaxError as error:
            raise ConfigError(f"the verifier's prompt {self.name} is not a template: {error}") from error

    def _check(self) -> None:
        used = self.shows
        if not (used <= GIVEN and "problem" in used and used & {"proof", "steps"}):
            raise ConfigError(
                f"the verifier's prompt {self.name} uses {', '.join(sorted(used)) or 'nothing'}; it has to show "
                "{{ problem }}, and {{ proof }} or {{ steps }}, and may show "
                + ", ".join(f"{{{{ {name} }}}}" for name in sorted(GIVEN - {"problem", "proof", "steps"}))
            )
