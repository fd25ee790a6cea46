"""Cost of the trace viewer: time to write `traces.html`, its size, and time until Chromium shows the first pair.

    python benchmarks/trace_viewer.py --pairs 1000 --samples 8 --length 3000

Two verifiers vote on made proofs with formulas; the browser is measured where playwright and chromium are installed.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
import time
from pathlib import Path

from pv_eval import Intervals, Pair, RunInfo, Vote, write_run
from pv_eval.report.summary import summarise
from pv_eval.report.traces import draw_traces

STEPS = (
    "Let $n_{%d} \\ge 2$ be an integer with $\\gcd(n_{%d}, %d) = 1$.",
    "By induction $$\\sum_{k=1}^{%d} \\frac{1}{k(k+%d)} \\le \\frac{%d}{4},$$ which is the claim.",
    "This step does not follow from step %d, because %d is not a divisor of %d.",
)


def text(rng: random.Random, length: int) -> str:
    """Sentences with formulas, about `length` characters."""
    made = ""
    while len(made) < length:
        made += rng.choice(STEPS) % tuple(rng.randrange(30) for _ in range(3)) + "\n\n"
    return made


def open_in_browser(page: Path) -> float:
    """Seconds until the list of pairs is there."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_page()
        start = time.perf_counter()
        tab.goto(page.as_uri())
        tab.wait_for_selector("#list a")
        return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    for name, default in (("pairs", 1000), ("samples", 8), ("length", 3000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pairs = [
            Pair(pair_id=f"p{n}", question_id=f"q{n // 5}", label=n % 2 == 0, proof=text(rng, given.length))
            for n in range(given.pairs)
        ]
        for verifier in ("first", "second"):
            votes = [
                Vote(
                    pair_id=pair.pair_id,
                    question_id=pair.question_id,
                    sample=sample,
                    verdict=rng.random() < 0.5,
                    trace=text(rng, given.length),
                )
                for pair in pairs
                for sample in range(given.samples)
            ]
            write_run(folder / verifier, pairs, votes, RunInfo(verifier=verifier, set_name="made"))
        summary = summarise([folder / "first", folder / "second"], Intervals(flips=0))
        start = time.process_time()
        page = draw_traces(summary)
        print(f"written in {time.process_time() - start:.1f} s of processor time, {len(page) / 1e6:.1f} MB")
        (folder / "traces.html").write_bytes(page)
        try:
            print(f"opened in {open_in_browser(folder / 'traces.html'):.1f} s")
        except ImportError:
            print("not opened: pip install playwright")


if __name__ == "__main__":
    main()
