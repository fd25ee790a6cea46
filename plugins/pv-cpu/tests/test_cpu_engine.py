"""Decoding, against transformers itself."""

import itertools
import random

import pytest
import torch

from pv_cpu.rollout import model as models
from pv_cpu.rollout.engine import Engine, split
from pv_cpu.rollout.request import Completion, Request

EOS = frozenset({2})


@pytest.fixture
def make_engine(tiny_model):
    def make(**kwargs) -> Engine:
        model = models.build(tiny_model.config, "float32", 128)
        models.load_weights(model, tiny_model.state_dict())
        return Engine(model, **{"max_rows": 32, **kwargs})

    return make


def run(engine: Engine, requests: list[Request], joins: tuple[int, ...] = ()) -> list[Completion]:
    """Admit the requests in groups that begin at ``joins``, three steps apart."""
    done: dict[int, Completion] = {}
    for begin, end in itertools.pairwise((0, *joins, len(requests))):
        done.update(engine.admit(requests[begin:end], range(begin, end)))
        for _ in range(3):
            if len(engine.rows):
                done.update(engine.step())
    while len(engine.rows):
        done.update(engine.step())
    return [done[i] for i in range(len(requests))]


def some_requests(count: int, seed: int = 0, **fixed) -> list[Request]:
    draw = random.Random(seed)
    return [
        Request(
            **{
                "prompt": tuple(draw.randrange(3, 40) for _ in range(draw.randrange(1, 20))),
                "max_tokens": draw.randrange(1, 30),
                "temperature": draw.choice([0.0, 0.7, 1.0]),
                "top_k": draw.choice([0, 5]),
                "top_p": draw.choice([1.0, 0.8]),
                "seed": i,
                "stop_token_ids": EOS,
                **fixed,
            }
        )
        for i in range(count)
    ]


def reference_log_probs(model: torch.nn.Module, request: Request, completion: Completion) -> torch.Tensor:
    """``(T,)`` log p of each token from one plain forward pass, processed one row at a time."""
    ids = torch.tensor([[*request.prompt, *completion.token_ids]])
    with torch.no_grad():
        logits = model(input_ids=ids).logits[0, len(request.prompt) - 1 : -1]
    if request.greedy:
        return logits.log_softmax(-1).gather(-1, ids[0, len(request.prompt) :, None])[:, 0]
    logits = logits / request.temperature
    for row in logits:
        if request.top_k:
            row[row < row.topk(request.top_k).values[-1]] = -torch.inf
        if request.top_p < 1:
            ordered = sorted(range(len(row)), key=lambda token: -row[token])
            probability, total = row.softmax(-1), 0.0
            for token in ordered:
                if total >= request.top_p:
                    row[token] = -torch.inf
                total += float(probability[token])
    return logits.log_softmax(-1).gather(-1, ids[0, len(request.prompt) :, None])[:, 0]


def test_greedy_equals_generate_of_transformers(make_engine, tiny_model):
    requests = some_requests(8, temperature=0.0, max_tokens=25)
    for request, completion in zip(requests, run(make_engine(), requests), strict=True):
        ids = torch.tensor([request.prompt])
        expected = tiny_model.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=25, do_sample=False
        )
        assert completion.token_ids == expected[0, len(request.prompt) :].tolist()


@pytest.mark.parametrize("joins", [(), (3, 5, 11)], ids=["together", "joining-later"])
def test_log_probs_equal_a_forward_pass_of_the_model(make_engine, tiny_model, joins):
    requests = some_requests(16)
    for request, completion in zip(requests, run(make_engine(), requests, joins), strict=True):
        expected = reference_log_probs(tiny_model, request, completion)
        torch.testing.assert_close(torch.tensor(completion.log_probs), expected, atol=1e-4, rtol=1e-4)


def test_a_response_does_not_depend_on_the_rows_around_it(make_engine):
    requests = some_requests(16)
    together = run(make_engine(), requests, joins=(3, 5, 11))
    alone = [run(make_engine(), [request])[0] for request in requests]
    assert [one.token_ids for one in together] == [one.token_ids for one in alone]


