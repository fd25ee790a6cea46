"""What do the rules of the fluency veto see, what do they wrongly see, and what do they cost?

python benchmarks/rule_gate.py [--data FOLDER] [--half tune|report] [--evidence] [--beside SRC]

Prints Markdown: recall by period of a verbatim loop, recall and precision by kind of corruption and by rule, every
fluent text that was hit, and microseconds a trace, beside those of another checkout's `src` if one is named. Thresholds
were chosen on `tune`; docs/concepts/rules.md has what `report` gives.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import platform
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent))

from traces.corrupt import KINDS, STRENGTHS
from traces.labelled import HALVES, Labelled, labelled_set
from traces.loops import DISGUISES, PERIODS, TEXTS, looping_trace
from traces.real import DATA, Trace, real_traces

from pv_rl.rewards.degeneration import BUILTIN_RULES, Anomaly, find_anomalies

MEANT_FOR = {
    "phrase_loop": {"phrase_loop", "ngram_loop", "sentence_loop"},
    "drifting_phrase": {"phrase_loop", "ngram_loop", "sentence_loop"},
    "sentence_again": {"phrase_loop", "ngram_loop", "sentence_loop"},
    "sentence_cycle": {"phrase_loop", "ngram_loop", "sentence_loop"},
    "reworded_sentence": {"empty_announcements", "ngram_loop", "sentence_loop"},
    "self_interruption": {"self_interruption"},
    "false_starts": {"self_interruption"},
    "token_runaway": {"runaway_repetition"},
    "character_runaway": {"runaway_repetition"},
    "line_runaway": {"runaway_repetition", "phrase_loop", "sentence_loop"},
    "format_chatter": {"meta_commentary"},
    "chat_marks": {"chat_markup"},
    "bare_verdict": {"empty_justification"},
    "text_after_verdict": {"text_after_verdict"},
    "broken_encoding": {"broken_encoding"},
    "script_soup": {"script_soup"},
    "irrelevant_insertion": set(),
    "abrupt_conclusion": set(),
}
DEGENERATE = Path(__file__).resolve().parent / "traces" / "degenerate.txt"
LENGTHS = (0, 1_000, 4_000, 16_000, 1_000_000)
LOOPS = 8  # traces of each text, period and disguise
REPEATS = 3  # the fastest of so many runs is a trace's time
WORST = (
    "a b ",
    "wait, ",
    "let me check the proof. ",
    "### True ",
    "user says ",
    "a. ",
    " ",
    "x" * 40 + " ",
    "é Ã© ",
)


def degenerate_texts(path: Path = DEGENERATE) -> dict[tuple[str, str], str]:
    """Why a rule is right about a real text that is malformed as it is, by the text's name and the rule."""
    rows = [line.split("\t") for line in path.read_text("utf-8").splitlines() if not line.startswith("#")]
    return {(name, rule): reason for name, rule, reason in rows}


def spoiled_and_fluent(traces: Sequence[Trace], half: str) -> list[Labelled]:
    return labelled_set(traces, half, frozenset(name for name, _ in degenerate_texts()))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of real inputs")
    parser.add_argument("--half", choices=HALVES, default="report")
    parser.add_argument("--evidence", action="store_true", help="print the evidence in what was spoiled, too")
    parser.add_argument("--beside", type=Path, help="the `src` of another checkout, for a ratio of times")
    options = parser.parse_args()
    print(f"{datetime.date.today()}, {processor()}, Python {platform.python_version()}\n")
    print("\n".join(by_period()), "\n")
    traces = real_traces(options.data)
    labelled = spoiled_and_fluent(traces, options.half)
    found = [find_anomalies(one.text) for one in labelled]
    print(f"Half `{options.half}`:\n")
    print("\n".join(by_kind(labelled, found)), "\n")
    print("\n".join(by_rule(labelled, found)), "\n")
    print("\n".join(hits_on_real_texts(traces)), "\n")
    print("\n".join(costs(traces)))
    if options.beside:
        print("\n".join(ratios(traces, options.beside)))
    if options.evidence:
        for one, anomalies in zip(labelled, found, strict=True):
            for anomaly in anomalies:
                print(f"{one.kind} {one.strength} {one.trace.name} {_quote(one.text, anomaly, 200)}")


