"""Rows of a data set: problem, proof, judgment, label, audit mark, and the question-proof-check triple.

Each has an id that is a hash of its content, so that the same row gets the same id in every run and on every machine.
A slice is `source/method/model`, the unit of an audit. `pv_data.table` writes and reads the rows as Parquet.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

__all__ = [
    "GROUND_TRUTH",
    "NAME",
    "OTHER_LABEL",
    "Aside",
    "AuditMark",
    "Judgment",
    "Label",
    "MarkedProof",
    "Origin",
    "Problem",
    "Proof",
    "Qpc",
    "Row",
    "Slice",
    "content_id",
    "is_name",
]


NAME = r"^[^/\[\]]*$"
"""Of a source or a method, the first two parts of a slice: it has no `/`, `[` or `]`. A model's name may have a `/`."""
OTHER_LABEL = "twice, other label"
"""Reason of an `Aside`: the proof is in another row too, with another label. Neither counts as known."""
GROUND_TRUTH = "ground_truth"
"""The method of a proof that came with its problem."""


def is_name(text: str) -> bool:
    """Whether a source or a method can be called so."""
    return bool(text) and re.match(NAME, text) is not None


def content_id(kind: str, *parts: str | int) -> str:
    """20 hex digits (80 bits) of a SHA-256 of `kind` and `parts`: two of a million rows collide with odds of 4e-13."""
    canonical = json.dumps([kind, *parts], ensure_ascii=False, separators=(",", ":"))
    # `replace`: halves of surrogate pairs, which JSON may hold, are not stored either
    return hashlib.sha256(canonical.encode("utf-8", "replace")).hexdigest()[:20]


@dataclass(frozen=True, kw_only=True)
class Origin:
    """How a model's text came to be; empty where no model wrote it."""

    template: str = ""
    """Name and hash of the prompt, `rephrase@1f0c...`."""
    model: str = ""
    """As configured."""
    revision: str = ""
    """Of the model, as configured: APIs change models under one name."""
    sampling: str = "{}"
    """Sampling parameters, as JSON with sorted keys."""
    sample: int = 0
    """Which of several answers to the same question."""
    time: str = ""
    """When the answer came: UTC, ISO 8601."""
    usd: float = 0.0
    """Price of the answer, when it was first paid; 0 for a model without a price."""
    prompt_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A question."""

    kind: ClassVar[str] = "problem"

    source: str
    """Name of the source, the first part of its slices, for example `OlympiadBench-OE`."""
    native_id: str
    """What the source calls it."""
    text: str
    answer: str = ""
    """The final answer, where the question has one."""
    subject: str = ""
    """As the source says it, for example `Number Theory`."""
    language: str = ""
    """As the source says it, an ISO 639-1 code; empty: not said."""
    licence: str = ""
    url: str = ""
    """Where it is from: an address, or repository@commit:path."""
    split: str = ""
    """`train` or `test` where the source or the config wants it there; empty: drawn by question."""

    @property
    def id(self) -> str:
        """Of source and text: a source that lists a problem twice has it once."""
        return content_id(self.kind, self.source, self.text)


@dataclass(frozen=True, kw_only=True)
class Proof:
    """A proof, or a solution, of a problem."""

    kind: ClassVar[str] = "proof"

    problem_id: str
    source: str
    method: str
    """`ground_truth`, or the generation method."""
    model: str = ""
    """Who wrote it; empty for people."""
    text: str
    known: bool | None = None
    """Whether it is right, where that is known without judges: people's marks, final answers, corruption."""
    known_by: str = ""
    """The rule of `known`, for example `human: 7 of 7` or `final answer`; empty where `known` is None."""
    parent_id: str = ""
    """The proof that it was made from."""
    origin: Origin = Origin()

    @property
    def id(self) -> str:
        """Of all that it is, but not of when and at what cost it was made."""
        return content_id(
            self.kind, self.problem_id, self.source, self.method, self.model, self.parent_id, self.text
        )

    @property
    def slice(self) -> str:
        """`source/method/model`, with `-` for no model."""
        return f"{self.source}/{self.method}/{self.model or '-'}"


@dataclass(frozen=True, kw_only=True)
class MarkedProof(Proof):
    """A proof with marks beyond right and wrong, for an evaluation. A run stores it as a `Proof`, without them."""

    grade: float | None = None
    """Share of the full points, 0 to 1."""
    first_error: int | None = None
    """Number of the first wrong step, from 1; 0: no step is wrong."""
    steps: tuple[str, ...] = ()
    """The texts that make the proof."""


