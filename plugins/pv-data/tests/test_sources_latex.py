"""LaTeX files in the three forms that competitions use, and broken ones."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from sources_cases import problems, proofs, read, reasons

PUTNAM = r"""\documentclass{article}
\begin{document}
\begin{itemize}
\item[A1] Find all $x$ with $x^2 = 1$. % a remark
\begin{enumerate}\item[(i)] real; \item complex.\end{enumerate}
\item[A--2]
Prove that $2 + 2 = 4$.
\item[Problem B1] Show it.
\end{itemize}
\end{document}
"""
SOLVED = r"""\begin{itemize}
\item[A1] $x = \pm 1$, as $x^2 - 1 = (x-1)(x+1)$.
\item[B1] It is shown.
\end{itemize}
"""


def test_putnam_files_pair_problems_with_the_solutions_of_the_same_label(tmp_path: Path):
    (tmp_path / "2010.tex").write_text(PUTNAM)
    (tmp_path / "2010s.tex").write_text(SOLVED)
    rows = read("latex", tmp_path)
    names = {one.id: one.native_id for one in problems(rows)}
    assert list(names.values()) == ["2010 A1", "2010 A2", "2010 B1"]
    assert problems(rows)[1].text == "Prove that $2 + 2 = 4$."
    assert problems(rows)[0].text.startswith("Find all $x$ with $x^2 = 1$.")
    assert r"\item complex." in problems(rows)[0].text
    assert "remark" not in problems(rows)[0].text
    assert {names[one.problem_id]: one.text[:9] for one in proofs(rows)} == {
        "2010 A1": r"$x = \pm ",
        "2010 B1": "It is sho",
    }


def test_a_broken_or_strange_file_of_solutions_costs_the_solutions_only(tmp_path: Path):
    (tmp_path / "2010.tex").write_text(PUTNAM)
    (tmp_path / "2010s.tex").write_text(SOLVED + "$")
    (tmp_path / "2010-sol.tex").write_text(SOLVED.replace("[B1]", "[B6]"))
    rows = read("latex", tmp_path)
    assert len(problems(rows)) == 3
    assert [one.text[:9] for one in proofs(rows)] == [r"$x = \pm "]
    assert reasons(rows) == {"broken LaTeX": 1, "solution without problem": 1}


def made(path: Path) -> tuple[dict[str, list[str]], dict[str, int]]:
    """The solutions of each problem, by its text, and what is set aside."""
    rows = read("latex", path)
    texts = {one.id: one.text for one in problems(rows)}
    found: dict[str, list[str]] = {text: [] for text in texts.values()}
    for one in proofs(rows):
        assert one.known is True
        found[texts[one.problem_id]].append(one.text)
    return found, reasons(rows)


def of(tmp_path: Path, text: str) -> tuple[dict[str, list[str]], dict[str, int]]:
    (tmp_path / "a.tex").write_text(text)
    return made(tmp_path / "a.tex")


@pytest.mark.parametrize(
    "heading", [r"\section*{Solutions}", r"\textbf{Solutions to the 2010 Putnam}", "{\\bf Proofs.}\n\n"]
)
def test_labels_that_come_again_under_a_heading_of_solutions_are_solutions(tmp_path: Path, heading: str):
    (tmp_path / "a.tex").write_text(PUTNAM.replace(r"\end{document}", heading + SOLVED + r"\end{document}"))
    rows = read("latex", tmp_path / "a.tex")
    assert [one.native_id for one in problems(rows)] == ["a A1", "a A2", "a B1"]
    assert [one.text[:9] for one in proofs(rows)] == [r"$x = \pm ", "It is sho"]
    assert reasons(rows) == {}


def putnam(*texts: str) -> str:
    items = "".join(f"\\item[A{number}] {text}\n" for number, text in enumerate(texts, start=1))
    return "\\begin{itemize}\n" + items + "\\end{itemize}\n"


@pytest.mark.parametrize("head", ["", "Another list.", r"\section{Problems and solutions}", r"\bigskip"])
def test_labels_that_come_again_without_a_word_why_are_set_aside(tmp_path: Path, head: str):
    assert of(tmp_path, putnam("P1?", "P2?") + head + putnam("X1.", "X2.", "X3.")) == (
        {"P1?": [], "P2?": []},
        {"problem or solution": 3},
    )


def test_lists_of_two_years_are_the_problems_of_two_years(tmp_path: Path):
    text = r"\section{2009}" + putnam("P?", "Q?") + r"\section{2010}" + putnam("R?", "S?")
    assert of(tmp_path, text) == ({"P?": [], "Q?": [], "R?": [], "S?": []}, {})
    assert [one.native_id for one in problems(read("latex", tmp_path))] == [
        *("a 2009 A1", "a 2009 A2", "a 2010 A1", "a 2010 A2"),
    ]
    both = text + r"\section{Solutions}" + putnam("p", "q")
    assert of(tmp_path, both) == ({"P?": [], "Q?": [], "R?": [], "S?": []}, {"unclear solution": 2})
    (tmp_path / "a-sol.tex").write_text(putnam("p", "q"))
    (tmp_path / "a.tex").write_text(text)
    assert made(tmp_path) == ({"P?": [], "Q?": [], "R?": [], "S?": []}, {"unclear solution": 2})


def test_solutions_of_two_years_are_those_of_the_problems_before_them(tmp_path: Path):
    years = r"\section{2009}" + putnam("P?", "Q?") + r"\section{2010}" + putnam("R?", "S?")
    after = r"\section{Solutions, 2010}" + putnam("r", "s") + r"\section{Solutions, 2009}" + putnam("p", "q")
    expected = {"P?": ["p"], "Q?": ["q"], "R?": ["r"], "S?": ["s"]}
    assert of(tmp_path, years + after) == ({one: [] for one in expected}, {"unclear solution": 4})
    each = "".join(
        rf"\section{{{year}}}\subsection{{Problems}}{given}\subsection{{Solutions}}{solved}"
        for year, given, solved in (
            ("2009", putnam("P?", "Q?"), putnam("p", "q")),
            ("2010", putnam("R?", "S?"), putnam("r", "s")),
        )
    )
    assert of(tmp_path, each) == (expected, {})
    wrong = r"\section{2009}" + putnam("P?") + r"\section{2010 solutions}" + putnam("r")
    assert of(tmp_path, wrong) == ({"P?": []}, {"unclear solution": 1})


@pytest.mark.parametrize(
    "heading",
    [
        *("Answers", "Answer key", "Common wrong solutions", "Solution sketches", "Solutions of last year"),
        *("Hints for solutions", "Solutions to Contest A", "Proof ideas", r"Sketches}\subsection{Solutions"),
        r"Solutions}\subsection{Sketches",
    ],
)
def test_a_heading_that_says_more_than_solutions_makes_none(tmp_path: Path, heading: str):
    text = r"\section{Contest B}" + putnam("P?", "Q?") + rf"\section{{{heading}}}" + putnam("x", "y")
    assert of(tmp_path, text) == ({"P?": [], "Q?": []}, {"problem or solution": 2})


@pytest.mark.parametrize("one", ["Contest {}", "The {}th Putnam", "Putnam {}", "{}"])
def test_solutions_of_a_contest_with_another_number_are_nobodys(tmp_path: Path, one: str):
    given = rf"\section{{{one.format(72)}}}" + putnam("P?")
    for number, name in ((71, "Solutions to contest {}"), (71, "Solutions to the {}st USAMO")):
        text = given + rf"\section{{{name.format(number)}}}" + putnam("x")
        assert of(tmp_path, text) == ({"P?": []}, {"unclear solution": 1})
    right = given + r"\section{Solutions to contest 72}" + putnam("p")
    assert of(tmp_path, right) == ({"P?": ["p"]}, {})


@pytest.mark.parametrize(
    "text", ["Justify all answers.", "Complete proofs are required.", "Solutions are due on Friday."]
)
def test_a_sentence_over_a_list_is_no_heading(tmp_path: Path, text: str):
    assert of(tmp_path, text + putnam("P?", "Q?")) == ({"P?": [], "Q?": []}, {})
    two = r"\section{Mock Putnam I}" + putnam("P?") + r"\section{Mock II (proof based)}" + text + putnam("Q?")
    assert of(tmp_path, two) == ({"P?": [], "Q?": []}, {})
    behind = putnam("P?", "Q?") + r"\section{Solutions}" + putnam("p") + text
    behind += r"\begin{itemize}\item[A2] x \end{itemize}"
    assert of(tmp_path, behind) == ({"P?": ["p"], "Q?": []}, {"problem or solution": 1})


def test_short_text_among_solutions_may_end_them(tmp_path: Path):
    text = r"\section{Problems}" + putnam("P?", "Q?") + r"\section{Solutions}"
    second = r"\begin{itemize}\item[A2] x \end{itemize}"
    assert of(tmp_path, text + putnam("p") + r"\textbf{Practice}" + second) == (
        {"P?": ["p"], "Q?": []},
        {"problem or solution": 1},
    )
    assert of(tmp_path, text + putnam("p") + r"The second session." + second)[0] == {"P?": ["p"], "Q?": ["x"]}
    assert of(tmp_path, text + r"\textbf{Wrong ones}" + second) == (
        {"P?": [], "Q?": []},
        {"problem or solution": 1},
    )


def test_two_solutions_under_one_label_follow_each_other(tmp_path: Path):
    head = putnam("P?", "Q?") + r"\section{Solutions}"
    near = r"\begin{itemize}\item[A1] p1 \item[A1] Second solution. p2 \item[A2] q \end{itemize}"
    assert of(tmp_path, head + near) == ({"P?": ["p1", "Second solution. p2"], "Q?": ["q"]}, {})
    pieces = near.replace("Second solution. ", "")
    assert of(tmp_path, head + pieces) == ({"P?": [], "Q?": ["q"]}, {"unclear solution": 2})
    assert of(tmp_path, head + putnam("p", "q") + putnam("x")) == (
        {"P?": [], "Q?": []},
        {"unclear solution": 3},
    )


def test_the_innermost_heading_that_speaks_counts(tmp_path: Path):
    text = putnam("P?") + r"\subsection{Proofs}" + putnam("p") + r"\textbf{Problems of 2010}" + putnam("Q?")
    assert of(tmp_path, text + r"\textbf{Solutions}" + putnam("q")) == ({"P?": ["p"], "Q?": ["q"]}, {})
    lost = (
        putnam("P?")
        + r"\section{Problems, solutions below}"
        + putnam("Q?")
        + r"\section{Solutions}"
        + putnam("q")
    )
    assert of(tmp_path, lost) == ({"P?": []}, {"problem or solution": 1, "unclear solution": 1})
    above = (
        r"\section{2009}"
        + putnam("P?")
        + r"\section{2010}"
        + putnam("Q?")
        + r"\textbf{Solutions}"
        + putnam("p")
    )
    assert of(tmp_path, above) == ({"P?": [], "Q?": []}, {"unclear solution": 1})


TITLES = {
    "P": [
        "",
        "",
        "{}",
        "Problems",
        "Problems {}",
        "The {} Putnam",
        "Problems and solutions {}",
        "Problems, solutions below",
    ],
    "S": ["", "Solutions", "Solutions {}", "{}: Solutions", "Solutions to the problems", "Proofs"],
}
HEADINGS = [r"\section{{{}}}", r"\subsection{{{}}}", r"\textbf{{{}}}", r"\begin{{center}}{}\end{{center}}"]
ORDERS = [
    *(
        "P09 P10 S09 S10",
        "P09 S09 P10 S10",
        "P09 P10 S09",
        "P09 P10 S10",
        "P09 P10",
        "P09 S09",
        "P10 S10 P09",
    ),
    "S09 P09 P10 S10",
]


def test_no_lists_of_two_years_give_a_problem_the_solution_of_another(tmp_path: Path):
    """Each item says in its text what it is and of which year."""
    random_, right = random.Random(3), 0
    for _ in range(400):
        text = ""
        for one in random_.choice(ORDERS).split():
            title = random_.choice(TITLES[one[0]]).format("20" + one[1:])
            plain = random_.choice(
                ["", r"\bigskip", "A longer text that has many words and says nothing of what it is."]
            )
            text += random_.choice(HEADINGS).format(title) if title else plain
            labels = random_.sample(["A1", "A2", "A3"], random_.choice([2, 3, 3]))
            items = "".join(f"\\item[{label}] {one} {label}\n" for label in sorted(labels))
            text += "\\begin{itemize}\n" + items + "\\end{itemize}\n"
        for problem, solutions in of(tmp_path, text)[0].items():
            assert set(solutions) <= {problem.replace("P", "S")}, text
            right += len(solutions)
    assert right > 100


def test_a_list_within_a_solution_is_no_list_of_problems(tmp_path: Path):
    text = (
        r"\begin{problem} P? \end{problem}\begin{solution} By cases. "
        + putnam("x", "y")
        + putnam("z")
        + r"\end{solution}"
    )
    found, aside = of(tmp_path, text)
    assert (list(found), aside) == (["P?"], {})


def env(kind: str, text: str, title: str = "") -> str:
    return f"\\begin{{{kind}}}{title and f'[{title}]'} {text} \\end{{{kind}}}\n"


def test_solutions_behind_several_problems_are_nobodys(tmp_path: Path):
    text = env("problem", "A?") + env("problem", "B?") + env("solution", "a") + env("solution", "b")
    after = env("problem", "C?") + env("solution", "c")
    assert of(tmp_path, text + after) == ({"A?": [], "B?": [], "C?": ["c"]}, {"unclear solution": 2})


@pytest.mark.parametrize("heading", ["", r"\section{Solutions}", r"\textbf{Solutions}"])
def test_headings_do_not_say_whose_the_solutions_at_the_end_are(tmp_path: Path, heading: str):
    given = r"\section{A}" + env("problem", "A?") + r"\section{B}" + env("problem", "B?") + heading
    for solved in (env("solution", "a"), env("solution", "a") + env("solution", "b")):
        assert of(tmp_path, given + solved) == (
            {"A?": [], "B?": []},
            {"unclear solution": solved.count("begin")},
        )


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (("A1", "A1"), ("A2", "A--2")),
        (("Even", "Solution of Even"), ("Odd", "Proof of \\textit{odd}")),
        (("3", "Solution to Problem 3"), ("4", "4")),
        (("", r"Proof of Theorem \ref{one}"), ("", r"\cref{two}")),
    ],
)
def test_solutions_that_name_their_problem_are_its_own(
    tmp_path: Path, one: tuple[str, str], two: tuple[str, str]
):
    given = env("problem", r"\label{one} A?", one[0]) + env("problem", r"\label{two} B?", two[0])
    found, aside = of(
        tmp_path, given + r"\section{Solutions}" + env("solution", "b", two[1]) + env("solution", "a", one[1])
    )
    assert (list(found.values()), aside) == ([["a"], ["b"]], {})


@pytest.mark.parametrize(
    "title", ["A2", "Proof of Lemma 1", r"Proof of \ref{lem}", "Solution to Problem 7", "2"]
)
def test_a_solution_that_names_another_is_not_that_of_the_problem_before(tmp_path: Path, title: str):
    text = env("problem", "P?", "A1") + env("solution", "x", title) + env("solution", "y")
    assert of(tmp_path, text) == ({"P?": []}, {"unclear solution": 2})


@pytest.mark.parametrize(
    "title",
    [
        *(
            "(1)",
            "(a)",
            r"$\Rightarrow$",
            r"($\Rightarrow$)",
            "Proof of (1)",
            r"Proof of $\star$",
            "$n$ even",
            "Part (a)",
        ),
        *(
            "Sketch",
            "Hint",
            "Incorrect",
            "A wrong attempt",
            "Partial",
            "Outline",
            "Idea",
            "Case 1",
            "First step",
        ),
        *(
            "Claim",
            "Remark",
            "Uniqueness",
            "Proof of Theorem 1",
            "Sol. of 2",
            "No. 2",
            r"\ref{one} and \ref{two}",
        ),
        *(r"Proof of \ref{a}", r"(a) of \ref{one}", r"Proof of \eqref{eq}", "Bogus", "Other"),
    ],
)
def test_a_part_or_a_sketch_is_no_solution_of_the_problem(tmp_path: Path, title: str):
    statement = r"\label{one} P? \begin{enumerate}\item\label{a} $A$ \end{enumerate}\[ x \label{eq} \]"
    other = env("problem", "O?", "Other") + env("solution", "o")
    text = other + env("problem", statement, "1") + env("solution", "x", title)
    found, aside = of(tmp_path, text)
    assert (list(found.values()), aside) == ([["o"], []], {"unclear solution": 1})
    found, aside = of(tmp_path, other + env("problem", statement + env("solution", "x", title), "1"))
    assert (list(found.values()), aside) == ([["o"], []], {"unclear solution": 1})


@pytest.mark.parametrize(
    "title",
    [
        *(
            r"\stretch{1}",
            r"3\baselineskip",
            "2in",
            "Due to Gauss",
            "Proof by algebra",
            "Solution 2",
            "1",
        ),
        *(
            "Second solution",
            "Problem 1",
            "Second solution to Problem 1",
            r"Proof of (\ref{one})",
            r"\textbf{1}",
        ),
    ],
)
def test_a_title_that_names_no_other_problem_stands_behind_its_own(tmp_path: Path, title: str):
    given = env("problem", r"\label{one} P?", "1") + env("solution", "p", title) + env("problem", "Q?", "3")
    found, aside = of(tmp_path, given + env("solution", "q", r"\stretch{1}"))
    assert (list(found.values()), aside) == ([["p"], ["q"]], {})


def test_numbers_of_alternatives_are_no_names_of_problems(tmp_path: Path):
    each = [env("problem", f"P{one}?", one) + env("solution", f"{one}a", "1") for one in "123"]
    text = "".join(one + env("solution", "b", "2") + env("solution", "c", "3") for one in each)
    found, _ = of(tmp_path, text)
    assert (found["P1?"], "1a" in found["P2?"] + found["P3?"]) == (["1a"], False)
    days = r"\section{Day 1}" + env("problem", "P?", "1") + r"\section{Day 2}" + env("problem", "Q?")
    assert of(tmp_path, days + env("solution", "q", "1"))[0] == {"P?": [], "Q?": []}


def test_the_whole_title_is_a_name_before_its_end(tmp_path: Path):
    given = env("problem", "P?", "Sum of two squares") + env("problem", "Q?", "Two squares")
    solved = env("solution", "p", "Sum of two squares") + env("solution", "q", "Proof of two squares")
    assert of(tmp_path, given + solved) == ({"P?": ["p"], "Q?": ["q"]}, {})


def test_a_heading_that_says_solution_only_parts_nothing(tmp_path: Path):
    text = r"\section{Problem 1}" + env("problem", "P?") + r"\subsection{Solution}" + env("solution", "p")
    text += r"\section{Problem 2}" + env("problem", "Q?") + r"\subsection*{Proof}" + env("proof", "q")
    assert of(tmp_path, text) == ({"P?": ["p"], "Q?": ["q"]}, {})
    assert of(tmp_path, env("problem", "P?") + r"\section{Lemma}" + env("proof", "x")) == (
        {"P?": []},
        {"unclear solution": 1},
    )


@pytest.mark.parametrize(
    "formula",
    [r"\[ \alpha < \beta \]", r"$\alpha < \beta$", env("equation", r"\alpha"), r"\textbf{Proof} $$+$$"],
)
def test_a_formula_before_a_proof_may_be_what_it_proves(tmp_path: Path, formula: str):
    text = env("problem", "P?") + formula + env("proof", "x")
    assert of(tmp_path, text) == ({"P?": []}, {"unclear solution": 1})


def test_a_label_of_another_file_is_a_name_of_the_same_statement_only(tmp_path: Path):
    (tmp_path / "a.tex").write_text(env("problem", r"P? \label{eq:1}"))
    (tmp_path / "a-sol.tex").write_text(env("problem", r"Q? \label{eq:1}") + env("solution", "q"))
    assert list(made(tmp_path)[0].values()) == [[]]
    (tmp_path / "a-sol.tex").write_text(env("problem", r"P? \label{eq:1}") + env("solution", "p"))
    assert list(made(tmp_path)[0].values()) == [["p"]]


def test_a_name_that_two_problems_have_names_neither(tmp_path: Path):
    text = env("problem", "P?", "A1") + env("solution", "p") + env("problem", "Q?", "A1") + r"\section{More}"
    assert of(tmp_path, text + env("solution", "x", "A1")) == (
        {"P?": ["p"], "Q?": []},
        {"unclear solution": 1},
    )


@pytest.mark.parametrize(
    "between",
    [
        r"We argue by induction. \begin{lemma} $L$ holds. \end{lemma}",
        r"\begin{lemma} $L$ holds. \end{lemma}",
        r"\begin{clm}\end{clm}",
        r"\textbf{Lemma.} $L$ holds.",
        r"\begin{center} Claim 1 \end{center}",
        r"$$L$$",
    ],
)
def test_the_proof_of_a_lemma_is_not_that_of_the_problem(tmp_path: Path, between: str):
    text = env("problem", "P?") + between + env("proof", "of the lemma")
    assert of(tmp_path, text + "So it is done.") == ({"P?": []}, {"unclear solution": 1})
    assert of(
        tmp_path, env("problem", "P?") + env("proof", "p") + between + env("proof", "of the lemma")
    ) == (
        {"P?": ["p"]},
        {"unclear solution": 1},
    )
    inside = env("problem", "P? " + between + env("proof", "of the lemma") + env("proof", "p"))
    if "begin{lemma}" in between or "clm" in between:
        found, aside = of(tmp_path, inside)
        assert (list(found.values()), aside) == ([[]], {"unclear solution": 2})


def test_a_lemma_within_the_solution_belongs_to_it(tmp_path: Path):
    solution = "First " + env("lemma", "L.") + env("proof", "l") + "so p."
    assert list(of(tmp_path, env("problem", "P?") + env("solution", solution))[0].values()) == [
        [solution.strip()]
    ]


@pytest.mark.parametrize(
    "between",
    [
        "% only a remark",
        r"\bigskip\noindent\vspace{2cm}\label{p1}",
        r"\textbf{Solution.}",
        r"\emph{First solution:}",
        env("hint", "Use induction."),
        env("comment", "Lemma. It holds.") + r"\begin{center}\includegraphics{a.png}\end{center}",
    ],
)
def test_what_says_nothing_may_stand_before_a_solution(tmp_path: Path, between: str):
    text = (
        env("problem", "P?")
        + between
        + "\n"
        + env("solution", "p")
        + r"\textbf{Solution 2}"
        + env("solution", "q")
    )
    assert of(tmp_path, text) == ({"P?": ["p", "q"]}, {})


def test_solutions_of_the_parts_of_a_problem_are_not_solutions_of_it(tmp_path: Path):
    parts = env("problem", "(a) Even? " + env("solution", "a") + "(b) Odd? " + env("solution", "b"))
    found, aside = of(tmp_path, parts)
    assert (list(found.values()), aside) == ([[]], {"unclear solution": 2})
    deep = env("problem", "Both? " + env("enumerate", r"\item Even? " + env("solution", "a")))
    assert of(tmp_path, deep) == ({}, {"solution in problem": 1})


def test_a_problem_with_its_solution_in_it_takes_none_behind_it(tmp_path: Path):
    text = env("problem", "A?") + env("problem", "B? " + env("solution", "b")) + env("solution", "a")
    assert of(tmp_path, text) == ({"A?": [], "B?": ["b"]}, {"unclear solution": 1})


def test_two_boxes_of_a_kind_in_a_section_are_two_problems(tmp_path: Path):
    text = r"\section{Algebra}" + env("mdframed", "P?") + "Solved." + env("mdframed", "Q?") + "Solved, too."
    assert of(tmp_path, text) == ({"P?": []}, {"unclear solution": 1})
    remark = r"\section{One}" + env("mdframed", "Remember.") + env("problem", "P?") + env("solution", "p")
    assert of(tmp_path, remark) == ({"P?": ["p"]}, {})


def test_a_box_has_its_solution_in_lower_sections_too(tmp_path: Path):
    rest = r"First \subsection{Lemma} It holds. \subsubsection{Proof} So. \subsection{Solution} Done."
    text = r"\section{One}" + env("mdframed", "P?") + rest + r"\section{Two}" + env("mdframed", "Q?") + "q"
    assert of(tmp_path, text) == ({"P?": [rest], "Q?": ["q"]}, {})
    only = r"\section{One}" + env("mdframed", "P?") + r"\subsection{Solution} p" + r"\part{More} Text."
    assert of(tmp_path, only) == ({"P?": [r"\subsection{Solution} p"]}, {})


@pytest.mark.parametrize(
    ("lower", "more"),
    [
        (r"\subsection{Two}" + env("mdframed", "Q?") + "q", {"Q?": ["q"]}),
        (r"\subsection{Two}" + env("problem", "Q?") + env("solution", "q"), {"Q?": ["q"]}),
        (r"\subsection{Lemma} L. \subsection{Two}" + env("mdframed", "Q?") + "q", {"Q?": ["q"]}),
        (r"\subsection{Problem 2} Is it so? \subsection{Solution} It is.", {}),
    ],
)
def test_a_box_over_sections_with_problems_of_their_own_has_no_solution(
    tmp_path: Path, lower: str, more: dict[str, list[str]]
):
    text = r"\section{One}" + env("mdframed", "P?") + "A remark." + lower
    assert of(tmp_path, text) == ({"P?": [], **more}, {"unclear solution": 1})


def test_the_parts_of_exam_cls_are_no_headings_without_a_title(tmp_path: Path):
    parts = env("problem", "P?") + env("solution", "p") + env("parts", r"\part One. \part Two.")
    assert of(tmp_path, parts + r"\part{Two}" + env("problem", "Q?")) == ({"P?": ["p"], "Q?": []}, {})


@pytest.mark.parametrize(
    "rest", [r"\newpage\vspace{1cm}", r"\label{x}\clearpage", r"\subsection{Solution}", env("figure", "A")]
)
def test_what_has_no_words_is_no_solution_of_a_box(tmp_path: Path, rest: str):
    assert of(tmp_path, r"\section{One}" + env("mdframed", "P?") + rest) == ({"P?": []}, {})


def test_a_file_of_solutions_may_say_the_problems_again(tmp_path: Path):
    box = r"\section{USAMO 1}" + env("mdframed", "P?")
    (tmp_path / "a.tex").write_text(box)
    (tmp_path / "a-solutions.tex").write_text(
        box + "Solved." + r"\section{USAMO 2}" + env("mdframed", "Q?") + "So."
    )
    assert made(tmp_path) == ({"P?": ["Solved."]}, {"solution without problem": 1})
    (tmp_path / "a.tex").write_text(env("problem", "P?", "A1") + env("problem", "Q?"))
    (tmp_path / "a-solutions.tex").write_text(
        env("problem", "P?", "A1") + env("solution", "p") + env("problem", "Q?") + env("solution", "q")
    )
    assert made(tmp_path) == ({"P?": ["p"], "Q?": []}, {"solution without problem": 1})


def test_no_document_of_many_gives_a_problem_the_solution_of_another(tmp_path: Path):
    """Each solution says in its text whose it is, and the proof of a lemma that it is nobody's."""
    random_, right, loose = random.Random(5), 0, 0
    for case in range(250):
        blocks, number = list[str](), 0
        for _ in range(random_.randint(1, 4)):
            several = random_.randint(1, 3)
            own = [f"{number + one}" for one in range(several)]
            number += several
            named = random_.random() < 0.3
            given = [env("problem", f"Is P{one} so?", f"N{one}" if named else "") for one in own]
            solved = [
                "".join(
                    env("solution", f"S{one}.", f"N{one}" if named else "")
                    for _ in range(random_.randint(0, 2))
                )
                for one in own
            ]
            lemma = random_.choice(["", "By a lemma.", env("lemma", "L.")])
            lemma += env("proof", "Of a lemma.") if lemma else ""
            form = random_.randrange(5)
            if form == 0:
                blocks += [
                    one + random_.choice(["", lemma])
                    for pair in zip(given, solved, strict=True)
                    for one in pair
                ]
            elif form == 1:
                blocks += [
                    *given,
                    random_.choice(["", r"\section{Solutions}", r"\textbf{Solutions}"]),
                    *solved,
                ]
            elif form == 2:
                blocks += [one + lemma for one in given]
            elif form == 3:
                texts = [(one, f"Is P{one} so?") for one in own]
                blocks += [env("problem", text + env("solution", f"S{one}.") + lemma) for one, text in texts]
            else:
                blocks += [
                    f"\\section{{Problem {one}}}{problem}" for one, problem in zip(own, given, strict=True)
                ]
                blocks += random_.choice([solved, [r"\section{Answers}", *solved]])
            blocks += [random_.choice(["", "", r"\section{More}", "And more."])]
        found, aside = of(tmp_path, "".join(blocks))
        for problem, solutions in found.items():
            mine = f"S{problem.partition('P')[2].partition(' ')[0]}."
            assert set(solutions) <= {mine}, (case, "".join(blocks))
            right += len(solutions)
        loose += aside.get("unclear solution", 0) + aside.get("solution without problem", 0)
    assert right > 150
    assert loose > 250


