"""LaTeX files in the three forms that competitions use, and broken ones."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

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


def test_labels_that_come_twice_in_one_file_are_problem_and_solution(tmp_path: Path):
    (tmp_path / "a.tex").write_text(PUTNAM.replace(r"\end{document}", SOLVED + r"\end{document}"))
    rows = read("latex", tmp_path / "a.tex")
    assert len(problems(rows)) == 3
    assert len(proofs(rows)) == 2


def test_environments_pair_each_problem_with_what_follows(tmp_path: Path):
    (tmp_path / "a.tex").write_text(
        r"""\section{One}
\begin{problem}[3 points] First? \end{problem}
\begin{solution} 1a \end{solution} \begin{proof} 1b \end{proof}
\begin{problem} Second? \end{problem}
\begin{center}\begin{problem} Third? \begin{solution} 3 \end{solution} \end{problem}\end{center}
"""
    )
    rows = read("latex", tmp_path / "a.tex")
    texts = {one.id: one.text for one in problems(rows)}
    assert list(texts.values()) == ["First?", "Second?", "Third?"]
    assert [(texts[one.problem_id], one.text) for one in proofs(rows)] == [
        ("First?", "1a"),
        ("First?", "1b"),
        ("Third?", "3"),
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
