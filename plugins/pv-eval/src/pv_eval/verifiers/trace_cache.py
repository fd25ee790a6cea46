"""Sampled traces, the votes they cast, and the cache that keeps them, one SQLite file (`pv_judge.cache`)."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

from pv_eval.votes import Pair, Vote
from pv_judge.answer import Messages, Usage
from pv_judge.cache import AnswerCache, CachedAnswer, cache_key
from pv_verdicts import Answer, VerdictFormat, build_format

__all__ = ["OF_THE_MODEL", "OF_THE_PROMPT", "Trace", "TraceCache", "to_vote"]

OF_THE_MODEL = ("truncated", "refusal")
"""Reasons for a missing verdict that are the model's own. Such traces are kept like an answer: asking again would
select."""
OF_THE_PROMPT = ("context_length", "no_text", "too_large")
"""Failures that show a server that answers: another prompt or sample may have a trace. They are asked again."""
LOGIT = "logit"
"""Key of a trace's logit, which is kept beside the trace."""


@dataclass(frozen=True, kw_only=True)
class Trace:
    """One sampled trace, or why it is missing."""

    text: str | None
    """None: the request failed for good."""
    tokens: int | None = None
    """Of the answer, as the server counts them; None: unknown."""
    missing: str = ""
    """Why there is no answer, where that is known without reading: `truncated`, `refusal`, `timeout`, ..."""
    answer: Answer = field(default_factory=Answer)
    """Given instead of the text, by a file that has verdicts, grades or steps only."""
    logit: float | None = None
    """Of the verdict: log of the odds of True over False."""
    known: bool = False
    """It is from a file or the cache: nothing was asked for it."""
    usage: Usage = field(default_factory=Usage)
    """Tokens of its requests, those that failed included."""
    usd: float | None = None
    """What they cost."""


def to_vote(
    pair: Pair,
    sample: int,
    trace: Trace,
    *,
    unit: str,
    form: VerdictFormat | None = None,
) -> Vote:
    """The vote. A truncated, refused or failed trace has no answer, which is not the verdict False.

    Args:
        unit: of lengths, `tokens` or `characters`.
        form: reads the trace; by default a verdict.
    """
    answer = trace.answer if trace.text is None else (form or build_format()).read(trace.text)
    answer = Answer() if trace.missing else answer
    characters = None if trace.text is None else len(trace.text)
    return Vote(
        pair_id=pair.pair_id,
        question_id=pair.question_id,
        sample=sample,
        verdict=answer.accepts,
        grade=answer.grade,
        first_error=answer.first_error,
        length=trace.tokens if unit == "tokens" else characters,
        trace=trace.text,
        logit=trace.logit,
        usd=trace.usd,
    )


class TraceCache:
    """Keeps a trace under all that it depends on: messages, template, model, sampling, seed, number of the sample.

    Raises:
        DataError: the file is something else.
        CacheUnavailable: (an OSError) the file cannot be opened or written.
    """

    def __init__(self, path: Path, *, model: str, fields: str, template: str, seed: int | None) -> None:
        """
        Args:
            model: the model's name, or for a checkpoint the server's kind.
            fields: `pv_data.asking.settings.Model.fields`, the revision included.
            template: of the prompt, name and hash.
            seed: `Sampling.seed`; None where requests carry no seed.
        """
        self._cache = AnswerCache(path, instead="name another file")
        self._model = model
        self._template = template
        self._request = {"request": fields, "seed": seed}
        self._logits = "logprobs" in json.loads(fields)

    def messages_key(self, messages: Messages) -> str:
        """The hash that `get` and `put` take for the messages, computed once for all samples of a pair."""
        return hashlib.sha256(json.dumps([dict(message) for message in messages]).encode()).hexdigest()

    def get(self, messages: str, sample: int) -> Trace | None:
        """The cached trace, if any."""
        for end in ("", *OF_THE_MODEL):
            known = self._cache.get(self._key(messages, sample, end))
            if known is not None:
                logit = self._cache.get(self._key(messages, sample, LOGIT)) if self._logits else None
                return Trace(
                    text=known.text,
                    tokens=known.usage.completion_tokens or None,
                    missing=end,
                    known=True,
                    usage=known.usage,
                    logit=None if logit is None else float(logit.text),
                )
        return None

    def put(self, messages: str, sample: int, trace: Trace, usage: Usage) -> None:
        """Keep a trace that a model wrote. A failed request is not kept, so the next run asks again."""
        if trace.text is None:
            return
        if trace.logit is not None:  # first: where the trace is, its logit is too
            logit = CachedAnswer(text=repr(trace.logit), usage=Usage(), model=self._model)
            self._cache.put(self._key(messages, sample, LOGIT), logit)
        answer = CachedAnswer(text=trace.text, usage=usage, model=self._model)
        self._cache.put(self._key(messages, sample, trace.missing), answer)

    def close(self) -> None:
        """Close the file; its content is complete without this too."""
        self._cache.close()

    def _key(self, messages: str, sample: int, end: str) -> str:
        return cache_key(
            template_hash=f"{self._template}#{sample}{f'!{end}' if end else ''}",
            model=self._model,
            sampling=self._request,
            text=messages,
        )
