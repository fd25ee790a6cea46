"""The Ray actor that verl's clients send their prompts to."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Sequence
from typing import Any

import ray
import torch
from verl.utils.config import omega_conf_to_dataclass
from verl.workers.config import HFModelConfig, RolloutConfig
from verl.workers.rollout.replica import TokenOutput
from verl.workers.rollout.utils import get_max_position_embeddings

from pv_cpu.errors import UnsupportedOnCpuError
from pv_cpu.rollout import model as models
from pv_cpu.rollout.engine import Engine
from pv_cpu.rollout.loop import EngineLoop
from pv_cpu.rollout.request import parse

__all__ = ["PvCpuServer"]

logger = logging.getLogger(__name__)


class PvCpuServer:
    """What ``vLLMHttpServer`` (``workers/rollout/vllm_rollout/vllm_async_server.py``) is to vLLM."""

    def __init__(self, config: Any, model_config: Any, replica_rank: int) -> None:
        self.config: RolloutConfig = omega_conf_to_dataclass(config)
        self.model_config: HFModelConfig = omega_conf_to_dataclass(model_config, dataclass_type=HFModelConfig)
        hf_config = self.model_config.hf_config
        self.max_model_len = self.config.max_model_len or get_max_position_embeddings(hf_config)
        self.eos = models.end_of_sequence(self.model_config.generation_config, hf_config)
        # Random weights, which the trainer's replace before the first request (rollout.load_format
        # is "dummy" for every engine of verl for the same reason).
        model = models.build(hf_config, self.config.dtype, self.max_model_len)
        self.engine = Engine(
            model,
            max_rows=self.config.max_num_seqs,
            max_prefill_tokens=self.config.max_num_batched_tokens,
            sampled_vocab=len(self.model_config.tokenizer),
            seed=self.config.seed + replica_rank,
        )
        self.loop = EngineLoop(self.engine, threads=models.decoding_threads(model))
        self.loaded = False
        self.global_steps: int | None = None
        self.open = asyncio.Event()
        self.open.set()
        self.rejecting = False
        logger.info("pv_cpu rollout server %d decodes with %s threads", replica_rank, self.loop.threads)

    async def ready(self) -> str:
        """The node that the server runs on."""
        return ray.get_runtime_context().get_node_id()

    async def load_weights(self, weights: dict[str, torch.Tensor], global_steps: int | None) -> None:
        """Replace the weights between two steps; requests in flight go on with the new ones."""
        await asyncio.wrap_future(self.loop.call(lambda: models.load_weights(self.engine.model, weights)))
        self.loaded = True
        if global_steps is not None:
            self.global_steps = global_steps

    async def generate(
        self,
        prompt_ids: Sequence[int],
        sampling_params: dict[str, Any],
        request_id: str,
        image_data: Sequence[Any] | None = None,
        video_data: Sequence[Any] | None = None,
        audio_data: Sequence[Any] | None = None,
        mm_processor_kwargs: dict[str, Any] | None = None,
        priority: int = 0,
    ) -> TokenOutput:
        """Continue a prompt; the signature is that of vLLM's server in verl."""
        if image_data or video_data or audio_data:
            raise UnsupportedOnCpuError(
                "a prompt came with images, video or audio; rollout.name=pv_cpu generates from text only"
            )
        request = self._request(prompt_ids, sampling_params, request_id)
        while not self.open.is_set():
            if self.rejecting:
                return self._output([], [], "aborted")
            await self.open.wait()
        if not self.loaded:
            raise UnsupportedOnCpuError(
                "a prompt came before any weights: the model has random weights until the trainer's first "
                "weight sync, and rollout.name=pv_cpu does not load them from disk (a reward or teacher "
                "model served by pv_cpu is not supported)"
            )
        done = await asyncio.wrap_future(self.loop.submit(request))
        log_probs = done.log_probs if sampling_params.get("logprobs") else None
        return self._output(done.token_ids, log_probs, "aborted" if done.aborted else "completed")

    def _output(self, token_ids: list[int], log_probs: list[float] | None, reason: str) -> TokenOutput:
        return TokenOutput(
            token_ids=token_ids,
            log_probs=log_probs,
            stop_reason=reason,
            extra_fields={"global_steps": self.global_steps},
        )

    def _request(self, prompt_ids: Sequence[int], sampling_params: dict[str, Any], request_id: str):
        room = self.config.prompt_length + self.config.response_length - len(prompt_ids)
        seed = None
        if self.config.full_determinism:
            # verl then passes the caller's own id through (llm_server.py:103), so that this is the
            # same in every run; the length tells the parts of an aborted and resumed request apart.
            text = f"{self.config.seed} {request_id} {len(prompt_ids)}"
            seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")
        return parse(
            prompt_ids,
            sampling_params,
            default_max_tokens=min(self.config.response_length, room),
            max_model_len=self.max_model_len,
            vocab_size=self.engine.vocab_size,
            eos_token_ids=self.eos,
            ignore_eos=self.config.ignore_eos,
            seed=seed,
        )

    async def abort_all_requests(
        self, reset_prefix_cache: bool = True, reject_request: bool = False
    ) -> dict[str, Any]:
        """Hold new requests (or turn them away) and answer the others with what they have."""
        self.open.clear()
        self.rejecting = reject_request
        count = await asyncio.wrap_future(self.loop.abort_all())
        return {"aborted_count": count, "request_ids": []}

    async def resume_generation(self) -> None:
        self.rejecting = False
        self.open.set()

    async def set_global_steps(self, global_steps: int) -> None:
        self.global_steps = global_steps

    async def _nothing(self, *args: Any, **kwargs: Any) -> None:
        """There is no accelerator memory to give back, no cache across requests, no profiler."""

    wake_up = sleep = clear_kv_cache = release_kv_cache = resume_kv_cache = _nothing
    start_profile = stop_profile = _nothing
