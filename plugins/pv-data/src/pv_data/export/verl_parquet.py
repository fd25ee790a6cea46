"""verl data set: `train.parquet` and `test.parquet` for `data.train_files` and `data.val_files`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, Any

from pv_data.export.prompt import VerifierPrompt
from pv_data.export.storage import ParquetStream, whole_folder
from pv_data.records import Qpc, Slice
from pv_rl.errors import ConfigError, DataError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["VerlFormat", "write_verl"]

FIELDS = frozenset({"name", "split", "class", "source", "method", "model"})


@dataclass(frozen=True, kw_only=True)
class VerlFormat:
    """How a triple becomes a row of verl's."""

    prompt: VerifierPrompt = field(default_factory=VerifierPrompt.load)
    name: str = "pv"
    """Of the data set, for `data_source`."""
    train_source: str = "{name}/train"
    test_source: str = "{name}/{class}"
    """`data_source` of a test row. verl groups its validation metrics by it, so that right proofs and wrong ones show
    separately and who accepts everything cannot look good. `{name}/{source}/{class}` shows each source as well."""

    def __post_init__(self) -> None:
        for text in (self.train_source, self.test_source):
            try:
                used = {name for _, name, _, _ in Formatter().parse(text) if name is not None}
            except ValueError as error:
                raise ConfigError(f"the data source {text!r} cannot be read: {error}") from error
            if used - FIELDS:
                raise ConfigError(
                    f"the data source {text!r} uses {', '.join(sorted(used - FIELDS)) or 'nothing'}; it may use "
                    f"{', '.join(sorted(FIELDS))}"
                )

    def row(self, triple: Qpc, index: int) -> dict[str, Any]:
        """`prompt`, `data_source`, `ability`, `reward_model` and `extra_info`; `index` counts the rows of a split."""
        slice_ = Slice.read(triple.slice)
        parts = {"source": slice_.source, "method": slice_.method, "model": slice_.model}
        source = self.train_source if triple.split == "train" else self.test_source
        return {
            "data_source": source.format_map(
                {
                    **parts,
                    "name": self.name,
                    "split": triple.split,
                    "class": "right" if triple.label else "wrong",
                }
            ),
            "prompt": self.prompt.messages(triple.problem, triple.proof),
            "ability": "proof_verification",
            "reward_model": {"style": "rule", "ground_truth": str(triple.label)},
            "extra_info": {
                "id": triple.id,
                "problem_id": triple.problem_id,
                "slice": triple.slice,
                **parts,
                "split": triple.split,
                "index": index,
                "rule": triple.rule,
                "consistent": triple.consistent,
                "template": self.prompt.template,
                "licence": triple.licence,
            },
        }


def write_verl(folder: Path, triples: Iterable[Qpc], form: VerlFormat) -> Counter[str]:
    """Write `folder` whole or not at all; a split without a row has no file. Returns rows by split.

    Raises:
        DataError: there is no row at all.
        ConfigError: the folder holds something else.
    """
    with whole_folder(folder) as new:
        with ExitStack() as open_files:
            streams: dict[str, ParquetStream] = {}
            for triple in triples:
                stream = streams.get(triple.split)
                if stream is None:
                    stream = ParquetStream(new / f"{triple.split}.parquet", _schema())
                    streams[triple.split] = open_files.enter_context(stream)
                stream.add(form.row(triple, stream.rows))
        if not streams:
            raise DataError("there is no triple to export: no proof has a label")
        return Counter({split: stream.rows for split, stream in streams.items()})


def _schema() -> pa.Schema:
    import pyarrow as pa

    text = pa.string()
    names = ("id", "problem_id", "slice", "source", "method", "model", "split", "rule", "template", "licence")
    info = [pa.field(name, text) for name in names]
    return pa.schema(
        [
            ("data_source", text),
            ("prompt", pa.list_(pa.struct([("role", text), ("content", text)]))),
            ("ability", text),
            ("reward_model", pa.struct([("style", text), ("ground_truth", text)])),
            ("extra_info", pa.struct([*info, ("index", pa.int64()), ("consistent", pa.bool_())])),
        ]
    )
