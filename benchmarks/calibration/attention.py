"""Two attention functions for transformers that need no flash-attn: torch's own flash kernels, without a mask.

- `causal`: rows padded on the right, as verl pads them. Padding comes after every token that counts, so the causal
  order alone keeps it out, and `scaled_dot_product_attention` takes its flash kernel. With the mask that `sdpa` gets,
  it takes a slower one, computes all pairs of tokens, and copies keys and values for every head.
- `varlen`: rows packed one after another (`use_remove_padding`), by `torch.nn.attention.varlen`.

transformers builds no mask for a name that is not its own.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

last: tuple[torch.Tensor, torch.Tensor, int] | None = None
"""Positions, starts of rows and the longest row of the last call: all layers have the same."""


def register() -> None:
    from transformers import AttentionInterface

    AttentionInterface.register("causal", causal)
    AttentionInterface.register("varlen", varlen)


def causal(
    module: Any, query: Any, key: Any, value: Any, _mask: Any, scaling: float | None = None, **_: Any
) -> tuple[torch.Tensor, None]:
    """(B, heads, T, width) each; (B, T, heads, width)."""
    grouped = query.shape[1] != key.shape[1]
    out = scaled_dot_product_attention(query, key, value, is_causal=True, scale=scaling, enable_gqa=grouped)
    return out.transpose(1, 2).contiguous(), None


def varlen(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    _mask: Any,
    scaling: float | None = None,
    position_ids: Any = None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """(1, heads, T, width) each; (1, T, heads, width). A row begins where its position is 0."""
    from torch.nn.attention.varlen import varlen_attn

    starts, longest = row_starts(position_ids)
    query, key, value = (one[0].transpose(0, 1).to(value.dtype) for one in (query, key, value))
    known = inspect.signature(varlen_attn).parameters
    options: dict[str, Any] = {"window_size": (-1, 0)} if "window_size" in known else {"is_causal": True}
    if "scale" in known:
        options["scale"] = scaling
    if "enable_gqa" in known:
        options["enable_gqa"] = True
    else:
        key, value = (one.repeat_interleave(query.shape[1] // one.shape[1], dim=1) for one in (key, value))
    out = varlen_attn(
        query, key.contiguous(), value.contiguous(), starts, starts, longest, longest, **options
    )
    assert isinstance(out, torch.Tensor)
    return out[None], None


def row_starts(positions: torch.Tensor) -> tuple[torch.Tensor, int]:
    global last
    if last is None or last[0] is not positions:
        starts = torch.nonzero(positions[0] == 0)[:, 0].to(torch.int32)
        starts = torch.cat([starts, starts.new_tensor([positions.shape[1]])])
        last = (positions, starts, int(starts.diff().max()))
    return last[1], last[2]
