"""LaTeX solutions that are not right and full, or may be another problem's: they become no reference."""

from __future__ import annotations

from pathlib import Path

import places
import pytest
from sources_cases import problems, proofs, read, reasons

CASES = places.SHARED / "cases" / "latex"
TEXT = "Write $2a+1$ and $2b+1$; the sum is $2(a+b+1)$, which is even."
PROBLEM = r"\begin{problem}[1]\label{a} Show that the sum of two odd integers is even. \end{problem}"
OTHER = r"\begin{problem}[2]\label{b} Show that the sum of two even integers is even. \end{problem}"


def env(name: str, text: str = TEXT) -> str:
    return rf"\begin{{{name}}}{text}\end{{{name}}}"


def told(
    tmp_path: Path, text: str, name: str = "a.tex", **options: object
) -> tuple[list[str], dict[str, int]]:
    """The references of a file, and what is set aside."""
    (tmp_path / name).write_text(text)
    rows = read("latex", tmp_path / name, **options)
    return [one.text for one in proofs(rows)], reasons(rows)


UNCLEAR = {"unclear solution": 1}


@pytest.mark.skipif(not CASES.is_dir(), reason="the inputs that went wrong are not beside the repository")
@pytest.mark.parametrize(
    ("name", "aside"),
    [
        ("brace_sketch", UNCLEAR),
        ("commented_iffalse", {}),
        ("proves_other", UNCLEAR),
        ("textbf_names_other", UNCLEAR),
        ("omitted", UNCLEAR),
    ],
)
def test_a_file_that_went_wrong_gives_a_problem_without_a_reference(name: str, aside: dict[str, int]):
    rows = read("latex", CASES / f"{name}.tex")
    assert (len(problems(rows)), proofs(rows), reasons(rows)) == (1, [], aside)


OFF = [
    r"\iffalse {} \fi",
    r"\iffalse \ifx\a\b x \else y \fi {} \fi",
    r"\iftrue kept \else {} \fi",
    r"\if0 {} \fi",
    r"\if01 {} \fi",
    r"\if11 \else {} \fi",
    r"\begin{{comment}} {} \end{{comment}}",
    r"\excludecomment{{solution}} {}",
    r"\newenvironment{{solution}}{{\comment}}{{\endcomment}} {}",
    r"\excludeversion{{solution}} {}",
    r"\let\solution\comment\let\endsolution\endcomment {}",
    r"\renewenvironment{{solution}}[1][]{{\setbox0\vbox\bgroup}}{{\egroup}} {}",
    r"\iffalse % \fi" + "\n {} \\fi",
    r"\endinput {}",
    "% {}\n",
    r"\begin{{verbatim}} {} \end{{verbatim}}",
]


@pytest.mark.parametrize("off", OFF)
def test_text_that_is_switched_off_is_not_read(tmp_path: Path, off: str):
    between = off.format(env("solution"))
    if "kept" in off:
        between = between.replace("kept", "")
    assert told(tmp_path, PROBLEM + between)[0] == []
    document = rf"\excludecomment{{old}}\begin{{document}}{PROBLEM}{{}}\end{{document}}".replace(
        "{}", between
    )
    assert told(tmp_path, document)[0] == []


def test_only_what_is_between_begin_and_end_of_the_document_is_read(tmp_path: Path):
    whole = rf"{OTHER}{env('solution', 'x')}\begin{{document}}{PROBLEM}\end{{document}}{env('solution')}"
    assert told(tmp_path, whole) == ([], {})
    live = r"% \begin{document} \end{document}" + "\n" + rf"\begin{{document}}{PROBLEM}{env('solution')}"
    assert told(tmp_path, live + r"\end{document}") == ([TEXT], {})
    assert told(tmp_path, live)[1] == {"broken LaTeX": 1}


