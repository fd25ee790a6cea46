"""Command `pv-rl rejudge`: asks first what a replay would take, then asks the judge, and compares."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omegaconf import OmegaConf
from rich.console import Console
from rich.progress import Progress

from pv_judge.config import JudgeConfig, read_config
from pv_judge.files import check_target
from pv_judge.fluency import FluencyPrompt
from pv_judge.ledger import read_ledger
from pv_judge.pages.terminal import print_blocks, print_line, standard_output
from pv_judge.pages.text import plural
from pv_judge.rejudge.asking import Plan, ask, plan, without_steps
from pv_judge.rejudge.marks import add_marks
from pv_judge.rejudge.output import marks_table, report_blocks, write_report
from pv_judge.rejudge.report import compare
from pv_judge.rejudge.rows import THRESHOLD, Judgment, OldRow, old_rows
from pv_judge.veto import JudgeOptions
from pv_judge.yaml_errors import load_settings, yaml_errors
from pv_rl.errors import ConfigError, DataError
from pv_rl.rewards.fluency_veto import VETO_OPTIONS

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read_judge", "rejudge"]


def rejudge(
    *,
    ledger: Path,
    config: Path | None = None,
    prompt: Path | None = None,
    threshold: float | None = None,
    sample: int | None = None,
    seed: int = 0,
    marks: Path | None = None,
    out: Path | None = None,
    yes: bool = False,
) -> None:
    """Replay a ledger and print what comes of it; nothing is sent without `yes`.

    Args:
        ledger: its folder, or one Parquet file of it.
        config: YAML file of the judge to ask; None: nobody is asked.
        prompt: file of the prompt; None: what `config` says, or ours.
        threshold: the confidence from which a judge's finding vetoes; None: what `config` says, or 0.5.
        sample: so many rows of the ledger, drawn by `seed`; None: all.
        marks: .csv or .jsonl file of human marks.
        out: .json or .parquet file to be written.
        yes: send what the plan says.

    Raises:
        PvRlError: something given is not what it should be.
        OSError: a file cannot be read or written.
    """
    _check(config, prompt, threshold, sample, marks, out)
    table = read_ledger(ledger)
    rows, lost = old_rows(table), 0
    if marks is not None:
        rows, lost = add_marks(rows, marks)
    number = len(rows)
    if sample is not None and sample < number:
        chosen = sorted(random.Random(seed).sample(range(number), sample))
        rows, table = [rows[place] for place in chosen], table.take(chosen)
    console = standard_output()
    say = partial(print_line, console)
    say(f"{ledger}: {plural(number, 'row')}" + (f", {len(rows)} of them drawn" if len(rows) < number else ""))
    if lost:
        say(f"Marks without a row in the ledger: {lost}.")

    about: dict[str, Any] = {"ledger": str(ledger)}
    judgments: Mapping[str, Judgment] = {}
    if config is not None:
        judge, own_prompt, own_threshold = read_judge(config)
        judge, instructions = without_steps(judge), FluencyPrompt.load(prompt or own_prompt)
        threshold = own_threshold if threshold is None else threshold
        model = judge.endpoints[0].model
        about |= {"model": model, "template": instructions.template}
        say(f"New: {model} with {about['template']}, a veto from confidence {threshold:g}.")
        traces = _traces(table, rows)
        foreseen = asyncio.run(plan(traces, judge, instructions, _answer_tokens(table, judge)))
        _print_plan(foreseen, model, judge, say)
        if foreseen.calls and not yes:
            say("No request was sent. Use --yes to send them.")
            return
        judgments = _ask(traces, judge, instructions)
    elif threshold is not None:
        say(f"New: the old answers, a veto from confidence {threshold:g}.")
        silent = sum(row.judged is not None and row.judge_fluent is None for row in rows)
        if silent:
            say(
                f"The ledger has no judge's answer for {plural(silent, 'row')}; their decisions do not change."
            )
    about |= {"threshold": threshold}
    report = compare(rows, judgments, threshold)
    if config is not None or threshold is not None:
        print_blocks(report_blocks(report), console)
    elif report.old_marks is not None:
        print_blocks([marks_table({"old": report.old_marks})], console)
    else:
        raise DataError("no row of the sample has a mark; give a larger --sample")
    if out is not None:
        write_report(out, report, rows, judgments, about)
        say(f"wrote {out}")


def read_judge(path: Path) -> tuple[JudgeConfig, str | None, float]:
    """Judge, prompt file and threshold of a YAML file: a judge's settings, or the options of `verdict_fluency`.

    Raises:
        ConfigError: it is neither.
        OSError: the file cannot be read.
    """
    try:
        with yaml_errors():
            plain = OmegaConf.to_container(load_settings(path), resolve=True)
    except ValueError as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    if not isinstance(plain, dict):
        raise ConfigError(
            f"{path} is not a YAML mapping; it holds a judge's settings or the options of verdict_fluency"
        )
    settings = {str(name): value for name, value in plain.items()}
    prompt, threshold = None, THRESHOLD
    if "judge" in settings:
        of_judge = {name: value for name, value in settings.items() if name not in VETO_OPTIONS}
        options = read_config(of_judge, JudgeOptions, "verdict_fluency")
        judge, prompt, threshold = options.judge, options.prompt, options.threshold
    else:
        judge = read_config(settings)
    if judge is None:
        raise ConfigError(f"{path} has no judge, only rules; set judge to the one to ask")
    if any(endpoint.url == "router" for endpoint in judge.endpoints):
        raise ConfigError(f"{path}: the endpoint `router` exists only within a run; give the URL of a server")
    return judge, prompt, threshold


def _check(
    config: Path | None,
    prompt: Path | None,
    threshold: float | None,
    sample: int | None,
    marks: Path | None,
    out: Path | None,
) -> None:
    if config is None and threshold is None and marks is None:
        raise DataError(
            "nothing to compare with the ledger: give --config FILE for a judge to ask, --threshold X to decide the "
            "old answers anew, or --marks FILE with human marks"
        )
    if prompt is not None and config is None:
        raise DataError("--prompt needs --config FILE, the judge to ask with it")
    if threshold is not None and not 0 <= threshold <= 1:
        raise DataError(f"--threshold is {threshold:g}; give a confidence from 0 to 1")
    if sample is not None and sample < 1:
        raise DataError(f"--sample is {sample}; give at least 1")
    if out is not None:
        if out.suffix not in (".json", ".parquet"):
            raise DataError(f"--out {out}: a .json file gets the report, a .parquet file the rows")
        check_target("--out", out)


def _traces(table: pa.Table, rows: Sequence[OldRow]) -> dict[str, str]:
    """By row id, of those that are asked about."""
    traces = table.column("trace").to_pylist()
    return {row.row_id: trace for row, trace in zip(rows, traces, strict=True) if not row.by_rules}


def _answer_tokens(table: pa.Table, judge: JudgeConfig) -> float:
    """Tokens of an answer: the ledger's mean, else what the config allows."""
    counts = [
        tokens / max(1, requests)
        for tokens, requests in zip(
            table.column("completion_tokens").to_pylist(), table.column("requests").to_pylist(), strict=True
        )
        if tokens
    ]
    if counts:
        return sum(counts) / len(counts)
    most = judge.sampling.get("max_tokens")
    return most if isinstance(most, int) else 400


def _print_plan(foreseen: Plan, model: str, judge: JudgeConfig, say: Callable[[str], None]) -> None:
    cost = f"no price for {model} in prices" if foreseen.usd is None else f"${foreseen.usd:.4f}"
    say(
        f"To judge: {plural(foreseen.rows, 'row')}; answered in the cache: {foreseen.known}; requests to "
        f"send: {foreseen.calls}. "
        f"About {foreseen.prompt_tokens} prompt and {foreseen.completion_tokens} answer tokens: {cost}."
    )
    if foreseen.calls and judge.cache is None:
        say("The config sets no cache, so the next replay pays for the same requests again.")


def _ask(traces: Mapping[str, str], judge: JudgeConfig, prompt: FluencyPrompt) -> dict[str, Judgment]:
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("judging", total=len(traces))
        return asyncio.run(ask(traces, judge, prompt, lambda: progress.advance(task)))
