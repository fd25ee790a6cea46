"""Sampling from an endpoint: each pair and sample is asked once, kept, and told apart from what failed."""

from __future__ import annotations

import math
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from judge_server import Fault, JudgeServer, Latency, Script

from pv_data.asking.asker import Stopped
from pv_data.asking.settings import Model
from pv_data.export.prompt import VerifierPrompt
from pv_eval.logit import verdict_logit
from pv_eval.request import Sampling
from pv_eval.verifiers.client import ask_all, look_up
from pv_eval.verifiers.progress import Progress, state_of
from pv_eval.verifiers.trace_cache import Trace, TraceCache, to_vote
from pv_eval.votes import Pair
from pv_judge.answer import TokenLogprobs
from pv_judge.config import read_config
from pv_rl.errors import ConfigError, SetupError
from pv_verdicts import Answer, build_format

PROMPT = VerifierPrompt.load()
FAST = {"retries": {"attempts": 1}, "breaker": {"failures": 1000}}


def pairs(number: int) -> list[Pair]:
    return [
        Pair(
            pair_id=f"p{n}", question_id=f"q{n}", label=n % 2 == 0, question=f"Prove {n}.", proof=f"SOUND{n}"
        )
        for n in range(number)
    ]


def by_mark(prompt: str, _: str) -> str:
    return f"I read it.\n### {'SOUND1' not in prompt}"


def gather(folder: Path, url: str, asked: list[Pair], sampling: Sampling, patience: int = 50, **settings):
    """Traces and how it went, as `pv-eval run` gathers them."""
    endpoint = {"url": url, "model": "m"}
    model = read_config(
        {"endpoints": [endpoint], "sampling": sampling.fields(), **FAST, **settings}, Model, "client"
    )
    seed = sampling.seed if sampling.send_seed else None
    remembered = TraceCache(
        folder / "answers.sqlite", model="m", fields=model.fields(), template=PROMPT.template, seed=seed
    )
    state = Progress()
    try:
        traces, left = look_up(asked, PROMPT, sampling.n, remembered, state, build_format())
        if left:
            traces |= ask_all(left, model, sampling, remembered, state, patience=patience)
    finally:
        remembered.close()
    return traces, state


def test_each_pair_gets_its_samples_and_is_not_asked_twice(tmp_path):
    with JudgeServer(Script(reply=by_mark)) as server:
        traces, state = gather(tmp_path, server.url, pairs(3), Sampling(n=4))
        assert len(server.chats()) == 12
        again, known = gather(tmp_path, server.url, pairs(3), Sampling(n=4))
        assert len(server.chats()) == 12
        gather(
            tmp_path, server.url, pairs(3), Sampling(n=6)
        )  # further samples are asked, the first four are there
        assert len(server.chats()) == 18
    assert traces.keys() == {(f"p{n}", sample) for n in range(3) for sample in range(4)}
    assert {key: trace.text for key, trace in again.items()} == {
        key: trace.text for key, trace in traces.items()
    }
    assert (state.done, state.known, state.calls) == (12, 0, 12)
    assert (known.done, known.known, known.calls) == (12, 12, 0)
    votes = [to_vote(pair, 0, traces[pair.pair_id, 0], unit="characters") for pair in pairs(3)]
    assert [vote.verdict for vote in votes] == [True, False, True]
    assert votes[0].length == len("I read it.\n### True")


def words(text: str) -> list[dict]:
    """A token a word; nine times in ten the model says again what it said."""
    found = []
    for word in re.findall(r"\S+\s*", text):
        other = {"True": "False", "False": "True"}.get(word.strip(), "?")
        top = [{"token": word, "logprob": math.log(0.9)}, {"token": other, "logprob": math.log(0.1)}]
        found.append({"token": word, "logprob": math.log(0.9), "top_logprobs": top})
    return found


def test_a_vote_has_the_logit_of_its_verdict_where_the_server_gives_log_probabilities(tmp_path):
    sampling = Sampling(n=2, logits=True)
    with JudgeServer(Script(reply=by_mark, logprobs=words)) as server:
        traces, _ = gather(tmp_path, server.url, pairs(2), sampling)
        assert {chat["body"]["top_logprobs"] for chat in server.chats()} == {5}
        again, state = gather(tmp_path, server.url, pairs(2), sampling)
        assert (len(server.chats()), state.known) == (4, 4)
        plain, _ = gather(tmp_path, server.url, pairs(2), Sampling(n=2))
        assert len(server.chats()) == 8  # another request
    for found in (traces, again):
        votes = [to_vote(pair, 1, found[pair.pair_id, 1], unit="tokens") for pair in pairs(2)]
        assert [vote.logit for vote in votes] == pytest.approx([math.log(9), -math.log(9)])
    assert {trace.logit for trace in plain.values()} == {None}
    with JudgeServer(Script(reply=by_mark)) as server:  # one that leaves them out
        without, _ = gather(tmp_path / "other", server.url, pairs(2), sampling)
    assert {trace.logit for trace in without.values()} == {None}


