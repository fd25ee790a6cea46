"""Batch inference of a model on disk by Ray Data and vLLM (`ray.data.llm`, read in Ray 2.60)."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pv_data.asking.settings import Model
from pv_data.serving.folder import context_of, ends_of
from pv_rl.errors import SetupError

if TYPE_CHECKING:
    from ray.data import Dataset

__all__ = ["Batch", "batch_by_vllm"]

Batch: TypeAlias = "Callable[[Dataset], Dataset]"
"""From rows `key`, `messages` (JSON), `seed` to rows `key`, `text`, `prompt_tokens`, `tokens`, `cut` (at its longest),
`error` (empty, or why this row has no text)."""
ERROR = "__inference_error__"
"""A column of Ray's: a row that has one goes past the engine."""
ROWS = 64
"""Of a batch of the engine, of which it has eight in the works."""


def batch_by_vllm(model: Model, folder: Path) -> Batch:
    """Nothing is started before rows go through it.

    Raises:
        SetupError: there is no vLLM.
    """
    if importlib.util.find_spec("vllm") is None:
        raise SetupError(
            "executor=ray asks local models by vLLM, which is not installed: pip install 'ray[llm]', on a machine "
            "with a GPU, or take executor=local"
        )
    from ray.data import ActorPoolStrategy
    from ray.data.llm import build_processor, vLLMEngineProcessorConfig

    assert model.local is not None
    local, context = model.local, context_of(folder, model.local.engine)
    # Sampling is what the row says, and nothing of the model's generation_config.json, as with the server.
    engine = {"generation_config": "vllm", **local.engine}
    config = vLLMEngineProcessorConfig(
        model_source=str(folder),
        engine_kwargs={**engine, "max_model_len": context, "tensor_parallel_size": local.gpus},
        concurrency=(local.replicas, local.replicas),
        batch_size=ROWS,
        should_continue_on_error=True,
        log_engine_metrics=False,
        # Ray's tokenizing puts a second beginning of text before a chat of some models, and its detokenizing may tidy
        # spaces; without these stages prompt and text are what vLLM's own server makes of them.
        chat_template_stage=False,
        tokenize_stage=False,
        detokenize_stage=False,
    )
    processor = build_processor(config)
    sampling = dict(model.sampling)
    ends = ends_of(folder) | set(sampling.get("stop_token_ids", ()))
    tokenizing: dict[str, Any] = {
        "folder": str(folder),
        "sampling": sampling,
        "context": context,
        "trusted": bool(local.engine.get("trust_remote_code", False)),
    }
    reading = partial(read_output, max_tokens=sampling["max_tokens"], context=context, ends=ends)

    def through(rows: Dataset) -> Dataset:
        tokenize: Any = Tokenize  # a class, of which each process of Ray's makes one
        processes = ActorPoolStrategy(size=local.replicas)
        ready = rows.map(tokenize, fn_constructor_kwargs=tokenizing, compute=processes)
        return processor(ready).map(reading)

    return through


class Tokenize:
    """A chat as tokens, as the model's own template has it; a question that does not fit gets an error."""

    def __init__(self, folder: str, sampling: dict[str, Any], context: int, trusted: bool) -> None:
        from transformers import AutoTokenizer

        self._tokenizer: Any = AutoTokenizer.from_pretrained(folder, trust_remote_code=trusted)
        self._sampling = {key: value for key, value in sampling.items() if key != "chat_template_kwargs"}
        if isinstance(schema := sampling.get("structured_outputs", {}).get("json"), dict):
            # As text: a column of Arrow's has no empty mapping, and no list of unlike values.
            self._sampling["structured_outputs"] = {"json": json.dumps(schema)}
        self._template: dict[str, Any] = sampling.get("chat_template_kwargs") or {}
        self._context = context

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """The row as vLLM's stage of Ray Data takes it."""
        error, tokens = "", []
        try:
            messages = json.loads(row["messages"])
            tokens = self._tokenizer.apply_chat_template(
                messages, add_generation_prompt=True, tokenize=True, return_dict=False, **self._template
            )
        except Exception as unfit:  # noqa: BLE001 - a template is a program of the model's, and may refuse by any exception
            error = f"the model's chat template refuses the question: {type(unfit).__name__}: {unfit}"
        longest = self._sampling["max_tokens"]
        if len(tokens) + longest > self._context:
            error = (
                f"the question has {len(tokens)} tokens; with {longest} for an answer (max_tokens) they do not fit "
                f"into the model's {self._context}"
            )
        return {
            "key": row["key"],
            "tokenized_prompt": tokens,
            "sampling_params": {**self._sampling, "seed": row["seed"]},
            ERROR: error,
        }


def read_output(
    row: dict[str, Any], *, max_tokens: int, context: int, ends: frozenset[int]
) -> dict[str, Any]:
    """What vLLM's stage gives, as `Batch` has it. It does not say why a text ended: one of full length that ends by no
    token of an end was cut."""
    prompt, tokens = int(row.get("num_input_tokens") or 0), int(row.get("num_generated_tokens") or 0)
    generated = row.get("generated_tokens")
    last = int(generated[-1]) if generated is not None and len(generated) else None
    full = tokens >= max_tokens or prompt + tokens >= context
    return {
        "key": row["key"],
        "text": str(row.get("generated_text") or ""),
        "prompt_tokens": prompt,
        "tokens": tokens,
        "cut": full and last not in ends,
        "error": str(row.get(ERROR) or ""),
    }