def by_period() -> Iterator[str]:
    """Recall of verbatim loops: plain ones by kind of text, disguised ones over all kinds."""
    yield f"| loop of {LOOPS} traces each | {' | '.join(f'{period:,}' for period in PERIODS)} |"
    yield f"|---|{'---|' * len(PERIODS)}"
    plain, *disguises = DISGUISES
    for name, texts, disguise in [
        *((text, [text], plain) for text in TEXTS),
        *((disguise.replace("_", " "), TEXTS, disguise) for disguise in disguises),
    ]:
        cells = (
            _share(
                [
                    bool(find_anomalies(looping_trace(text, period, disguise, seed)))
                    for text in texts
                    for seed in range(LOOPS)
                ]
            )
            for period in PERIODS
        )
        yield f"| {name} | {' | '.join(cells)} |"


def by_kind(labelled: Sequence[Labelled], found: Sequence[Sequence[Anomaly]]) -> Iterator[str]:
    """Recall of the gate by kind and strength; recall and precision of the rules that are meant for the kind."""
    reasons = degenerate_texts()
    seen = [{anomaly.rule for anomaly in anomalies} for anomalies in found]
    wrong = Counter(
        rule
        for one, rules in zip(labelled, seen, strict=True)
        for rule in rules
        if one.kind == "fluent" and (one.trace.name, rule) not in reasons
    )
    yield "| kind | texts | light | medium | heavy | all | by the rules meant for it | their precision |"
    yield "|---|---|---|---|---|---|---|---|"
    served = {kind for kind in KINDS if MEANT_FOR[kind]}
    for name, kinds in [*((kind, {kind}) for kind in KINDS), ("**all that have a rule**", served)]:
        rows = [(one.strength, rules) for one, rules in zip(labelled, seen, strict=True) if one.kind in kinds]
        cells = [_share([bool(rules) for at, rules in rows if at == strength]) for strength in STRENGTHS]
        rules_meant = set().union(*(MEANT_FOR[kind] for kind in kinds))
        meant = [bool(rules & rules_meant) for _, rules in rows]
        errors = sum(wrong[rule] for rule in rules_meant)
        precision = _share([True] * sum(meant) + [False] * errors) if any(meant) else "no rule"
        overall = _share([bool(rules) for _, rules in rows])
        yield f"| {name} | {len(rows)} | {' | '.join(cells)} | {overall} | {_share(meant)} | {precision} |"
    spoiled = [bool(rules) for one, rules in zip(labelled, seen, strict=True) if one.kind != "fluent"]
    fluent = sum(one.kind == "fluent" for one in labelled)
    yield f"\n{len(spoiled)} spoiled, of which {_share(spoiled)} are seen; {fluent} left fluent, of which "
    yield f"{sum(wrong.values())} were hit without a reason that is right."


def by_rule(labelled: Sequence[Labelled], found: Sequence[Sequence[Anomaly]]) -> Iterator[str]:
    reasons = degenerate_texts()
    spoiled, right, wrong = Counter(), Counter(), Counter()
    for one, anomalies in zip(labelled, found, strict=True):
        for rule in {anomaly.rule for anomaly in anomalies}:
            count = spoiled if one.kind != "fluent" else right if (one.trace.name, rule) in reasons else wrong
            count[rule] += 1
    yield "| rule | spoiled texts hit | fluent texts hit, reason right | reason wrong | precision |"
    yield "|---|---|---|---|---|"
    for rule in BUILTIN_RULES:
        hits = spoiled[rule.name] + right[rule.name]
        precision = _share([True] * hits + [False] * wrong[rule.name])
        yield f"| {rule.name} | {spoiled[rule.name]} | {right[rule.name]} | {wrong[rule.name]} | {precision} |"


