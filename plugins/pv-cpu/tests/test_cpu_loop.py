"""The engine in its thread: batching, aborts, failures."""

import time

import pytest
import torch

from pv_cpu.rollout import model as models
from pv_cpu.rollout.engine import Engine
from pv_cpu.rollout.loop import EngineLoop
from pv_cpu.rollout.request import Request

BAD = 39


class PickyModel(torch.nn.Module):
    """Fails for a batch with the token ``BAD``, and while ``broken`` is set."""

    def __init__(self, inner: torch.nn.Module) -> None:
        super().__init__()
        self.inner, self.broken, self.delay = inner, False, 0.0
        self.config = inner.config

    def forward(self, input_ids, **kwargs):
        time.sleep(self.delay)
        if self.broken or (input_ids == BAD).any():
            raise RuntimeError("a bad token")
        return self.inner(input_ids=input_ids, **kwargs)


@pytest.fixture
def loop(tiny_model):
    model = models.build(tiny_model.config, "float32", 128)
    models.load_weights(model, tiny_model.state_dict())
    loop = EngineLoop(Engine(PickyModel(model), max_rows=4, sampled_vocab=BAD))
    yield loop
    loop.close()


def request(*prompt: int, max_tokens: int = 5) -> Request:
    return Request(prompt=prompt or (5, 6), max_tokens=max_tokens, seed=0)


def test_more_requests_than_rows_are_all_answered(loop):
    futures = [loop.submit(request(5, i)) for i in range(3, 23)]
    assert [len(future.result(30).token_ids) for future in futures] == [5] * 20


def test_a_request_that_fails_leaves_the_others_alone(loop):
    futures = [loop.submit(request(5)), loop.submit(request(BAD)), loop.submit(request(6))]
    with pytest.raises(RuntimeError, match="a bad token"):
        futures[1].result(30)
    assert [len(futures[i].result(30).token_ids) for i in (0, 2)] == [5, 5]
    assert len(loop.submit(request()).result(30).token_ids) == 5


def test_a_step_that_fails_fails_its_rows_and_not_the_loop(loop):
    loop.engine.model.delay = 0.01
    future = loop.submit(request(max_tokens=100))
    while not len(loop.engine.rows):
        time.sleep(0.001)
    loop.engine.model.broken = True
    with pytest.raises(RuntimeError, match="a bad token"):
        future.result(30)
    loop.engine.model.broken = False
    assert loop.call(lambda: len(loop.engine.rows)).result(30) == 0
    assert len(loop.submit(request()).result(30).token_ids) == 5


def test_an_abort_answers_running_and_waiting_requests(loop):
    loop.engine.model.delay = 0.01
    futures = [loop.submit(request(5, max_tokens=120)) for _ in range(6)]
    while not len(loop.engine.rows):
        time.sleep(0.001)
    assert loop.abort_all().result(30) == 6
    completions = [future.result(30) for future in futures]
    assert all(one.aborted and len(one.token_ids) < 120 for one in completions)
    assert sum(bool(one.token_ids) for one in completions) == 4
    assert not loop.submit(request()).result(30).aborted


def test_a_command_that_fails_raises_for_whoever_gave_it(loop):
    def command():
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        loop.call(command).result(30)
    assert loop.call(lambda: 7).result(30) == 7


def test_a_request_that_comes_while_others_run_does_not_wait_for_them(loop):
    loop.engine.model.delay = 0.01
    long = loop.submit(request(max_tokens=100))
    while not len(loop.engine.rows):
        time.sleep(0.001)
    assert len(loop.submit(request(7)).result(30).token_ids) == 5
    assert not long.done()
