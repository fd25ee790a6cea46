"""Traces of a verifier: read from a file, or sampled from an endpoint or from a checkpoint that is served here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeAlias

from rich.console import Console

from pv_data.asking.asker import Stopped
from pv_data.asking.settings import Model
from pv_data.export.prompt import VerifierPrompt
from pv_data.serving.checkpoint import fingerprint, is_model, is_verl, model_folder
from pv_data.serving.served import Served, choose_server, served
from pv_eval.costs import add_usage, usd_of
from pv_eval.request import Request, Sampling
from pv_eval.run_files import RunInfo
from pv_eval.sets.base import EvalSet, in_words
from pv_eval.sets.rows import SUFFIXES
from pv_eval.verifiers.client import Traces, ask_all, client_settings, look_up
from pv_eval.verifiers.progress import Progress, shown
from pv_eval.verifiers.recorded import read_traces
from pv_eval.verifiers.trace_cache import OF_THE_MODEL, OF_THE_PROMPT, TraceCache
from pv_eval.votes import Pair
from pv_judge.pages.text import plural
from pv_judge.rowfiles.steps import SUFFIXES as DUMPS
from pv_rl.errors import ConfigError

__all__ = ["gather", "kind_of"]

Opened: TypeAlias = "tuple[Model, Served | None]"
"""Settings of the client, and the server if this command started one."""


def kind_of(verifier: str) -> str:
    """What `--verifier` names: `endpoint`, `checkpoint` (a model's folder or verl's) or `traces` (a file or a folder).

    Raises:
        ConfigError: it is none of these.
    """
    if verifier.startswith(("http://", "https://")):
        return "endpoint"
    path = Path(verifier)
    if path.is_file() and path.suffix in SUFFIXES:
        return "traces"
    if path.is_dir():
        if is_model(path) or is_verl(path):
            return "checkpoint"
        if any(file.suffix in DUMPS for file in path.iterdir()):
            return "traces"
    problem = "does not exist" if not path.exists() else "is none of these"
    raise ConfigError(
        f"--verifier {verifier!r:.200} {problem}; give an address (http://HOST/v1), a model's folder (config.json and "
        f".safetensors), a verl checkpoint (global_step_N), a file of traces ({', '.join(SUFFIXES)}) or a folder with "
        "one a step"
    )


def gather(request: Request, found: EvalSet, console: Console) -> tuple[Traces, RunInfo]:
    """Read the traces, or sample those that are not in the cache; and what the run's record says of them.

    Raises:
        PvRlError: an option or a file is wrong; or the run was stopped and can be resumed.
    """
    kind = kind_of(request.verifier)
    if kind == "traces":
        return _from_file(request, Path(request.verifier), found)
    if request.columns or request.step is not None:
        option = "--column" if request.columns else "--step"
        raise ConfigError(f"{option} is for a --verifier with recorded traces; leave it out")
    if kind == "endpoint":
        return _from_endpoint(request, found, console)
    return _from_checkpoint(request, Path(request.verifier), found, console)


def _from_file(request: Request, path: Path, found: EvalSet) -> tuple[Traces, RunInfo]:
    read = read_traces(path, found, step=request.step, form=request.form, columns=request.columns)
    # verl's dumps are all named by their step, so the run's name is added
    own = read.file.stem if path == read.file else f"{path.resolve().parent.name}, step {read.file.stem}"
    named = ",".join(sorted(f"{name}={column}" for name, column in request.columns.items()))
    columns = {"columns": named} if named else {}
    info = RunInfo(
        verifier=request.name or request.model or own,
        length_unit="tokens" if read.counted else "characters",
        notes=read.notes(),
        settings={"verifier": {"kind": "traces", "path": str(read.file), **columns}},
    )
    return read.traces, info


def _from_endpoint(request: Request, found: EvalSet, console: Console) -> tuple[Traces, RunInfo]:
    if not request.model:
        raise ConfigError("an endpoint needs --model, the model's name at its server")
    url = request.verifier.rstrip("/").removesuffix("/chat/completions")
    model = client_settings(request, url, request.model, concurrency=64)
    about = {"kind": "endpoint", "url": url, "model": request.model, "revision": model.revision}
    return _asked(request, found, console, request.model, model, about, nullcontext((model, None)))


def _from_checkpoint(
    request: Request, path: Path, found: EvalSet, console: Console
) -> tuple[Traces, RunInfo]:
    logs = request.out / "logs"
    folder = model_folder(path, logs / "merge.log")
    kind, revision = choose_server(request.server), fingerprint(folder)
    about = {"kind": "checkpoint", "path": str(path), "server": kind, "revision": revision}
    # The cache's key has a hash of the weights and the kind of server, and not where they are.
    known_as = client_settings(
        request, "http://127.0.0.1/v1", f"checkpoint by {kind}", concurrency=1, own=True, revision=revision
    )

    @contextmanager
    def serving() -> Iterator[Opened]:
        text = f"serving {folder} by {kind}; its log is in {logs}"
        console.print(text, highlight=False, markup=False, soft_wrap=True)
        with served(folder, server=kind, log=logs / "server.log", arguments=request.server_arguments) as one:
            settings = client_settings(
                request,
                one.url,
                one.model,
                concurrency=one.at_once,
                own=True,
                revision=revision,
                fields=one.fields,
            )
            yield settings, one

    name = request.model or path.resolve().name
    return _asked(request, found, console, name, known_as, about, serving())


def _asked(
    request: Request,
    found: EvalSet,
    console: Console,
    name: str,
    known_as: Model,
    about: Mapping[str, Any],
    opened: AbstractContextManager[Opened],
) -> tuple[Traces, RunInfo]:
    """Traces of the cache, and of the model where some are missing."""
    prompt = VerifierPrompt.load(request.prompt or request.form.prompt)
    pairs, shown_texts = _as_shown(request, prompt, found)
    sampling, state = request.sampling, Progress()
    request.out.mkdir(parents=True, exist_ok=True)
    cache = TraceCache(
        request.out / "answers.sqlite",
        model=known_as.model,
        fields=known_as.fields(),
        template=prompt.template,
        seed=sampling.seed if sampling.send_seed else None,
    )
    try:
        traces, left = look_up(pairs, prompt, sampling.n, cache, state, request.form)
        if left:
            with opened as (model, server), shown(state, console):
                gone = server.gone if server is not None else lambda: ""
                answers = ask_all(left, model, sampling, cache, state, gone=gone)
            _check_answered(answers, traces, state)
            traces |= answers
    finally:
        cache.close()
    asked = {
        id(trace): trace.usage for trace in traces.values()
    }  # pairs with the same messages share a trace
    traces = {key: replace(trace, usd=usd_of(trace.usage, known_as)) for key, trace in traces.items()}
    info = RunInfo(
        verifier=request.name or name,
        length_unit="tokens",
        temperature=sampling.temperature,
        seed=sampling.seed,
        notes=(*_shown_notes(shown_texts, len(pairs)), *_notes(state, sampling, traces)),
        settings={
            "verifier": dict(about),
            "sampling": {**asdict(sampling), "rule": "Sampling.seed_of(pair_id, sample)"},
            "prompt": prompt.template,
            "shown": shown_texts,
            "spent": {
                "usd": state.usd,
                "requests": state.calls,
                "tokens": state.tokens,
                "known": state.known,
            },
            "usage": add_usage(asked.values()),
            "missing": dict(state.failures),
        },
    )
    return traces, info


def _check_answered(answers: Traces, cached: Traces, state: Progress) -> None:
    """Votes of requests that all failed would be a table of zeros; what is left of a run may be prompts that fail."""
    if any(trace.text is not None or trace.missing in OF_THE_MODEL for trace in answers.values()):
        return
    if cached and all(trace.missing in OF_THE_PROMPT for trace in answers.values()):
        return
    reasons = in_words(Counter(trace.missing for trace in answers.values()))
    raise Stopped(
        f"none of {plural(len(answers), 'request')} was answered ({reasons}). The last error: "
        f"{state.last_error}. No votes were "
        "written. Check --verifier, --model and the server, and run the same command again"
    )


def _as_shown(request: Request, prompt: VerifierPrompt, found: EvalSet) -> tuple[list[Pair], dict[str, int]]:
    """The pairs with the texts that the prompt may show, and how many have each of these: `reference`, `rubric`.

    Raises:
        ConfigError: a text is asked for that the prompt has no place for, or that no pair has.
    """
    numbers: dict[str, int] = {}
    for name, asked in (("reference", request.reference), ("rubric", request.rubric)):
        having = sum(bool(getattr(pair, name).strip()) for pair in found.pairs)
        if asked and not (having and name in prompt.shows):
            lacks = f"the prompt {prompt.name} has no {{{{ {name} }}}}" if having else f"no pair has a {name}"
            raise ConfigError(f"--{name} shows nothing: {lacks}. Leave it out, or change the set or --prompt")
        numbers[name] = having if asked is not False and name in prompt.shows else 0
    hidden = {name: "" for name, number in numbers.items() if not number}
    return [replace(pair, **hidden) for pair in found.pairs], numbers


def _shown_notes(numbers: Mapping[str, int], total: int) -> list[str]:
    words = {"reference": "a reference solution", "rubric": "a marking scheme"}
    return [
        f"The prompt shows {words[name]} of {number} of {plural(total, 'pair')} (--no-{name} leaves it out)."
        for name, number in numbers.items()
        if number
    ]


def _notes(state: Progress, sampling: Sampling, traces: Traces) -> tuple[str, ...]:
    """Sentences on failures and logits, for the report."""
    notes: list[str] = []
    own = {reason: number for reason, number in state.failures.items() if reason in OF_THE_MODEL}
    rest = {reason: number for reason, number in state.failures.items() if reason not in OF_THE_MODEL}
    if own:
        notes.append(
            f"Traces without a verdict because of the model itself, of {state.total}: {in_words(own)}."
        )
    if rest:
        notes.append(
            f"{sum(rest.values())} of {plural(state.total, 'trace')} are missing because requests failed "
            f"({in_words(rest)}). "
            "They count as missing verdicts, although the model gave none; run the same command again to ask for them."
        )
    having = sum(trace.logit is not None for trace in traces.values())
    if sampling.logits and having < len(traces):
        notes.append(f"Traces that have a logit of their verdict, of {len(traces)}: {having}.")
    return tuple(notes)
