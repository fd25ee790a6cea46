"""Tables and pages: hostile text stays text in all three renderers, wide tables lose no column, numbers are short."""

from __future__ import annotations

import base64
import hashlib
import io
import itertools
import json
import math
import re
from html.parser import HTMLParser

import places
import pytest
from jinja2 import UndefinedError
from rich.console import Console

from pv_judge.pages.blocks import (
    Beside,
    Column,
    Curve,
    Excerpt,
    Heading,
    Items,
    Link,
    Paragraph,
    Picture,
    Table,
)
from pv_judge.pages.curve import condense, marks, polylines, sparkline
from pv_judge.pages.excerpt import cut
from pv_judge.pages.figure import choose_colours
from pv_judge.pages.html import to_html
from pv_judge.pages.markdown import to_markdown
from pv_judge.pages.terminal import print_blocks, standard_output
from pv_judge.pages.text import (
    estimate,
    markdown,
    natural,
    number,
    one_line,
    percent,
    plain,
    redact,
    shorten,
    visible,
)
from pv_judge.pages.writing import write_pages

EVIL = (
    "<script>alert(1)</script> [bold red]m[/] \x1b[2J\x1b]0;owned\x07 \u202egnp.exe ```` | a*b_c $x$ "
    "</pre><img src=x onerror=y> http://x.example {{ 7 * 7 }} \ud800"
)
NAMES: Column[str] = Column("name", lambda one: one, "unit", left=True)


def everything(text: str) -> list:
    """A block of each kind, all of it `text`."""
    column = Column(text, lambda one: one, text)
    marks = {"alarm": [2, 3], "resume": [4]}
    curve = Column(
        "", lambda _: Curve([1, 2, 4], [0.0, math.nan, 1.0], text, 4, scale=(text, "high"), marks=marks)
    )
    return [
        Heading(text, level=1),
        Paragraph(text, "bad"),
        Items([text]),
        Link(text, "traces.html#a%2Fb/c/0"),
        Table.of([column, curve], [text], tones={0: "warn"}),
        Picture("figure", text),
        Excerpt(text, [(text, "text"), (text, "mark"), (text, "gap")]),
        Beside([[Paragraph(text)], [Paragraph(text)]]),
    ]


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize("refresh", [None, 2])
def test_html_shows_hostile_text_as_text_runs_and_fetches_nothing_but_itself(refresh):
    page = to_html(everything(EVIL), {"figure": b"\x89PNG"}, refresh=refresh)
    found = Tags()
    found.feed(page)
    assert not {"link", "iframe", "object", "form"} & set(found.tags)
    assert found.tags.count("img") == 1
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digests = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts]
    policy = next(value for name, value in found.attributes if value and value.startswith("default-src"))
    assert re.findall(r"'sha256-([^']*)'", policy) == digests
    assert len(scripts) == found.tags.count("script") == (1 if refresh else 0)
    assert not [name for name, _ in found.attributes if name.startswith("on")]
    links = [value for name, value in found.attributes if name in ("src", "href", "srcset")]
    assert [link[:22] for link in links if link] == ["traces.html#a%2Fb/c/0", "data:image/png;base64,"]
    assert not set("\x1b\x07\u202e\ud800") & set(page)
    assert "\\x1b[2J" in found.text
    assert "{{ 7 * 7 }}" in found.text
    assert page.count("<pre>") == page.count("</pre>") == 1
    assert {"mark", "polyline"} <= set(found.tags)
    assert "default-src 'none'" in page
    assert (
        (("content", "2") in found.attributes) is (("data-refresh", "2") in found.attributes) is bool(refresh)
    )


