"""Row of the ledger, one judged trace, and its Parquet schema. There is no field for headers or keys."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from pv_rl import __version__
from pv_rl.errors import DataError, SetupError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "ADDED",
    "METADATA_KEY",
    "VERSION",
    "DecidedBy",
    "Decision",
    "Hit",
    "LedgerRow",
    "RuleHit",
    "need_pyarrow",
    "schema",
]

VERSION = 2
"""Version of the columns. A reader refuses a newer one; a new column makes a new version."""
ADDED = frozenset({"failure_text"})
"""Columns that files of an older version lack, and that are read as null."""
METADATA_KEY = b"pv_rl.ledger"

Decision: TypeAlias = Literal[
    "fluent",  # nothing was found
    "vetoed",  # found anomalous
    "unjudged",  # a judge was not asked: the budget had no call left
    "failed",  # a judge was asked and gave no usable answer; `failure` says why
]
DecidedBy: TypeAlias = Literal["rules", "judge", "policy"]

WORDS = {"Decision": Decision.__args__, "DecidedBy": DecidedBy.__args__}
INT_LIMIT = 2**63


def _now() -> datetime:
    return datetime.now(UTC)


class Hit(Protocol):
    """A rule that matched, of any class."""

    @property
    def rule(self) -> str: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


@dataclass(frozen=True, kw_only=True)
class RuleHit:
    """A hit as the ledger keeps it."""

    rule: str
    start: int
    """Of the evidence, in characters of the trace."""
    end: int


@dataclass(frozen=True, kw_only=True)
class LedgerRow:
    """What was judged, the decision and its cost.

    Raises:
        DataError: a value is of another type than its field.
    """

    time: datetime = field(default_factory=_now)
    """When it was decided; UTC."""
    step: int | None = None
    """Training step, where there is one."""
    uid: str = ""
    """The prompt's id: rows of one group share it."""
    session: int | None = None
    """Number of the sample in its group."""
    data_source: str = ""
    trace: str
    """What was judged, whole. Lone surrogates are replaced by U+FFFD, here and in `judge_text`."""
    rules: Sequence[Hit] = ()
    """The rules that hit, kept as `RuleHit`."""
    judge_text: str | None = None
    """What the judge wrote, where it wrote anything."""
    judge_model: str | None = None
    template: str | None = None
    """Of the prompt: name@hash."""
    decision: Decision
    decided_by: DecidedBy
    failure: str | None = None
    """Kind of the failure (`pv_judge.answer.FailureKind`)."""
    failure_text: str | None = None
    """What failed, in the server's words, without the key. New in version 2."""
    judge_fluent: bool | None = None
    """The judge's answer, whatever its confidence; None without a usable answer."""
    confidence: float | None = None
    """The judge's confidence, 0 to 1. It vetoes if `judge_fluent` is False and this reaches the threshold."""
    verdict: bool | None = None
    """Verdict of the trace on the proof; None if it has none."""
    label: bool | None = None
    """The truth. The judge is not shown it."""
    inner_score: float | None = None
    """Score of the wrapped reward before any veto; None if it gave none or was not asked."""
    score: float
    """The reward that the trainer got; it counts only if `valid`."""
    valid: bool = True
    latency_s: float = 0.0
    """Seconds of the judge's question, waiting included."""
    requests: int = 0
    """Requests that were sent for it, failed ones included; likewise tokens and dollars."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float | None = 0.0
    """None: a model without a price was asked."""
    cached: bool = False
    """The answer came from the cache."""

    def __post_init__(self) -> None:
        for one in dataclasses.fields(self):
            object.__setattr__(self, one.name, _checked(one.name, str(one.type), getattr(self, one.name)))

    def to_json(self) -> dict[str, Any]:
        """As a mapping of JSON values."""
        values = dict(self.__dict__)
        values["time"] = self.time.isoformat()
        values["rules"] = [dataclasses.asdict(hit) for hit in self.rules if isinstance(hit, RuleHit)]
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> LedgerRow:
        """The inverse of `to_json`.

        Raises:
            DataError: it is not one.
        """
        try:
            return cls(
                **{
                    **values,
                    "time": datetime.fromisoformat(values["time"]),
                    "rules": tuple(RuleHit(**hit) for hit in values["rules"]),
                }
            )
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"this is not a row of a ledger: {error!r}") from error


def _checked(name: str, kind: str, value: Any) -> Any:
    """The value in the one type that the ledger keeps for `kind`, an annotation of `LedgerRow`."""
    base, _, optional = kind.partition(" | ")
    if value is None and optional:
        return None
    if base == "str" and isinstance(value, str):
        return _encodable(value)
    if base == "int" and isinstance(value, Integral) and -INT_LIMIT <= int(value) < INT_LIMIT:
        return int(value)
    with suppress(OverflowError):  # a whole number beyond every float; a time before the year 1 in UTC
        if base == "float" and isinstance(value, Real) and not (optional and math.isnan(value)):
            return float(value)
        if base == "datetime" and isinstance(value, datetime) and value.tzinfo is not None:
            return value.astimezone(UTC)
    if base == "bool" and isinstance(value, bool):
        return value
    if base in WORDS and value in WORDS[base]:
        return value
    if base.startswith("Sequence") and isinstance(value, list | tuple):
        return tuple(map(_checked_hit, value))
    wanted = " or ".join(map(repr, WORDS.get(base, ()))) or kind
    raise DataError(
        f"{name} of a ledger row is {str(value)[:80]!r} ({type(value).__name__}). Expected {wanted}"
    )


def _checked_hit(hit: Any) -> RuleHit:
    values = {one.name: getattr(hit, one.name, None) for one in dataclasses.fields(RuleHit)}
    return RuleHit(
        rule=_checked("rule", "str", values["rule"]),
        start=_checked("start", "int", values["start"]),
        end=_checked("end", "int", values["end"]),
    )


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def schema() -> pa.Schema:
    """`row_id` and the fields of `LedgerRow`; the version is in the metadata under `pv_rl.ledger`."""
    import pyarrow as pa

    hit = pa.struct([("rule", pa.string()), ("start", pa.int64()), ("end", pa.int64())])
    types = {
        "str": pa.string(),
        "int": pa.int64(),
        "float": pa.float64(),
        "bool": pa.bool_(),
        "datetime": pa.timestamp("us", "UTC"),
        "Sequence[Hit]": pa.list_(hit),
        "Decision": pa.string(),
        "DecidedBy": pa.string(),
    }
    fields = [pa.field("row_id", pa.string(), nullable=False)]
    for one in dataclasses.fields(LedgerRow):
        base, _, optional = str(one.type).partition(" | ")
        fields.append(pa.field(one.name, types[base], nullable=bool(optional)))
    return pa.schema(fields, metadata={METADATA_KEY: str(VERSION), "pv_rl.version": __version__})


def need_pyarrow() -> None:
    """Check that pyarrow is installed.

    Raises:
        SetupError: it is not.
    """
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise SetupError(
            f"a ledger is kept in Parquet, and pyarrow cannot be imported ({error}). Run "
            "pip install 'pyarrow>=16', or leave out the option ledger"
        ) from error
