"""First inputs of the fuzz targets: hostile inputs of the tests, files in `../shared`, and small whole files."""

from __future__ import annotations

import ast
import gzip
import io
import json
import math
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import places
import pyarrow as pa
import pyarrow.parquet as pq

from fuzz.checks import json_of
from fuzz.tables import PAIRS
from fuzz.targets import Target
from pv_data.records import Proof
from pv_data.table import write_part
from pv_eval.run_files import RunInfo, write_run
from pv_eval.votes import Vote
from pv_judge.answer import Usage
from pv_judge.cache import AnswerCache, CachedAnswer
from pv_judge.files import with_checksum
from pv_judge.ledger.journal import Journal, fold, part_of
from pv_judge.ledger.row import LedgerRow, RuleHit
from pv_runs.sentinel import DEFAULT_DETECTORS, SentinelConfig, Watcher
from pv_runs.sentinel.alarm_policy import AlarmPolicy, AlarmPolicyConfig

__all__ = ["first_inputs"]

LARGEST = 16_384
HOSTILE = (
    *(
        "",
        " ",
        "\n",
        "\x00",
        "\ud800",
        "\ufeff",
        "é",
        "中",
        "９",
        "½",
        "NaN",
        "1e999",
        "-1",
        "9" * 400,
        "[" * 990,
    ),
    *(
        "0001-01-01T00:00:00+14:00",
        '{"a": 1, "a": 2}',
        "!!int ''",
        "!!bool a",
        "!!timestamp a",
        "a: &a [*a, *a]",
    ),
    *(
        "<<: 1",
        "? [a]\n: b",
        "${a}",
        "${oc.env:HOME}",
        "a\n====\nb\n====\nc",
        '"a,b',
        "a;b\n1,5;2",
        "### True",
    ),
)

SIGNS = DEFAULT_DETECTORS[:2]
NASTY = (None, True, -1, 10**400, 1e-320, math.nan, math.inf, "", "a", "\ud800", [], [None], {}, {"a": []})
"""Values in the place of a value of JSON."""


def first_inputs(target: Target) -> list[bytes]:
    """Different inputs of a target, each at most `LARGEST` bytes."""
    found = [one.encode("utf-8", "surrogatepass") for one in HOSTILE]
    for name in target.literals:
        found += _literals(places.ROOT / name)
    for pattern in target.cases:
        found += [path.read_bytes() for path in sorted(places.SHARED.glob(pattern))]
    made = MADE[target.made]() if target.made else []
    found += [*made, *(json.dumps(one).encode() for data in made for one in _variants(json_of(data)))]
    return [one for one in dict.fromkeys(found) if len(one) <= LARGEST]