@pytest.mark.parametrize(
    ("switch", "references"),
    [
        (r"\ifdraft {} \fi", []),
        (r"\newif\ifold \ifold {} \else x \fi", []),
        (r"\ifnum\x=1 {} \fi", []),
        (r"\ifsolutions {} \fi", [TEXT]),
        (r"\ifsolutions x \else {} \fi", []),
        (r"\ifshowanswers {} \fi", [TEXT]),
        *(
            (rf"\if{name} {{}} \fi", [])
            for name in ("wrongsolution", "studentsols", "hideproofs", "proofreading")
        ),
        (r"\iff {}", [TEXT]),
        (r"\iftrue {} \fi", [TEXT]),
        (r"\hide{{{}}}", []),
        (r"\iftoggle{{sol}}{{{}}}{{}}", []),
        (r"\ifbool{{sol}}{{}}{{{}}}", []),
        (r"{{\small {}}}", [TEXT]),
    ],
)
def test_what_a_condition_may_switch_off_is_doubted(tmp_path: Path, switch: str, references: list[str]):
    found, aside = told(tmp_path, PROBLEM + switch.format(env("solution")))
    assert found == references
    assert sum(aside.values()) == (not references)


@pytest.mark.parametrize(
    "text",
    [
        PROBLEM.replace(r"\end", r"\ifold " + env("solution") + r"\fi\end"),
        PROBLEM + env("solution", r"\ifold One way. \else Another. \fi " + TEXT),
        PROBLEM.replace("odd", r"\ifx\a\b odd \else even \fi") + env("solution"),
        rf"\begin{{itemize}}\item[A1] It. \ifold \textbf{{Solution.}} {TEXT} \fi\end{{itemize}}",
        rf"\section{{One}}\begin{{mdframed}}It.\end{{mdframed}} \ifold {TEXT} \fi",
    ],
)
def test_a_condition_within_a_problem_or_solution_is_a_doubt(tmp_path: Path, text: str):
    assert told(tmp_path, text) == ([], UNCLEAR)


@pytest.mark.parametrize("text", [r"\iffalse", r"\fi", r"\begin{comment}", r"\else x", r"\begin{document}"])
def test_a_switch_without_an_end_breaks_the_file(tmp_path: Path, text: str):
    assert told(tmp_path, PROBLEM + env("solution") + text) == ([], {"broken LaTeX": 1})


@pytest.mark.parametrize(
    "title",
    [
        *("{Sketch}", "{Hint}", "{2}", r"{\ref{b}}", "[Solution]{Sketch}", "[ref=b]", "[ref={b}, label=x]"),
        *(
            r"{Model Response (\emph{X})}",
            "{ii}",
            "[(b)]",
            "[Putative proof]",
            "[Student answer]",
            "[GPT-4]",
            *(
                "[First half of the proof]",
                "[Beginning of proof]",
                "[Proof assuming the conjecture]",
                "[Strategy]",
            ),
            *(
                "[Euler's theorem]",
                "[Boundedness]",
                "[Proof that $f$ is injective]",
                "[Forward direction]",
                "[Aufgabe 7]",
                "[Exercice 7]",
                "[Preuve incomplète]",
            ),
            *("[Skizze]", r"[Towards \Cref{a}]", r"[Half of \ref{a}]"),
        ),
        *(
            r"[Another putative proof of \ref{a}]",
            r"[Step 1 of \Cref{a}]",
            r"[Proof of \autoref{b}]",
            "[Old]",
        ),
    ],
)
def test_a_title_in_braces_or_brackets_may_name_another_or_no_solution(tmp_path: Path, title: str):
    assert told(tmp_path, PROBLEM + env("solution", title + TEXT)) == ([], UNCLEAR)
    inside = PROBLEM.replace(r"\end{problem}", env("solution", title + TEXT) + r"\end{problem}")
    assert told(tmp_path, inside) == ([], UNCLEAR)


@pytest.mark.parametrize(
    "title",
    [
        *(
            "{1}",
            "{Solution}",
            "[ref=a]",
            "{a}",
            r"[Proof of \Cref{a}]",
            r"[\autoref{a}]",
            "[Proof using covers]",
        ),
        *("[Official solution]", r"[Proof of Theorem~\ref{a}]", "[name={1}]"),
    ],
)
def test_a_title_in_braces_or_brackets_may_name_its_problem(tmp_path: Path, title: str):
    assert told(tmp_path, PROBLEM + env("solution", title + TEXT)) == ([TEXT], {})


