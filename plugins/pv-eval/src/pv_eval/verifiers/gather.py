"""The traces of a verifier of any kind, and what is to be said of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

from rich.console import Console

from pv_data.asking.settings import Model
from pv_data.export.prompt import VerifierPrompt
from pv_data.serving.checkpoint import fingerprint, model_folder
from pv_data.serving.served import Served, choose_server, served
from pv_eval.sampling import Sampling
from pv_eval.sets.base import EvalSet
from pv_eval.verifiers.asked import Progress, Traces, look_up
from pv_eval.verifiers.choose import choose_verifier
from pv_eval.verifiers.client import client_settings
from pv_eval.verifiers.display import shown
from pv_eval.verifiers.endpoint import ask_all
from pv_eval.verifiers.remembered import MODEL_S_OWN, Remembered
from pv_eval.verifiers.sampled import read_traces
from pv_eval.verifiers.trace import Trace
from pv_eval.wanted import Wanted
from pv_rl.errors import ConfigError

__all__ = ["Gathered", "gather"]

Opened: TypeAlias = "tuple[Model, Served | None]"
"""Whom to ask, and the server if it is ours."""


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """Traces and what is to be said of them."""

    name: str
    traces: Mapping[tuple[str, int], Trace]
    samples: Mapping[str, list[int]]
    unit: str
    temperature: float | None
    seed: int | None
    notes: tuple[str, ...]
    settings: Mapping[str, Any]


def gather(wanted: Wanted, found: EvalSet, console: Console) -> Gathered:
    """Read the traces, or sample those that are not known yet.

    Raises:
        PvRlError: something given is not what it should be; or the run was stopped and can go on.
    """
    chosen = choose_verifier(wanted.verifier)
    if chosen.kind == "traces":
        return _from_traces(wanted, chosen.path, found)
    if chosen.kind == "endpoint":
        return _of_endpoint(wanted, chosen.url, found, console)
    return _of_checkpoint(wanted, chosen.path, found, console)


def _from_traces(wanted: Wanted, path: Path, found: EvalSet) -> Gathered:
    read = read_traces(path, found, step=wanted.step)
    numbers: dict[str, list[int]] = {pair.pair_id: [] for pair in found.pairs}
    for pair_id, sample in sorted(read.traces):
        numbers[pair_id].append(sample)
    return Gathered(
        name=wanted.name or wanted.model or _name_of(path, read.file),
        traces=read.traces,
        samples=numbers,
        unit="tokens" if read.counted else "characters",
        temperature=None,
        seed=None,
        notes=read.notes(),
        settings={"verifier": {"kind": "traces", "path": str(read.file)}},
    )


def _name_of(path: Path, file: Path) -> str:
    """A file's own; of a folder of dumps, all of which are called by their step, the run and the step."""
    return file.stem if path == file else f"{path.resolve().parent.name}, step {file.stem}"


def _of_endpoint(wanted: Wanted, url: str, found: EvalSet, console: Console) -> Gathered:
    if not wanted.model:
        raise ConfigError("an endpoint needs --model, the name by which its server knows the model")
    model = client_settings(wanted, url, wanted.model, at_once=64)
    about = {"kind": "endpoint", "url": url, "model": wanted.model, "revision": model.revision}
    return _asked(wanted, found, console, wanted.model, model, about, nullcontext((model, None)))


def _of_checkpoint(wanted: Wanted, path: Path, found: EvalSet, console: Console) -> Gathered:
    logs = wanted.out / "logs"
    folder = model_folder(path, logs / "merge.log")
    kind, revision = choose_server(wanted.server), fingerprint(folder)
    about = {"kind": "checkpoint", "path": str(path), "server": kind, "revision": revision}
    # Traces are kept under what the weights are and what serves them, wherever they lie.
    known_as = client_settings(
        wanted, "http://127.0.0.1/v1", f"checkpoint by {kind}", at_once=1, own=True, revision=revision
    )

    @contextmanager
    def serving() -> Iterator[Opened]:
        text = f"serving {folder} by {kind}; its log is in {logs}"
        console.print(text, highlight=False, markup=False, soft_wrap=True)
        with served(folder, server=kind, log=logs / "server.log", arguments=wanted.server_arguments) as one:
            settings = client_settings(
                wanted,
                one.url,
                one.model,
                at_once=one.at_once,
                own=True,
                revision=revision,
                fields=one.fields,
            )
            yield settings, one

    name = wanted.model or path.resolve().name
    return _asked(wanted, found, console, name, known_as, about, serving())


def _asked(
    wanted: Wanted,
    found: EvalSet,
    console: Console,
    name: str,
    known_as: Model,
    about: Mapping[str, Any],
    opened: AbstractContextManager[Opened],
) -> Gathered:
    """Traces of the cache, and of the model where some are missing."""
    prompt, sampling, state = VerifierPrompt.load(wanted.prompt), wanted.sampling, Progress()
    remembered = Remembered(
        wanted.cache or wanted.out / "answers.sqlite",
        model=known_as.model,
        fields=known_as.fields(),
        template=prompt.template,
        seed=sampling.seed if sampling.send_seed else None,
    )
    try:
        traces, left = look_up(found.pairs, prompt, sampling.n, remembered, state)
        if left:
            with opened as (model, server), shown(state, console):
                gone = server.gone if server is not None else lambda: ""
                traces |= ask_all(left, model, sampling, remembered, state, gone=gone)
    finally:
        remembered.close()
    return Gathered(
        name=wanted.name or name,
        traces=traces,
        samples={pair.pair_id: list(range(sampling.n)) for pair in found.pairs},
        unit="tokens",
        temperature=sampling.temperature,
        seed=sampling.seed,
        notes=(*_failure_notes(state), *_logit_notes(sampling, traces)),
        settings={
            "verifier": dict(about),
            "sampling": {**asdict(sampling), "rule": "Sampling.seed_of(pair_id, sample)"},
            "prompt": prompt.template,
            "spent": {
                "usd": state.usd,
                "requests": state.calls,
                "tokens": state.tokens,
                "known": state.known,
            },
            "missing": dict(state.failures),
        },
    )


def _logit_notes(sampling: Sampling, traces: Traces) -> tuple[str, ...]:
    having = sum(trace.logit is not None for trace in traces.values())
    if not sampling.logits or having == len(traces):
        return ()
    return (f"Traces that have a logit of their verdict, of {len(traces)}: {having}.",)


def _failure_notes(state: Progress) -> tuple[str, ...]:
    notes: list[str] = []
    own = {reason: number for reason, number in state.failures.items() if reason in MODEL_S_OWN}
    rest = {reason: number for reason, number in state.failures.items() if reason not in MODEL_S_OWN}
    if own:
        said = "; ".join(f"{reason}: {number}" for reason, number in own.items())
        notes.append(f"Traces without a verdict by the model's own doing, of {state.total}: {said}.")
    if rest:
        said = "; ".join(f"{reason}: {number}" for reason, number in rest.items())
        notes.append(
            f"{sum(rest.values())} of {state.total} traces never came because requests failed ({said}). They count as "
            "missing verdicts, which no verdict of the model is; the same command asks for them again."
        )
    return tuple(notes)
