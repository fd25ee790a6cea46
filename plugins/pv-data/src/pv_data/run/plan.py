"""Cost estimate of a run (`pv-data run CONFIG --dry-run`): what it would still ask, before anything is paid."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from pv_data.asking.kept_answers import INSTEAD, Keeping
from pv_data.filters import CHARACTERS_PER_TOKEN
from pv_data.labels.check import check_messages
from pv_data.methods.base import Ask, Unfit
from pv_data.records import Problem
from pv_data.run.collect import check_entries, check_names, collect
from pv_data.run.config import RunConfig
from pv_data.run.folder import answers_path, spent
from pv_data.run.generate import Generating, methods
from pv_data.run.judge import Judging
from pv_data.run.manifest import FILE, TABLES, check_manifest, with_revisions
from pv_data.run.pipeline import check_stage, forget_stage, jobs, retry_rejected
from pv_data.run.stage import Asked, is_done
from pv_data.table import read_rows
from pv_judge.answer import Messages
from pv_judge.cache import AnswerCache
from pv_judge.pages.blocks import Column, Heading, Table
from pv_judge.pages.terminal import print_blocks
from pv_judge.pages.text import plural

__all__ = ["Estimate", "estimates", "plan"]


USUAL_PROOF = 2000
"""Characters, where there is none to take the mean of."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What one entry of the config asks of one model."""

    what: str
    model: str
    calls: int
    done: int
    """Calls that the run has made before and does not repeat; they are not in `calls`."""
    prompt_tokens: int
    """At `CHARACTERS_PER_TOKEN`."""
    expected_tokens: int
    """Of the answers, at the model's `expected_tokens`."""
    most_tokens: int | None
    """Of the answers, at `sampling.max_tokens`; None where no setting says."""
    usd: float | None
    """As expected; None for a model without a price."""
    most_usd: float | None


