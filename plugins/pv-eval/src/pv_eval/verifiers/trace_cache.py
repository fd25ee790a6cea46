"""Traces that were sampled before, in one SQLite file (`pv_judge.cache`)."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from pv_eval.verifiers.trace import Trace
from pv_judge.answer import Messages, Usage
from pv_judge.cache import AnswerCache, CachedAnswer, cache_key

__all__ = ["Remembered"]

MODEL_S_OWN = ("truncated", "refusal")
"""Ends of a trace that are the model's own doing. They are kept like an answer: asking again would only choose."""


LOGIT = "logit"
"""Under which the logit of a trace is kept, beside it."""


class Remembered:
    """Keeps a trace under all that it depends on: messages, template, model, sampling, seed, number of the sample.

    Raises:
        DataError: the file is something else.
        CacheUnavailable: (an OSError) it cannot be opened or written.
    """

    def __init__(self, path: Path, *, model: str, fields: str, template: str, seed: int | None) -> None:
        """
        Args:
            model: the model's name, or for a checkpoint what serves it.
            fields: `pv_data.asking.settings.Model.fields`, the revision included.
            template: of the prompt, name and hash.
            seed: of the whole; None where requests carry none.
        """
        self._cache = AnswerCache(path)
        self._model = model
        self._template = template
        self._request = {"request": fields, "seed": seed}
        self._logits = "logprobs" in json.loads(fields)

    def messages_key(self, messages: Messages) -> str:
        """What `get` and `put` take for the messages, a hash: made once for all samples of a pair."""
        return hashlib.sha256(json.dumps([dict(message) for message in messages]).encode()).hexdigest()

    def get(self, messages: str, sample: int) -> Trace | None:
        """The trace that was kept, if any."""
        for end in ("", *MODEL_S_OWN):
            known = self._cache.get(self._key(messages, sample, end))
            if known is not None:
                tokens = known.usage.completion_tokens or None
                logit = self._cache.get(self._key(messages, sample, LOGIT)) if self._logits else None
                return Trace(
                    text=known.text,
                    tokens=tokens,
                    missing=end,
                    known=True,
                    logit=None if logit is None else float(logit.text),
                )
        return None

    def put(self, messages: str, sample: int, trace: Trace, usage: Usage) -> None:
        """Keep a trace that a model wrote; what failed otherwise is asked again another time."""
        if trace.text is None:
            return
        if trace.logit is not None:  # first: where the trace is, all of it is
            logit = CachedAnswer(text=repr(trace.logit), usage=Usage(), model=self._model)
            self._cache.put(self._key(messages, sample, LOGIT), logit)
        answer = CachedAnswer(text=trace.text, usage=usage, model=self._model)
        self._cache.put(self._key(messages, sample, trace.missing), answer)

    def close(self) -> None:
        """Close the file; it is whole without this too."""
        self._cache.close()

    def _key(self, messages: str, sample: int, end: str) -> str:
        return cache_key(
            template_hash=f"{self._template}#{sample}{f'!{end}' if end else ''}",
            model=self._model,
            sampling=self._request,
            text=messages,
        )
