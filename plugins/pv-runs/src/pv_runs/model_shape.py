"""Model shape: a dense decoder, in the names of its `config.json`, and its number of parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import Field
from pydantic.dataclasses import dataclass

from pv_judge.config import STRICT, read_config
from pv_judge.files import load_json
from pv_rl.errors import ConfigError, DataError
from pv_runs.typed_config import Settings

__all__ = ["DTYPE_BYTES", "ModelShape", "read_model"]

DTYPE_BYTES = {"fp32": 4, "float32": 4, "bf16": 2, "bfloat16": 2, "fp16": 2, "float16": 2, "half": 2}
"""Of a value, by the names that verl takes (verl/utils/torch_dtypes.py)."""


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ModelShape:
    """A decoder with grouped-query attention and a gated MLP: Qwen2.5, Qwen3, Llama, Mistral.

    Example: Qwen3-8B has 8.19e9 parameters: 36 layers of 192.9e6, and two matrices of 622.3e6 for the vocabulary.
    """

    hidden_size: int = Field(ge=1)
    num_hidden_layers: int = Field(ge=1)
    num_attention_heads: int = Field(ge=1)
    num_key_value_heads: int = Field(ge=1)
    intermediate_size: int = Field(ge=1)
    vocab_size: int = Field(ge=1)
    head_dim: int | None = Field(default=None, ge=1)
    """None: hidden_size / num_attention_heads."""
    tie_word_embeddings: bool = False
    """Whether the output layer is the input's matrix."""
    max_position_embeddings: int | None = Field(default=None, ge=1)
    """Tokens of the longest text the model is made for; none: not checked."""

    @property
    def query_width(self) -> int:
        """Values of a token's queries, over all heads."""
        return self.num_attention_heads * (self.head_dim or self.hidden_size // self.num_attention_heads)

    @property
    def key_width(self) -> int:
        """Values of a token's keys, over all heads; of its values too."""
        return self.query_width * self.num_key_value_heads // self.num_attention_heads

    @property
    def layer_parameters(self) -> int:
        """`2 H A + 2 H K + 3 H I + 2 H`: query and output, key and value, gated MLP, two norms.

        H is hidden_size, A query_width, K key_width, I intermediate_size. Biases and norms of heads are left out.
        """
        attention = 2 * self.query_width + 2 * self.key_width
        return self.hidden_size * (attention + 3 * self.intermediate_size + 2)

    @property
    def vocabulary_parameters(self) -> int:
        """`V H` for the input and, unless they are tied, for the output."""
        return self.vocab_size * self.hidden_size * (1 if self.tie_word_embeddings else 2)

    @property
    def parameters(self) -> int:
        """All of them."""
        return self.num_hidden_layers * self.layer_parameters + self.vocabulary_parameters + self.hidden_size

    @property
    def matmul_parameters(self) -> int:
        """Those that a token is multiplied with: all but the input's matrix, which is looked up."""
        return self.num_hidden_layers * self.layer_parameters + self.vocab_size * self.hidden_size


def read_model(settings: Settings) -> tuple[ModelShape, str]:
    """The shape and where it was read: `config.json` in the folder of the model if there is one, else `plan.model`.

    Raises:
        ConfigError: neither is there, or what is there is no dense decoder.
        DataError: config.json cannot be read.
    """
    path = settings.value("actor_rollout_ref.model.path", None)
    file = Path(str(path)).expanduser() / "config.json"
    if path is not None and file.is_file():
        try:
            given = load_json(file.read_text(encoding="utf-8"))
            if not isinstance(given, dict):
                raise ValueError(f"it is a JSON {type(given).__name__}, and config.json holds an object")
        except (OSError, ValueError) as error:
            raise DataError(f"{file} cannot be read as JSON: {error}") from error
        return _shape(given, str(file)), str(file)
    hint = (
        f"{path} is not a folder with a config.json on this machine. Give the model's shape as plan.model, in the "
        "names of config.json: hidden_size, num_hidden_layers, ..."
    )
    return _shape(settings.node("plan.model", hint), "plan.model", strict=True), "plan.model"


def _shape(given: dict[str, Any], source: str, strict: bool = False) -> ModelShape:
    experts = given.get("num_experts") or given.get("num_local_experts") or given.get("n_routed_experts")
    if experts:
        raise ConfigError(f"{source} has {experts} experts; pv-rl plan supports only dense decoders")
    fields = ModelShape.__dataclass_fields__
    known = {key: value for key, value in given.items() if strict or (key in fields and value is not None)}
    if not strict:
        known.setdefault("num_key_value_heads", known.get("num_attention_heads"))
    shape: ModelShape = read_config(known, ModelShape, source)
    if shape.num_attention_heads % shape.num_key_value_heads:
        raise ConfigError(
            f"{source}: num_attention_heads {shape.num_attention_heads} has to be a multiple of num_key_value_heads "
            f"{shape.num_key_value_heads}"
        )
    return shape