def estimates(
    folder: Path, config: RunConfig, is_kept: Callable[[Asked], bool] = lambda asked: False
) -> list[Estimate]:
    """From the problems and proofs that a folder has collected, with the prompts that would be sent.

    A proof that has still to be generated is taken to be as long as the mean of those that are there, and to have no
    judgments that are kept, as it may have after --redo generate. Retries are not counted.

    Args:
        folder: the run's, or a copy; chunks that are done there ask nothing.
        config: of the run.
        is_kept: whether a question has an answer already.
    """
    problems = {problem.id: problem for problem in read_rows(folder / "problems", Problem)}
    found, made = _generation(Generating(run=folder, config=config), problems, is_kept)
    judging = Judging(run=folder, config=config)
    calls, done, characters = Counter[str](), Counter[str](), Counter[str]()
    proofs, texts, asks = 0, 0, judging.asks()
    for chunk in judging.chunks():
        here = judging.proofs(chunk)
        proofs += len(here)
        texts += sum(len(proof.text) for proof in here)
        if is_done(judging, chunk):
            done.update({seat.model: seat.votes * len(here) for seat in config.panel})
            continue
        for asked in asks(chunk):
            if is_kept(asked):
                done[asked.model] += 1
            else:
                calls[asked.model] += 1
                characters[asked.model] += _length(asked.question.messages)
    mean_problem = sum(len(one.text) for one in problems.values()) // max(1, len(problems))
    usual = _length(check_messages("", "")) + mean_problem + (texts // proofs if proofs else USUAL_PROOF)
    for seat in config.panel:
        name, later = seat.model, seat.votes * made
        found.append(
            _estimate(
                "judge", config, name, calls[name] + later, done[name], characters[name] + later * usual
            )
        )
    return found


def _generation(
    job: Generating, problems: Mapping[str, Problem], is_kept: Callable[[Asked], bool]
) -> tuple[list[Estimate], int]:
    """What is still asked of each entry's model, and how many of the proofs to be made are judged."""
    config, ready = job.config, methods(job.config)
    made, calls, done, characters = ([0] * len(ready) for _ in range(4))
    asks = job.asks()
    for chunk in job.chunks():
        n = chunk.spec
        spec, method = config.generate[n], ready[n]
        if is_done(job, chunk):
            done[n] += job.questions(chunk)
            continue
        for row in job.inputs(chunk):
            try:
                task = job.task(spec, method, row, problems, 0)
            except Unfit:
                continue
            made[n] += spec.samples
            if isinstance(task, Ask):
                calls[n] += spec.samples
                characters[n] += spec.samples * _length(task.messages)
        for asked in asks(chunk):
            if is_kept(asked):
                calls[n], done[n] = calls[n] - 1, done[n] + 1
                characters[n] -= _length(asked.question.messages)
    names = [spec.name or spec.method for spec in config.generate]
    wanted = config.labels.of
    judged = [
        name in wanted if wanted else bool(one.template) for name, one in zip(names, ready, strict=True)
    ]
    found = [
        _estimate(names[n], config, config.generate[n].model, calls[n], done[n], characters[n])
        for n, method in enumerate(ready)
        if method.template
    ]
    return found, sum(number for number, is_judged in zip(made, judged, strict=True) if is_judged)


def _copied(run: Path, folder: Path) -> None:
    """Copy what a run has made so far; of what is judged only the names, which say what is done."""
    for table in (*(one for stage in TABLES.values() for one in stage), "aside"):
        for path in [one for end in ("json", "parquet") for one in (run / table).glob(f"*.{end}")]:
            copy = folder / table / path.name
            copy.parent.mkdir(exist_ok=True)
            if table in TABLES["judge"]:
                copy.touch()
            else:
                shutil.copyfile(path, copy)


@contextlib.contextmanager
def _kept_answers(run: Path, config: RunConfig) -> Iterator[Callable[[Asked], bool]]:
    """Whether the run, or a model's own cache, has the answer to a question."""
    with contextlib.ExitStack() as stack:
        caches = dict[str, AnswerCache]()
        keys = {name: Keeping(config.models[name]) for name in config.named}
        for name in keys:
            path = Path(config.models[name].cache or answers_path(run)).expanduser()
            if path.exists():
                caches[name] = AnswerCache(path, instead=INSTEAD)
                stack.callback(caches[name].close)

        def is_kept(asked: Asked) -> bool:
            cache = caches.get(asked.model)
            key = keys[asked.model].key(asked.question, asked.sample) if cache else ""
            return cache is not None and cache.get(key) is not None

        yield is_kept


def plan(config: RunConfig, console: Console, *, redo: str = "") -> None:
    """Print the estimates of what is left of a run, and whether its budget is enough.

    Sources are read, and a run that exists is continued, in a temporary copy of its tables.

    Raises:
        ConfigError: a name that nothing has, or a setting that differs from those of the run, as `run` raises it.
        DataError: a source that is not what its kind says.
    """
    check_stage(redo)
    run = Path(config.run_dir)
    check_entries(run, config)
    begun = (run / FILE).is_file()
    with tempfile.TemporaryDirectory(prefix="pv-data-plan-") as name:
        folder = Path(name)
        if begun:
            config = with_revisions(config, run)
            check_manifest(run, config, redo)
            _copied(run, folder)
            if redo:
                forget_stage(folder, redo)
        collect(folder, config, Console(stderr=True))
        check_names(folder, config)
        for job in jobs(folder, config) if config.retry_aside else ():
            retry_rejected(job)
        with _kept_answers(run, config) as is_kept:
            found = estimates(folder, config, is_kept)
    usd = [one.usd for one in found]
    total = sum(usd for usd in usd if usd is not None)
    columns: list[Column[Estimate]] = [
        Column("what", lambda one: one.what, left=True, wrap=True),
        Column("model", lambda one: one.model, left=True, wrap=True),
        Column("calls", lambda one: f"{one.calls:,}"),
        Column("tokens in", lambda one: _short(one.prompt_tokens)),
        Column("out", lambda one: _short(one.expected_tokens)),
        Column("USD", lambda one: _dollars(one.usd)),
        Column("at most", lambda one: _dollars(one.most_usd)),
    ]
    table = Table.of(columns, found, tones={len(found): "strong"})
    everything = [
        "all",
        "",
        f"{sum(one.calls for one in found):,}",
        _short(sum(one.prompt_tokens for one in found)),
        _short(sum(one.expected_tokens for one in found)),
        _dollars(total),
        _dollars(_sum(one.most_usd for one in found)),
    ]
    title = Heading("What the run would ask", level=1)
    print_blocks([title, replace(table, rows=[*table.rows, everything])], console)
    if found:
        usual = {one.model: f"{config.models[one.model].expected_tokens:,}" for one in found}
        number = usual[found[0].model]
        if len(set(usual.values())) > 1:
            number = ", ".join(f"{number} ({name})" for name, number in usual.items())
        console.print(
            f"in: a token is {CHARACTERS_PER_TOKEN:g} characters; out: an answer has {number} tokens "
            "(models.NAME.expected_tokens); at most: each answer has sampling.max_tokens. Retries are not counted.",
            highlight=False,
            markup=False,
        )
    if not any(one.calls for one in found):
        console.print("No model would be asked: the run would only collect, split and export.")
    if done := sum(one.done for one in found):
        console.print(
            f"{plural(done, 'question', ',')} of the run {'has' if done == 1 else 'have'} been asked before and "
            f"{'is' if done == 1 else 'are'} not in the table.",
            highlight=False,
        )
    if any(config.models[one.model].local is not None for one in found):
        console.print("Local models cost no dollars; what runs them is not counted.")
    if None in usd:
        console.print("Some models have no price: the sum leaves them out.")
    before = spent(run).usd if begun else 0.0
    if config.budget_usd is not None and total > config.budget_usd - before:
        of_which = f", of which ${before:.2f} is spent" if before else ""
        console.print(f"The budget, ${config.budget_usd:.2f}{of_which}, would end the run before it is done.")


def _estimate(what: str, config: RunConfig, name: str, calls: int, done: int, characters: int) -> Estimate:
    model = config.models[name]
    prompt = int(characters / CHARACTERS_PER_TOKEN)
    most = None if model.most_tokens is None else calls * model.most_tokens
    expected = calls * model.expected_tokens
    expected = expected if most is None else min(expected, most)
    price = model.prices.get(model.model)

    def usd(tokens: int | None) -> float | None:
        if model.local is not None:
            return 0.0
        if price is None or tokens is None:
            return None
        return (prompt * price.input + tokens * price.output) / 1e6

    return Estimate(
        what=what,
        model=name,
        calls=calls,
        done=done,
        prompt_tokens=prompt,
        expected_tokens=expected,
        most_tokens=most,
        usd=usd(expected),
        most_usd=usd(most),
    )


def _sum(given: Iterable[float | None]) -> float | None:
    """None if one of them is unknown."""
    numbers = list(given)
    known = [one for one in numbers if one is not None]
    return sum(known) if len(known) == len(numbers) else None


def _length(messages: Messages) -> int:
    return sum(len(message["content"]) for message in messages)


def _short(tokens: int | None) -> str:
    """`4.90M` for 4,899,123."""
    if tokens is None:
        return "?"
    return f"{tokens / 1e6:.2f}M" if tokens >= 100_000 else f"{tokens:,}"


def _dollars(usd: float | None) -> str:
    return "?" if usd is None else f"{usd:,.2f}"