BODIES = [
    *(r"\textbf{Solution to Problem 2.} ", "Problem 2. ", r"Proof of \ref{b}. ", "Solution of 2(a): "),
    *(r"\emph{Proof of Lemma 1.} ", "Hint: ", "{\\bf Sketch.} ", "Outline of the proof. ", "Rough idea: "),
    *("Omitted. ", "We only sketch the argument. ", "(Sketch) ", "Surprisingly annoying, thus omitted. "),
    *("ChatGPT's answer: ", "Answer by a student: ", "The model's solution was: ", "Wrong attempt. "),
    *("This proof is wrong. ", r"\todo{Fill in.} ", "See the book. ", "提示：", "Partial solution. "),
    *("We prove one case and leave the other to the reader. ", r"We leave the rest as \exerciseref{x}. "),
    *(
        "The details are omitted. ",
        "Similar to the last one. ",
        r"One half is: \begin{exercise} Do it. \end{exercise} ",
    ),
]


@pytest.mark.parametrize("opening", BODIES)
def test_a_solution_whose_own_words_raise_a_doubt_is_none(tmp_path: Path, opening: str):
    assert told(tmp_path, PROBLEM + env("solution", opening + TEXT)) == ([], UNCLEAR)
    listed = rf"\begin{{itemize}}\item[A1] Show it. \textbf{{Solution.}} {opening}{TEXT}\end{{itemize}}"
    assert told(tmp_path, listed)[0] == []


@pytest.mark.parametrize(
    "body",
    [
        *(
            "Trivial.",
            "Clear.",
            "Left to the reader.",
            "Exercise.",
            "See [3].",
            r"Immediate from \Cref{b}.",
            "TBA",
        ),
        *("Follows from the previous theorem.", "Standard (and formalized).", r"See~\cite{x}.", "Routine."),
        *("This is part of the Lean library.", "略", "This should hopefully follow.", "Apply the lemma."),
    ],
)
def test_a_short_text_that_only_refers_is_no_proof(tmp_path: Path, body: str):
    assert told(tmp_path, PROBLEM + env("proof", body)) == ([], UNCLEAR)


@pytest.mark.parametrize(
    "opening",
    [
        *(
            "Problem 2 shows what to do. ",
            "Partial fractions help. ",
            "Model the sum as $2m$. ",
            "By Lemma 1, ",
        ),
        *(
            r"\textbf{Solution to Problem 1.} ",
            r"Theorem~\ref{b} helps. ",
            "Students meet in pairs. ",
            "Clearly, ",
        ),
        *(
            r"\textbf{Lemma 1.} Odd is $2n+1$. ",
            r"Proof of \ref{a}. ",
            "See that $1+1=2$ and so on. "[8:],
            "First, ",
        ),
    ],
)
def test_a_solution_may_open_with_words_that_only_look_doubtful(tmp_path: Path, opening: str):
    found, aside = told(tmp_path, PROBLEM + env("solution", opening + TEXT * 2))
    assert (len(found), aside) == (1, {})


@pytest.mark.parametrize(
    "before",
    [
        *(
            "Here is a wrong solution:",
            "Sketch:",
            r"\textbf{Hint.}",
            r"\section{Common mistakes in solutions}",
        ),
        *(
            r"\section{Sketches}\subsection{Solution}",
            "The following proof is incorrect.",
            "A student's answer:",
        ),
    ],
)
def test_the_words_before_a_solution_count_also_if_it_names_its_problem(tmp_path: Path, before: str):
    given = PROBLEM + OTHER + env("solution", "[2]" + TEXT) + before
    assert told(tmp_path, given + env("solution", r"[Proof of \ref{a}]" + TEXT)) == ([TEXT], UNCLEAR)


@pytest.mark.parametrize(
    "after",
    [
        *(
            "This solution is wrong, as $a=0$.",
            r"\textbf{Remark.} The above proof is incorrect.",
            "What is wrong here?",
        ),
        *("Unfortunately, this argument is not complete.", "Find the mistake."),
        *("Unfortunately, there is a gap in this proof.", r"\textbf{Erratum.} A better one:"),
        *("This solution earned 2 points.", "The argument above does not work for $0$."),
    ],
)
def test_the_words_behind_a_solution_may_take_it_back(tmp_path: Path, after: str):
    assert told(tmp_path, PROBLEM + env("solution") + after) == ([], UNCLEAR)
    assert told(tmp_path, PROBLEM + env("solution") + "This proof is short.") == ([TEXT], {})


