"""Store of a run's answers: their cache keys, their provenance, and the unusable answers of an unfinished stage."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import get_args

from pv_data.asking.settings import Model
from pv_data.records import Origin, content_id
from pv_judge.answer import FailureKind, JudgeFailure, Messages, Usage
from pv_judge.cache import AnswerCache, CachedAnswer, cache_key
from pv_judge.files import load_json

__all__ = ["ASK_AGAIN", "DOUBT", "INSTEAD", "Keeping", "Question", "Unanswered", "entry"]

INSTEAD = "name another file in models.NAME.cache, or delete it: its answers are then asked, and paid, again"
ASK_AGAIN = "delete it: what could not be used is then asked again"
"""What a user can do about a cache of answers, or of unusable ones, that cannot be used."""
DOUBT = ("doubt", CachedAnswer(text="", usage=Usage(), model=""))
"""An entry beside failures: so many came in a row that the model did not work, and none of them counts."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question, possibly for several models and several samples."""

    template: str
    """Name and hash of the prompt."""
    messages: Messages

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the messages, in hex."""
        text = json.dumps([dict(message) for message in self.messages])
        return hashlib.sha256(text.encode()).hexdigest()

    def seed(self, sample: int, unread: int = 0) -> int:
        """0 to 2^31 - 1: the seed of a local model's request, a new one for each sample and each unreadable answer."""
        return int(content_id("answer seed", self.template, self.digest, sample, unread), 16) % 2**31


class Keeping:
    """Cache keys and provenance of one model's answers."""

    def __init__(self, model: Model) -> None:
        self._model, self._fields = model, model.fields()

    def key(self, question: Question, sample: int) -> str:
        """The key of the answer in the cache."""
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


def entry(key: str, attempt: int, failure: JudgeFailure, model: str) -> tuple[str, CachedAnswer]:
    """The cache entry of a failure. Its usage is that of all attempts so far, which begin at 0."""
    text = json.dumps([failure.kind, str(failure), failure.text])
    return f"{key}#{attempt}", CachedAnswer(text=text, usage=failure.usage, model=model)


class Unanswered:
    """Failures by key and attempt, in a cache file: a resumed run does not pay for unusable answers again.

    Raises:
        DataError: the file is something else.
    """

    def __init__(self, path: Path) -> None:
        self._file = AnswerCache(path, instead=ASK_AGAIN)

    def put(self, key: str, attempt: int, failure: JudgeFailure, model: str) -> None:
        """Keep a failure, see `entry`."""
        self._file.put(*entry(key, attempt, failure, model))

    def get(self, key: str, attempt: int) -> JudgeFailure | None:
        """The failure of an attempt, if it was made and failed; `requests` is the number of attempts so far."""
        found = self._file.get(f"{key}#{attempt}")
        if found is None:
            return None
        try:
            kind, said, text = load_json(found.text)
        except (ValueError, TypeError):  # damaged
            return None
        if kind not in get_args(FailureKind):
            return None
        return JudgeFailure(said, kind, found.usage, 0.0, attempt + 1, text)

    def last(self, key: str) -> JudgeFailure | None:
        """The failure of the last attempt, if any was made and failed."""
        failure = None
        while (found := self.get(key, failure.requests if failure else 0)) is not None:
            failure = found
        return failure

    @property
    def in_doubt(self) -> bool:
        """Whether `DOUBT` is in the file."""
        return self._file.get(DOUBT[0]) is not None

    def close(self) -> None:
        """Close the file."""
        self._file.close()