@pytest.mark.parametrize(
    ("tokens", "logit"),
    [
        ([{"###": 0.0}, {" True": -0.5, " False": -2.0}], 1.5),
        ([{"###": 0.0}, {" True": -2.0, " False": -0.5}], -1.5),  # sampled against the odds
        ([{"### ": 0.0}, {"Tr": -1.0, "F": -3.0}, {"ue": 0.0, "x": -9.0}, {"<|im_end|>": 0.0}], 2.0),
        ([{"###": 0.0}, {" True": -1.0, " true": -1.0, " False": -1.0}], math.log(2)),
        ([{"###": 0.0}, {" True": -0.5, " maybe": -4.0}], 3.5),  # False is at most as likely as what is shown
        ([{"True or False? ": 0.0}, {"### ": 0.0}, {"True": -0.5, "False": -1.0}], 0.5),
        ([{"###": 0.0}, {" True": -0.5, " False": -math.inf}], None),
        ([{"###": 0.0}, {" False": -0.5}], None),  # not the word of the text
        ([], None),
    ],
)
def test_the_logit_is_that_of_the_token_that_begins_the_verdict(tokens, logit):
    given = [TokenLogprobs(token=next(iter(top)), top=top) for top in tokens]
    found = verdict_logit("All steps hold.\n### True<|im_end|>", given)
    assert found == (None if logit is None else pytest.approx(logit))
    assert verdict_logit("no verdict, True", given) is None


def test_what_a_trace_depends_on_asks_anew(tmp_path):
    with JudgeServer(Script(reply=by_mark)) as server:
        for number, sampling in enumerate(
            (
                Sampling(n=1),
                Sampling(n=1, seed=1),
                Sampling(n=1, temperature=0.0),
                Sampling(n=1, send_seed=False),
            ),
            1,
        ):
            gather(tmp_path, server.url, pairs(1), sampling)
            assert len(server.chats()) == number
        gather(tmp_path, server.url, pairs(1), Sampling(n=1), revision="2026-11")
        assert len(server.chats()) == 5


def test_every_request_has_the_sampling_and_a_seed_of_its_own(tmp_path):
    sampling = Sampling(n=3, seed=7)
    with JudgeServer(Script(reply=by_mark)) as server:
        gather(tmp_path, server.url, pairs(2), sampling)
        bodies = [one["body"] for one in server.chats()]
    assert {(body["temperature"], body["top_p"], body["max_tokens"]) for body in bodies} == {(0.6, 0.9, 8192)}
    wanted = {sampling.seed_of(f"p{n}", sample) for n in range(2) for sample in range(3)}
    assert {body["seed"] for body in bodies} == wanted
    assert len(wanted) == 6
    with JudgeServer(Script(reply=by_mark)) as server:
        gather(tmp_path, server.url, pairs(1), Sampling(n=1, send_seed=False))
        assert "seed" not in server.chats()[0]["body"]


def test_a_request_that_failed_is_a_missing_verdict_with_its_reason_and_is_asked_again(tmp_path):
    faults = [Fault(kind="status", status=500, requests=[2]), Fault(kind="refusal", requests=[3])]
    with JudgeServer(Script(reply=by_mark, faults=faults)) as server:
        first, state = gather(tmp_path, server.url, pairs(4), Sampling(n=1), limits={"concurrency": 1})
        assert state.failures == {"server_error": 1, "refusal": 1}
        failed = to_vote(pairs(4)[1], 0, first["p1", 0], unit="tokens")
        assert (failed.verdict, failed.length, failed.trace) == (None, None, None)
        second, state = gather(tmp_path, server.url, pairs(4), Sampling(n=1))
        assert len(server.chats()) == 5  # the refusal is the model's own and is kept, the error is not
    assert state.failures == {"refusal": 1}
    assert second["p1", 0].text == "I read it.\n### False"


def test_a_trace_that_was_cut_is_kept_and_has_no_verdict(tmp_path):
    cut = Fault(kind="truncated", text="It follows that\n### True")
    with JudgeServer(Script(faults=[cut])) as server:
        for _ in range(2):
            traces, state = gather(tmp_path, server.url, pairs(2), Sampling(n=1))
        assert len(server.chats()) == 2
    assert state.failures == {"truncated": 2}
    vote = to_vote(pairs(1)[0], 0, traces["p0", 0], unit="characters")
    # what stood there when it was cut is no final verdict
    assert (vote.verdict, vote.trace, vote.length) == (None, "It follows that\n### True", 24)