def test_a_plural_is_no_file_of_solutions(tmp_path: Path):
    (tmp_path / "number.tex").write_text(putnam("P?"))
    (tmp_path / "numbers.tex").write_text(putnam("Q?"))
    assert made(tmp_path) == ({"P?": [], "Q?": []}, {})


def test_environments_pair_each_problem_with_what_follows(tmp_path: Path):
    (tmp_path / "a.tex").write_text(
        r"""\section{One}
\begin{problem}[3 points] First? \end{problem}
\begin{solution} 1a \end{solution} \begin{proof}[Second proof] 1b \end{proof}
\begin{problem} Second? \end{problem}
\begin{center}\begin{problem} Third? \begin{solution} 3a \end{solution} \end{problem}\end{center}
"""
    )
    rows = read("latex", tmp_path / "a.tex")
    texts = {one.id: one.text for one in problems(rows)}
    assert list(texts.values()) == ["First?", "Second?", "Third?"]
    assert [(texts[one.problem_id], one.text) for one in proofs(rows)] == [
        ("First?", "1a"),
        ("First?", "1b"),
        ("Third?", "3a"),
    ]


def test_a_box_under_a_heading_is_the_problem_and_the_rest_of_the_section_its_solution(tmp_path: Path):
    (tmp_path / "a.tex").write_text(
        r"""\subsection{USAMO 2021/1}
\begin{mdframed}[style=box,frametitle={Problem statement}]
Rectangles are built.
\end{mdframed}
We prove it. \begin{mdframed} A claim. \end{mdframed} Done.
\subsection{USAMO 2021/2}
\begin{mdframed} Unsolved. \end{mdframed}
"""
    )
    rows = read("latex", tmp_path / "a.tex")
    assert [one.text for one in problems(rows)] == ["Rectangles are built.", "Unsolved."]
    assert problems(rows)[0].native_id == "a USAMO 2021/1"
    (proof,) = proofs(rows)
    assert proof.text.startswith("We prove it.")
    assert proof.text.endswith("Done.")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (PUTNAM.replace("= 4$", "= 4"), "broken LaTeX"),
        (PUTNAM.replace(r"\end{itemize}", ""), "broken LaTeX"),
        (PUTNAM.replace("x^2", "{x^2"), "broken LaTeX"),
        ("{" * 30_000, "broken LaTeX"),
        (r"\begin{a}" * 5_000, "broken LaTeX"),
        (r"\begin{solution} Of what? \end{solution}", "solution without problem"),
        ("Just text.", "no problem"),
        ("", "no problem"),
        (r"\begin{problem}  \end{problem}", "empty: problem"),
        (r"\begin{problem} a" + "\0" + r"\end{problem}", "NUL character: file"),
        ("x" * 1_000_001, "giant: file"),
    ],
)
def test_a_broken_file_is_set_aside_and_the_others_are_read(tmp_path: Path, text: str, reason: str):
    (tmp_path / "a.tex").write_text(text)
    (tmp_path / "b.tex").write_text(SOLVED)
    rows = read("latex", tmp_path)
    assert reasons(rows) == {reason: 1}
    assert len(problems(rows)) == 2


def test_a_file_in_another_encoding_is_set_aside(tmp_path: Path):
    (tmp_path / "a.tex").write_bytes(PUTNAM.replace("Show", "Zeigt für").encode("latin-1"))
    assert reasons(read("latex", tmp_path / "a.tex")) == {"not UTF-8": 1}
