"""Fuzz targets of what a judge's server answers, and of the files of the judge."""

from __future__ import annotations

import asyncio
import json
import math
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, get_args

from fuzz.checks import Refused, file_of, folder_of, json_of, outcome, parts_of, text_of
from pv_data.labels.check import parse_check
from pv_judge.answer import FailureKind
from pv_judge.budget import Totals
from pv_judge.cache import AnswerCache, CachedAnswer
from pv_judge.completion import ABSURD, RequestFailed, error_of, failure_kind, read_completion
from pv_judge.fluency import FluencyPrompt, parse_fluency
from pv_judge.http import MAX_RETRY_AFTER_S, retry_after_s
from pv_judge.keys import Key
from pv_judge.ledger.journal import fold, part_of, read_journal
from pv_judge.ledger.ledger import read_ledger
from pv_judge.ledger.row import LedgerRow
from pv_judge.rejudge.marks import add_marks
from pv_judge.rejudge.rows import OldRow
from pv_judge.scoring.score_file import ScoreFile
from pv_judge.spend_file import read_spent
from pv_rl.errors import PvRlError
from pv_verdicts.meta_verifier import MetaVerifier

KINDS = get_args(FailureKind)
LEDGER_ROW = OldRow(
    **{"row_id": "a", "uid": "p", "session": 0, "step": 1, "decision": "vetoed", "decided_by": "judge"},
    **{"judge_fluent": False, "confidence": 0.5, "verdict": True, "reward": 0.0, "inner": 1.0},
)
SECRET = "sk-Ab12Cd34Ef56"


def fluency_answer(data: bytes) -> None:
    """An answer in a fence, or behind thoughts, is the same answer; one with a word before it is none."""
    text = text_of(data)
    found = outcome(parse_fluency, text)
    if isinstance(found, Refused):
        return
    assert 0 <= found.confidence <= 1
    assert found.fluent is not bool(found.anomalies)
    whole = {"fluent": found.fluent, "confidence": found.confidence}
    whole["anomalies"] = [{"kind": one.kind, "quote": one.quote} for one in found.anomalies]
    bare = json.dumps(whole)
    for same in (bare, f"```json\n{bare}\n```", f"<think>a</think>{bare}"):
        assert parse_fluency(same) == found
    assert isinstance(outcome(parse_fluency, "So: " + bare), Refused)


def other_answers(data: bytes) -> None:
    """The meta-verifier's answer, and a grader's: prose before the latter does not change it."""
    text = text_of(data)
    score = outcome(MetaVerifier.parse, text)
    assert isinstance(score, Refused) or score in (0, 0.5, 1)
    check = outcome(parse_check, text)
    if not isinstance(check, Refused) and not text.lstrip().startswith("<think>"):
        assert parse_check("It is done.\n" + text) == check


def messages(data: bytes) -> None:
    """The trace is between its marks once, and no mark of a chat template is in it."""
    text = text_of(data)
    _, user = _prompt().messages(text)
    fence = user["content"].split()[3].rstrip(".")
    assert user["content"].count(f"<{fence}>") == user["content"].count(f"</{fence}>") == 1
    inside = user["content"].partition(f"<{fence}>\n")[2].rpartition(f"\n</{fence}>")[0]
    assert not any(mark in inside for mark in ("<|", "<think>", "[INST]", "<<", "</s>"))
    user["content"].encode()


@cache
def _prompt() -> FluencyPrompt:
    return FluencyPrompt.load()


def completion(data: bytes) -> None:
    """A body is a completion, or a failure of a known kind; counts are never negative or endless."""
    found = outcome(_read, data)
    if not isinstance(found, Refused):
        found.text.encode()
        for number in vars(found.usage).values():
            assert 0 <= number <= ABSURD
        for token in found.logprobs:
            assert all(value <= 0.001 for value in token.top.values())
    codes, message = error_of(data)
    for status in (300, 400, 401, 402, 404, 413, 429, 500, 529):
        assert failure_kind(status, codes, message) in KINDS
    text = text_of(data)
    if text.strip():
        body = json.dumps({"choices": [{"message": {"content": text}}]}).encode()
        assert read_completion(body, 1).text == text.encode("utf-8", "replace").decode()


def _read(data: bytes) -> Any:
    try:
        return read_completion(data, 1)
    except RequestFailed as failure:
        return _failed(failure)


def _failed(failure: RequestFailed) -> Refused:
    assert failure.kind in KINDS
    assert failure.usage is not None
    return Refused(failure.kind, str(failure))