def test_a_problem_in_a_problem_is_a_doubt(tmp_path: Path):
    assert told(tmp_path, rf"\begin{{problem}} A. {PROBLEM}\end{{problem}}{env('solution')}") == ([], UNCLEAR)


@pytest.mark.parametrize("name", ["wrong", "sketch", "studentwork", "hint", "oldattempt"])
def test_a_solution_in_an_environment_of_no_solutions_is_none(tmp_path: Path, name: str):
    text = PROBLEM + env(name, env("solution", "[1]" + TEXT))
    assert told(tmp_path, text)[0] == []


def test_a_problem_that_asks_for_a_fault_has_no_reference(tmp_path: Path):
    asks = r"\begin{problem} What is wrong with the following proof? \end{problem}"
    assert told(tmp_path, asks + env("proof")) == ([], UNCLEAR)


@pytest.mark.parametrize(
    "definition",
    [
        *(r"\newtheorem*{solution}{Hint}", r"\renewenvironment{solution}{\textbf{Sketch.}}{}"),
        *(r"\newtheorem{solution}[problem]{Wrong solution}", r"\newtcolorbox{solution}{title=Student work}"),
    ],
)
def test_the_definition_of_an_environment_may_say_that_it_holds_no_solutions(tmp_path: Path, definition: str):
    text = rf"{definition}\begin{{document}}{PROBLEM}{env('solution')}\end{{document}}"
    assert told(tmp_path, text) == ([], UNCLEAR)
    assert told(tmp_path, text.replace(definition, r"\newtheorem{solution}{Solution}")) == ([TEXT], {})
    named = text.replace(definition, r"\renewcommand{\proofname}{Sketch of proof}")
    assert told(tmp_path, named.replace("{solution}", "{proof}")) == ([], UNCLEAR)
    model = text.replace(definition, r"\author{GPT-4o}")
    assert told(tmp_path, model) == ([], UNCLEAR)
    assert told(tmp_path, model.replace("GPT-4o", "A. Student")) == ([TEXT], {})


@pytest.mark.parametrize(
    "body",
    [
        r"\input{one}",
        rf"{TEXT} \input{{one}}",
        r"\includegraphics[width=5cm]{one.png}",
        r"\includepdf{one.pdf}",
    ],
)
def test_a_solution_in_another_file_or_in_a_picture_is_not_read(tmp_path: Path, body: str):
    assert told(tmp_path, PROBLEM + env("solution", body)) == ([], UNCLEAR)
    inside = rf"\begin{{problem}}\input{{one}}\end{{problem}}{env('solution')}"
    assert told(tmp_path, inside) == ([], UNCLEAR)


THEOREMS = {"problems": ["lemma", "theorem"], "solutions": ["proof"]}
LEMMA = r"\begin{lemma}\label{one}\lean{One}\uses{def} Odd and odd is even. \end{lemma}"
THEOREM = r"\begin{theorem}\label{two}\leanok Even and even is even. \end{theorem}"


@pytest.mark.parametrize(
    ("text", "references"),
    [
        (LEMMA + THEOREM + env("proof", r"\leanok\uses{one} p"), {"two": "p"}),
        (LEMMA + THEOREM + env("proof", r"\proves{one} p"), {"one": "p"}),
        (LEMMA + THEOREM + "Now. " + env("proof", r"[Proof of \Cref{two}] p"), {"two": "p"}),
        (LEMMA + THEOREM + env("proof", r"\proves{one,two} p"), {}),
        (LEMMA + THEOREM + env("proof", r"\proves{three} p"), {}),
        (LEMMA + env("proof", r"\uses{one} p"), {}),
        (LEMMA + env("proof", r"[Proof of \ref{two}]\proves{one} p") + THEOREM, {}),
        (LEMMA + r"\begin{corollary} C \end{corollary}" + env("proof", "p"), {}),
        (LEMMA + THEOREM + env("proof", "p") + env("proof", "q"), {}),
        (
            LEMMA + THEOREM + env("proof", "p") + env("proof", "[Proof of \\ref{one}] q"),
            {"two": "p", "one": "q"},
        ),
        (LEMMA + env("proof", r"\leanok"), {}),
    ],
)
def test_marks_of_lean_blueprints_pair_proofs(tmp_path: Path, text: str, references: dict[str, str]):
    (tmp_path / "a.tex").write_text(text)
    rows = read("latex", tmp_path / "a.tex", **THEOREMS)
    names = {one.id: one.text for one in problems(rows)}
    found = {names[one.problem_id].partition("{")[2].partition("}")[0]: one.text for one in proofs(rows)}
    assert found == references
    assert not any("\\lean" in one or "\\uses" in one for one in names.values())


