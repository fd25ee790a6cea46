"""A tiny Qwen3 with weights large enough that its distributions are far from uniform."""

import pytest
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

VOCAB = 40


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    """Tensors here are tiny, and threads that wait for each other cost more than they compute."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tiny_model() -> Qwen3ForCausalLM:
    config = Qwen3Config(
        vocab_size=VOCAB,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=128,
        tie_word_embeddings=True,
        eos_token_id=2,
        pad_token_id=0,
        attn_implementation="sdpa",
    )
    torch.manual_seed(0)
    model = Qwen3ForCausalLM(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.4)
    return model
