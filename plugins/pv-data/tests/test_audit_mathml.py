"""Formulas as MathML: what browsers show, and nothing that they would run."""

from __future__ import annotations

import json
import re

import pytest
from places import SHARED

from pv_data.audit.mathml import ATTRIBUTES, TAGS, formulas, to_html

TAG = re.compile(r"<(/?)([^\s>]*)((?: [a-z]+=\"[^\"<>]*\")*)>")


def shown(text: str) -> str:
    """The HTML of a text, after a check that it has no tag but those of formulas."""
    made = to_html(text)
    assert "<" not in TAG.sub("", made)
    for _, tag, attributes in TAG.findall(made):
        assert tag == "code" or TAGS.fullmatch(tag), tag
        assert all(map(ATTRIBUTES.fullmatch, re.findall(r" ([a-z]+)=", attributes))), attributes
    return made


def test_a_formula_is_mathml_and_all_else_is_text():
    inline = '<math display="inline"><mrow><mi>x</mi><mo>&lt;</mo><mn>1</mn></mrow></math>'
    assert shown("a <b> $x<1$\nc") == f"a &lt;b&gt; {inline}\nc"
    assert shown(r"\(x<1\)") == inline
    for displayed in ("$$x<1$$", r"\[x<1\]", r"\begin{equation*}x<1\end{equation*}"):
        assert shown(displayed) == inline.replace("inline", "block")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (r"\$5 and $x$", ["x"]),
        ("costs $5 and $6, so $n$ is", ["n"]),
        ("$6. Then $a$", ["a"]),
        ("$5/$6 or $n$", ["n"]),
        ("$ x $ and $y$", [" x ", "y"]),
        ("$a\n\nb$ $c$", ["c"]),
        (r"\\(a\\) \(b\)", ["b"]),
        (r"$$a$$ $b$ \[c\]", ["a", "b", "c"]),
        (r"\(never closed $a$", ["a"]),
        (r"\begin{align}a\end{gather} $b$", ["b"]),
        ("$$ $", []),
    ],
)
def test_formulas_are_found_by_their_delimiters(text, found):
    assert [inner for _, _, inner, _ in formulas(text)] == found


@pytest.mark.parametrize(
    "environment", ["align", "align*", "aligned", "gather", "alignat", "multline*", "eqnarray"]
)
def test_the_lines_of_a_display_stay_lines_and_get_no_numbers(environment):
    columns = "{2}" if environment == "alignat" else ""
    made = shown(
        rf"\[\begin{{{environment}}}{columns} a &= b \\[2mm] c &= d \tag{{7}}\end{{{environment}}}\]"
    )
    assert made.count("<mtr") == 2
    assert re.findall(r"\([0-9]\)", made) == ["(7)"]
    assert "&amp;" not in made
    assert "2mm" not in made


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script><img src=x onerror=alert(1)>",
        "</div></script><!-- ]]> <![CDATA[ <iframe srcdoc='<script>x</script>'></iframe>",
        r"$\text{</mtext></math><script>alert(1)</script>}$",
        r"$<img src=x onerror=alert(1)>$",
        r"$\href{javascript:alert(1)}{y}$ $\style{position:fixed}{x}$ $\class{a\" onclick=\"b}{x}$",
        r"$\color{white}{hidden}$ $\mathcolor{#fff}{x}$ $\colorbox{red}{x}$",
        r"$\hspace{-900em}x$ $\rule{900em}{900em}$",
        r"$\begin{array}{c\" onload=\"x}1\end{array}$",
        "$&lt;script&gt; &#x0003C;script&#x0003E; &#60;b&#62;$",
        r"$\unknown{<b>}$ $\frac$ $a_b_c$ $\left( x$ $\begin{matrix}$",
        "$" + "{" * 1500 + "$ $" + r"\frac{" * 300 + "$ $" + "^" * 900 + "$",
        r"$\newcommand{\a}{\b\b}\newcommand{\b}{\c\c}\a$ $\def\a{\a\a}\a$ $\let\x\y$",
        "$x\x00y\x1b[31m$ \u202egnorw\u202c \u2066a\u2069 \ud800",
        "$" + "x" * 5000 + "$",
    ],
)
def test_a_hostile_text_has_no_tag_of_its_own(text):
    made = shown(text)
    assert not re.search(r"[\x00-\x08\x1b\u202a-\u202e\u2066-\u2069\ud800]", made)
    assert "white" not in made.replace("white}", "")
    assert "900em" not in re.sub(r"<code>.*?</code>", "", made)


def test_the_formulas_of_real_proofs_are_converted():
    """2,591 formulas of ProcessBench (OmniMath): none left as LaTeX; of what is shown, no command unknown."""
    file = SHARED / "data" / "processbench" / "omnimath_every4th.jsonl"
    if not file.exists():
        pytest.skip(f"no {file}")
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    found = [one for row in rows for text in (row["problem"], *row["steps"]) for one in formulas(text)]
    made = [to_html(f"\\[{inner}\\]") for *_, inner, _ in found]
    assert (len(found), sum(one.startswith("<code>") for one in made)) == (2591, 0)
    assert not [one for one in made if re.search(r"<m[a-z]+>\\[A-Za-z]", one)]


def test_macros_are_not_expanded():
    """1,300 characters would give 90,000 letters, and two million characters of HTML."""
    text = "$\\newcommand{\\A}{" + "x" * 1000 + "}" + "\\A" * 90 + "$"
    assert shown(text) == f"<code>{text}</code>"


def test_a_long_proof_is_shown_whole_and_its_size_is_bounded():
    text = "so $x_1^2$ <b>\n" * 20_000
    made = shown(text)
    assert made.count("&lt;b&gt;") == 20_000
    assert made.count("<math") == 100_000 // len("$x_1^2$")
    assert made.count("<code>$x_1^2$</code>") == 20_000 - made.count("<math")
