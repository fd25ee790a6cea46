"""Many lab verifiers as one model: each weight of the Qwen3 has the runs as its first dimension.

Letters: `R` runs, `B` rows of a run, `T` tokens, `V` words of the vocabulary. A GPU that one verifier of 0.9M
parameters leaves idle trains dozens of them in this form. `tests/test_lab_stacked.py` holds it to transformers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention, silu

from pv_lab import MODEL_DIR
from pv_lab.tokenizer import EOS, PAD, VOCABULARY
from pv_rl.errors import DataError

__all__ = ["StackedVerifier"]

LAYERS, HEADS, HEAD_DIM, EPSILON, ROPE_THETA = 4, 4, 32, 1e-6, 10_000.0  # of `model.make_model`


@dataclass
class Cache:
    """Keys and values of one layer, room for every position: (R * B, heads, T, head_dim) each."""

    keys: Tensor
    values: Tensor


class StackedVerifier:
    """`R` verifiers with the same architecture and weights of their own."""

    def __init__(self, weights: dict[str, Tensor]) -> None:
        """`weights` as in the model's safetensors, each with `R` in front."""
        self.weights = weights
        embedding = self.weights["model.embed_tokens.weight"]
        self.runs, self.words, self.width = embedding.shape
        self.device = embedding.device
        self._first_word = (torch.arange(self.runs, device=self.device) * self.words)[:, None, None]
        self._frequencies = ROPE_THETA ** (-torch.arange(0, HEAD_DIM, 2, device=self.device) / HEAD_DIM)

    @classmethod
    def load(cls, runs: int, *, folder: Path = MODEL_DIR, device: str = "cpu") -> StackedVerifier:
        """`runs` copies of the verifier in `folder`, in float32."""
        return cls.load_each([str(folder)] * runs, device=device)

    @classmethod
    def load_each(cls, folders: Sequence[str], *, device: str = "cpu") -> StackedVerifier:
        """A run for each folder, in float32; an empty name is the committed verifier.

        Raises:
            DataError: there is no verifier of the lab in a folder.
        """
        loaded = {folder: _read(Path(folder) if folder else MODEL_DIR) for folder in dict.fromkeys(folders)}
        names = next(iter(loaded.values()))
        return cls(
            {
                name: torch.stack([loaded[folder][name] for folder in folders]).float().to(device)
                for name in names
            }
        )

    def copy(self) -> StackedVerifier:
        """The same verifiers with weights that no longer change with these."""
        return StackedVerifier({name: weight.detach().clone() for name, weight in self.weights.items()})

    def logits(self, ids: Tensor, mask: Tensor, *, last: int) -> Tensor:
        """What follows each of the last `last` tokens.

        Args:
            ids: (R, B, T), padded on either side.
            mask: (R, B, T) bool, True where there is a token.

        Returns:
            (R, B, last, V) float32.
        """
        tokens = ids.shape[-1]
        causal = torch.ones(tokens, tokens, dtype=torch.bool, device=self.device).tril()
        allowed = (mask.flatten(0, 1)[:, None, :] & causal)[:, None]
        # A padded row of queries that sees nothing would be NaN; it may see itself, and nobody looks at it.
        allowed = allowed | torch.eye(tokens, dtype=torch.bool, device=self.device)
        return self._forward(ids, _positions(mask), allowed, last=last)

    @torch.no_grad()
    def sample(
        self,
        ids: Tensor,
        mask: Tensor,
        *,
        max_tokens: int,
        generator: torch.Generator,
        temperature: float = 1.0,
    ) -> Tensor:
        """One response a row.

        Args:
            ids: (R, B, T) prompts, padded on the left.
            mask: (R, B, T) bool.
            temperature: 0 takes the likeliest token.

        Returns:
            (R, B, L) ids with L <= max_tokens, the end mark included, padded behind it.
        """
        runs, rows, prompt = ids.shape
        room = prompt + max_tokens
        pad, eos = VOCABULARY[PAD], VOCABULARY[EOS]
        caches = [
            Cache(*(torch.zeros(runs * rows, HEADS, room, HEAD_DIM, device=self.device) for _ in range(2)))
            for _ in range(LAYERS)
        ]
        seen = torch.zeros(runs * rows, 1, 1, room, dtype=torch.bool, device=self.device)
        seen[..., :prompt] = mask.reshape(runs * rows, 1, 1, prompt)
        causal = torch.ones(prompt, prompt, dtype=torch.bool, device=self.device).tril()
        allowed = seen[..., :prompt] & causal | torch.eye(prompt, dtype=torch.bool, device=self.device)
        positions = _positions(mask)
        logits = self._forward(ids, positions, allowed, last=1, caches=caches)[:, :, 0]
        position = positions[..., -1:]
        done = torch.zeros(runs, rows, dtype=torch.bool, device=self.device)
        response = torch.full((runs, rows, max_tokens), pad, device=self.device)
        for t in range(max_tokens):
            chosen = _draw(logits, temperature, generator)
            response[:, :, t] = chosen = chosen.where(~done, pad)
            done |= chosen == eos
            if t + 1 == max_tokens or (t % 8 == 7 and bool(done.all())):
                return response[:, :, : t + 1]
            position = position + 1
            seen[..., prompt + t] = True
            logits = self._forward(
                chosen[..., None],
                position,
                seen[..., : prompt + t + 1],
                last=1,
                caches=caches,
                start=prompt + t,
            )[:, :, 0]
        return response

    def _forward(
        self,
        ids: Tensor,
        positions: Tensor,
        allowed: Tensor,
        *,
        last: int,
        caches: list[Cache] | None = None,
        start: int = 0,
    ) -> Tensor:
        runs, rows, tokens = ids.shape
        embedding = self.weights["model.embed_tokens.weight"]
        hidden = torch.nn.functional.embedding(ids + self._first_word, embedding.flatten(0, 1))
        rotation = self._rotation(positions)
        for layer in range(LAYERS):
            name = f"model.layers.{layer}"
            x = self._norm(hidden, f"{name}.input_layernorm")
            q, k, v = (
                self._linear(x, f"{name}.self_attn.{part}_proj").view(runs, rows, tokens, HEADS, HEAD_DIM)
                for part in "qkv"
            )
            q = _rotate(self._norm(q, f"{name}.self_attn.q_norm"), rotation)
            k = _rotate(self._norm(k, f"{name}.self_attn.k_norm"), rotation)
            q, k, v = (part.flatten(0, 1).transpose(1, 2) for part in (q, k, v))
            if caches is not None:
                cache, end = caches[layer], start + tokens
                cache.keys[:, :, start:end] = k
                cache.values[:, :, start:end] = v
                k, v = cache.keys[:, :, :end], cache.values[:, :, :end]
            attended = scaled_dot_product_attention(q, k, v, attn_mask=allowed)
            attended = attended.transpose(1, 2).reshape(runs, rows, tokens, HEADS * HEAD_DIM)
            hidden = hidden + self._linear(attended, f"{name}.self_attn.o_proj")
            x = self._norm(hidden, f"{name}.post_attention_layernorm")
            gate = silu(self._linear(x, f"{name}.mlp.gate_proj"))
            hidden = hidden + self._linear(
                gate * self._linear(x, f"{name}.mlp.up_proj"), f"{name}.mlp.down_proj"
            )
        hidden = self._norm(hidden[:, :, -last:], "model.norm")
        return torch.einsum("rbtd,rvd->rbtv", hidden, embedding)

    def _linear(self, x: Tensor, name: str) -> Tensor:
        runs, rows, tokens, width = x.shape
        weight = self.weights[f"{name}.weight"]
        return torch.bmm(x.reshape(runs, rows * tokens, width), weight.transpose(1, 2)).view(
            runs, rows, tokens, -1
        )

    def _norm(self, x: Tensor, name: str) -> Tensor:
        weight = self.weights[f"{name}.weight"]
        weight = weight.view(self.runs, *[1] * (x.dim() - 2), -1)
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPSILON) * weight

    def _rotation(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        angles = positions[..., None] * self._frequencies
        angles = torch.cat([angles, angles], -1)[:, :, :, None]  # (R, B, T, 1, head_dim)
        return angles.cos(), angles.sin()


def _read(folder: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path, ours = folder / "model.safetensors", MODEL_DIR / "model.safetensors"
    advice = "give a folder that pv_lab.warmstart --out wrote"
    try:
        weights = load_file(path)
    except (OSError, SafetensorError) as error:
        raise DataError(f"{path} cannot be read ({error}); {advice}") from error
    if folder != MODEL_DIR:
        expected = {name: weight.shape for name, weight in load_file(ours).items()}
        if {name: weight.shape for name, weight in weights.items()} != expected:
            raise DataError(f"{path} holds no verifier of the lab's size; {advice}")
    return weights


def _positions(mask: Tensor) -> Tensor:
    return (mask.long().cumsum(-1) - 1).clamp(min=0)


def _rotate(x: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
    cos, sin = rotation
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat([-second, first], -1) * sin


def _draw(logits: Tensor, temperature: float, generator: torch.Generator) -> Tensor:
    """(R, B) a token a row, never padding; the largest of logits plus Gumbel noise is a draw from the softmax."""
    logits = logits.clone()
    logits[..., VOCABULARY[PAD]] = -torch.inf
    if temperature == 0:
        return logits.argmax(-1)
    noise = torch.empty_like(logits).exponential_(generator=generator)
    return (logits / temperature - noise.log()).argmax(-1)