def headers(data: bytes) -> None:
    """A header says how long to wait, within bounds; a text from a server never shows the key."""
    text = text_of(data)
    wait = outcome(retry_after_s, text, 1.7e9)
    assert wait is None or 0 <= wait <= MAX_RETRY_AFTER_S
    for said in (text, text + SECRET, text[:20] + SECRET + text[20:]):
        assert SECRET not in Key(SECRET).blot(said)


def exchange(data: bytes) -> None:
    """A whole HTTP answer, whatever the server sends, is a completion or a failure."""
    import httpx

    from pv_judge.config import Endpoint, JudgeConfig
    from pv_judge.http import EndpointClient

    body, status, header = parts_of(data, 3)
    code = 200 if not status.isdigit() else 200 + int(status[:6]) % 400

    async def ask() -> Any:
        client = EndpointClient(endpoint, JudgeConfig(endpoints=(endpoint,)))
        given = {"retry-after": text_of(header)[:80].encode("ascii", "replace").replace(b"\n", b" ")}
        answer = httpx.Response(code, headers=given, content=body)
        client._pool._free = [httpx.AsyncClient(transport=httpx.MockTransport(lambda _: answer))]  # no socket
        try:
            return await client.send(client.body([{"role": "user", "content": "a"}]))
        except RequestFailed as failure:
            return _failed(failure)
        finally:
            await client.aclose()

    endpoint = Endpoint(url="http://127.0.0.1:9/v1", model="m")
    made = asyncio.run(ask())
    assert isinstance(made, Refused) or made.text.strip()


def ledger(data: bytes) -> None:
    """A journal gives each row that can be read, also as a Parquet part; the rows that it gives can be written."""
    with file_of(b'{"pv_rl.ledger":2}\n' + data, "journal-a.jsonl") as path:
        rows = outcome(read_journal, path)
        if isinstance(rows, Refused):
            return
        for _, row in rows:
            assert repr(LedgerRow.from_json(json.loads(json.dumps(row.to_json())))) == repr(row)
        table = outcome(read_ledger, path.parent)
        assert isinstance(table, Refused) or table.num_rows == len(rows)
        with suppress(PvRlError):
            fold(path)
        if part_of(path).exists():
            assert read_ledger(part_of(path)).num_rows == len(rows)


def journal_file(data: bytes) -> None:
    """A journal with any first line."""
    with file_of(data, "journal-a.jsonl") as path:
        outcome(read_journal, path)


def spending(data: bytes) -> None:
    """A spend file gives amounts of 0 or more."""
    with file_of(data, "spent.json") as path:
        spent = outcome(read_spent, path)
        if isinstance(spent, Totals):
            assert all(0 <= number < math.inf for number in vars(spent).values())


def cache_file(data: bytes) -> None:
    """A file that is no cache is refused; one with a damaged answer has a gap there."""
    with file_of(data, "cache.sqlite") as path:
        made = outcome(_ask_cache, path)
        assert made is None or isinstance(made, CachedAnswer | Refused)


def _ask_cache(path: Path) -> Any:
    answers = AnswerCache(path)
    try:
        return answers.get("k")
    finally:
        answers.close()


def score_file(data: bytes) -> None:
    """Lines of a score file are found again or refused; an incomplete last line is dropped."""
    with file_of(data, "scores.jsonl") as path:
        found: list[Any] = []
        outcome(_open_scores, path, found)
    with file_of(b'{"run": "r", "row": ' + data, "scores.jsonl") as path:
        outcome(_open_scores, path, found)


def _open_scores(path: Path, found: list[Any]) -> int:
    scores = ScoreFile(path, "r", found.append)
    try:
        scores.finish()
        return len(scores)
    finally:
        scores.close()


def ledger_row(data: bytes) -> None:
    """Values of a row in JSON: a row, or a DataError."""
    values = json_of(data)
    if isinstance(values, dict):
        outcome(LedgerRow.from_json, values)


def marks(data: bytes) -> None:
    """People's marks of a ledger's rows."""
    for name in ("marks.jsonl", "marks.csv"):
        with file_of(data, name) as path:
            outcome(add_marks, [LEDGER_ROW], path)


def ledger_part(data: bytes) -> None:
    """A Parquet file in a ledger's folder."""
    with folder_of(**{"part-a_dot_parquet": data}) as folder:
        outcome(read_ledger, folder)
