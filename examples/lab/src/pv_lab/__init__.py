"""The lab: questions with proofs whose correctness is known by construction, and a small model to check them.

`pv_lab.dataset` writes verl parquet, `pv_lab.tokenizer` and `pv_lab.model` make a word-level
Qwen3 of 0.9M parameters, `pv_lab.warmstart` trains it on noisy verification traces, and
`pv_lab.evaluate` measures it on both classes. `MODEL_DIR` holds the weights that come with the lab.
"""

from pathlib import Path

__all__ = ["MODEL_DIR"]

MODEL_DIR = Path(__file__).parent / "weights"
