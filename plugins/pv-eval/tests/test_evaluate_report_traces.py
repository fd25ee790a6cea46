"""The trace viewer: every vote is in it, text stays text, and in a browser its filters, keys and links work."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest
from evaluate_cases import made

from pv_eval import RunInfo, write_run
from pv_eval.intervals import Intervals
from pv_eval.report import traces
from pv_eval.report.summary import summarise
from pv_eval.report.traces import draw_traces
from pv_eval.report.writing import write_report
from pv_judge.pages.blocks import Column, Heading, Table
from pv_judge.pages.html import to_html

QUICK = Intervals(flips=0)
ATTACKS = (
    r"$\text{</math><script>window.hit=1</script>}$",
    r"$\href{javascript:window.hit=2}{x}$",
    "$<img src=x onerror=window.hit=3>$",
    "</script><script>window.hit=4</script>",
    "<!--<script>",
    "]]> --> {{ 7 * 7 }}",
    r"$\text{<svg onload=window.hit=5>}$",
    r"$\class{x}{y}\style{background:url(http://evil.example/)}{z}$",
    "<iframe srcdoc='<script>parent.hit=6</script>'>",
    r"$\unicode{x3c}script\unicode{x3e}$",
    "\u202egnp.exe \x1b[31m \ud800 \u2028 \0",
    "$" + "{" * 1500 + "$",
    "$" + r"\frac" * 400 + "$",
)
EVIL = "\n".join(ATTACKS)


def run(folder: Path, rows, *, trace="Reads $x^2$.", **info) -> Path:
    pairs, votes = made(*rows)
    pairs = [
        replace(one, question=f"Why {one.question_id}? {EVIL}", proof=f"Since {one.pair_id}.")
        for one in pairs
    ]
    settings = RunInfo(**({"verifier": "base", "set_name": "opc"} | info))
    write_run(folder, pairs, [replace(one, trace=f"{trace} {one.sample}") for one in votes], settings)
    return folder


def read(page: str) -> dict[str, object]:
    found = re.findall(r'<script type="application/json" id="(\w+)">(.*?)</script>', page, re.DOTALL)
    return {name: json.loads(text) for name, text in found}


ROWS = (("a", True, "q", "TF"), ("b/#?%", False, "q", "FN"), ("c", True, "r", "TT"))
OTHER = (("a", True, "q", "FF"), ("b/#?%", False, "q", "FN"), ("c", True, "r", "FT"))


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("traces")
    name = f"trained {EVIL[:60]}"
    runs = [run(folder / "1", ROWS), run(folder / "2", OTHER, verifier=name, trace=EVIL)]
    runs.append(run(folder / "3", [("a", False, "z", "TT")], set_name="</script>x"))
    write_report(runs, folder / "out", QUICK)
    return folder / "out"


def test_the_viewer_holds_all_votes_and_no_markup_of_theirs(written):
    page = (written / "traces.html").read_text()
    known = read(page)
    assert [(one["name"], len(one["pairs"])) for one in known["index"]["sets"]] == [
        ("opc", 3),
        ("</script>x", 1),
    ]
    assert known["index"]["sets"][0]["pairs"][1] == ["b/#?%", "q", "", False, ["rn", "rn"]]
    base, trained = known["p0"]["v"]
    assert base[0][:3] == [0, "r", "True"]
    assert base[1][:3] == [1, "w", "False"]
    number = base[0][3][1]
    assert base[0][3] == ["Reads ", number, ". 0"]
    source, markup = known["formulas"][number]
    assert source == "$x^2$"
    assert markup.startswith('<math display="inline"><mrow><msup><mi>x</mi>')
    shown = "".join(one for one in trained[0][3] if isinstance(one, str))
    assert "</script><script>window.hit=4</script>" in shown
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in page
    assert page.count("<script") == page.count("</script>") == len(known) + 1
    assert not re.search(r"<(img|svg|iframe|link|object)\b|<!--", page)
    assert not set(page) & {"\x1b", "\u202e", "\ud800", "\0"}
    markups = "".join(one for _, one in known["formulas"])
    assert all(tag.startswith("m") for tag in re.findall(r"</?([^\s>]*)", markups))
    assert not re.search(r"<[^>]* (on\w+|href|style|class|src)=", markups)


def test_every_case_of_the_report_links_to_its_votes(written):
    page, text = (written / "report.html").read_text(), (written / "report.md").read_text()
    links = re.findall(r'<a href="(traces\.html[^"]*)"', page)
    assert "traces.html#opc/a/base/1" in links
    assert all(re.fullmatch(r"traces\.html(#[\w.%~-]+/[\w.%~-]+/[\w.%~-]+/\d+)?", link) for link in links)
    assert sorted(re.findall(r"\]\((traces\.html[^)]*)\)", text)) == sorted(links)


def test_without_cases_no_text_is_written(tmp_path):
    _, files = write_report([run(tmp_path / "a", ROWS)], tmp_path / "out", QUICK, cases=0)
    assert "traces.html" not in {file.name for file in files}
    assert "traces.html" not in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize(
    ("limits", "note"),
    [
        ({"LONGEST": 40, "LEAST": 10}, "8 of 8 traces are cut to 40 characters"),
        ({"MOST": 400, "LEAST": 100}, "Traces beyond the first 2 are not in this page."),
        ({"MOST_PAIRS": 2}, "Not in this page: 1 pair beyond the first 2."),
        ({"MOST_FORMULAS": 1}, "Formulas beyond the first 1 different ones are shown as LaTeX."),
    ],
)
def test_a_page_is_bounded_and_says_what_it_lacks(tmp_path, monkeypatch, limits, note):
    rows = [*ROWS[:2], ("c", True, "r", "TTTT")]
    folder = run(tmp_path / "a", rows, trace="y" * 30 + "$a$ and $b$" + "z" * 59)
    for name, value in limits.items():
        monkeypatch.setattr(traces, name, value)
    page = draw_traces(summarise([folder], QUICK)).decode()
    assert f"<p>{note}" in page
    if (
        "MOST" in limits
    ):  # questions have 3 * 33 of 400 characters and proofs 28, so 2 traces of 100 have room
        known = read(page)
        assert sum(vote[3] is not None for n in range(3) for vote in known[f"p{n}"]["v"][0]) == 2
    if "LONGEST" in limits:
        assert read(page)["p0"]["v"][0][0][3] == [
            "y" * 20,
            ["[... 62 characters left out ...]"],
            "z" * 18 + " 0",
        ]


def test_short_traces_are_all_in_the_page(tmp_path, monkeypatch):
    folder = run(tmp_path / "a", ROWS)
    monkeypatch.setattr(traces, "MOST", 1000)  # one trace of LEAST characters, or many short ones
    page = draw_traces(summarise([folder], QUICK)).decode()
    assert "Traces beyond" not in page
    assert all(vote[3] is not None for n in range(3) for vote in read(page)[f"p{n}"]["v"][0])


def test_bombs_take_little_time(tmp_path):
    bombs = [
        "$" + r"\sqrt{" * 300 + "$",
        "$" + "{" * 100_000 + "$",
        r"$\def\a{\a\a}\a$",
        "$x" * 20_000,
        r"\begin{align}" * 9_000,
    ]
    folder = run(tmp_path / "a", ROWS, trace="\n\n".join(bombs))
    start = time.process_time()
    page = draw_traces(summarise([folder], QUICK)).decode()
    assert time.process_time() - start < 3
    assert len(page) < 1_000_000


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.skip("no chromium is installed")
    with api.sync_playwright() as play:
        opened = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()


def test_a_browser_filters_links_and_runs_nothing_of_the_texts(written, browser):
    page = browser.new_page(viewport={"width": 480, "height": 800})
    wrong, requests = [], []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text))
    page.on("request", lambda request: requests.append(request.url))
    page.goto((written / "traces.html").as_uri())

    def shown() -> list[str]:
        names = page.evaluate(
            "[...document.querySelectorAll('#list a')].map(one => one.firstChild.textContent)"
        )
        return [name.split(" ", 2)[2] for name in names]

    assert shown() == ["a", "b/#?%", "c", "a"]
    for filters, expected in (
        ({"set": "1"}, ["a"]),
        ({"label": "false"}, ["b/#?%", "a"]),
        ({"votes": "differ"}, ["c"]),
        ({"votes": "missing"}, ["b/#?%"]),
        ({"votes": "right"}, []),
        ({"votes": "right", "verifier": "base"}, ["c"]),
        ({"votes": "majority"}, ["a", "a"]),
        ({"votes": "wrong", "verifier": "base"}, ["a", "a"]),
        ({"order": "wrong"}, ["a", "a", "c", "b/#?%"]),
    ):
        for name in ("set", "label", "votes", "verifier", "order"):
            page.select_option(f"#{name}", filters.get(name, ""))
        assert shown() == expected, filters
    page.select_option("#order", "")
    page.fill("#search", "x^2")
    page.keyboard.press("Enter")
    assert shown() == ["a", "b/#?%", "c", "a"]
    page.fill("#search", "since C.")
    page.keyboard.press("Enter")
    assert shown() == ["c"]
    page.fill("#search", "")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")

    page.goto((written / "traces.html").as_uri() + "#opc/b%2F%23%3F%25/base/1")
    assert page.inner_text("h2") == "Wrong proof: b/#?%"
    assert "Sample 1: no verdict" in page.inner_text("main section")
    assert "✗" not in page.inner_text("main section")
    page.keyboard.press("p")
    assert page.url.endswith("#opc/b%2F%23%3F%25/base/0")
    page.keyboard.press("j")
    assert page.url.endswith("#opc/c/base/0")
    page.locator("main section a", has_text="1").first.click()
    assert page.url.endswith("#opc/c/base/1")
    assert page.locator("main section [aria-current]").first.evaluate("one => one === document.activeElement")
    assert page.locator("main math").count() > 0
    assert "</script><script>window.hit=4</script>" in page.inner_text("main")
    for address in ("#", "#%E0%A4%A", "#opc/none/x/9", "#opc/c/base/no"):
        page.evaluate("one => { location.hash = one }", address)
    page.wait_for_timeout(100)
    assert page.evaluate("window.hit") is None
    assert page.evaluate("document.documentElement.scrollWidth") <= 480
    assert wrong == []
    assert {url.split("#")[0] for url in requests} == {(written / "traces.html").as_uri()}


def test_a_browser_shows_the_tables_of_the_report_whole(written, browser):
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto((written / "report.html").as_uri())
    widths = "[...document.querySelectorAll('.wide')].map(one => one.scrollWidth - one.clientWidth)"
    assert set(page.evaluate(widths)) == {0}
    page.emulate_media(media="print", color_scheme="dark")
    page.set_viewport_size({"width": 688, "height": 1000})  # A4 without margins of 14 mm
    assert set(page.evaluate(widths)) == {0}
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert [url for url in requests if not url.startswith(("data:", "file:"))] == []


def test_a_click_sorts_a_table_by_the_values_of_a_column(tmp_path, browser):
    cells = ["0.001", "-", "< 0.001", "2.5 (1.0 to 3.0)", "1,000", "-0.3 (-9.0 to +1.0)", "$0.5"]
    table = Table.of([Column("p", str)], cells)
    (tmp_path / "page.html").write_text(to_html([Heading("a", level=1), table], sortable=True))
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    shown = "[...document.querySelectorAll('td')].map(one => one.textContent.trim().split(' (')[0])"
    largest = ["1,000", "2.5", "$0.5", "0.001", "< 0.001", "-0.3"]
    page.click("th")
    assert page.evaluate(shown) == [*largest, "-"]
    page.focus("th")
    page.keyboard.press("Enter")
    assert page.evaluate(shown) == [*reversed(largest), "-"]
