"""verl builds every prompt through a token builder that it picks by the model's `model_type`.

For `qwen2` and `qwen3` it insists on a tokenizer with ChatML's `<|im_end|>` and a newline that is one token
(verl/utils/tokenizer/continuous_token.py:558); other types such as `llama` take any tokenizer.
"""

from __future__ import annotations

import pytest

pytest.importorskip("verl", reason="verl is not installed: pip install 'pv-rl[verl]'")


def test_verl_can_build_prompts_with_the_labs_tokenizer_and_model_type():
    from verl.utils.tokenizer.continuous_token_wiring import create_continuous_token_builder

    from pv_lab.model import make_model
    from pv_lab.tokenizer import make_tokenizer

    tokenizer = make_tokenizer()
    builder = create_continuous_token_builder(tokenizer, hf_model_type=make_model(0).config.model_type)
    message = [{"role": "user", "content": "S1 ok"}]
    expected = tokenizer.apply_chat_template(
        message, add_generation_prompt=True, tokenize=True, return_dict=False
    )
    assert list(builder.build_initial_tokens(message)) == list(expected)
