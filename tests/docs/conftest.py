"""Table of the pages whose commands were run."""

from __future__ import annotations

from collections import Counter


def pytest_terminal_summary(terminalreporter) -> None:
    rows = [
        dict(report.user_properties)["page"]
        for state in ("passed", "failed")
        for report in terminalreporter.stats.get(state, [])
        if "page" in dict(report.user_properties)
    ]
    if not rows:
        return
    terminalreporter.section("blocks of the pages")
    total, spent = Counter(), 0.0
    for page, results, (wall, processor) in sorted(rows):
        spent += processor
        count = Counter(state for state, _ in results)
        total += count
        reasons = Counter(reason for _, reasons in results for reason in reasons)
        notes = ", ".join(f"{reason} ({times})" for reason, times in reasons.items())
        terminalreporter.write_line(
            f"{page:44} {count['run']:3} run {count['not run']:3} not run {count['shown']:3} shown "
            f"{wall:6.1f} s ({processor:5.1f} of a processor)  {notes}"
        )
    terminalreporter.write_line(
        f"{len(rows)} pages: {total['run']} blocks run, {total['not run']} not run, {total['shown']} shown only; "
        f"{spent:.0f} s of a processor"
    )
