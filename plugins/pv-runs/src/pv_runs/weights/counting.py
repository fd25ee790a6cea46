"""Length counter of texts: tokens with a tokenizer, else words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pv_judge.extras import needs
from pv_rl.errors import DataError

__all__ = ["Counter", "count_tokens_with", "count_words"]

Counter = Callable[[Sequence[str]], list[int]]
"""`counter(texts) -> lengths`, (B,) each."""


def count_words(texts: Sequence[str]) -> list[int]:
    """(B,) words, split at white space."""
    return [len(text.split()) for text in texts]


def count_tokens_with(tokenizer: str) -> Counter:
    """A counter of tokens, special ones not added.

    Args:
        tokenizer: a folder with a tokenizer, as in a model's checkpoint. Nothing is fetched.

    Raises:
        SetupError: transformers is missing.
        DataError: there is no tokenizer in the folder.
    """
    with needs(
        "transformers", "--tokenizer", "pip install transformers, or leave --tokenizer out to count words"
    ):
        from transformers import AutoTokenizer
    try:
        loaded = AutoTokenizer.from_pretrained(tokenizer, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # whatever a tokenizer's files make its loader raise
        reason = " ".join(str(error).split())[:300]
        raise DataError(
            f"--tokenizer {tokenizer} cannot be loaded by transformers as a tokenizer ({type(error).__name__}: "
            f"{reason}). Give the folder of a model or a tokenizer on this machine"
        ) from error

    def count(texts: Sequence[str]) -> list[int]:
        if not texts:  # which a tokenizer does not take
            return []
        encoded = loaded(list(texts), add_special_tokens=False, verbose=False)
        return [len(ids) for ids in encoded["input_ids"]]

    return count
