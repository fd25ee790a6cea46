"""Table of fuzz targets: each reader of untrusted bytes as a function `target(bytes) -> None`, with its properties.

A target fails by an `AssertionError`, or by an error that its reader does not document. `tests/fuzz` runs each on a few
inputs; `fuzz.long_run` runs all of them with atheris, which looks for inputs that reach new code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fuzz import data, judging, runs, tables, traces

__all__ = ["TARGETS", "Target"]


@dataclass(frozen=True, kw_only=True)
class Target:
    """One target and where its first inputs are from (`fuzz.corpus`)."""

    run: Callable[[bytes], None]
    literals: tuple[str, ...] = ()
    """Test files, from the root of the repository: every text and every bytes in their code is an input."""
    cases: tuple[str, ...] = ()
    """Patterns of files in `../shared`."""
    made: str = ""
    """Kind of a binary file that `fuzz.corpus` writes."""


JUDGE, DATA, EVAL, RUNS = (f"plugins/pv-{name}/tests" for name in ("judge", "data", "eval", "runs"))
FORMATS = "plugins/pv-verdicts/tests"
LATEX = (
    f"{DATA}/test_sources_latex.py",
    f"{DATA}/test_sources_latex_doubt.py",
    f"{DATA}/test_sources_fuzz.py",
)
TABLES = (f"{DATA}/test_sources_table.py", f"{DATA}/test_sources_fuzz.py", f"{JUDGE}/test_rowfiles.py")
WATCH = (f"{RUNS}/test_watch_file.py", f"{RUNS}/test_watch_reading.py")

TARGETS: dict[str, Target] = {
    # What a policy writes, and a user types
    "verdict": Target(run=traces.verdict, literals=("tests/unit/test_verdict.py",)),
    "formats": Target(run=traces.formats, literals=(f"{FORMATS}/test_formats.py",)),
    "pattern": Target(run=traces.pattern, literals=(f"{FORMATS}/test_format_rewards.py",)),
    "rules": Target(
        run=traces.rules,
        literals=("tests/unit/test_degeneration.py",),
        cases=("cases/thinking_openings.json",),
    ),
    "rule_settings": Target(
        run=traces.rule_settings, literals=("tests/unit/test_degeneration.py",), made="groups"
    ),
    "loss_mode": Target(run=traces.loss_mode, literals=("tests/unit/test_loss_spec.py",)),
    "shown": Target(run=traces.shown, literals=(f"{JUDGE}/test_pages.py",)),
    # What a judge's server sends, and the judge's files
    "fluency_answer": Target(run=judging.fluency_answer, literals=(f"{JUDGE}/test_fluency_prompt.py",)),
    "other_answers": Target(
        run=judging.other_answers,
        literals=(f"{FORMATS}/test_meta_verifier.py", f"{DATA}/test_label_answer.py"),
    ),
    "messages": Target(run=judging.messages, literals=(f"{JUDGE}/test_fluency_prompt.py",)),
    "completion": Target(run=judging.completion, literals=(f"{JUDGE}/test_judge_completion.py",)),
    "headers": Target(run=judging.headers, literals=(f"{JUDGE}/test_judge_faults.py",)),
    "exchange": Target(run=judging.exchange, literals=(f"{JUDGE}/test_judge_completion.py",)),
    "ledger": Target(run=judging.ledger, literals=(f"{JUDGE}/test_judge_ledger.py",), made="journal"),
    "ledger_row": Target(run=judging.ledger_row, literals=(f"{JUDGE}/test_judge_ledger.py",), made="row"),
    "ledger_part": Target(run=judging.ledger_part, made="ledger part"),
    "marks": Target(run=judging.marks, literals=(f"{JUDGE}/test_rejudge.py",), made="marks"),
    "journal_file": Target(run=judging.journal_file, literals=(f"{JUDGE}/test_judge_ledger.py",)),
    "spending": Target(
        run=judging.spending, literals=(f"{JUDGE}/test_judge_spend_file.py",), made="spending"
    ),
    "cache_file": Target(run=judging.cache_file, made="cache"),
    "score_file": Target(run=judging.score_file, literals=(f"{JUDGE}/test_score.py",), made="scores"),
    # Files of rows
    "json_lines": Target(run=tables.json_lines, literals=TABLES, cases=("cases/*/*.jsonl",)),
    "json_file": Target(run=tables.json_file, literals=TABLES),
    "csv_file": Target(run=tables.csv_file, literals=TABLES),
    "packed": Target(run=tables.packed, made="gzip"),
    "parquet_file": Target(run=tables.parquet_file, made="parquet"),
    "rollouts": Target(run=tables.rollouts, literals=(f"{RUNS}/test_weights_reading.py",), made="rollouts"),
    # Runs and configs
    "metrics": Target(run=runs.metrics, literals=(f"{RUNS}/test_report_reading.py", *WATCH)),
    "run_folder": Target(
        run=runs.run_folder, literals=(f"{RUNS}/test_report_reading.py", *WATCH), made="run"
    ),
    "metrics_file": Target(run=runs.metrics_file, literals=WATCH),
    "event_file": Target(run=runs.event_file, made="events"),
    "rollouts_shown": Target(run=runs.rollouts_shown, literals=WATCH, made="journal"),
    "record": Target(run=runs.record, literals=(f"{RUNS}/test_train.py",), made="record"),
    "hydra_record": Target(run=runs.hydra_record, literals=(f"{RUNS}/test_report_reading.py",), made="yaml"),
    "yaml_groups": Target(
        run=runs.yaml_groups,
        literals=(f"{JUDGE}/test_judge_config.py", f"{DATA}/test_run_config.py"),
        made="groups",
    ),
    "yaml_files": Target(run=runs.yaml_files, literals=(f"{JUDGE}/test_rejudge.py",), made="yaml"),
    "model_config": Target(run=runs.model_config, literals=(f"{RUNS}/test_plan_reading.py",), made="model"),
    "sentinel_state": Target(
        run=runs.sentinel_state, literals=(f"{RUNS}/test_sentinel_guard.py",), made="sentinel"
    ),
    # pv-eval
    "votes": Target(run=tables.votes, literals=("tests/unit/test_verdict.py",)),
    "vote_fields": Target(run=tables.vote_fields, literals=(f"{EVAL}/test_evaluate_files.py",)),
    "evaluation_run": Target(
        run=tables.evaluation_run, literals=(f"{EVAL}/test_evaluate_files.py",), made="info"
    ),
    "votes_file": Target(run=tables.votes_file, made="votes"),
    "grades": Target(run=tables.grades, literals=(f"{EVAL}/test_eval_grades.py",), made="grades"),
    "recorded_traces": Target(
        run=tables.recorded_traces, literals=(f"{EVAL}/test_eval_traces.py",), made="traces"
    ),
    "evaluation_set": Target(run=tables.evaluation_set, literals=(f"{EVAL}/test_eval_sets.py",), made="set"),
    # pv-data
    "latex": Target(run=data.latex, literals=LATEX, cases=("cases/latex/*.tex",)),
    "latex_pair": Target(run=data.latex_pair, literals=LATEX, cases=("cases/latex/*.tex",)),
    "table": Target(run=data.table, literals=TABLES, cases=("cases/*/*.jsonl",)),
    "table_options": Target(run=data.table_options, literals=TABLES, made="options"),
    "columns": Target(run=data.columns, literals=TABLES, made="columns"),
    "published_sets": Target(
        run=data.published_sets, literals=(f"{DATA}/test_sources_published.py",), cases=("cases/*/*.jsonl",)
    ),
    "stored_table": Target(run=data.stored_table, made="part"),
    "label_studio": Target(run=data.label_studio, literals=(f"{DATA}/test_audit_label_studio.py",)),
    "proofs": Target(run=data.proofs, literals=(f"{DATA}/test_methods_steps.py", f"{DATA}/test_methods.py")),
}
"""By name, in the order in which `make fuzz` runs them."""