def test_several_solutions_without_a_title_may_be_pieces_of_one(tmp_path: Path):
    assert told(tmp_path, PROBLEM + env("proof") + env("proof", "More.")) == ([], {"unclear solution": 2})
    second = env("proof", "[Second proof]" + TEXT)
    assert told(tmp_path, PROBLEM + env("proof") + second)[1] == {"twice": 1}
    inside = rf"\question Show both. {env('proof', 'a')} {env('proof', 'b')}"
    assert told(tmp_path, inside) == ([], {"unclear solution": 2})
    assert told(tmp_path, PROBLEM + env("partsolution", "{1}" + TEXT), solutions=["partsolution"])[0] == []


@pytest.mark.parametrize(
    "name", ["student-solutions.tex", "wrong_proofs.tex", "solution sketches.tex", "gpt4-answers.tex"]
)
def test_the_name_or_title_of_a_file_may_raise_a_doubt(tmp_path: Path, name: str):
    assert told(tmp_path, PROBLEM + env("solution"), name) == ([], UNCLEAR)
    titled = rf"\title{{{name[:-4].replace('_', ' ')}}}\begin{{document}}{PROBLEM}{env('solution')}\end{{document}}"
    assert told(tmp_path, titled) == ([], UNCLEAR)


ITEMS = r"\begin{itemize}\item[A1] It is two. \item[A2] It is shown.\end{itemize}"


def test_a_file_that_says_that_it_holds_solutions_is_none_of_problems(tmp_path: Path):
    aside = {"solution without problem": 2}
    for name in ("putnam-solutions.tex", "2010_sol.tex", "answers.tex"):
        assert (told(tmp_path, ITEMS, name), problems(read("latex", tmp_path / name))) == (([], aside), [])
    titled = rf"\title{{Solutions to the 2010 Putnam}}\begin{{document}}{ITEMS}\end{{document}}"
    assert (told(tmp_path, titled), problems(read("latex", tmp_path / "a.tex"))) == (([], aside), [])
    (folder := tmp_path / "Solutions").mkdir()
    assert told(folder, ITEMS) == ([], aside)
    assert told(folder, rf"\question We have this. {env('proof')}") == ([], {"problem or solution": 1})
    assert told(folder, rf"\question Show this. {env('solution')}") == ([TEXT], {})
    (pair := tmp_path / "pair").mkdir()
    (pair / "2010.tex").write_text(ITEMS)
    problem_file = rf"\title{{Problems}}\begin{{document}}{ITEMS}\end{{document}}"
    (pair / "2010s.tex").write_text(problem_file)
    rows = read("latex", pair)
    assert (len(problems(rows)), proofs(rows), reasons(rows)) == (2, [], {"problem or solution": 1})


SHORT = "Show that $1+1=2$ holds. "


@pytest.mark.parametrize(
    "text",
    [
        rf"\section*{{Problem 3}} {SHORT} {env('solution')}",
        rf"\begin{{questions}}\question[5] {SHORT} {env('solution')} \question More. \end{{questions}}",
        rf"\begin{{problem*}} {SHORT} \end{{problem*}} {env('solution*')}",
        rf"\begin{{Problem}} {SHORT} \end{{Problem}} {env('Proof')}",
        rf"\begin{{itemize}}\item[N5.] {SHORT} \textbf{{Solution.}} {TEXT} \end{{itemize}}",
        rf"\begin{{problem}} {SHORT} {{\bf Solution:}} {TEXT} \end{{problem}}",
        rf"\section{{Exercise 2.1}} {SHORT} \emph{{Proof.}} {TEXT}",
        rf"\question {SHORT} \solution {TEXT}",
    ],
)
def test_more_forms_that_leave_no_doubt_are_read(tmp_path: Path, text: str):
    (tmp_path / "a.tex").write_text(text)
    rows = read("latex", tmp_path / "a.tex")
    assert problems(rows)[0].text == SHORT.strip()
    assert [one.text.endswith(TEXT) for one in proofs(rows)] == [True]


