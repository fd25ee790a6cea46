"""A critic is a token classifier with the attention that its configuration names.

Symptom without it: "model(...) is not a value head model, please install trl" when a critic starts:
``utils/model.py:641`` asks for ``flash_attention_2``, which is for CUDA, and takes any failure for a missing
value head.

Can go when verl leaves the attention of a value model to its configuration.
"""

from __future__ import annotations

from types import ModuleType

from pv_cpu.patches import tools

__all__ = ["MODULE", "NAME", "install", "patch"]

MODULE = "verl.utils.model"
NAME = "load_valuehead_model"


def patch(model: ModuleType) -> None:
    original = tools.attribute(model, NAME)
    if tools.is_patched(original):
        return
    tools.require_parameters(original, "local_path", "torch_dtype", "model_config", "trust_remote_code")

    def load_valuehead_model(local_path, torch_dtype, model_config, trust_remote_code):
        from transformers import AutoModelForTokenClassification

        return AutoModelForTokenClassification.from_pretrained(
            local_path, dtype=torch_dtype, config=model_config, trust_remote_code=trust_remote_code
        )

    tools.replace_everywhere(model, NAME, tools.mark(load_valuehead_model))


def install() -> None:
    tools.after_import(MODULE, patch)
