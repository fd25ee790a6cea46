"""`pv-data eval`: a set, a verifier, its votes on disk, and the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from pv_data import __version__
from pv_data.asking.settings import Model
from pv_data.evaluate.files import write_run
from pv_data.evaluate.run_info import RunInfo
from pv_data.evaluate.sampling import Sampling
from pv_data.evaluate.sets.base import EvalSet
from pv_data.evaluate.sets.named import open_set
from pv_data.evaluate.sets.overlap import Action, find_overlap, settle, trained_on
from pv_data.evaluate.verifiers.checkpoint import fingerprint, model_folder
from pv_data.evaluate.verifiers.choose import Chosen, choose_verifier
from pv_data.evaluate.verifiers.display import shown
from pv_data.evaluate.verifiers.endpoint import Progress, ask_all, look_up
from pv_data.evaluate.verifiers.remembered import MODEL_S_OWN, Remembered
from pv_data.evaluate.verifiers.sampled import read_traces
from pv_data.evaluate.verifiers.served import choose_server, served
from pv_data.evaluate.verifiers.trace import Trace, to_vote
from pv_data.export.prompt import VerifierPrompt
from pv_data.records import content_id
from pv_rl.errors import ConfigError
from pv_rl.judge.config import read_config
from pv_rl.scoring.command import read_options

__all__ = ["Wanted", "evaluate_verifier", "prepare_set"]

LONG_S = 24 * 3600.0
"""A server of our own on a CPU may take as long as it takes."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """One evaluation, as the command's options say it."""

    set_spec: str
    verifier: str
    out: Path
    model: str = ""
    name: str = ""
    sampling: Sampling = field(default_factory=Sampling)
    set_options: Mapping[str, Any] = field(default_factory=dict)
    train: Path | None = None
    overlap: Action = "refuse"
    limit: int | None = None
    prompt: Path | None = None
    server: str = "auto"
    server_arguments: Sequence[str] = ()
    client: Sequence[str] = ()
    """Settings of `pv_data.asking.settings.Model`, `name=value`."""
    cache: Path | None = None
    step: int | None = None
    keep_traces: bool = True


def evaluate_verifier(wanted: Wanted, console: Console) -> RunInfo:
    """Sample or read the votes and write the run's folder.

    Raises:
        PvRlError: something given or found is not what it should be; or the run was stopped and can go on.
        OSError: a file cannot be read or written.
    """
    found = prepare_set(wanted)
    for sentence in found.said():
        console.print(sentence, highlight=False, markup=False, soft_wrap=True)
    chosen = choose_verifier(wanted.verifier)
    wanted.out.mkdir(parents=True, exist_ok=True)
    made = (
        _from_traces(wanted, chosen, found)
        if chosen.kind == "traces"
        else _sampled(wanted, chosen, found, console)
    )
    votes = [
        to_vote(
            pair, sample, made.traces[pair.pair_id, sample], unit=made.unit, keep_trace=wanted.keep_traces
        )
        for pair in found.pairs
        for sample in made.samples[pair.pair_id]
    ]
    info = RunInfo(
        verifier=made.name,
        set_name=found.name,
        length_unit=made.unit,
        temperature=made.temperature,
        seed=made.seed,
        notes=(*found.said(), *made.notes),
        settings={
            "pv_data": __version__,
            "set": {"spec": wanted.set_spec, "options": dict(wanted.set_options), **found.counts},
            **made.settings,
        },
    )
    write_run(wanted.out, found.pairs, votes, info)
    for note in made.notes:
        console.print(note, highlight=False, markup=False, soft_wrap=True)
    return info


def prepare_set(wanted: Wanted) -> EvalSet:
    """The set, held against a training set and cut to the limit."""
    found = open_set(wanted.set_spec, wanted.set_options)
    if wanted.train is not None:
        found = settle(found, find_overlap(found, trained_on(wanted.train)), wanted.overlap)
    else:
        found = replace(found, notes=(*found.notes, "It was not held against a training set (--train)."))
    if wanted.limit is None or wanted.limit >= len(found.pairs):
        return found
    if wanted.limit < 1:
        raise ConfigError(f"--limit is {wanted.limit}; it is 1 or more pairs")
    # By a hash, so that a part is no choice of the file's order, and a larger part contains the smaller.
    order = sorted(found.pairs, key=lambda pair: content_id("limit", pair.pair_id))
    kept = {pair.pair_id for pair in order[: wanted.limit]}
    note = f"A part of {wanted.limit} of its {len(found.pairs)} pairs, drawn by a hash of their ids."
    return found.only(kept, note)


