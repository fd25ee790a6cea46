"""Rows of a step, as each of verl's trainers keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
import torch
from tensordict import TensorDict
from torch import Tensor

from pv_rl.rewards.named import DROP_GROUP, VALID
from pv_rl.step_state import VERDICT_KEYS, Rows, gives_verdicts

__all__ = ["LegacyRows", "TransferQueueRows", "advantage_sums"]

ABSTAINED = "_abstained"

# pyright: reportIncompatibleVariableOverride=false


class TransferQueueRows(Rows):
    """Of the V1 trainer: a list of keys, whose fields are in TransferQueue."""

    def __init__(self, module: Any, batch: Any) -> None:
        self._module, self._read = module, dict[str, Any]()
        self.batch = batch
        """verl's KVBatchMeta, which lists the fields that a worker fetches."""
        self._last = "extra_fields"
        self._fields = frozenset(batch.fields or ())

    def weighed(self, batch: Any) -> None:
        """There are advantages now, and rejection has cut the masks."""
        self.batch, self._last = batch, "advantages"
        self._fields |= frozenset(batch.fields or ())
        for name in ("response_mask", "lengths"):
            self._read.pop(name, None)

    def _get(self, names: Sequence[str], keys: Sequence[str]) -> dict[str, Any]:
        """Rows of each field: tensors, or what they hold."""
        partition = self.batch.partition_id
        data = self._module.tq.kv_batch_get(keys=keys, partition_id=partition, select_fields=list(names))
        found = {}
        for name in names:
            if name in ("uid", "extra_fields"):
                values = data.pop(name).tolist()
                found[name] = values if isinstance(values, list) else [values]
            else:
                found[name] = data[name].unbind()
        return found

    def _field(self, name: str) -> Any:
        if name not in self._read:  # at once what else will be asked for
            names = dict.fromkeys(("uid", "response_mask", self._last, name))
            self._read |= self._get([n for n in names if n not in self._read], self.batch.keys)
        return self._read[name]

    @property
    def uids(self) -> list[str]:
        return self._field("uid")

    @cached_property
    def infos(self) -> list[Mapping[str, Any]]:
        rows = self._field("extra_fields") if "extra_fields" in self._fields else ()
        return [_reward_info(row) for row in rows]

    @property
    def lengths(self) -> list[int]:
        if "lengths" not in self._read:
            self._read["lengths"] = [int(mask.sum()) for mask in self._field("response_mask")]
        return self._read["lengths"]

    @property
    def advantages(self) -> list[float]:
        return advantage_sums(self._field("advantages"), self._field("response_mask"))

    @property
    def ids(self) -> list[tuple[str, int]]:
        """From verl's keys, `{uid}_{session}_{index}` (verl/trainer/ppo/v1/agent_loop_tq.py:177)."""
        return [(uid, int(session)) for uid, session, _ in (key.rsplit("_", 2) for key in self.batch.keys)]

    @property
    def padding(self) -> list[bool]:
        return [bool(tag.get("is_padding", False)) for tag in self.batch.tags]

    @property
    def verdict_infos(self) -> Sequence[Mapping[str, Any]]:
        if "infos" in self.__dict__:
            return self.infos
        if "extra_fields" not in self._fields:
            return []

        def of(keys: Sequence[str]) -> list[Mapping[str, Any]]:
            return [_reward_info(row) for row in self._get(["extra_fields"], keys)["extra_fields"]]

        # An agent loop may keep much more in that field: the first row says whether it is worth it.
        return of(self.batch.keys) if any(map(gives_verdicts, of(self.batch.keys[:1]))) else []

    def take_out(self) -> None:
        keys = list(compress(self.batch.keys, self.absent))
        zeros = [torch.zeros_like(mask) for mask in compress(self._field("response_mask"), self.absent)]
        own = [f"{key.rpartition('_')[0]}{ABSTAINED}" for key in keys]  # one for all outputs of a session
        fields = {"response_mask": torch.nested.as_nested_tensor(zeros, layout=torch.jagged), "uid": own}
        self._put(keys, self._module.tu.get_tensordict(fields))

    def add_fields(self, fields: Mapping[str, Any]) -> None:
        # The metadata that the put returns lists the new fields; the worker fetches what is listed.
        self.batch = self._put(self.batch.keys, TensorDict(dict(fields), len(self.batch.keys)))

    def _put(self, keys: Sequence[str], fields: Any) -> Any:
        return self._module.tq.kv_batch_put(keys=keys, partition_id=self.batch.partition_id, fields=fields)


class LegacyRows(Rows):
    """Of `trainer.use_v1=False`: one DataProto, which has the extra info in columns."""

    has_advantages = False

    def __init__(self, data: Any) -> None:
        self.data = data

    def _columns(self, names: Sequence[str]) -> list[dict[str, Any]]:
        columns = self.data.non_tensor_batch
        keys = [key for key in names if key in columns]
        rows = zip(*(columns[key].tolist() for key in keys), strict=True)
        return [dict(zip(keys, row, strict=True)) for row in rows]

    @cached_property
    def uids(self) -> list[str]:
        return self.data.non_tensor_batch["uid"].tolist()

    @cached_property
    def infos(self) -> list[dict[str, Any]]:
        names = self.data.meta_info.get("reward_extra_keys", (VALID, DROP_GROUP))
        return self._columns(names) if VALID in self.data.non_tensor_batch else []

    @property
    def verdict_infos(self) -> list[dict[str, Any]]:
        return self._columns(VERDICT_KEYS)

    @property
    def lengths(self) -> list[int]:
        return self.data.batch["response_mask"].sum(dim=-1).tolist()

    @property
    def advantages(self) -> list[float]:
        return advantage_sums(self.data.batch["advantages"], self.data.batch["response_mask"])

    def take_out(self) -> None:
        mask = self.data.batch["response_mask"].clone()
        mask[torch.tensor(self.absent)] = 0
        self.data.batch["response_mask"] = mask
        rows = enumerate(zip(self.uids, self.absent, strict=True))
        self._set_uids([f"{uid}_{row}{ABSTAINED}" if gone else uid for row, (uid, gone) in rows])

    def restore_uids(self) -> None:
        """After the advantages, groups are again what verl made them."""
        if any(self.absent):
            self._set_uids(self.uids)

    def _set_uids(self, uids: Sequence[str]) -> None:
        self.data.non_tensor_batch["uid"] = np.array(uids, dtype=object)

    def add_fields(self, fields: Mapping[str, Any]) -> None:
        for name, field in fields.items():
            self.data.batch[name] = field


def advantage_sums(advantages: Iterable[Tensor], masks: Iterable[Tensor]) -> list[float]:
    """(B,) sums over the tokens that count; of one that does not, the advantage may be NaN."""
    rows = zip(advantages, masks, strict=True)
    return [float(torch.where(mask != 0, advantage, 0.0).sum()) for advantage, mask in rows]


def _reward_info(extra_fields: Any) -> Mapping[str, Any]:
    """The reward's part of the `extra_fields` that verl's agent loop keeps of a row; empty if there is none."""
    info = extra_fields.get("reward_extra_info") if isinstance(extra_fields, Mapping) else None
    return info if isinstance(info, Mapping) else {}