@pytest.mark.parametrize(
    "text",
    [
        rf"\begin{{itemize}}\item[A1] {SHORT} \textbf{{Answer.}} 18. \end{{itemize}}",
        r"\section{Problem 3} (a) Odd? \textbf{Solution.} a (b) Even? \textbf{Solution.} b",
        rf"\begin{{problem}}[1] {SHORT} \textbf{{Solution to Problem 2.}} {TEXT} \end{{problem}}",
        rf"\begin{{problem}} Improve this. \textbf{{Theorem}} {SHORT} \textbf{{Proof}} {TEXT} \end{{problem}}",
        rf"\question Improve this. \textbf{{Theorem}} {SHORT} \textbf{{Proof}} {TEXT}",
        rf"\section{{Problem 3}} {SHORT} \begin{{lemma}} L. \end{{lemma}} {env('proof')}",
    ],
)
def test_a_solution_behind_bold_words_may_be_a_parts_or_an_answer(tmp_path: Path, text: str):
    assert told(tmp_path, text)[0] == []


def test_what_is_set_aside_says_its_line(tmp_path: Path):
    (tmp_path / "a.tex").write_text("% first\n" + PROBLEM + "\n\n" + env("solution", "[Hint] x"))
    (aside,) = [row for row in read("latex", tmp_path / "a.tex") if hasattr(row, "reason")]
    assert aside.row == "a.tex:4"


@pytest.mark.parametrize(
    "text",
    [
        *("{" * 20_000, r"\begin{problem}" * 2_000, r"\iffalse" * 20_000, r"\if0 x \else " * 20_000),
        *(r"\newcommand{\a}{\b}\newcommand{\b}{\a}\a" + "$x$ " * 2_000, r"\verb|" * 20_000, "%" * 200_000),
        *(
            r"\begin{comment}" * 4_000,
            r"\textbf{" * 5_000,
            r"\newif\iffoo" * 9_000,
            r"\excludecomment{a}" * 1_000,
        ),
    ],
)
def test_hostile_files_end_soon(tmp_path: Path, text: str):
    assert told(tmp_path, PROBLEM + text)[0] == []


@pytest.mark.parametrize(
    "text",
    [
        "We show only the forward direction. {}",
        "We only give the main steps. {}",
        "For the full proof see the book of Lang. {}",
        "(Score: 3/7) {}",
        r"{} \textbf{{Grader's comment:}} it is circular.",
        r"{} \textbf{{A common wrong solution.}} Take $x=1$.",
        r"{} \textbf{{Marking scheme.}} One for the idea.",
        "3 points for the idea, 2 points for the case of two odd numbers, 5 points for a full argument.",
        "{} Where is the mistake?",
        "{} The rest is routine.",
        "This comes down to a simple calculation.",
        *(
            "Test.",
            "To do.",
            "To finish, as above. {}",
            "Expand out using definitions.",
            "Brute force.",
            "By calculation.",
        ),
        *(
            "Structural induction.",
            "This is exactly Claim 3.3.6 in [D].",
            "This is a special case of Cauchy's inequality.",
        ),
        "{} Do the rest as an exercise.",
        "We show this under the additional assumption that both are positive. {}",
        "For simplicity, we assume that both are positive. {}",
        "We restrict ourselves to small numbers. {}",
        "$42$",
        r"{} {{\bf Problem 2.}} Show it.",
        r"{} \paragraph{{Exercise.}} Show it.",
        "(a) {}",
        r"\textbf{{Part (b).}} {}",
        "a) {}",
        r"Part a: {}",
        r"\begin{{enumerate}}\item[(b)] {}\end{{enumerate}}",
        "(ii) {}",
        *(
            "Lösung zu Aufgabe 7: {}",
            "Solution de l'exercice 7. {}",
            "Solución del problema 7. {}",
            "第7题解:{}",
        ),
        *(
            "Idée de la preuve : {}",
            "Bosquejo: {}",
            "Falscher Beweis: {}",
            "错误证明:{}",
            "学生解答:{}",
            "证明概要:{}",
        ),
        *(
            "Dimostrazione (idea). {}",
            "{} 细节从略。",
            "{} Les détails sont laissés au lecteur.",
            "Siehe oben. {}",
        ),
    ],
)
def test_a_half_a_marked_or_a_foreign_doubtful_solution_is_none(tmp_path: Path, text: str):
    assert told(tmp_path, PROBLEM + env("solution", text.format(TEXT))) == ([], UNCLEAR)


