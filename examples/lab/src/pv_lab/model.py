"""Verifier model: a Qwen3 with four layers and 0.9M parameters (0.1M parameters did not learn to check)."""

from pathlib import Path
from typing import TYPE_CHECKING

from pv_lab.tokenizer import EOS, PAD, VOCABULARY, save_tokenizer

if TYPE_CHECKING:
    from transformers import Qwen3ForCausalLM

__all__ = ["make_model", "save_model"]


def make_model(seed: int) -> "Qwen3ForCausalLM":
    """A randomly initialised verifier in float32; its vocabulary is the tokenizer's."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    config = Qwen3Config(
        vocab_size=len(VOCABULARY),
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=4,
        head_dim=32,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        initializer_range=0.06,
        bos_token_id=None,
        eos_token_id=VOCABULARY[EOS],
        pad_token_id=VOCABULARY[PAD],
    )
    torch.manual_seed(seed)
    return Qwen3ForCausalLM(config)


def save_model(model: "Qwen3ForCausalLM", folder: Path) -> None:
    """Save weights, configuration, generation settings (sampling at temperature 1) and tokenizer."""
    from transformers import GenerationConfig

    folder.mkdir(parents=True, exist_ok=True)
    model.generation_config = GenerationConfig(
        eos_token_id=VOCABULARY[EOS], pad_token_id=VOCABULARY[PAD], do_sample=True, temperature=1.0, top_k=0
    )
    model.save_pretrained(folder)
    save_tokenizer(folder)