def test_markdown_shows_hostile_text_as_text():
    text = to_markdown(everything(EVIL))
    fence = "`````"  # longer than the four backticks inside
    before, inside, behind = (
        text.split(f"{fence}text\n")[0],
        *text.split(f"{fence}text\n")[1].split(f"\n{fence}\n"),
    )
    assert "<script>" in inside
    outside = before + behind
    assert not re.search(r"(?<!\\)[<*_`$]", outside.replace("**", ""))
    assert "://" not in outside.replace(":\\//", "")
    rows = [line for line in outside.splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {3}
    assert not set("\x1b\x07\u202e\ud800") & set(text)


def test_a_terminal_shows_hostile_text_as_text():
    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system="truecolor")
    print_blocks(everything(EVIL), console)
    text = console.file.getvalue()
    assert "[bold red]m[/]" in text
    assert all(re.fullmatch(r"\x1b\[[0-9;]*m", code) for code in re.findall(r"\x1b[^m]*m?", text))
    assert not set("\x07\u202e\ud800") & set(text)


def test_a_wide_table_continues_below_with_the_names_of_its_rows():
    numbers = [Column(f"column {n}", lambda _, n=n: f"value {n}") for n in range(9)]
    console = Console(file=io.StringIO(), width=40)
    print_blocks([Table.of([NAMES, *numbers], ["first", "second"])], console)
    text = console.file.getvalue()
    assert max(map(len, text.splitlines())) <= 40
    assert all(text.count(f"value {n}") == 2 for n in range(9))
    assert text.count("first") == text.count("name") > 1


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_a_terminal_breaks_names_and_no_interval(width):
    name = "organisation/a-verifier-with-a-long-name, temperature 0.6"
    numbers = [Column(f"number {n}", lambda _: "68.7 (65.0 to 74.4)", "accuracy, %") for n in range(5)]
    second = Column("a slice of the set", lambda _: "kind of error " * 3, left=True)
    console = Console(file=io.StringIO(), width=width)
    print_blocks([Table.of([NAMES, second, *numbers], [name], repeated=2)], console)
    text = console.file.getvalue()
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    assert "…" not in text
    assert text.count("(65.0 to 74.4)") == len(numbers)
    assert text.count("68.7 (65.0 to 74.4)") == (len(numbers) if width >= 60 else 0)
    assert all(text.count(f"number {n}") == 1 for n in range(5))


def test_output_that_is_no_terminal_is_not_cut_at_columns(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert standard_output().width == 120


def test_an_interval_is_apart_from_its_number_in_html():
    columns = [NAMES, *(Column("", lambda _: "68.7 (65.0 to 74.4)") for _ in range(5))]
    assert '68.7 <span class="interval">(65.0 to 74.4)</span></td>' in to_html(
        [Table.of(columns, ["a (b to c)"])]
    )
    assert '<table class="dense">' in to_html([Table.of(columns, [])])
    assert "<table>" in to_html([Table.of(columns[:5], [])])
    assert '<span class="interval">' not in to_html([Table.of([NAMES], ["the (a to b)x", "two (a to b c)"])])


def test_a_line_break_in_a_name_makes_no_further_row():
    console = Console(file=io.StringIO(), width=60)
    print_blocks([Table.of([NAMES], ["a\nb"]), Items(["c\n- d"])], console)
    assert [line.rstrip() for line in console.file.getvalue().splitlines()] == [
        "",
        "name",
        "unit",
        "a b",
        "- c - d",
    ]


def test_a_row_that_stands_out_is_bold_in_markdown_and_has_its_tone_in_html():
    table = Table.of([NAMES], ["a", "b"], tones={1: "bad"})
    assert to_markdown([table]).splitlines() == ["| name, unit |", "| --- |", "| a |", "| **b** |"]
    assert '<tr class="bad"><td class="name">b</td></tr>' in to_html([table])


def test_a_mark_without_colours_is_in_brackets():
    console = Console(file=io.StringIO(), width=60)
    print_blocks([Excerpt("title", [("a", "text"), ("b", "mark")])], console)
    assert "a[[b]]" in console.file.getvalue()


def test_an_excerpt_keeps_its_parts_and_counts_the_rest():
    text = "a" * 400_000 + "HERE" + "b" * 600_000
    start = 400_000
    pieces = cut(text, [(0, 10), (start - 5, start + 9), (len(text) - 10, len(text))], (start, start + 4))
    assert [kind for _, kind in pieces] == ["text", "gap", "text", "mark", "text", "gap", "text"]
    assert pieces[3] == ("HERE", "mark")
    left_out = sum(int(re.sub(r"\D", "", piece)) for piece, kind in pieces if kind == "gap")
    assert left_out + sum(len(piece) for piece, kind in pieces if kind != "gap") == len(text)
    assert cut("abcdef", [(0, 6), (0, 3)], (1, 3)) == (("a", "text"), ("bc", "mark"), ("def", "text"))
    assert cut("abcdef", [(0, 2)]) == (("ab", "text"), ("[... 4 characters left out ...]", "gap"))


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (estimate(0.7124), "0.712"),
        (estimate(0.6, 0.42, 1.87), "0.600 (0.420 to 1.870)"),
        (estimate(None), "-"),
        (estimate(math.nan, 0, 1), "-"),
        (estimate(0.5, math.nan, math.nan, percent), "50.0"),
        (shorten("checkpoints/step-100/eta-0.6", 15), "checkp...ta-0.6"),
        (shorten("short", 15), "short"),
        (visible("a\tb\r\nc\rd"), "a\tb\nc\nd"),
        (visible("\x1b[2J\x00\u202e\ud800\u200b"), "\\x1b[2J\\x00\\u202e\\ud800\\u200b"),
        (visible("café ∀ε 中"), "café ∀ε 中"),
        (one_line("a\nb password=hunter22"), "a⏎ b password=***"),
    ],
)
def test_numbers_and_text(shown, expected):
    assert shown == expected


