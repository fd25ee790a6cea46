"""Keys and values of all rows, in buffers that are written in place.

Every row writes its next token into the same column, so an update is one slice assignment. Rows
differ in where they start: row r owns the columns ``start[r]:end``. A row that joins later is put
so that its prompt ends at the shared column; positions are inside the keys, so columns are free.

            start[0]=0                       end
    row 0   P P P P P R R R R R R R R R R R |
    row 1   . . . . P P P P P P R R R R R R |     left padding is masked
    row 2   . . . . . . . . . P P P P P P P |     has just joined

A row that finishes is overwritten by the last one, so the rows in use are always ``0:rows``.
"""

from __future__ import annotations

import torch
from transformers.cache_utils import Cache

__all__ = ["ColumnCache"]


class ColumnCache(Cache):
    """A transformers cache with explicit rows and columns; the engine passes masks and positions."""

    def __init__(self, *, row_capacity: int = 0) -> None:
        super().__init__(layers=[])
        self.row_capacity = row_capacity
        """Rows to allocate at least, so that rows that join one by one do not reallocate."""
        self.keys: list[torch.Tensor] = []
        """A layer each: (row capacity, kv heads, column capacity, head size)."""
        self.values: list[torch.Tensor] = []
        self.start = torch.empty(0, dtype=torch.long)
        """(row capacity,) first column of each row."""
        self.rows = 0
        self.first = 0
        """No row starts before this column."""
        self.end = 0
        self.write = slice(0, 0)

    # What a model calls.

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, layer_idx: int, *args, **kwargs):
        """Write the new columns of a layer and return everything from ``first`` on."""
        if layer_idx == len(self.keys):
            batch, heads, columns, size = key_states.shape
            for buffers in (self.keys, self.values):
                buffers.append(key_states.new_empty(batch, heads, columns, size))
        key, value = self.keys[layer_idx], self.values[layer_idx]
        key[: self.rows, :, self.write] = key_states
        value[: self.rows, :, self.write] = value_states
        view = slice(self.first, self.write.stop)
        return key[: self.rows, :, view], value[: self.rows, :, view]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self.end - self.first

    def get_mask_sizes(self, query_length: int, layer_idx: int) -> tuple[int, int]:
        return self.end - self.first + query_length, 0

    # What the engine calls.

    def advance(self, columns: int) -> None:
        """The forward pass that follows writes this many columns."""
        self.write = slice(self.end, self.end + columns)
        self.end += columns

    def mask(self) -> torch.Tensor | None:
        """(rows, 1, 1, columns) to add to the scores of one new token a row; None if nothing is padded."""
        start = self.start[: self.rows, None, None, None]
        if int(start.max()) == self.first:
            return None
        column = torch.arange(self.first, self.end)
        return torch.zeros(()).masked_fill(column < start, -torch.inf)

    def admit(self, prompts: ColumnCache, source: torch.Tensor, *, columns: int) -> None:
        """Append rows ``source`` of a prefilled cache, and make room for ``columns`` more columns."""
        length = prompts.end
        self._make_room(len(source), length, columns, prompts)
        target = slice(self.rows, self.rows + len(source))
        window = slice(self.end - length, self.end)
        for layer, (key, value) in enumerate(zip(prompts.keys, prompts.values, strict=True)):
            self.keys[layer][target, :, window] = key[source]
            self.values[layer][target, :, window] = value[source]
        self.start[target] = prompts.start[source] + window.start
        self.rows = target.stop
        self.first = int(self.start[: self.rows].min())

    def keep(self, order: torch.Tensor) -> None:
        """Row i becomes what was row ``order[i]``; rows after ``len(order)`` are forgotten."""
        moved = (order != torch.arange(len(order))).nonzero().squeeze(-1)
        if len(moved):
            source = order[moved]
            used = slice(self.first, self.end)
            for buffer in (*self.keys, *self.values):
                buffer[moved, :, used] = buffer[source, :, used]
            self.start[moved] = self.start[source]
        self.rows = len(order)
        if self.rows:
            self.first = int(self.start[: self.rows].min())

    def _make_room(self, new_rows: int, length: int, columns: int, like: ColumnCache) -> None:
        """See to it that ``new_rows`` rows, ``length`` columns before and ``columns`` after the end exist."""
        rows, capacity = (len(self.start), self.keys[0].shape[2]) if self.keys else (0, 0)
        enough_rows = self.rows + new_rows <= rows
        width = self.end - self.first if self.rows else 0
        if self.rows and enough_rows and self.end >= length and self.end + columns <= capacity:
            return
        end = max(width, length)
        old, new = slice(self.end - width, self.end), slice(end - width, end)
        if enough_rows and end + columns <= capacity:
            for buffer in (*self.keys, *self.values):
                buffer[: self.rows, :, new] = buffer[: self.rows, :, old].clone()
        else:
            self._allocate(max(rows, self.rows + new_rows, self.row_capacity), end + columns, old, new, like)
        self.start[: self.rows] += new.start - old.start
        self.first, self.end = new.start, new.stop

    def _allocate(self, rows: int, columns: int, old: slice, new: slice, like: ColumnCache) -> None:
        """Take larger buffers and move the columns ``old`` of the rows in use to ``new``.

        The memory is zeroed: a masked column has weight 0, and 0 times the NaN that fresh memory may
        hold is NaN, which would reach the log-probabilities of every row.
        """
        moved = []
        for buffers, examples in ((self.keys, like.keys), (self.values, like.values)):
            fresh = [one.new_zeros(rows, one.shape[1], columns, one.shape[3]) for one in examples]
            for target, source in zip(fresh, buffers, strict=False):
                target[: self.rows, :, new] = source[: self.rows, :, old]
            moved.append(fresh)
        self.keys, self.values = moved
        self.start = torch.cat([self.start, self.start.new_zeros(rows - len(self.start))])