@dataclass(frozen=True, kw_only=True)
class _Made:
    """Traces and what is to be said of them."""

    name: str
    traces: Mapping[tuple[str, int], Trace]
    samples: Mapping[str, list[int]]
    unit: str
    temperature: float | None
    seed: int | None
    notes: tuple[str, ...]
    settings: Mapping[str, Any]


def _from_traces(wanted: Wanted, chosen: Chosen, found: EvalSet) -> _Made:
    read = read_traces(chosen.path, found, step=wanted.step)
    numbers: dict[str, list[int]] = {pair.pair_id: [] for pair in found.pairs}
    for pair_id, sample in sorted(read.traces):
        numbers[pair_id].append(sample)
    return _Made(
        name=wanted.name or wanted.model or chosen.path.stem,
        traces=read.traces,
        samples=numbers,
        unit="tokens" if read.counted else "characters",
        temperature=None,
        seed=None,
        notes=("Traces were read from a file; how they were sampled is not known here.", *read.notes()),
        settings={"verifier": {"kind": "traces", "path": str(chosen.path)}},
    )


def _sampled(wanted: Wanted, chosen: Chosen, found: EvalSet, console: Console) -> _Made:
    if chosen.kind == "endpoint":
        if not wanted.model:
            raise ConfigError("an endpoint needs --model, the name by which its server knows the model")
        model = _model(wanted, chosen.url, wanted.model, at_once=64)
        about = {"kind": "endpoint", "url": chosen.url, "model": wanted.model, "revision": model.revision}
        return _asked(wanted, found, console, wanted.model, model, about, nullcontext(model))
    logs = wanted.out / "logs"
    folder = model_folder(chosen.path, logs / "merge.log")
    kind, revision = choose_server(wanted.server), fingerprint(folder)
    about = {"kind": "checkpoint", "path": str(chosen.path), "server": kind, "revision": revision}
    # Traces are kept under what the weights are and what serves them, wherever they lie.
    known_as = _model(wanted, "http://127.0.0.1/v1", f"checkpoint by {kind}", at_once=1, revision=revision)

    @contextmanager
    def serving() -> Iterator[Model]:
        console.print(
            f"serving {folder} by {kind}; its log is in {logs}", highlight=False, markup=False, soft_wrap=True
        )
        with served(folder, server=kind, log=logs / "server.log", arguments=wanted.server_arguments) as one:
            yield _model(
                wanted, one.url, one.model, at_once=one.at_once, revision=revision, fields=one.fields
            )

    name = wanted.model or chosen.path.resolve().name
    return _asked(wanted, found, console, name, known_as, about, serving())


def _asked(
    wanted: Wanted,
    found: EvalSet,
    console: Console,
    name: str,
    known_as: Model,
    about: Mapping[str, Any],
    opened: AbstractContextManager[Model],
) -> _Made:
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
            with opened as model, shown(state, console):
                traces |= ask_all(left, model, sampling, remembered, state)
    finally:
        remembered.close()
    return _Made(
        name=wanted.name or name,
        traces=traces,
        samples={pair.pair_id: list(range(sampling.n)) for pair in found.pairs},
        unit="tokens",
        temperature=sampling.temperature,
        seed=sampling.seed,
        notes=_failure_notes(state),
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


def _model(
    wanted: Wanted,
    url: str,
    name: str,
    *,
    at_once: int,
    revision: str = "",
    fields: Mapping[str, Any] | None = None,
) -> Model:
    """The settings of the client: ours, and the user's over them."""
    own = url.startswith("http://127.0.0.1") and bool(revision)
    patient = {"timeouts": {"first_byte_s": LONG_S, "total_s": LONG_S}, "deadline_s": LONG_S} if own else {}
    settings: dict[str, Any] = {
        "endpoints": [{"url": url, "model": name, "extra_body": dict(fields or {})}],
        "sampling": wanted.sampling.fields(),
        "limits": {"concurrency": at_once},
        "revision": revision,
        **patient,
    }
    for part, value in read_options(None, wanted.client).items():
        if part == "endpoints":
            raise ConfigError("the endpoint is --verifier and --model; its other fields are endpoint.NAME")
        if part == "endpoint":
            settings["endpoints"][0].update(value)
        elif isinstance(value, dict) and isinstance(settings.get(part), dict):
            settings[part] = {**settings[part], **value}
        else:
            settings[part] = value
    return read_config(settings, Model, "client")
