"""`unmasked`: the numbers of sdpa without its mask, and a refusal of what it cannot compute."""

from __future__ import annotations

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config, Qwen3Config

from pv_runs.attention import NAME, unmasked

SHAPE = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 50,
}
LENGTHS = (7, 3, 1, 5)


def model(config, attention):
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_config(config(**SHAPE), attn_implementation=attention).double()


def row_by_row(made, rows):
    """Logits and gradients of the embeddings by sdpa, a row at a time, where nothing is padded."""
    logits = [made(input_ids=row[None], use_cache=False).logits[0] for row in rows]
    torch.cat(logits).square().sum().backward()
    return torch.cat(logits), made.get_input_embeddings().weight.grad


@pytest.mark.parametrize("config", [Qwen3Config, Qwen2Config, LlamaConfig])
@pytest.mark.parametrize("packed", [False, True])
def test_padded_and_packed_rows_have_the_numbers_of_single_rows(config, packed):
    rows = [
        torch.randint(1, 50, (length,), generator=torch.Generator().manual_seed(length)) for length in LENGTHS
    ]
    expected, expected_grad = row_by_row(model(config, "sdpa"), rows)
    positions = [torch.arange(length) for length in LENGTHS]
    made = model(config, NAME)
    if packed:
        logits = made(
            input_ids=torch.cat(rows)[None], position_ids=torch.cat(positions)[None], use_cache=False
        )
        found = logits.logits[0]
    else:
        ids, places = (torch.nn.utils.rnn.pad_sequence(one, batch_first=True) for one in (rows, positions))
        mask = torch.nn.utils.rnn.pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
        logits = made(input_ids=ids, attention_mask=mask, position_ids=places, use_cache=False).logits
        found = logits[mask.bool()]
    found.square().sum().backward()
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=1e-9)
    grad = made.get_input_embeddings().weight.grad
    torch.testing.assert_close(grad, expected_grad, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sliding_window": 4}, "does not support sliding_window"),
        ({"softcap": 30.0}, "softcap"),
        ({"dropout": 0.1}, "dropout"),
        ({"mask": torch.ones(2, 1, 4, 4)}, "a mask"),
        ({"key": torch.zeros(2, 1, 5, 8)}, "a cache"),
        ({"position_ids": None}, r"position_ids of shape \(batch 2, T\)"),
        ({"position_ids": torch.arange(4)[None]}, r"got \(1, 4\)"),
        ({"position_ids": torch.tensor([[0, 0, 1, 2], [0, 1, 2, 3]])}, "padded on the right"),
        ({"position_ids": torch.tensor([[4, 5, 6, 7], [4, 5, 6, 7]])}, "ulysses_sequence_parallel_size=1"),
    ],
)
def test_what_it_cannot_compute_is_refused(changes, message):
    given = {
        "query": torch.zeros(2, 2, 4, 8),
        "key": torch.zeros(2, 1, 4, 8),
        "value": torch.zeros(2, 1, 4, 8),
    }
    given |= {"mask": None, "position_ids": torch.arange(4).repeat(2, 1)}
    with pytest.raises(ValueError, match=message):
        unmasked(None, **(given | changes))
