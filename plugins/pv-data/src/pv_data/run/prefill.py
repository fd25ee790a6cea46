"""The executor `ray` and local models: what a stage will ask of them is answered beforehand, in batches of Ray Data.

Rows stream: a task of Ray reads what the chunks ask and the cache has not, the engine answers, and this process, the
only one that writes, keeps each block of answers as it comes. An answer that cannot be read is asked for again, with
another seed, in a further round; what still has none is written down with its reason, for the stage to set aside.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pv_data.asking.asker import Stopped
from pv_data.asking.kept_answers import Keeping, Unanswered
from pv_data.asking.local import Local
from pv_data.run.chunk import Chunk, Job, pending
from pv_data.run.places import answers, unanswered
from pv_data.run.serving import lacking
from pv_data.run.spent import budget_of
from pv_data.run.weights import folder_of
from pv_data.serving.batch import Batch, batch_by_vllm
from pv_judge.answer import ANSWERED, UNREADABLE, JudgeFailure, Usage
from pv_judge.cache import AnswerCache, CachedAnswer
from pv_judge.spend_file import SpendFile
from pv_rl.errors import SetupError

__all__ = ["cpus_of", "prefill"]


def prefill(job: Job) -> None:
    """Have local models answer what the stage has still to ask of them. Ray has been started.

    Raises:
        Stopped: a model gave no answer to too many questions in a row.
        SetupError: there is no vLLM, or there are too few GPUs.
    """
    for name in sorted(lacking(job)):
        model = job.config.models[name]
        assert model.local is not None
        _check_room(model.model, model.local)
        for attempt in range(model.retries.attempts):
            if _is_any_due(job, name, attempt):
                _round(job, name, attempt, batch_by_vllm(model, folder_of(model, job.run)))


def cpus_of(local: Local) -> int:
    """Logical CPUs of Ray that a batch takes: reading, mapping and writing, and for each replica a tokenizer and the
    engine, of which Ray places one process a GPU."""
    return 3 + local.replicas * (1 + local.gpus)


def _check_room(name: str, local: Local) -> None:
    """Symptom without it: Ray waits for what will never come, and says nothing."""
    import ray

    nodes = sum(bool(node["Alive"]) for node in ray.nodes())
    if nodes > 1:
        raise SetupError(
            f"executor=ray asks local models on one machine only, and Ray has {nodes} nodes: {name} would be asked "
            "where the run's folder may not be. Serve it yourself and give its endpoint, or use one machine"
        )
    there = ray.cluster_resources()
    for kind, needed in (("GPU", local.gpus * local.replicas), ("CPU", cpus_of(local))):
        if there.get(kind, 0) < needed:
            raise SetupError(
                f"{name} needs {needed} {kind}s of Ray (local.gpus, local.replicas), and Ray has "
                f"{there.get(kind, 0):.0f}; ask for fewer, or take executor=local"
            )


def _is_any_due(job: Job, name: str, attempt: int) -> bool:
    with contextlib.closing(Due(job, name, attempt)) as due:
        return any(due(_row(chunk)) for chunk in pending(job))


def _row(chunk: Chunk) -> dict[str, Any]:
    return {"part": str(chunk.part), "group": chunk.group, "spec": chunk.spec}


def _round(job: Job, name: str, attempt: int, batch: Batch) -> None:
    """Ask all that is due once."""
    import ray.data

    chunks = [_row(one) for one in pending(job)]
    # A block a chunk: a kill loses what is in the works, some blocks, and no more.
    rows = ray.data.from_items(chunks, override_num_blocks=len(chunks))
    about = {"job": job, "name": name, "attempt": attempt}
    asked = rows.flat_map(Due, fn_constructor_kwargs=about, compute=ray.data.ActorPoolStrategy(size=1))
    keeper = _Keeper(job, name, attempt)
    blocks: Iterator[Any] = iter(batch(asked).iter_batches(batch_size=None, batch_format="pyarrow"))
    try:
        for block in blocks:
            keeper.keep(block.to_pylist())
    finally:
        keeper.close()


class Due:
    """From a chunk to the questions of a round, in a process of Ray's."""

    def __init__(self, job: Job, name: str, attempt: int) -> None:
        model = job.config.models[name]
        self._name, self._attempt, self._asks = name, attempt, job.asks()
        self._keeping = Keeping(model)
        self._cache = AnswerCache(model.cache or answers(job.run))
        self._unanswered = Unanswered(unanswered(job.run))

    def __call__(self, row: dict[str, Any]) -> list[dict[str, Any]]:
        """Rows as `Batch` takes them."""
        chunk = Chunk(part=Path(row["part"]), group=int(row["group"]), spec=int(row["spec"]))
        found: dict[str, dict[str, Any]] = {}
        for one in self._asks(chunk):
            if one.model != self._name:
                continue
            key = self._keeping.key(one.question, one.sample)
            if key not in found and self._is_due(key):
                messages = json.dumps([dict(message) for message in one.question.messages])
                seed = one.question.seed(one.sample, self._attempt)
                found[key] = {"key": key, "messages": messages, "seed": seed}
        return list(found.values())

    def close(self) -> None:
        """Close the files."""
        self._cache.close()
        self._unanswered.close()

    def _is_due(self, key: str) -> bool:
        if self._cache.get(key) is not None:
            return False
        now = self._unanswered.get(key, self._attempt)
        # before the run was interrupted; the same seed would repeat it
        if now is not None and now.kind in ANSWERED:
            return False
        if self._attempt == 0:
            return True
        before = self._unanswered.get(key, self._attempt - 1)
        return before is not None and before.kind in UNREADABLE