def test_a_server_that_gives_nothing_ends_it_in_words_and_nothing_is_lost(tmp_path):
    down = Fault(kind="status", status=500, contains="SOUND")
    with JudgeServer(
        Script(faults=[Fault(kind="content", text="### True", until_request=5), down])
    ) as server:
        with pytest.raises(
            Stopped, match=r"3 requests in a row failed.*HTTP 500.* 8 of 100 traces are there"
        ):
            gather(tmp_path, server.url, pairs(100), Sampling(n=1), patience=3, limits={"concurrency": 1})
        assert len(server.chats()) == 8
    with JudgeServer(Script(reply=by_mark)) as server:
        traces, state = gather(tmp_path, server.url, pairs(100), Sampling(n=1))
        assert (len(traces), state.known, len(server.chats())) == (100, 5, 95)
    long = Fault(kind="status", status=400, text="maximum context length is 9 tokens")
    with JudgeServer(Script(faults=[long])) as server:  # the server answers, so nothing is in vain
        _, state = gather(tmp_path, server.url, pairs(9), Sampling(n=1, seed=1), patience=3)
    assert state.failures == {"context_length": 9}


def test_a_budget_ends_it_before_it_is_passed(tmp_path):
    with JudgeServer(Script(reply=by_mark)) as server:
        with pytest.raises(Stopped, match="calls_per_run"):
            gather(tmp_path, server.url, pairs(10), Sampling(n=1), budget={"calls_per_run": 4})
        assert len(server.chats()) == 4


def test_a_server_that_refuses_seeds_is_named(tmp_path):
    fault = Fault(kind="status", status=422, text="Unexpected fields in the request: {'seed'}")
    with JudgeServer(Script(faults=[fault])) as server, pytest.raises(SetupError, match="--no-send-seed"):
        gather(tmp_path, server.url, pairs(1), Sampling(n=1))


@pytest.mark.parametrize("wrong", [{"n": 0}, {"n": 1.5}, {"temperature": -1.0}, {"top_p": 0.0}, {"seed": -1}])
def test_settings_out_of_bounds_are_refused(wrong):
    with pytest.raises(ConfigError):
        Sampling(**wrong)


def test_a_trace_of_another_kind_than_text_has_the_verdict_that_was_given():
    pair = pairs(1)[0]
    assert (
        to_vote(pair, 0, Trace(text=None, answer=Answer(accepts=False)), unit="characters").verdict is False
    )
    assert to_vote(pair, 0, Trace(text=None, missing="timeout"), unit="characters").verdict is None
    kept = to_vote(pair, 0, Trace(text="x\n### True", tokens=9), unit="tokens")
    assert (kept.verdict, kept.length, kept.trace) == (True, 9, "x\n### True")


def test_progress_says_cost_failures_and_time_left():
    state = Progress(total=100, done=40, known=20, calls=21, usd=0.5)
    state.failures["truncated"] = 3
    # 20 were asked in 10 s, and 60 are left
    assert state_of(state, 10.0) == "20 from the cache, 21 requests, $0.50, truncated 3, about 30 s left"
    state.stopping = True
    assert "stopping: waiting for the requests in flight" in state_of(state, 10.0)


CHILD = """
import sys
from pathlib import Path
sys.path.insert(0, {here!r})
from test_eval_sampling import Sampling, gather, pairs
gather(Path({folder!r}), {url!r}, pairs(30), Sampling(n=4), limits={{"concurrency": 4}})
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_ended_in_the_middle_goes_on_and_pays_for_nothing_twice(tmp_path, how):
    here = Path(__file__).parent
    with JudgeServer(Script(reply=by_mark, latency=Latency(median_s=0.05))) as server:
        code = CHILD.format(here=str(here), folder=str(tmp_path), url=server.url)
        child = subprocess.Popen(
            [sys.executable, "-c", code],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stderr=subprocess.PIPE,
            text=True,
        )
        deadline = time.monotonic() + 60
        while len(server.chats()) < 20 and time.monotonic() < deadline:
            time.sleep(0.01)
        child.send_signal(how)
        _, said = child.communicate(timeout=60)
        sent = len(server.chats())
        assert 20 <= sent < 120
        assert how == signal.SIGKILL or "it was stopped" in said
        kept = (
            sqlite3.connect(tmp_path / "answers.sqlite").execute("SELECT count(*) FROM answers").fetchone()[0]
        )
        # a graceful end waits for the four that are under way, a kill loses at most those
        assert sent - kept <= (4 if how == signal.SIGKILL else 0)
        traces, state = gather(tmp_path, server.url, pairs(30), Sampling(n=4))
        assert (len(traces), state.known) == (120, kept)
        assert len(server.chats()) == sent + 120 - kept
