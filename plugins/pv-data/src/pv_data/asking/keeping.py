"""Under what an answer of a model is kept, and what is said of where it comes from: the same whoever asked."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property

from pv_data.asking.settings import Model
from pv_data.records import Origin, content_id
from pv_judge.answer import Messages
from pv_judge.cache import CachedAnswer, cache_key

__all__ = ["Keeping", "Question"]


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked, of several models perhaps, and several times."""

    template: str
    """Name and hash of the prompt."""
    messages: Messages

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the messages, in hex."""
        text = json.dumps([dict(message) for message in self.messages])
        return hashlib.sha256(text.encode()).hexdigest()

    def seed(self, sample: int, unread: int = 0) -> int:
        """0 to 2^31 - 1, of a local model's answer: another one for each sample, and after each unreadable answer."""
        return int(content_id("answer seed", self.template, self.digest, sample, unread), 16) % 2**31


class Keeping:
    """For one model."""

    def __init__(self, model: Model) -> None:
        self._model, self._fields = model, model.fields()

    def key(self, question: Question, sample: int) -> str:
        """Of the cache."""
        return cache_key(
            template_hash=f"{question.template}#{sample}",
            model=self._model.model,
            sampling={"request": self._fields},
            text=question.digest,
        )

    def origin(self, question: Question, sample: int, answer: CachedAnswer, usd: float = 0.0) -> Origin:
        """The provenance of an answer."""
        return Origin(
            template=question.template,
            model=answer.model,
            revision=self._model.revision,
            sampling=self._fields,
            sample=sample,
            time=answer.created.isoformat(),
            usd=usd,
            prompt_tokens=answer.usage.prompt_tokens,
            completion_tokens=answer.usage.completion_tokens,
        )
