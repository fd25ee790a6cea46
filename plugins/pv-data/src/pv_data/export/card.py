"""The dataset card: what is in the set, where it is from, what it cost and what it cannot be used for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from pv_data import __version__
from pv_data.audit.evidence import Proven
from pv_data.export.audit_lines import audit_lines, trained_on
from pv_data.export.dataset_folder import FEATURES, Written
from pv_data.export.distribution import of_counts
from pv_data.export.spending import Asked
from pv_data.export.triples import LabelRules
from pv_data.report.labels import LabelReport
from pv_data.splits import Splits
from pv_judge.pages.text import markdown, plain, plural

__all__ = ["CardFacts", "write_card"]

# Identifiers of the hub, https://huggingface.co/docs/hub/repositories-licenses, that sources of proofs come under.
LICENCES = (
    *(
        "apache-2.0",
        "mit",
        "bsd-3-clause",
        "gpl-3.0",
        "cc0-1.0",
        "cc-by-3.0",
        "cc-by-4.0",
        "cc-by-sa-3.0",
        "cc-by-sa-4.0",
    ),
    *("cc-by-nc-4.0", "cc-by-nc-sa-4.0", "cc-by-nc-nd-4.0", "odc-by"),
)
LONGEST = 600
"""Characters of a name or a sentence."""
STANDING = {
    "accepted": "an audit accepted",
    "open": "have an audit without a verdict",
    "failed": "failed their audit",
    "not audited": "nobody audited",
}
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


@dataclass(frozen=True, kw_only=True)
class CardFacts:
    """What the card says beyond the rows themselves."""

    title: str = "Question-proof-check triples"
    splits: Splits | None = None
    rules: LabelRules = field(default_factory=LabelRules)
    human_sources: tuple[str, ...] = ()
    """Sources all of whose proofs count as people's in the distribution."""
    asked: tuple[Asked, ...] = ()
    aside: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Rows that were set aside or left out, by stage and reason."""
    labels: LabelReport | None = None
    notes: tuple[str, ...] = ()
    """Further limits."""
    audit: Proven | None = None
    """None: nothing is known of one."""


def write_card(facts: CardFacts, written: Written) -> str:
    """The README.md. Names and reasons are from outside, and escaped."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)  # noqa: S701 - Markdown; `md` escapes
    environment.filters["md"] = lambda text: markdown(plain(text, LONGEST))
    environment.filters["sum"] = lambda lines, name: sum(getattr(line, name) for line in lines)
    environment.globals |= {"n": lambda number: f"{number:,}", "usd": _usd}
    template = environment.from_string((files("pv_data.export") / "card.md.j2").read_text(encoding="utf-8"))
    audit = facts.audit if facts.audit and facts.audit.audited.slices else None
    tables = {
        name: of_counts(written.by_slice(name), human_sources=facts.human_sources).to_markdown()
        for name in _names(written)
    }
    return template.render(
        front_matter=_front_matter(facts, written),
        title=facts.title,
        version=__version__,
        splits=[_split(name, written) for name in _names(written)],
        placed=sorted((*key, number) for key, number in facts.splits.counts().items())
        if facts.splits
        else [],
        conflicts=len(facts.splits.conflicts) if facts.splits else 0,
        distributions=tables,
        order_train=", ".join(facts.rules.train),
        order_test=", ".join(facts.rules.test),
        rules=[
            (rule, split, number) for (split, rule), number in sorted(written.rules.items(), reverse=True)
        ],
        quality=_quality(facts.labels),
        audit=audit_lines(audit, written, facts.rules.discarded) if audit else [],
        confidence=audit.audited.confidence if audit else None,
        asked=facts.asked,
        licences=[(*key, number) for key, number in sorted(written.licences.items())],
        limits=[*facts.notes, *_limits(facts, written)],
        aside=[(*key, number) for key, number in sorted(facts.aside.items())],
    )


