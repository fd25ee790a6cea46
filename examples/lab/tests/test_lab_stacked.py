"""Many verifiers as one model: each is what transformers and torch make of it alone."""

from __future__ import annotations

import pytest

pytest.importorskip("transformers", reason="transformers is not installed: pip install 'pv-rl[verl]'")
import torch
from transformers import Qwen3ForCausalLM

from pv_lab import MODEL_DIR
from pv_lab.evaluate import held_out
from pv_lab.optimizer import StackedAdamW
from pv_lab.stacked import StackedVerifier
from pv_lab.tokenizer import ASSISTANT, EOS, PAD, USER, VOCABULARY, encode


def prompts(count: int, *, left: bool = True):
    rows = [encode(f"{USER} {sample.text} {ASSISTANT}") for sample in held_out(count, 2)]
    longest = max(map(len, rows))
    pad = [VOCABULARY[PAD]]
    padded = [pad * (longest - len(r)) + r if left else r + pad * (longest - len(r)) for r in rows]
    ids = torch.tensor(padded)
    return ids, ids != VOCABULARY[PAD]


def own_weights(runs: int) -> StackedVerifier:
    """Runs that differ: each is the lab's verifier with noise of its own."""
    stack = StackedVerifier.load(runs)
    generator = torch.Generator().manual_seed(3)
    for weight in stack.weights.values():
        weight += 0.01 * torch.randn(weight.shape, generator=generator)
    return stack


def alone(stack: StackedVerifier, run: int) -> Qwen3ForCausalLM:
    model = Qwen3ForCausalLM.from_pretrained(MODEL_DIR, dtype=torch.float32)
    state = {name: weight[run] for name, weight in stack.weights.items()}
    model.load_state_dict(state | {"lm_head.weight": state["model.embed_tokens.weight"]})
    return model.eval()


@pytest.mark.parametrize("left", [True, False], ids=["padded on the left", "padded on the right"])
def test_logits_are_those_of_transformers(left):
    stack = own_weights(2)
    ids, mask = prompts(5, left=left)
    both = stack.logits(ids.expand(2, -1, -1), mask.expand(2, -1, -1), last=ids.shape[-1])
    for run in range(2):
        with torch.no_grad():
            positions = (mask.long().cumsum(-1) - 1).clamp(min=0)
            expected = alone(stack, run)(
                input_ids=ids, attention_mask=mask.long(), position_ids=positions
            ).logits
        torch.testing.assert_close(both[run][mask], expected[mask], rtol=1e-4, atol=1e-4)


def test_the_likeliest_responses_are_those_of_transformers():
    stack = own_weights(2)
    ids, mask = prompts(6)
    responses = stack.sample(
        ids.expand(2, -1, -1),
        mask.expand(2, -1, -1),
        max_tokens=40,
        generator=torch.Generator(),
        temperature=0,
    )
    assert not torch.equal(responses[0], responses[1])
    for run in range(2):
        expected = alone(stack, run).generate(
            input_ids=ids, attention_mask=mask.long(), max_new_tokens=40, do_sample=False
        )[:, ids.shape[1] :]
        length = min(expected.shape[1], responses.shape[2])
        assert torch.equal(responses[run, :, :length], expected[:, :length])


def test_tokens_are_drawn_by_the_probabilities_of_the_model():
    stack = StackedVerifier.load(1)
    ids, mask = prompts(1)
    rows = 4000
    drawn = stack.sample(
        ids.expand(1, rows, -1),
        mask.expand(1, rows, -1),
        max_tokens=1,
        generator=torch.Generator().manual_seed(0),
    )[0, :, 0]
    expected = stack.logits(ids[None], mask[None], last=1)[0, 0, 0].softmax(-1)
    shares = torch.bincount(drawn, minlength=len(expected)) / rows
    assert (shares - expected).abs().max() < 4 * 0.5 / rows**0.5


def test_a_response_ends_at_its_end_mark():
    stack = StackedVerifier.load(1)
    ids, mask = prompts(16)
    responses = stack.sample(ids[None], mask[None], max_tokens=64, generator=torch.Generator().manual_seed(0))
    for row in responses[0].tolist():
        end = row.index(VOCABULARY[EOS]) if VOCABULARY[EOS] in row else len(row)
        assert VOCABULARY[PAD] not in row[:end]
        assert set(row[end + 1 :]) <= {VOCABULARY[PAD]}


def test_the_optimizer_is_torchs_for_each_run():
    rates = [1e-2, 3e-3]
    generator = torch.Generator().manual_seed(1)
    start = [torch.randn(2, 4, 3, generator=generator), torch.randn(2, 5, generator=generator)]
    stacked = [weight.clone().requires_grad_(True) for weight in start]
    ours = StackedAdamW(stacked, lr=torch.tensor(rates))
    single = [[weight[run].clone().requires_grad_(True) for weight in start] for run in range(2)]
    theirs = [
        torch.optim.AdamW(weights, lr=lr, weight_decay=0.01)
        for weights, lr in zip(single, rates, strict=True)
    ]
    for size in (5.0, 0.01, 1.0):  # above the clip, below it, about at it
        gradients = [size * torch.randn(weight.shape, generator=generator) for weight in start]
        for weight, gradient in zip(stacked, gradients, strict=True):
            weight.grad = gradient.clone()
        norms = ours.step()
        for run in range(2):
            for weight, gradient in zip(single[run], gradients, strict=True):
                weight.grad = gradient[run].clone()
            norm = torch.nn.utils.clip_grad_norm_(single[run], 1.0)
            theirs[run].step()
            assert norms[run].item() == pytest.approx(norm.item(), rel=1e-5)
    for run in range(2):
        for weight, expected in zip(stacked, single[run], strict=True):
            torch.testing.assert_close(weight[run], expected)