class _Keeper:
    """Writes what comes of a round."""

    def __init__(self, job: Job, name: str, attempt: int) -> None:
        self._model, self._parse, self._attempt = job.config.models[name], job.parse, attempt
        self._patience, self._in_vain = job.config.patience, 0
        self._cache = AnswerCache(self._model.cache or answers(job.run))
        self._unanswered = Unanswered(unanswered(job.run))
        self._budget = budget_of(job.run, job.config, 1)
        folder = job.run / "workers" / "batch"
        folder.mkdir(parents=True, exist_ok=True)
        self._spending = SpendFile(folder, self._budget)

    def keep(self, rows: list[dict[str, Any]]) -> None:
        """Answers go into the cache, failures beside it."""
        for row in rows:
            self._keep(row)
        self._spending.save(at_once=True)

    def close(self) -> None:
        """Close the files."""
        self._cache.close()
        self._unanswered.close()
        self._spending.close()

    def _keep(self, row: dict[str, Any]) -> None:
        key, name = row["key"], self._model.model
        before = self._unanswered.get(key, self._attempt - 1) if self._attempt else None
        this = _usage_of(None, row["prompt_tokens"], row["tokens"])
        if (reservation := self._budget.reserve(name, 0, 0)) is not None:  # counts the call; it costs nothing
            self._budget.settle(reservation, this)
        usage = _usage_of(before, this.prompt_tokens, this.completion_tokens)
        failure = self._failure(row)
        if failure is None:
            self._in_vain = 0
            self._cache.put(key, CachedAnswer(text=row["text"], usage=usage, model=name))
            return
        said = JudgeFailure(str(failure), failure.kind, usage, 0.0, self._attempt + 1, row["text"])
        self._unanswered.put(key, self._attempt, said, name)
        if failure.kind in UNREADABLE:  # the engine works, and the row has its further rounds
            return
        self._in_vain += 1
        if self._in_vain >= self._patience:
            raise Stopped(
                f"{name} gave no answer to {self._in_vain} questions in a row; the last: {failure}. Nothing is lost: "
                "see to it, or raise `patience`, and run the same command again"
            )

    def _failure(self, row: dict[str, Any]) -> JudgeFailure | None:
        """Why a row has no usable answer, by the same names as the client's."""
        if row["error"]:
            return JudgeFailure(f"the engine gave no answer: {row['error'][:1000]}", "client_error")
        if row["cut"]:
            return JudgeFailure("the answer was cut at max_tokens", "truncated")
        if not row["text"].strip():
            return JudgeFailure("the answer has no text", "bad_response")
        try:
            if self._parse is not None:
                self._parse(row["text"])
        except JudgeFailure as unread:
            return unread
        return None


def _usage_of(failure: JudgeFailure | None, prompt_tokens: int, completion_tokens: int) -> Usage:
    """Of an attempt and of those before it, as the client counts them."""
    before = failure.usage if failure is not None else Usage()
    return before + Usage(prompt_tokens=prompt_tokens, completion_tokens=completion_tokens)
