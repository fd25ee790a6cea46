"""A word-level tokenizer whose vocabulary is known beforehand: every number is one token.

The ids follow from the list of words alone, so the warm start can encode without the tokenizer, and the
vocabulary is as large as the model's (vLLM masks ids at or past `len(tokenizer)`).
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from pv_lab.algebra import MAX_COEFFICIENT, MAX_CONSTANT, OP_KINDS
from pv_lab.difficulty import MAX_STEPS
from pv_rl.errors import DataError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

__all__ = ["CHAT_TEMPLATE", "EOS", "PAD", "VOCABULARY", "encode", "make_tokenizer", "save_tokenizer"]

PAD, EOS, UNK, USER, ASSISTANT = SPECIAL = ("<pad>", "<eos>", "<unk>", "<user>", "<assistant>")

WORDS = (
    *SPECIAL,
    *("from", "show", "proof", *OP_KINDS, "="),
    *("check", "says", "nothing", "ok", "bad", "wait", "so", "all", "fine", "looks", "wrong"),
    *("###", "True", "False"),
    *(f"S{i}" for i in range(1, MAX_STEPS + 1)),
    *(str(n) for n in range(2, 13)),
    *(f"{n}x" for n in range(-MAX_COEFFICIENT, MAX_COEFFICIENT + 1) if n),
    *(f"{n:+d}" for n in range(-MAX_CONSTANT, MAX_CONSTANT + 1)),
)
VOCABULARY = {word: i for i, word in enumerate(WORDS)}

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['role'] == 'assistant' %}<assistant> {{ message['content'] }} <eos> "
    "{% else %}<user> {{ message['content'] }} {% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
"""Two tokens beside the text of the task: `<user> TASK <assistant>`."""


def encode(text: str) -> list[int]:
    """The ids of a text of known words; a `DataError` names the first word that is not one."""
    try:
        return [VOCABULARY[word] for word in text.split()]
    except KeyError as error:
        raise DataError(f"{error.args[0]!r} is no word of the lab; see pv_lab.tokenizer.WORDS") from error


def make_tokenizer() -> "PreTrainedTokenizerFast":
    """The tokenizer as transformers uses it."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel(VOCABULARY, unk_token=UNK))
    # verl 0.9 wants a line break to be one token if the model is a Qwen (QwenContinuousTokenBuilder in
    # verl/utils/tokenizer/continuous_token.py: "Expected Qwen newline to tokenize to one token"). So it is
    # a word here, an unknown one; the lab's own texts have none.
    words.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"[^\S\n]+"), "removed"),
            pre_tokenizers.Split("\n", "isolated"),
        ]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=words,
        pad_token=PAD,
        eos_token=EOS,
        unk_token=UNK,
        additional_special_tokens=[USER, ASSISTANT],
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
        padding_side="left",
        model_max_length=512,
    )


def save_tokenizer(folder: Path) -> None:
    """Save the tokenizer where `AutoTokenizer.from_pretrained(folder)` finds it.

    transformers 5 writes its own class name; the older name loads in every version since 4.
    """
    make_tokenizer().save_pretrained(folder)
    path = folder / "tokenizer_config.json"
    config = json.loads(path.read_text())
    config["tokenizer_class"] = "PreTrainedTokenizerFast"
    path.write_text(json.dumps(config, indent=2) + "\n")