def test_a_seed_repeats_and_another_does_not(make_engine):
    requests = some_requests(3, prompt=(5, 6, 7), temperature=1.0, top_k=0, top_p=1.0, max_tokens=20)
    first, second = run(make_engine(), requests), run(make_engine(seed=1), requests)
    assert first == second
    assert len({tuple(one.token_ids) for one in first}) == 3


def test_without_a_seed_the_engines_seed_decides(make_engine):
    requests = some_requests(4, seed=3, temperature=1.0, max_tokens=20)
    unseeded = [Request(**{**vars(request), "seed": None}) for request in requests]
    assert run(make_engine(seed=1), unseeded) == run(make_engine(seed=1), unseeded)
    assert run(make_engine(seed=1), unseeded) != run(make_engine(seed=2), unseeded)


def test_samples_follow_the_models_distribution(make_engine, tiny_model):
    requests = [Request(prompt=(5, 6, 7), max_tokens=1) for _ in range(4000)]
    tokens = torch.tensor([one.token_ids[0] for one in run(make_engine(max_rows=4000), requests)])
    with torch.no_grad():
        expected = tiny_model(input_ids=torch.tensor([[5, 6, 7]])).logits[0, -1].softmax(-1)
    observed = torch.bincount(tokens, minlength=40) / 4000
    assert (observed - expected).abs().max() < 0.03


def test_no_more_than_max_tokens_and_exactly_that_many_without_eos(make_engine):
    requests = [
        Request(prompt=(5, 6), max_tokens=count, seed=count, temperature=1.0) for count in (1, 2, 9, 30)
    ]
    assert [len(one.token_ids) for one in run(make_engine(), requests)] == [1, 2, 9, 30]


def test_a_stop_token_ends_the_response_and_is_part_of_it(make_engine):
    requests = some_requests(24, temperature=1.0, top_k=0, top_p=1.0, max_tokens=60)
    completions = run(make_engine(), requests)
    ended = [one.token_ids for one in completions if len(one.token_ids) < 60]
    assert ended
    assert all(ids[-1] == 2 for ids in ended)
    assert all(2 not in one.token_ids[:-1] for one in completions)


def test_tokens_beyond_the_tokenizer_are_never_sampled(make_engine):
    requests = some_requests(16, temperature=1.0, stop_token_ids=frozenset(), max_tokens=30)
    completions = run(make_engine(sampled_vocab=10), requests)
    assert max(max(one.token_ids) for one in completions) < 10


def test_an_abort_returns_what_there_is_and_leaves_an_empty_engine(make_engine):
    engine = make_engine()
    requests = [Request(prompt=(5, 6), max_tokens=30, seed=1), Request(prompt=(7,), max_tokens=30, seed=2)]
    engine.admit(requests, "ab")
    engine.step()
    partial = dict(engine.abort())
    assert {tag: len(one.token_ids) for tag, one in partial.items()} == {"a": 2, "b": 2}
    assert all(one.aborted for one in partial.values())
    assert len(engine.rows) == 0
    assert run(engine, requests)[0].token_ids[:2] == partial["a"].token_ids


def test_a_prompt_that_many_requests_share_is_prefilled_once(make_engine, monkeypatch):
    engine = make_engine()
    seen = []
    forward = engine._forward
    monkeypatch.setattr(engine, "_forward", lambda ids, *rest: seen.append(ids.shape) or forward(ids, *rest))
    engine.admit(
        [Request(prompt=(5, 6, 7), max_tokens=3)] * 8 + [Request(prompt=(5,), max_tokens=3)], range(9)
    )
    assert [tuple(shape) for shape in seen] == [(2, 3)]


def test_a_prefill_is_cut_where_it_would_exceed_the_limit_of_tokens():
    prompts = [(1,) * 4, (2,) * 4, (1,) * 4, (3,) * 6, (4,)]
    pairs = [(Request(prompt=prompt, max_tokens=1), i) for i, prompt in enumerate(prompts)]
    assert [[tag for _, tag in chunk] for chunk in split(pairs, 8)] == [[4, 0, 2], [1], [3]]