@pytest.mark.parametrize(
    "text",
    [
        "(a) {} (b) {}",
        r"\begin{{enumerate}}[a)]\item {}\item {}\end{{enumerate}}",
        "(i) {} (ii) {}",
        "There are 3 points for which it holds. {}",
        "Let the points be $(1,2)$. {}",
    ],
)
def test_a_solution_of_all_parts_and_points_of_geometry_are_read(tmp_path: Path, text: str):
    body = text.format(TEXT, TEXT)
    assert told(tmp_path, PROBLEM + env("solution", body)) == ([body], {})


def test_a_solution_of_two_of_three_parts_is_none(tmp_path: Path):
    asked = r"\begin{problem}Show (a) one, (b) two, (c) three.\end{problem}"
    assert told(tmp_path, asked + env("solution", f"(a) {TEXT} (b) {TEXT}")) == ([], UNCLEAR)


@pytest.mark.parametrize(
    "asked",
    [
        "Grade the following proof.",
        "Is this argument valid?",
        "Complete the missing part of the proof.",
        "Explain why this does not prove it.",
    ],
)
def test_a_problem_about_a_proof_has_no_reference(tmp_path: Path, asked: str):
    assert told(tmp_path, rf"\begin{{problem}}{asked}\end{{problem}}" + env("proof")) == ([], UNCLEAR)


def test_solutions_in_front_of_their_problems_are_unclear(tmp_path: Path):
    rows = env("solution") + PROBLEM + env("solution", "Second. " + TEXT) + OTHER
    assert told(tmp_path, rows)[0] == []
    named = r"\begin{solution}[1]" + TEXT + r"\end{solution}"
    assert told(tmp_path, env("solution") + PROBLEM + named + OTHER)[0] == [TEXT]


def test_a_heading_of_a_problem_under_solutions_is_no_second_problem(tmp_path: Path):
    text = r"\section{Problems}\subsection{Problem 1}Show it.\section{Solutions}\subsection{Problem 1}"
    assert told(tmp_path, text + rf"We use parity. \textbf{{Proof.}} {TEXT}")[0] == []
    one = r"\section{Solutions}\subsection{Problem 1}Show it. \textbf{Solution.} " + TEXT
    assert told(tmp_path, one)[0] == [r"\textbf{Solution.} " + TEXT]


def test_solutions_whose_title_has_another_year_than_the_file_are_set_aside(tmp_path: Path):
    paper = r"\begin{itemize}\item[A1] Show it.\end{itemize}"
    (tmp_path / "2001.tex").write_text(paper)
    (tmp_path / "2001s.tex").write_text(r"\title{Solutions 2002}" + paper.replace("Show it.", TEXT))
    assert (proofs(read("latex", tmp_path)), reasons(read("latex", tmp_path))) == ([], UNCLEAR)


def test_words_may_announce_that_all_solutions_are_a_models(tmp_path: Path):
    rows = PROBLEM + env("solution") + OTHER + env("solution")
    assert told(tmp_path, "All solutions below were generated by GPT-4. " + rows)[0] == []
    assert told(tmp_path, "All solutions below were checked by hand. " + rows)[0] == [TEXT, TEXT]


@pytest.mark.parametrize(
    "title",
    ["Beweis", "Lösung 2", "证明", "Algebraic proof", "Solution by A. Person", "60 mm", "By induction"],
)
def test_a_title_that_describes_a_solution_names_no_other_problem(tmp_path: Path, title: str):
    assert told(tmp_path, PROBLEM + env("proof").replace("}", f"}}[{title}]", 1)) == ([TEXT], {})


def test_a_problem_may_have_an_argument_or_a_theory_that_does_not_prove(tmp_path: Path):
    asked = r"\begin{problem}If $T$ does not prove $A$, show that this argument of $z$ is small.\end{problem}"
    assert told(tmp_path, asked + env("proof")) == ([TEXT], {})