def test_settings_in_order_have_a_scale_and_others_colours_apart():
    def light(colour):
        red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    scale = choose_colours(4, ordered=True)
    assert sorted(scale, key=light) == scale
    assert choose_colours(2) == ["#0072B2", "#D55E00"]
    apart = choose_colours(18)
    assert len(set(apart)) == 18
    # by the distance of red, green and blue: neither near one another nor near the grey of an oracle's line
    rgb = [[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in [*apart, "#888888"]]
    assert min(math.dist(one, two) for one, two in itertools.combinations(rgb, 2)) > 24


def test_a_page_of_many_sections_has_links_to_each_and_a_page_that_is_kept_up_to_date_has_none():
    names = ["a", "<b>", "a", "d"]
    blocks = [Heading("title", level=1), *map(Heading, names)]
    page = to_html(blocks)
    links = re.findall(r'<a href="#(\w+)">(.*?)</a>', page)
    assert [text for _, text in links] == ["a", "&lt;b&gt;", "a", "d"]
    assert links == re.findall(r'<h2 id="(\w+)">(.*?)</h2>', page)
    assert len({place for place, _ in links}) == 4
    for other in (to_html(blocks[:4]), to_html(blocks, refresh=5)):
        assert "<nav" not in other


def test_all_files_of_a_report_are_written_or_none(tmp_path, monkeypatch):
    blocks = [Heading("first", level=1)]
    files = write_pages(tmp_path, blocks, {"x": math.nan, "y": "\ud800"}, {"figure": b"png"})
    assert {file.name for file in files} == {"report.html", "report.md", "report.json", "figure.png"}
    assert json.loads((tmp_path / "report.json").read_text()) == {"x": None, "y": "?"}
    before = {file: file.read_bytes() for file in files}
    real = type(tmp_path).write_bytes

    def write(self, data):
        if "report.json" in self.name:
            raise OSError("disk full")
        return real(self, data)

    monkeypatch.setattr(type(tmp_path), "write_bytes", write)
    with pytest.raises(OSError, match="disk full"):
        write_pages(tmp_path, [Heading("second", level=1)], {}, {"figure": b"other"})
    assert {file: file.read_bytes() for file in files} == before


def test_a_block_must_have_its_picture():
    with pytest.raises(UndefinedError, match="figure"):
        to_html([Picture("figure", "")])


def test_no_other_module_draws_tables_or_writes_html():
    pattern = re.compile(r"rich\.table|from html import|<!DOCTYPE|Figure\(figsize")
    folders = [*places.ROOT.glob("plugins/*/src"), *places.ROOT.glob("examples/*/src"), places.ROOT / "src"]
    files = [file for folder in folders for file in folder.rglob("*.py")]
    found = {file for file in files if pattern.search(file.read_text())}
    tasks = {"mathml.py", "label_studio.py"}  # texts in a page of Label Studio
    assert {file.parent.name for file in found if file.name not in tasks} == {"pages"}


def test_numbers_in_text_are_sorted_by_value():
    labels = ["eta=10", "eta=1", "eta=0.3", "eta=0", "lr=2e-4", "lr=1e-5", "b=-1", "run-2", "run-10"]
    ordered = ["b=-1", "eta=0", "eta=0.3", "eta=1", "eta=10", "lr=1e-5", "lr=2e-4", "run-2", "run-10"]
    assert sorted(labels, key=natural) == ordered


def test_numbers_are_short_and_an_interval_has_the_decimals_of_its_mean():
    assert [number(x) for x in (0.71249, 412.3, 12345.6, 0, 0.00001234)] == [
        "0.712",
        "412",
        "12346",
        "0.000",
        "1.23e-05",
    ]
    assert (number(1.87, 0.6), number(-0.0001, 0.6)) == ("1.870", "0.000")


def test_text_from_outside_is_one_printable_line():
    assert plain("a\n\x1b[31mb\ud800\u202e  c") == "a [31mb c"
    assert plain("x" * 300) == "x" * 197 + "..."


def test_markdown_shows_text_as_it_is():
    assert markdown("a|b <i> *c* [d](e)") == r"a\|b \<i\> \*c\* \[d\](e)"
    assert markdown("http://x www.x") == r"http:\//x www\.x"
    assert markdown("# 1") == r"\# 1"
    assert markdown("balanced:0.6@prompt, -0.5") == "balanced:0.6@prompt, -0.5"


def test_a_sparkline_runs_from_the_least_to_the_greatest():
    assert sparkline(range(8), 8) == "▁▂▃▄▅▆▇█"
    assert sparkline([2, 2, 2], 8) == "▅▅▅"
    assert sparkline([0, math.nan, 1], 8) == "▁ █"
    assert sparkline([math.nan], 8) == ""
    assert sparkline([-1e308, 1e308], 8) == "▁█"


def test_what_does_not_change_is_flat_also_where_means_of_it_are_rounded():
    assert sparkline([0.6] * 180, 28) == "▅" * 28


def test_a_long_series_is_condensed_to_means_of_neighbours():
    assert condense([1, 3, math.nan, 5], 2) == [2, 5]
    assert condense([0, 1, 2, 3, 4, 5], 3) == [0.5, 2.5, 4.5]
    assert len(condense(range(1000), 48)) == 48
    assert math.isnan(condense([math.nan, math.nan, 1, 1], 2)[0])


@pytest.mark.parametrize(
    "secret",
    [
        "sk-abcdefghijklmnop1234",
        "hf_abcdefghijklmnopqrst",
        "Bearer abcdefgh1234",
        "api_key=abcdefgh12",
        "AKIA" + "A" * 16,
    ],
)
def test_what_looks_like_a_key_is_blotted_out(secret):
    shown = redact(f"said {secret} and more")
    assert "***" in shown
    assert secret.split()[-1].split("=")[-1] not in shown
    assert shown.endswith(" and more")


def test_a_curve_has_its_scale_its_marks_and_a_constant_in_the_middle():
    """Steps 0 to 10 over 220 units; an alarm at step 5 is a line at 110, a validation at step 10 a tick at 220."""
    curve = Curve(
        [0, 10], [3.0, 3.0], "3 to 3", 10, ("3", "3"), {"alarm": [5, 5.001], "validation": [10, 99]}
    )
    assert marks(curve) == [("alarm", "M110 0V26"), ("validation", "M220 22V26")]
    assert polylines(curve) == ["0.0,13.0 220.0,13.0"]
    assert sparkline([3.0, 3.0], 9) == "▅▅"
    page = to_html([Table.of([Column("", lambda one: one)], [curve])])
    assert '<path class="alarm" d="M110 0V26"/>' in page
    assert page.count("<span>3</span>") == 1
