"""Export step: near-duplicates, split, export and reports, made again from the run's tables each time."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from rich.console import Console

from pv_data.asking.refused import NOT_SERVED, REFUSED
from pv_data.export.audit_lines import trained_on
from pv_data.export.exporting import Exported, ExportSettings, Tables, export
from pv_data.export.triples import DISCARDED, LabelRules
from pv_data.records import Problem
from pv_data.run.config import RunConfig
from pv_data.splits import SplitRules
from pv_data.table import read_rows
from pv_judge.override import quoted
from pv_judge.pages.text import plural, visible

__all__ = ["EXPORT", "discard_override", "finalize"]


EXPORT = "export"
MANY = 5
"""Problems of a cluster that are worth a line, where they are more than a tenth of all."""
A_TENTH = 0.1
"""Difference between the share of test questions that was asked for and that there is, from which it is printed."""


def finalize(folder: Path, config: RunConfig, console: Console, *, left: int = 0) -> Exported:
    """Write the folder `export` of a run.

    Args:
        left: questions that have still to be asked.

    Raises:
        DataError: no proof has a label.
    """
    clusters = None
    if config.duplicates.threshold is not None:
        from pv_data.duplicates import clusters as find

        clusters = find(
            read_rows(folder / "problems", Problem), threshold=config.duplicates.threshold, blinded=True
        )
        largest = max(Counter(clusters.values()).values(), default=0)
        if largest > max(MANY, len(clusters) // 10):
            console.print(
                f"duplicates: {largest} of {plural(len(clusters), 'problem')} are one cluster and go to the "
                "same split. If they "
                "are copies of one template that should be parted, raise duplicates.threshold, or set it to null",
                style="yellow",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )
    split, test_sources = (
        config.split,
        [one.name or one.kind for one in config.sources if one.split == "test"],
    )
    settings = ExportSettings(
        title=config.title,
        human_sources=tuple(one.name or one.kind for one in config.sources if one.human),
        notes=(f"The run is not done: about {plural(left, 'question', ',')} have still to be asked.",)
        if left
        else (),
        split=SplitRules(
            test=split.test,
            seed=config.seed,
            test_sources=tuple(test_sources),
            hold_out_audited=split.hold_out_audited,
        ),
        labels=LabelRules(
            train=split.train_labels, test=split.test_labels, discarded=frozenset(split.discarded)
        ),
    )
    exported = export(Tables.of_run(folder), folder / EXPORT, settings, clusters)
    counts = ", ".join(
        f"{count} {name}" for name, count in sorted(exported.written.rows.items(), reverse=True)
    )
    console.print(f"export: {counts}, left out {sum(exported.left_out.values())}", highlight=False)
    for line in (
        *_rejected(exported),
        *_of_the_split(exported, split.test),
        *_of_the_audit(exported, discards=bool(split.discarded)),
    ):
        console.print(visible(line), style="yellow", highlight=False, markup=False, soft_wrap=True)
    return exported


def _rejected(exported: Exported) -> Iterator[str]:
    """Rows that a model did not answer: those that a provider refuses for good, and those that it never served."""
    for begin, what, then in (
        (REFUSED, "refused by a provider for good", "--redo STAGE asks again"),
        (NOT_SERVED, "without a usable answer", "retry_aside=true asks again"),
    ):
        found = {
            f"{stage}, {reason.removeprefix(begin + ': ')}": number
            for (stage, reason), number in sorted(exported.aside.items())
            if reason.startswith(begin + ": ")
        }
        if found:
            each = "; ".join(f"{number:,} {why}" for why, number in found.items())
            yield f"rejected: {plural(sum(found.values()), 'row', ',')} {what} ({each}); {then}"


def _of_the_split(exported: Exported, asked: float) -> Iterator[str]:
    """The share of the test set, where clusters of near-duplicates make it another than `split.test`."""
    drawn = [one for one in exported.splits.placed.values() if one.why == "drawn"]
    sizes = Counter(one.cluster for one in drawn)
    if len(sizes) == len(drawn):
        return
    test = sum(one.split == "test" for one in drawn)
    if abs(test / len(drawn) - asked) > A_TENTH or (asked and not test):
        largest = ", ".join(str(size) for _, size in sizes.most_common(3))
        yield (
            f"split: split.test={asked:g} asks for {asked:.0%} of the questions, and {test / len(drawn):.0%} "
            f"({test} of {len(drawn)}) went to test. A cluster of near-duplicates goes to one split, and there "
            f"{'is' if len(sizes) == 1 else 'are'} {plural(len(sizes), 'cluster')}, the largest of {largest} "
            "questions. A higher duplicates.threshold makes smaller clusters"
        )


def _of_the_audit(exported: Exported, *, discards: bool) -> Iterator[str]:
    """What is to be known of it before the set is used."""
    splits, audit, by_panel = exported.splits, exported.audit, exported.written.by_panel
    held_out = sum(one.why == "audited" for one in splits.placed.values())
    if discards:
        yield (
            f"discarded: {plural(exported.left_out[DISCARDED], 'label')} of the panel removed by split.discarded. "
            "Labels of people and of the source stay"
        )
    if held_out:
        yield (
            f"audit: {held_out} of {plural(len(splits.placed), 'question')} have a mark and are held out "
            "for the test set"
        )
    if not exported.written.rows["train"]:
        if exported.left_out[DISCARDED] and any(one.split == "train" for one in splits.placed.values()):
            yield (
                "discarded: nothing is left for training: it had labels of the panel only, all in slices of "
                "split.discarded. Take a slice out of it, or generate proofs with another model or method"
            )
        elif held_out:
            yield (
                "audit: nothing is left for training; draw an audit from fewer questions (pv-data audit draw --pilot), "
                "or set split.hold_out_audited=false"
            )
    if failed := [name for name in audit.discarded if by_panel["train", name] + by_panel["test", name]]:
        yield (
            f"audit: {plural(len(failed), 'slice')} failed, and are in the set; leave them out: "
            f"{discard_override(failed)}"
        )
    trained = trained_on(audit, exported.written)
    for standing, what in (("open", "still open"), ("not audited", "not audited")):
        if audit.audited.slices and trained[standing]:
            yield f"audit: {trained[standing]} labels in train are of slices that are {what}"


PLAIN = re.compile(r"[A-Za-z0-9_./-]+")
"""What Hydra takes for nothing else in a list."""


def discard_override(slices: Iterable[str]) -> str:
    """`split.discarded=[...]`, quoted for Hydra and for the shell: a name may have commas, brackets and quotes.

    Example: `S/proof/m (high), v2` gives `'split.discarded=['"'"'S/proof/m (high), v2'"'"']'`.
    """
    names = (name if PLAIN.fullmatch(name) else quoted(name) for name in slices)
    return shlex.quote(f"split.discarded=[{','.join(names)}]")
