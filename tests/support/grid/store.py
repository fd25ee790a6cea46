"""A dictionary that stands in for TransferQueue, which wants Ray: verl's driver code gets and puts rows by key."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import torch
from tensordict import NonTensorStack, TensorDict
from transfer_queue import KVBatchMeta


class Store:
    """The three functions of `transfer_queue` that verl's driver calls, over rows in this process."""

    KVBatchMeta = KVBatchMeta

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Any]] = defaultdict(dict)
        self.tags: dict[str, dict[str, Any]] = defaultdict(dict)

    def kv_batch_put(self, keys, partition_id, fields=None, tags=None) -> KVBatchMeta:
        for name, values in [] if fields is None else fields.items():
            values = values.unbind() if isinstance(values, torch.Tensor) else values.tolist()
            for key, value in zip(keys, values, strict=True):
                self.rows[key][name] = value
        for key, tag in zip(keys, tags or [{}] * len(keys), strict=True):
            self.tags[key].update(tag)
        return self.describe(keys, partition_id)

    def kv_batch_get(self, keys, partition_id, select_fields=None) -> TensorDict:
        held = self.describe(keys, partition_id).fields
        names = [name for name in held if select_fields is None or name in select_fields]
        columns = {name: _column([self.rows[key][name] for key in keys]) for name in names}
        return TensorDict(columns, batch_size=len(keys))

    def describe(self, keys, partition_id) -> KVBatchMeta:
        """The metadata of some rows, with the fields that all of them have."""
        fields = [name for name in self.rows[keys[0]] if all(name in self.rows[key] for key in keys)]
        return KVBatchMeta(
            keys=list(keys), tags=[self.tags[key] for key in keys], partition_id=partition_id, fields=fields
        )


def _column(values: list[Any]) -> torch.Tensor | NonTensorStack:
    """As TransferQueue gives it back: tensors of one dimension are always a nested tensor."""
    if not isinstance(values[0], torch.Tensor):
        return NonTensorStack(*values)
    if values[0].dim() == 0:
        return torch.stack(values)
    return torch.nested.as_nested_tensor([value.contiguous() for value in values], layout=torch.jagged)
