"""An empty account stops a run; a row that a provider refuses for good is told apart from one that was never served."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from judge_server.script import Fault
from panel import JudgeServer, Script, answer, make_tables, settings
from small_run import Run

from pv_data.asking.asker import Stopped
from pv_data.records import Aside, Label
from pv_data.run.judge import Judging
from pv_data.run.local_executor import run_local
from pv_data.table import read_rows

PROOFS = 24


def error(status: int, message: str, **more: object) -> str:
    """An HTTP response with an error in the form of OpenAI."""
    body = json.dumps({"error": {"message": message, **more}})
    return (
        f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    )


def script(*texts: str, **fault: object) -> Script:
    faults = [Fault(kind="raw", text=text, **fault) for text in texts]
    return Script(reply=lambda prompt, _: answer("SOUND" in prompt), faults=faults)


def served(server: JudgeServer) -> int:
    """Answers to questions about proofs."""
    return sum("proof" in str(one["body"]) for one in server.chats() if one["fault"] is None)


EMPTY = {
    "401": error(401, "Incorrect API key provided"),
    "402": error(402, "Insufficient Balance"),
    "429 in words": error(429, "insufficient_quota: add money"),
    "400 credit": error(400, "Your credit balance is too low", type="invalid_request_error"),
    "404 model": error(404, "The model `judge` does not exist or you do not have access to it"),
    "too long for all": error(400, "max_tokens exceeds the context length of 4096"),
}


@pytest.mark.parametrize("text", EMPTY.values(), ids=EMPTY)
def test_an_account_that_is_empty_stops_the_run_and_the_same_command_asks_the_rest(text, tmp_path):
    make_tables(tmp_path, 20)
    with JudgeServer(script(text, requests=range(31, 10_000))) as server:
        models = settings(tmp_path, server.url, concurrency=2, attempts=2)
        job = Judging(run=tmp_path, config=models)
        for _ in range(2):
            with pytest.raises(
                Stopped, match=r"(big|small) refuses every request: .*the request's fields$"
            ) as stopped:
                run_local(job, 1)
            assert ("Wait, lower the model's limits" in str(stopped.value)) == (" 429 " in text)
            assert not list(tmp_path.glob("aside/*"))
            assert served(server) == 30
        server.script = script()
        run_local(job, 1)
        assert served(server) == 20 * 4
    assert len(list(read_rows(tmp_path / "labels", Label))) == 20
    assert not list(tmp_path.glob("aside/*"))


REFUSED = {
    "content": error(400, "Rejected as a result of our safety system", code="content_policy_violation"),
    "HTTP 403": error(403, "Your input was flagged", code=403),
    "HTTP 400": error(400, "invalid text: 'my credit balance is too low, insufficient_quota'"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_row_that_is_refused_for_good_is_told_apart_from_one_that_was_never_served(why, tmp_path):
    faults = [
        Fault(kind="raw", text=REFUSED[why], contains="attempt 7 "),
        Fault(kind="raw", text=REFUSED[why], contains="attempt 8 "),
        Fault(kind="status", status=500, contains="attempt 13 "),
    ]
    with JudgeServer(Script(reply=lambda prompt, _: answer(True), faults=faults)) as server:
        run = Run(tmp_path, server)
        code, said = run.command()
        assert code == 0, said
        assert run.reasons == ["no answer: server_error", f"refused: {why}", f"refused: {why}"]
        assert f"2 rows refused by a provider for good (2 judge, {why}); --redo STAGE" in said
        assert "1 row without a usable answer (1 judge, server_error); retry_aside=true" in said
        server.script = Script(reply=lambda prompt, _: answer(True))
        asked = served(server)
        assert run.command("retry_aside=true")[0] == 0
        # Rows of a chunk are written together: those that were refused are in the chunk that is asked again.
        assert served(server) - asked <= 2 * 3
    card = (tmp_path / "run" / "export" / "dataset" / "README.md").read_text()
    assert len(run.tables()["labels"]) >= PROOFS - 2
    assert "no answer: server" not in card


def test_a_short_question_is_answered_also_where_its_answer_is_of_no_use(tmp_path):
    faults = [
        Fault(kind="raw", text=error(413, "Request entity too large"), contains="attempt 7 "),
        Fault(kind="truncated", contains="the word OK"),
    ]
    with JudgeServer(Script(reply=lambda prompt, _: answer(True), faults=faults)) as server:
        run = Run(tmp_path, server)
        assert run.command()[0] == 0
    assert run.reasons == ["refused: too long"]


def test_a_proof_of_which_one_vote_is_refused_for_good_is_refused(tmp_path):
    """Whatever became of its other votes: they would not give it a label."""
    make_tables(tmp_path, 4)
    never = "HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n"
    with (
        JudgeServer(script(error(422, "Unprocessable"), contains="Proof number 2")) as refuses,
        JudgeServer(script(never, contains="Proof number 2")) as fails,
    ):
        config = settings(tmp_path, fails.url, attempts=2)
        small = config.models["small"]
        small = replace(small, endpoints=(replace(small.endpoints[0], url=refuses.url),))
        run_local(Judging(run=tmp_path, config=replace(config, models=config.models | {"small": small})), 1)
    assert [row.reason for row in read_rows(tmp_path / "aside", Aside)] == ["refused: HTTP 422"]


@pytest.mark.parametrize(
    ("text", "workers"), [("404 model", 1), pytest.param("402", 2, marks=pytest.mark.paths)]
)
def test_an_empty_account_is_reported_while_another_endpoint_serves(text, workers, tmp_path):
    with JudgeServer(script(EMPTY[text], requests=range(5, 10_000))) as empty, JudgeServer(script()) as full:
        run = Run(tmp_path, empty, full)
        code, said = run.command(f"workers={workers}")
        assert code == 0, said
        assert f"{empty.url} refuses every request: HTTP {text[:3]}" in said
        assert (len(run.tables()["labels"]), run.reasons) == (PROOFS, [])
        if workers > 1:  # starting processes again takes seconds
            return
        full.script = script(EMPTY["401"])
        code, said = run.command("--redo", "judge", "models.judge.revision=b")
        assert (code, "judge refuses every request" in said) == (3, True), said
        assert run.reasons == []
