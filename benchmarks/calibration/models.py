"""Model folders of Qwen3's shapes without weights, with a tokenizer of bytes and words; prompts of exact lengths.

`calibration.random_weights` (verl's `model.external_lib`) fills such a model with random weights on its device, and
vLLM gets them from verl (`load_format: dummy`): a shape of 8B needs neither a download nor 16 GB of disk.
"""

from __future__ import annotations

import itertools
import json
import random
from itertools import chain
from pathlib import Path
from string import ascii_lowercase

from pv_lab.dataset import write_dataset

SHAPES = {
    "0.1B": (576, 30, 9, 3, 64, 1536, 49152, True),  # SmolLM2-135M's numbers
    "0.6B": (1024, 28, 16, 8, 128, 3072, 151936, True),
    "1.7B": (2048, 28, 16, 8, 128, 6144, 151936, True),
    "4B": (2560, 36, 32, 8, 128, 9728, 151936, True),
    "8B": (4096, 36, 32, 8, 128, 12288, 151936, False),
    "tiny": (64, 2, 4, 2, 16, 128, 512, True),  # to rehearse on a CPU
}
"""Hidden size, layers, heads, heads of keys, width of a head, width of the MLP, vocabulary, tied embeddings."""
NAMES = (
    *("hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim"),
    *("intermediate_size", "vocab_size", "tie_word_embeddings"),
)
TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
PAD, EOS = 0, 1


def write_model(folder: Path, shape: str, mean_response: float | None = None) -> Path:
    """Config, tokenizer and an empty file of weights.

    Args:
        folder: is made.
        shape: a key of `SHAPES`.
        mean_response: tokens; as many ids of the vocabulary end a response as make its length geometric with about this
            mean, if all are equally likely. None: one id ends it, which random weights hardly ever choose.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen3Config

    config = Qwen3Config(
        **dict(zip(NAMES, SHAPES[shape], strict=True)),
        max_position_embeddings=40960,
        rms_norm_eps=1e-6,
        rope_theta=1e6,
        bos_token_id=EOS,
        eos_token_id=EOS,
        pad_token_id=PAD,
        architectures=["Qwen3ForCausalLM"],
    )
    config.save_pretrained(folder)
    ends = [EOS]
    if mean_response is not None:
        ends += range(config.vocab_size - max(1, round(config.vocab_size / mean_response)), config.vocab_size)
    generation = {"eos_token_id": ends, "pad_token_id": PAD, "bos_token_id": EOS}
    (folder / "generation_config.json").write_text(json.dumps(generation))
    letters = ["<pad>", "<|im_end|>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    words = ("\u0120" + "".join(one) for one in itertools.product(ascii_lowercase, repeat=4))
    vocabulary = {
        word: number for number, word in enumerate(itertools.islice(chain(letters, words), config.vocab_size))
    }
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[], ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    saved = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<pad>")
    saved.chat_template = TEMPLATE
    saved.save_pretrained(folder)
    header = json.dumps({"none": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}).encode()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    return folder


def write_prompts(folder: Path, lengths: list[int], held_out: int = 4) -> Path:
    """`train.parquet` and `test.parquet` in verl's schema: a prompt of so many digits, which are its tokens."""
    folder.mkdir(parents=True, exist_ok=True)
    digits = random.Random(0)
    rows = [
        {
            "data_source": "calibration",
            "prompt": [{"role": "user", "content": "".join(digits.choices("0123456789", k=length))}],
            "ability": "proof_verification",
            "reward_model": {"style": "rule", "ground_truth": str(index % 2 == 0)},
            "extra_info": {"index": index, "problem": f"problem {index}"},
        }
        for index, length in enumerate(lengths)
    ]
    write_dataset(rows, folder / "train.parquet")
    write_dataset(rows[:held_out], folder / "test.parquet")
    return folder
