"""The executor `local` and local models: each is served while a stage has something to ask of it."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from rich.console import Console

from pv_data.asking.keeping import Keeping
from pv_data.asking.settings import Model
from pv_data.run.chunk import Job, pending
from pv_data.run.config import RunConfig
from pv_data.run.places import answers
from pv_data.run.weights import LOGS, folder_of
from pv_data.serving.options import arguments_of, choose_gpus, visible_gpus
from pv_data.serving.served import Served, choose_server, served
from pv_rl.judge.cache import AnswerCache
from pv_rl.judge.config import Endpoint, Timeouts

__all__ = ["Servers", "lacking"]

LONG_S = 24 * 3600.0
"""A server that answers one request at a time may take as long as it takes."""


def lacking(job: Job) -> set[str]:
    """The local models of which a stage has something to ask that they have not answered."""
    models = {name: model for name, model in job.config.models.items() if model.local is not None}
    found: set[str] = set()
    if not models:
        return found
    keeping = {name: Keeping(model) for name, model in models.items()}
    with contextlib.ExitStack() as stack:
        caches: dict[str, AnswerCache] = {}
        for name, model in models.items():
            caches[name] = AnswerCache(model.cache or answers(job.run))
            stack.callback(caches[name].close)
        asks = job.asks()
        for one in (one for chunk in pending(job) for one in asks(chunk)):
            if one.model in models and one.model not in found:
                if caches[one.model].get(keeping[one.model].key(one.question, one.sample)) is None:
                    found.add(one.model)
                if found == set(models):
                    break
    return found


class Servers:
    """Those that are up; gone when the block ends, however it ends."""

    def __init__(self, run: Path, console: Console) -> None:
        self._run, self._console = run, console
        self._up: dict[str, tuple[contextlib.ExitStack, Model, list[str]]] = {}

    def __enter__(self) -> Servers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(set(self._up))

    def reach(self, job: Job) -> Job:
        """The job with servers for what it has to ask. Others end first, and make room on the GPUs.

        Raises:
            SetupError: a server did not come up.
        """
        wanted = lacking(job)
        self._end(set(self._up) - wanted)
        for name in sorted(wanted - set(self._up)):
            self._start(name, job.config)
        return job.with_served({name: self._up[name][1] for name in wanted})

    def _start(self, name: str, config: RunConfig) -> None:
        model, logs = config.models[name], self._run / LOGS
        assert model.local is not None
        folder, kind = folder_of(model, self._run), choose_server(model.local.server)
        gpus: list[str] = []
        if kind == "vllm":
            taken = {gpu for _, _, of in self._up.values() for gpu in of}
            gpus = choose_gpus(model.local, visible_gpus(), taken)
        self._console.print(
            f"serving {name} ({folder}) by {kind}; its log is in {logs}", highlight=False, markup=False
        )
        stack = contextlib.ExitStack()
        one = stack.enter_context(
            served(
                folder,
                server=kind,
                log=logs / f"server-{name}.log",
                arguments=arguments_of(model.local, folder) if kind == "vllm" else (),
                env={"CUDA_VISIBLE_DEVICES": ",".join(gpus)} if gpus else {},
            )
        )
        self._up[name] = (stack, _through(model, one, config.workers), gpus)

    def _end(self, names: set[str]) -> None:
        with contextlib.ExitStack() as stack:
            for name in names:
                stack.callback(self._up.pop(name)[0].close)


def _through(model: Model, one: Served, workers: int) -> Model:
    """How the model is reached."""
    at_once = max(workers, min(model.limits.concurrency, one.at_once))
    reached = replace(
        model,
        local=None,
        endpoints=(Endpoint(url=one.url, model=one.model, extra_body=dict(one.fields)),),
        limits=replace(model.limits, concurrency=at_once),
    )
    if one.at_once > 1:
        return reached
    return replace(reached, timeouts=Timeouts(first_byte_s=LONG_S, total_s=LONG_S), deadline_s=LONG_S)
