"""A small GPT-2 that computes in the dtype it is given from end to end, and the folder that verl loads it from.

GPT-2 and not a Qwen: RMSNorm as transformers has it, and rotary embeddings, go through float32.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

VOCABULARY = 32
LONGEST = 4200
EOS = 1


def save_model(folder: Path) -> None:
    """Weights in float32, so that both dtypes start from the same numbers, and a tokenizer of words w0, w1..."""
    words = {"<pad>": 0, "<eos>": EOS} | {f"w{i}": i for i in range(2, VOCABULARY)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<eos>", pad_token="<pad>", unk_token="<pad>"
    ).save_pretrained(folder)
    config = GPT2Config(
        vocab_size=VOCABULARY,
        n_positions=LONGEST,
        n_embd=16,
        n_layer=2,
        n_head=2,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        resid_pdrop=0.0,
        initializer_range=0.2,
        tie_word_embeddings=False,
        num_key_value_heads=2,  # verl reads it of every model
        bos_token_id=EOS,
        eos_token_id=EOS,
        pad_token_id=0,
    )
    torch.manual_seed(0)
    GPT2LMHeadModel(config).save_pretrained(folder)
    # verl takes a model for a language model by this name (verl/utils/model.py:714).
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"architectures": ["GPT2ForCausalLM"]}))


def load_oracle_model(folder: Path) -> GPT2LMHeadModel:
    """The same weights in float64."""
    return GPT2LMHeadModel.from_pretrained(folder, dtype=torch.float64, attn_implementation="sdpa").eval()