def hits_on_real_texts(traces: Sequence[Trace]) -> Iterator[str]:
    """Every hit on a text that nobody spoiled, in both halves, for somebody to look at."""
    reasons = degenerate_texts()
    writers = Counter(trace.writer for trace in traces)
    yield f"All {len(traces)} real texts ({', '.join(f'{count} by a {who}' for who, count in writers.items())}):\n"
    yield "| text | rule | characters | evidence | reason |"
    yield "|---|---|---|---|---|"
    for trace in traces:
        for anomaly in find_anomalies(trace.text):
            reason = reasons.get((trace.name, anomaly.rule), "NOT REVIEWED: counts as wrong")
            size = anomaly.end - anomaly.start
            yield f"| {trace.name} | {anomaly.rule} | {size} | `{_quote(trace.text, anomaly, 40)}` | {reason} |"


def costs(traces: Sequence[Trace]) -> Iterator[str]:
    """CPU time of all rules on a trace, by its length, and on texts made to be slow."""
    times = [(len(trace.text), _microseconds(trace.text)) for trace in traces[::2]]
    yield "| characters | texts | median us | p95 us |"
    yield "|---|---|---|---|"
    for low, high in [*pairwise(LENGTHS), (LENGTHS[0], LENGTHS[-1])]:
        mine = sorted(us for size, us in times if low <= size < high)
        if mine:
            p95 = mine[min(len(mine) - 1, int(0.95 * len(mine)))]
            yield f"| {low:,} to {high:,} | {len(mine)} | {statistics.median(mine):,.0f} | {p95:,.0f} |"
    worst = {piece: (_microseconds(piece * (64_000 // len(piece))), piece) for piece in WORST}
    slowest, piece = max(worst.values())
    four = _microseconds(piece * (256_000 // len(piece)))
    yield f"\nOf {len(WORST)} texts made to be slow, 64,000 characters each, the slowest ({piece!r} repeated) takes "
    yield f"{slowest / 1000:,.0f} ms; four times as long a text takes {four / slowest:.1f} times that."


def ratios(traces: Sequence[Trace], beside: Path) -> Iterator[str]:
    """Our CPU time over that of the rules of another checkout, both in this process, trace by trace."""
    ours = {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "pv_rl"}
    sys.path.insert(0, str(beside))
    theirs = importlib.import_module("pv_rl.rewards.degeneration").find_anomalies
    sys.path.pop(0)
    sys.modules.update(ours)
    yield "\n| characters | texts | our CPU time over theirs |"
    yield "|---|---|---|"
    for low, high in pairwise(LENGTHS):
        mine = [trace.text for trace in traces[::2] if low <= len(trace.text) < high]
        if mine:
            ratio = sum(map(_microseconds, mine)) / sum(_microseconds(text, theirs) for text in mine)
            yield f"| {low:,} to {high:,} | {len(mine)} | {ratio:.2f} |"


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next(
        (line.partition(": ")[2] for line in lines if line.startswith("model name")), platform.machine()
    )


def _microseconds(text: str, find: Callable[[str], object] = find_anomalies) -> float:
    best = float("inf")
    for run in range(REPEATS):
        fresh = text + " " * run  # what one call keeps of a text must not serve the next
        start = time.process_time()
        find(fresh)
        best = min(best, time.process_time() - start)
    return best * 1e6


def _share(hits: Sequence[bool]) -> str:
    return f"{sum(hits) / len(hits):.3f}" if hits else "-"


def _quote(text: str, anomaly: Anomaly, size: int) -> str:
    return repr(text[anomaly.start : min(anomaly.end, anomaly.start + size)])[1:-1].replace("|", "\\|")


if __name__ == "__main__":
    main()