def _variants(value: Any) -> Iterator[Any]:
    """A JSON value with one value in it replaced by each of `NASTY`, or left out."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield {name: one for name, one in value.items() if name != key}
            yield from ({**value, key: one} for one in (*_variants(inner), *NASTY))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from ([*value[:at], one, *value[at + 1 :]] for one in (*_variants(inner), *NASTY))


@cache
def _literals(path: Path) -> list[bytes]:
    found = list[bytes]()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value.encode("utf-8", "surrogatepass"))
        elif isinstance(node, ast.Constant) and isinstance(node.value, bytes):
            found.append(node.value)
        elif isinstance(node, ast.Dict | ast.List):
            try:
                found.append(json.dumps(ast.literal_eval(node)).encode())
            except (ValueError, TypeError, RecursionError):
                continue
    return found


def _lines(*rows: Any) -> list[bytes]:
    return [
        "".join(json.dumps(row) + "\n" for row in rows).encode(),
        *(json.dumps(row).encode() for row in rows),
    ]


def _row(**values: Any) -> LedgerRow:
    when = datetime(2026, 1, 2, tzinfo=UTC)
    return LedgerRow(time=when, trace="So.", decision="vetoed", decided_by="judge", score=0.0, **values)


def _journal_lines() -> list[bytes]:
    rows = (
        _row(),
        _row(rules=[RuleHit(rule="loop", start=0, end=2)], confidence=0.5, inner_score=1.0, usd=None),
    )
    return _lines({"pv_rl.ledger": 2}, *({"row_id": f"a-{n}", **row.to_json()} for n, row in enumerate(rows)))


def _written(write: Callable[[Path], Path]) -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        return [write(Path(folder)).read_bytes()]


def _ledger_part(folder: Path) -> Path:
    journal = Journal(folder)
    journal.append(_row())
    fold(journal.path)
    journal.close()
    return part_of(journal.path)


def _cache(folder: Path) -> Path:
    answers = AnswerCache(folder / "a.sqlite")
    answers.put("k", CachedAnswer(text="{}", usage=Usage(), model="m"))
    answers.close()
    return folder / "a.sqlite"


def _votes(folder: Path) -> Path:
    vote = Vote(pair_id="p", question_id="q", sample=0, verdict=True, trace="### True", logit=0.5)
    write_run(folder, PAIRS, [vote], RunInfo(verifier="v"))
    return folder / "votes.parquet"


def _part(folder: Path) -> Path:
    rows = [Proof(problem_id="p", source="s", method="m", text=f"So {n} > 0.", known=n > 1) for n in range(3)]
    write_part(folder / "a.parquet", Proof, rows)
    return folder / "a.parquet"


def _parquet() -> list[bytes]:
    found = []
    for rows in (
        [{"a": 1, "b": [0, 1, 1], "prompt": "p", "output": "### True", "label": True}] * 3,
        [{"uid": "a", "response_mask": [1, 0], "score": float("nan")}, {"uid": None, "score": 1.0}],
    ):
        for compression in ("none", "zstd"):
            file = io.BytesIO()
            pq.write_table(pa.Table.from_pylist(rows), file, compression=compression)
            found.append(file.getvalue())
    return found


def _events(folder: Path) -> Path:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    writer = EventFileWriter(str(folder))
    value = Summary.Value(tag="critic/score/mean", simple_value=0.5)
    writer.add_event(Event(wall_time=1.0, step=1, summary=Summary(value=[value])))
    writer.close()
    return next(folder.glob("*tfevents*"))


def _sentinel() -> list[bytes]:
    policy = AlarmPolicy(AlarmPolicyConfig(), Watcher(SentinelConfig(responses=128, signs=SIGNS)), Path("a"))
    for step in range(1, 20):
        policy.watcher.observe(step, {"actor/entropy": 0.5 + step % 3 / 10, "critic/score/mean": 0.25})
    return _lines(policy.state())


RUN_FILES = (
    *(
        '{"step": 1, "data": {"actor/entropy": 0.5, "val-core/x/right/acc/mean@4": 0.75}}\n',
        '{"state": "running",',
    ),
    *(
        ' "attempts": 2, "history": [{"attempt": 2, "first_step": 2, "changed": {"a": ["1", "2"]}}]}',
        "a: 1\nseed: 2",
    ),
    *("- a=3\n- +b=1\n- ~c", '{"sign": "entropy", "step": 3, "message": "it fell"}\n'),
)
INFO = {"format": 2, "verifier": "v", "grades": [0, 1], "seed": 1, "notes": ["a"], "settings": {"a": None}}
OPTIONS = {
    "columns": {"proof": "a[].text", "label": "a[].ok"},
    "cut": {"b": "P:{problem}Q:"},
    "labels": {">= 1": True},
}
JUDGE = "endpoints: [{url: 'http://a/v1', model: m}]\nrules: {sentence_loop: {times: 5}}\nwatch: {signs: [entropy]}\n"
RUN = "run_dir: a\nsources: [{kind: table, path: a.jsonl}]\npanel: [{name: j, model: m}]\nreward: verdict\n"
GROUPS = (
    {"sentence_loop": {"times": 5}, "broken_encoding": False, "self_interruption": {"crumbs": 2}},
    {
        "rewards": {"verdict": 1.0, "grade": 0.5},
        "options": {"grade": {"points": 7, "grades": [0, 1], "accept": 1}},
    },
    {"points": 7, "accept": 4, "require": ["a"], "mark": "Grade", "near": 0.5, "first": 1, "threshold": 0.5},
    {
        "endpoints": [{"url": "http://a/v1", "model": "m", "weight": 1.0, "extra_body": {"a": 1}}],
        **{
            "deadline_s": 60.0,
            "sampling": {"temperature": 0.0},
            "prices": {"m": {"input": 1.0, "output": 2.0}},
        },
        **{"retries": {"attempts": 3}, "timeouts": {"total_s": 9.0}, "budget": {"usd_per_run": 1.0}},
    },
    {"action": "log", "agree": 2, "within": 9, "watch": {"warm_up": 10, "signs": ["entropy"], "shift": 1.5}},
    {"warm_up": 10, "limits": {"missing_verdicts": [None, 0.5]}, "memory": 40.0, "doubling_steps": 10.0},
    {
        "run_dir": "a",
        "sources": [{"kind": "table", "path": "a", "limit": 3, "options": {"full": 7}}],
        "split": {"test": 0.1},
    },
)
TENSORS = {"__metadata__": {}, "a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
TOTALS = {"usd": 0.5, "calls": 2, "tokens": 9}
SHAPE = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 100,
    "intermediate_size": 9,
}
MADE: dict[str, Callable[[], list[bytes]]] = {
    "journal": _journal_lines,
    "row": lambda: _lines(_row().to_json()),
    "ledger part": lambda: _written(_ledger_part),
    "spending": lambda: _lines(with_checksum({"step": 1, "in_step": TOTALS, "in_run": TOTALS}), {"in_run": TOTALS}),
    "cache": lambda: _written(_cache),
    "scores": lambda: [b'{"run": "r", "row": 3, "score": 1.0, "valid": true, "metrics": {"acc": 1}}\n'],
    "gzip": lambda: [gzip.compress(b'{"a": 1}\n' * 3, mtime=0)],
    "parquet": _parquet,
    "rollouts": lambda: _lines(
        {"input": "p", "output": "So.\n### True", "gts": "True", "score": 1.0, "step": 1, "uid": "a_0_0"},
        {"prompt": [{"role": "user", "content": "p"}], "response_length": 3, "label": 0, "response": "a b"},
        {"response_mask": [1, 1, 0], "uid": 7, "output": None, "reward_model": {"ground_truth": "1"}},
    ),
    "run": lambda: ["\n====\n".join(RUN_FILES).encode(), "".join(RUN_FILES).encode()],
    "events": lambda: _written(_events),
    "record": lambda: _lines({"state": "failed", "attempts": 2, "overrides": ["a=1"], "history": [{"attempt": 1}]}),
    "yaml": lambda: [JUDGE.encode(), RUN.encode(), b"a: 1\nb: [c, {d: e}]\n====\n- a=1\n- b.c=[1,2]\n- ~d"],
    "marks": lambda: [*_lines({"row_id": "a", "human": True}), b"uid,session,step,anomalous\np,0,1,true\n"],
    "groups": lambda: _lines(*GROUPS),
    "model": lambda: [
        *_lines({**SHAPE, "rope_parameters": {"factor": 2.0}, "max_position_embeddings": 9}),
        *(b"{}\n====\n" + one for one in _lines({"weight_map": {"a": "a.safetensors"}})),
        *(b"{}\n====\n{}\n====\n" + len(one).to_bytes(8, "little") + one for one in _lines(TENSORS)),
    ],
    "info": lambda: _lines(INFO),
    "votes": lambda: _written(_votes),
    "grades": lambda: [
        *_lines({"human_grade": 5, "model_grade": [7, None], "proof": "So.", "max_points": 7}),
        b"human,model,problem_id\n5,6,a\n7,,b\n",
    ],
    "traces": lambda: [
        *_lines({"pair_id": "p", "trace": "### True", "sample": 1}),
        *_lines({"problem": "Is 1 < 2?", "proof": "Yes.", "verdict": 1}),
        b"pair_id,verdict,logit,usd\np,true,0.5,0.1\nr,missing,,\n",
    ],
    "set": lambda: [
        *_lines({"problem": "P", "proof": "So.", "label": "right"}),
        *_lines({"problem": "P", "steps": ["a", "b"], "first_error": 1}),
        b"problem,proof,points,max_points\nP,So.,7,7\nP,No.,1,7\n",
    ],
    "options": lambda: _lines(OPTIONS),
    "columns": lambda: [
        b'a.b[].c?\n====\n{"a": {"b": [{"c": 1}, null]}}\n====\n{"right": true, ">= 6": true, "< 2": false}',
    ],
    "part": lambda: _written(_part),
    "sentinel": _sentinel,
}  # fmt: skip
"""Inputs by the kind that a target names."""
