"""As much of vLLM as the stage of Ray Data 2.60 calls; the model is `local_model`."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from local_model import END, answered, log

from . import inputs, outputs, sampling_params

__all__ = ["AsyncEngineArgs", "AsyncLLMEngine", "SamplingParams", "inputs", "outputs", "sampling_params"]


@dataclass
class SamplingParams:
    seed: int
    max_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    structured_outputs: sampling_params.StructuredOutputsParams | None = None


@dataclass
class Limits:
    max_num_seqs: int = 16
    pipeline_parallel_size: int = 1


@dataclass
class Config:
    scheduler_config: Limits = field(default_factory=Limits)
    parallel_config: Limits = field(default_factory=Limits)


@dataclass
class AsyncEngineArgs:
    model: str
    max_model_len: int
    generation_config: str
    tensor_parallel_size: int
    distributed_executor_backend: str
    runner: str
    enable_log_requests: bool
    enforce_eager: bool = False
    dtype: str = "auto"

    def create_engine_config(self) -> Config:
        return Config()


class AsyncLLMEngine:
    def __init__(self, args: AsyncEngineArgs) -> None:
        from transformers import AutoTokenizer

        assert args.generation_config == "vllm"
        if args.dtype == "broken":
            raise RuntimeError("CUDA out of memory")
        self.args = args
        self.tokenizer: Any = AutoTokenizer.from_pretrained(args.model)

    @classmethod
    def from_engine_args(cls, args: AsyncEngineArgs, stat_loggers: Any = None) -> AsyncLLMEngine:
        return cls(args)

    async def generate(
        self, *, request_id: str, prompt: Any, sampling_params: SamplingParams, lora_request: Any
    ):
        ids = prompt["prompt_token_ids"]
        text = self.tokenizer.decode(ids).split("[user] ")[-1].split("<|end|>")[0]
        log(text, sampling_params.seed)
        await asyncio.sleep(0.01)
        held = sampling_params.structured_outputs
        said, cut = answered(text, sampling_params.seed, held.regex if held else None)
        made = self.tokenizer(said)["input_ids"]
        made = made[: sampling_params.max_tokens] if cut else [*made, END]
        one = outputs.CompletionOutput(text=said, token_ids=made)
        yield outputs.RequestOutput(prompt_token_ids=ids, outputs=[one])

    async def do_log_stats(self) -> None:
        pass

    def shutdown(self) -> None:
        pass
