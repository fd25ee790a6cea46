"""Model servers of a run: each local model is served while a stage has something to ask of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

from rich.console import Console

from pv_data.asking.asker import Stopped
from pv_data.asking.kept_answers import INSTEAD, Keeping
from pv_data.asking.settings import Model
from pv_data.run.config import RunConfig
from pv_data.run.folder import answers_path
from pv_data.run.manifest import LOGS, folder_of
from pv_data.run.stage import Job, pending
from pv_data.serving.served import (
    LONG_S,
    Served,
    arguments_of,
    choose_gpus,
    choose_server,
    served,
    visible_gpus,
)
from pv_judge.cache import AnswerCache
from pv_judge.config import Endpoint, Timeouts
from pv_judge.processes import interruptible
from pv_rl.errors import ConfigError

__all__ = ["Servers"]


ALIKE = frozenset({"max_tokens", "temperature", "top_p", "stop", "chat_template_kwargs"})
"""Of the sampling, what `transformers serve` does as vLLM does it; the rest it leaves out or refuses."""


def _unasked(job: Job) -> set[str]:
    """The local models of which a stage has something to ask that they have not answered."""
    models = {name: job.config.models[name] for name in job.models}
    models = {name: model for name, model in models.items() if model.local is not None}
    found: set[str] = set()
    if not models:
        return found
    keeping = {name: Keeping(model) for name, model in models.items()}
    with contextlib.ExitStack() as stack:
        caches: dict[str, AnswerCache] = {}
        for name, model in models.items():
            caches[name] = AnswerCache(model.cache or answers_path(job.run), instead=INSTEAD)
            stack.callback(caches[name].close)
        asks = job.asks()
        for one in (one for chunk in pending(job) for one in asks(chunk)):
            if one.model in models and one.model not in found:
                if caches[one.model].get(keeping[one.model].key(one.question, one.sample)) is None:
                    found.add(one.model)
                if found == set(models):
                    break
    return found


def _check_alike(config: RunConfig) -> None:
    """Of all models, before the first of them is asked: a later stage would find it after hours."""
    for name in sorted(config.named):
        model = config.models[name]
        strange = sorted(model.sampling.keys() - ALIKE)
        if model.local is not None and strange and choose_server(model.local.server) != "vllm":
            raise ConfigError(
                f"models.{name}.sampling has {', '.join(strange)}, which `transformers serve` ignores or handles "
                f"differently from vLLM. Leave it out ({', '.join(sorted(ALIKE))} can stay), "
                "or take a machine with vLLM"
            )


@dataclass(frozen=True, kw_only=True)
class _Up:
    """A server that runs."""

    stack: contextlib.ExitStack
    """Ends it."""
    model: Model
    """How the model is reached."""
    gpus: list[str]
    gone: Callable[[], str]
    """Why it will never answer again; empty while it may."""


class Servers:
    """Those that are up; gone when the block ends, however it ends."""

    def __init__(self, run: Path, console: Console) -> None:
        self._run, self._console = run, console
        self._up: dict[str, _Up] = {}
        self._signals = contextlib.ExitStack()

    def __enter__(self) -> Servers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def end(self) -> None:
        """All of them; there is nothing left to ask."""
        self._end(set(self._up))
        self._signals.close()

    def why(self, stopped: Stopped) -> Stopped:
        """With the reason where a server has ended by itself, which those who asked it do not know."""
        gone = [f"{name}: {said}" for name, one in self._up.items() if (said := one.gone())]
        return Stopped(f"{stopped}\n{'; '.join(gone)}") if gone else stopped

    def reach(self, job: Job) -> Job:
        """The job with servers for what it has to ask. Others end first, and make room on the GPUs.

        Raises:
            SetupError: a server did not come up.
        """
        wanted = _unasked(job)
        if wanted:
            _check_alike(job.config)
        self._end(set(self._up) - wanted)
        for name in sorted(wanted - set(self._up)):
            self._start(name, job.config)
        return job.with_served({name: self._up[name].model for name in wanted})

    def _start(self, name: str, config: RunConfig) -> None:
        model, logs = config.models[name], self._run / LOGS
        assert model.local is not None
        folder, kind = folder_of(model, self._run), choose_server(model.local.server)
        gpus: list[str] = []
        if kind == "vllm":
            taken = {gpu for one in self._up.values() for gpu in one.gpus}
            gpus = choose_gpus(model.local, visible_gpus(), taken)
        if not self._up:  # once for all of them: they end in another order than they began
            self._signals.enter_context(interruptible())
        self._console.print(
            f"serving {name} ({folder}) by {kind}; its log is in {logs}", highlight=False, markup=False
        )
        stack = contextlib.ExitStack()
        one = stack.enter_context(
            served(
                folder,
                server=kind,
                log=logs / f"server-{name}.log",
                arguments=arguments_of(model.local) if kind == "vllm" else (),
                env={"CUDA_VISIBLE_DEVICES": ",".join(gpus)} if gpus else {},
            )
        )
        self._up[name] = _Up(
            stack=stack, model=_through(model, one, config.workers), gpus=gpus, gone=one.gone
        )

    def _end(self, names: set[str]) -> None:
        with contextlib.ExitStack() as stack:
            for name in names:
                stack.callback(self._up.pop(name).stack.close)


def _through(model: Model, one: Served, workers: int) -> Model:
    """How the model is reached."""
    at_once = max(workers, min(model.limits.concurrency, one.at_once))
    return replace(
        model,
        local=None,
        endpoints=(Endpoint(url=one.url, model=one.model, extra_body=dict(one.fields)),),
        limits=replace(model.limits, concurrency=at_once),
        # It may take as long as it takes: where it has ended, nobody waits for it.
        timeouts=Timeouts(first_byte_s=LONG_S, total_s=LONG_S),
        deadline_s=LONG_S,
    )
