"""The lab's tokenizer: one word a token, both ways, with a chat template of two tokens."""

from random import Random

import pytest

from pv_lab import MODEL_DIR
from pv_lab.samples import make_sample
from pv_lab.tokenizer import CHAT_TEMPLATE, VOCABULARY, encode, make_tokenizer
from pv_lab.traces import TraceMix, sample_trace
from pv_rl.errors import DataError

transformers = pytest.importorskip("transformers", reason="transformers is not installed")


@pytest.fixture(scope="module")
def tokenizer():
    return transformers.AutoTokenizer.from_pretrained(MODEL_DIR)


def texts():
    for difficulty in range(1, 6):
        for index in range(60):
            sample = make_sample(seed=9, split="test", index=index, difficulty=difficulty, p_true=0.5)
            yield sample.text, sample_trace(Random(index), sample.question, sample.steps, TraceMix())[0]


def test_encoding_and_decoding_change_nothing(tokenizer):
    for pair in texts():
        for text in pair:
            ids = tokenizer.encode(text, add_special_tokens=False)
            assert ids == encode(text)
            assert len(ids) == len(text.split())
            assert tokenizer.decode(ids) == text


def test_a_chat_costs_two_tokens_and_a_prompt_is_shorter_than_eighty(tokenizer):
    for text, _ in texts():
        ids = tokenizer.apply_chat_template(
            [{"role": "user", "content": text}], add_generation_prompt=True, tokenize=True, return_dict=False
        )
        assert ids == encode(f"<user> {text} <assistant>")
        assert len(ids) < 80
        assert tokenizer.decode(ids, skip_special_tokens=True) == text


def test_a_decoded_trace_ends_in_its_verdict(tokenizer):
    for _, trace in texts():
        ids = [*encode(trace), tokenizer.eos_token_id, tokenizer.pad_token_id]
        assert tokenizer.decode(ids, skip_special_tokens=True).endswith(("### True", "### False"))


def test_a_finished_chat_is_the_prompt_the_answer_and_the_end(tokenizer):
    chat = [{"role": "user", "content": "S1 ok"}, {"role": "assistant", "content": "looks fine ### True"}]
    ids = tokenizer.apply_chat_template(chat, tokenize=True, return_dict=False)
    assert ids == encode("<user> S1 ok <assistant> looks fine ### True <eos>")


def test_the_saved_files_are_the_tokenizer_of_the_code(tokenizer):
    made = make_tokenizer()
    assert tokenizer.get_vocab() == made.get_vocab() == VOCABULARY
    assert tokenizer.chat_template == CHAT_TEMPLATE
    assert (tokenizer.pad_token, tokenizer.eos_token, tokenizer.padding_side) == ("<pad>", "<eos>", "left")
    assert tokenizer.backend_tokenizer.to_str() == made.backend_tokenizer.to_str()


def test_words_are_split_on_any_space_and_unknown_ones_are_marked(tokenizer):
    assert tokenizer.encode("  S1 \t ok  ") == encode("S1 ok")
    assert tokenizer.encode("S1 zebra") == encode("S1 <unk>")
    with pytest.raises(DataError, match="'zebra' is no word of the lab"):
        encode("S1 zebra")


def test_a_line_break_is_one_token_as_verl_wants_of_a_qwen_model(tokenizer):
    assert tokenizer.encode("\n", add_special_tokens=False) == encode("<unk>")
    assert tokenizer.encode("S1\nok") == encode("S1 <unk> ok")


def test_verl_builds_the_prompt_that_the_chat_template_makes(tokenizer):
    wiring = pytest.importorskip(
        "verl.utils.tokenizer.continuous_token_wiring",
        reason="verl is not installed: pip install 'pv-rl[verl]'",
    )
    builder = wiring.create_continuous_token_builder(tokenizer, hf_model_type="qwen3")
    message = [{"role": "user", "content": "S1 ok"}]
    assert list(builder.build_initial_tokens(message)) == encode("<user> S1 ok <assistant>")