@dataclass(frozen=True, kw_only=True)
class Judgment:
    """What one judge said of one proof, once."""

    kind: ClassVar[str] = "judgment"

    proof_id: str
    judge: str
    """The panel's name of the judge."""
    conditions: tuple[bool, ...]
    """The four criteria, in the prompt's order."""
    stated: bool
    """The judge's own `proof_correct`."""
    verdict: bool
    """What counts: all conditions and `stated`."""
    text: str
    """The judge's answer, whole."""
    origin: Origin

    @property
    def id(self) -> str:
        """Of who was asked what: proof, judge, template, sampling and the number of the sample."""
        origin = self.origin
        return content_id(
            *(self.kind, self.proof_id, self.judge, origin.template, origin.model),
            *(origin.sampling, origin.sample),
        )


@dataclass(frozen=True, kw_only=True)
class Label:
    """What the panel's judgments make of one proof."""

    kind: ClassVar[str] = "label"

    proof_id: str
    problem_id: str
    slice: str
    value: bool | None
    """None: the judges disagree by the rule, and the proof has no label."""
    rule: str
    """For example `unanimous 5 of 5` or `majority 4 of 5`."""
    votes: tuple[bool, ...]
    """In the panel's order."""
    judges: tuple[str, ...]
    """Who cast each vote."""
    known: bool | None = None
    """That of the proof, for comparison."""

    @property
    def id(self) -> str:
        """That of its proof."""
        return self.proof_id


@dataclass(frozen=True, kw_only=True)
class AuditMark:
    """What a person says of one proof."""

    kind: ClassVar[str] = "audit_mark"

    proof_id: str
    problem_id: str
    slice: str
    auditor: str
    round: int
    """1, 2, ... of the slice's audit."""
    label: bool
    """The label that was audited."""
    human: bool | None
    """Whether the person finds the proof right; None: cannot tell."""
    note: str = ""
    time: str = ""
    fault: str = ""
    """Kind of the first fault, as the tool's choices name it."""
    step: str = ""
    """The first wrong step, in the person's words."""
    seconds: float | None = None
    """That the person had the proof open, as the tool measured it."""
    third: bool = False
    """Whether the person saw the reasons of the readers before, to decide between them."""

    @property
    def id(self) -> str:
        """Of proof and auditor: a later mark by the same person replaces the earlier."""
        return content_id(self.kind, self.proof_id, self.auditor)


@dataclass(frozen=True, kw_only=True)
class Qpc:
    """A question-proof-check triple: what a verifier is trained or tested on."""

    kind: ClassVar[str] = "qpc"

    problem_id: str
    proof_id: str
    problem: str
    proof: str
    label: bool
    """True: the proof is right."""
    rule: str
    """Whose label it is, and by what: `audit: 2 of 2`, `known: final answer` or `panel: unanimous 5 of 5`."""
    slice: str
    split: str
    """`train` or `test`."""
    consistent: bool = True
    """Whether the judges agreed; a test set keeps proofs on which they did not."""
    votes: tuple[bool, ...] = ()
    licence: str = ""

    @property
    def id(self) -> str:
        """That of its proof."""
        return self.proof_id


@dataclass(frozen=True, kw_only=True)
class Aside:
    """A row that was taken out, and why. Nothing is lost: `content` has it as it came, cut where it is giant."""

    kind: ClassVar[str] = "aside"

    stage: str
    """`collect`, `generate`, `judge` or `export`."""
    row: str
    """Which one: file and line, or an id."""
    reason: str
    """One word or two, for counting: `geometry`, `empty proof`, `no answer: timeout`, `refused: too long`."""
    detail: str = ""
    """The rest of the story, for a reader."""
    content: str = ""
    """The row, at most 2,000 characters of it."""

    @property
    def id(self) -> str:
        return content_id(self.kind, self.stage, self.row, self.reason)


Row: TypeAlias = Problem | Proof | Judgment | Label | AuditMark | Qpc | Aside


@dataclass(frozen=True, kw_only=True, order=True)
class Slice:
    """Source x method x model, the unit of an audit."""

    source: str
    method: str
    model: str
    """`-` for none."""

    @classmethod
    def read(cls, name: str) -> Slice:
        """From `source/method/model`. A model may have a `/` in its name, as on the hub; a source may not."""
        source, method, model = (*name.split("/", 2), "-", "-")[:3]
        return cls(source=source, method=method, model=model)
