"""Attention function `unmasked` for transformers: torch's own flash kernels, for hosts without flash-attn.

    actor_rollout_ref.model.external_lib=pv_runs.attention
    +actor_rollout_ref.model.override_config.attn_implementation=unmasked

`sdpa` gets a mask where rows are padded, and a mask keeps the flash kernel out. This function takes none: padding on
the right comes after every token that counts, so the causal order alone keeps it out. Rows that are packed one after
another (`use_remove_padding`) are computed apart, on a GPU by `torch.nn.attention.varlen`. What the function cannot
compute, it refuses.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface

__all__ = ["NAME", "unmasked"]

NAME = "unmasked"
"""Without `flash`: transformers takes a name with that for a kernel to download."""
UNSUPPORTED = ("sliding_window", "softcap", "s_aux")
last: tuple[torch.Tensor, list[int]] | None = None
"""Positions and row starts of the last call: all layers have the same, and finding the starts waits for the GPU."""


def unmasked(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: Any,
    dropout: float = 0.0,
    scaling: float | None = None,
    position_ids: torch.Tensor | None = None,
    **options: Any,
) -> tuple[torch.Tensor, None]:
    """Causal attention of rows that are padded on the right, or of one batch row that packs several.

    Args:
        module: the layer.
        query: (batch, heads, T, width).
        key: (batch, key heads, T, width); values alike.
        value: likewise.
        mask: none.
        dropout: 0.
        scaling: of the scores; none: `width ** -0.5`.
        position_ids: (batch, T); a row begins at 0.
        options: others of transformers; sliding windows, soft caps and sinks are refused.

    Returns:
        (batch, T, heads, width), and no weights.

    Raises:
        ValueError: something that this function does not compute.
    """
    given = [name for name in UNSUPPORTED if options.get(name) is not None]
    given += ["a mask"] * (mask is not None) + ["dropout"] * bool(dropout)
    given += ["a cache"] * (query.shape[2] != key.shape[2])
    given += ["attention that is not causal"] * (not getattr(module, "is_causal", True))
    if given:
        raise ValueError(f"{NAME} does not support {', '.join(given)}. Set attn_implementation=sdpa")
    starts = row_starts(position_ids, query.shape[0])
    query, key = query.to(value.dtype), key.to(value.dtype)
    if len(starts) > 1 and query.is_cuda:
        return packed(query, key, value, starts, scaling)[None], None
    ends = [*starts[1:], query.shape[2]]
    rows = [
        scaled_dot_product_attention(
            *(one[:, :, start:end] for one in (query, key, value)),
            is_causal=True,
            scale=scaling,
            enable_gqa=True,
        )
        for start, end in zip(starts, ends, strict=True)
    ]
    out = rows[0] if len(rows) == 1 else torch.cat(rows, dim=2)
    return out.transpose(1, 2).contiguous(), None


def packed(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, starts: list[int], scaling: float | None
) -> torch.Tensor:
    """`torch.nn.attention.varlen`, whose arguments differ between versions of torch; (T, heads, width)."""
    from torch.nn.attention.varlen import varlen_attn

    known = inspect.signature(varlen_attn).parameters
    options: dict[str, Any] = {"window_size": (-1, 0)} if "window_size" in known else {"is_causal": True}
    if "scale" in known:
        options["scale"] = scaling
    query, key, value = (one[0].transpose(0, 1) for one in (query, key, value))
    if "enable_gqa" in known:
        options["enable_gqa"] = True
    else:
        key, value = (one.repeat_interleave(query.shape[1] // one.shape[1], dim=1) for one in (key, value))
    bounds = torch.tensor([*starts, len(query)], dtype=torch.int32, device=query.device)
    longest = max(end - start for start, end in zip(starts, [*starts[1:], len(query)], strict=True))
    out = varlen_attn(
        query, key.contiguous(), value.contiguous(), bounds, bounds, longest, longest, **options
    )
    assert isinstance(out, torch.Tensor)
    return out


def row_starts(positions: torch.Tensor | None, batch: int) -> list[int]:
    """Where the rows begin that one batch row packs; `[0]` for several, which have to be padded on the right."""
    global last
    if positions is None or positions.dim() != 2 or positions.shape[0] != batch:
        shape = None if positions is None else tuple(positions.shape)
        raise ValueError(f"{NAME} needs position_ids of shape (batch {batch}, T), and got {shape}")
    if last is None or last[0] is not positions:
        begins = positions == 0
        if not bool(begins[:, 0].all()):
            raise ValueError(
                f"{NAME} needs rows that begin at position 0: set ulysses_sequence_parallel_size=1"
            )
        if batch > 1 and bool((begins[:, 1:-1] & (positions[:, 2:] == 1)).any()):
            raise ValueError(
                f"{NAME} needs rows that are padded on the right; a row begins behind its first place"
            )
        found = torch.nonzero(begins[0])[:, 0].tolist() if batch == 1 else [0]
        last = (positions, found)
    return last[1]


AttentionInterface.register(NAME, unmasked)