def _front_matter(facts: CardFacts, written: Written) -> str:
    """The hub's metadata, https://huggingface.co/docs/hub/datasets-cards."""
    import yaml

    names = _names(written)
    total = written.rows.total()
    given = sorted({_licence(licence) for _, licence in written.licences})
    info = {
        "features": [_feature(name, kind) for name, kind in FEATURES.items()],
        "splits": [
            {"name": name, "num_bytes": written.bytes[name], "num_examples": written.rows[name]}
            for name in names
        ],
        "download_size": written.download,
        "dataset_size": written.bytes.total(),
    }
    files_of = [{"split": name, "path": f"data/{name}-*"} for name in names]
    metadata = {
        "pretty_name": plain(facts.title),
        "license": given[0] if len(given) == 1 else given,
        "task_categories": ["text-classification"],
        "tags": ["mathematics", "proof-verification", "question-proof-check"],
        "size_categories": [next((size for most, size in SIZES if total < most), "1M<n<10M")],
        "configs": [{"config_name": "default", "data_files": files_of}],
        "dataset_info": info,
    }
    return yaml.safe_dump(metadata, sort_keys=False, allow_unicode=True)


def _feature(name: str, kind: str) -> dict[str, Any]:
    return {"name": name, "list": "bool"} if kind == "list<bool>" else {"name": name, "dtype": kind}


def _licence(text: str) -> str:
    """The hub's identifier."""
    known = text.strip().lower().replace(" ", "-")
    return known if known in LICENCES else "other" if known else "unknown"


def _names(written: Written) -> list[str]:
    return sorted(written.rows, reverse=True)  # train before test


def _split(name: str, written: Written) -> dict[str, Any]:
    return {
        "split": name,
        "problems": len(written.problems[name]),
        "rows": written.rows[name],
        "right": written.labels[name, True],
        "wrong": written.labels[name, False],
        "inconsistent": written.inconsistent[name],
    }


def _quality(report: LabelReport | None) -> str:
    if report is None or not report.pooled.judged:
        return ""
    pooled, agreement = report.pooled, report.pooled.agreement
    text = f"The panel judged {plural(pooled.judged, 'proof', ',')}. "
    if agreement.raw is not None:
        kappa, ac1 = ("-" if one is None else f"{one:.3f}" for one in (agreement.kappa, agreement.ac1))
        text += (
            f"Two of its votes on a proof are the same in {100 * agreement.raw:.1f} % of cases "
            f"(Fleiss kappa {kappa}, Gwet AC1 {ac1}). "
        )
    mine = pooled.rules[-1].right
    if mine.value is None or mine.low is None or mine.high is None:
        return text + "Whether its labels are true is not known for any of them."
    return text + (
        f"Where it is known otherwise ({mine.number:,} labels), {100 * mine.value:.1f} % of its labels are true "
        f"(95 %: {100 * mine.low:.1f} to {100 * mine.high:.1f})."
    )


def _limits(facts: CardFacts, written: Written) -> list[str]:
    slices = {name for _, name, _ in written.slices}
    by_panel = sum(number for (_, rule), number in written.rules.items() if rule.startswith("panel: "))
    audited = len(slices & set(facts.audit.audited.slices if facts.audit else ()))
    lines = [
        f"{by_panel:,} of {written.rows.total():,} labels are those of language models alone, which accept some wrong "
        "proofs and reject some right ones.",
        f"People checked labels of the panel in {audited:,} of {plural(len(slices), 'slice', ',')}.",
        *_trained_on(facts.audit, written),
        "A final answer that is right does not make a proof right: labels known by final answer are about the answer.",
    ]
    for split in _names(written):
        if 0 in (written.labels[split, True], written.labels[split, False]):
            lines.append(f"{split} has proofs of one class only.")
    if unknown := sum(number for (_, licence), number in written.licences.items() if not licence):
        lines.append(f"Of {unknown:,} triples the licence of the problem is not known.")
    return lines


def _trained_on(audit: Proven | None, written: Written) -> list[str]:
    found = Counter() if audit is None else trained_on(audit, written)
    if not (total := found.total()):
        return []
    parts = [f"{found[name]:,} are of slices that {what}" for name, what in STANDING.items() if found[name]]
    return [f"Of {total:,} labels of the panel in train, {', '.join(parts)}."]


def _usd(amount: float) -> str:
    return f"{amount:,.2f}" if amount >= 1 or not amount else f"{amount:.4f}"
