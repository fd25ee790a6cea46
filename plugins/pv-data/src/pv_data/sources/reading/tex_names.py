"""Names of problems and solutions: what their titles and labels say."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from typing import Any

from pv_data.sources.reading.tex import label_of, macro, plain, text, written

__all__ = [
    "CONTESTS",
    "DOUBTFUL",
    "KINDS",
    "MODELS",
    "NOBODYS",
    "NO_PROOF",
    "NUMBER",
    "ORDER",
    "QUESTION",
    "SOLUTION",
    "WORKS",
    "WRITERS",
    "begins_solution",
    "called",
    "is_alternative",
    "is_generic",
    "is_one_solution",
    "is_ref",
    "names_of",
    "putnam",
    "ref",
    "refs_of",
    "said_by_title",
]

NOBODYS = "?"
"""What a title says that is of no problem as a whole: no problem has this name."""
REF = re.compile(
    r"\\(?:\w*ref\*?|hyperref)\s{0,9}(?:\{([^{}]*)\}|\[([^\[\]]*)\])|(?<![\w\\])ref\s*=\s*\{?([^{},\]]+)"
)
"""A `\\ref`, or the key `ref=` of a title."""
KEY = r"\w+\s*=(?:\s*\{[^{}]*\}\s*|[^{},]*)"
KEYS = re.compile(rf"\s*{KEY}(?:,\s*{KEY})*(?:,\s*)?")
NAME_KEY = re.compile(r"\b(?:name|title)\s*=\s*(?:\{([^{}]*)\}|([^{},]*))")
LABEL_KEY = re.compile(r"\blabel\s*=\s*\{?([^{},]+)")
QUESTION = (
    r"(?:problem|exercise|question|aufgabe|übung|problème|exercice|problema|ejercicio|esercizio|exercício|задач[аи]|"
    r"упражнени[ея])"
)
KINDS = rf"(?:{QUESTION}|theorem|proposition|corollary|lemma|claim|fact)"
KIND = re.compile(rf"^{QUESTION} (?=.)")
PUTNAM = re.compile(r"(?:problem)?\W{0,3}([ABCGN])\W{0,3}([1-9])\W{0,3}", re.IGNORECASE)
PUTNAM_NAME = re.compile(r"^([abcgn]) ([1-9])$")
NUMBER = re.compile(r"(?:[a-z] ?)?[0-9]+(?: ?[a-z])?")
ORDER = r"(?:first|second|third|fourth|fifth|alternative|alternate|another|official)"
SOLUTION = r"(?:solution|sol|soln|proof|answer)"
ONE = re.compile(rf"(?:(?:{ORDER} )?{SOLUTION}(?: [0-9]{{1,2}}| [ivx]{{1,4}})?(?: |$))+")
ALTERNATIVE = re.compile(
    rf"(?:{ORDER}|other) (?:{SOLUTION}|method|approach|way)\b|(?:{ORDER}|[0-9]{{1,2}}|[ivx]{{2,4}})$|aliter\b|"
    rf"alternatively\b|(?:{SOLUTION}|method|approach|way) (?:[0-9]{{1,2}}|[ivx]{{1,4}})\b|"
    rf"{SOLUTION} (?:using|by|via|with)\b"
)
OF = re.compile(rf"(?:{ORDER} )?{SOLUTION}s? (?:of|to|for)\b ?(?:the )?(.*)")
OF_REF = re.compile(
    rf"(?:(?:{ORDER} )?{SOLUTION}s? ?)?(?:(?:of|to|for) ?)?(?:the )?(?:main )?(?:{KINDS}|ex|exer)?"
)
"""What a title may have beside a reference to its problem."""
NUMBERED = re.compile(
    rf"(?:.* (?:of|to|for) (?:the )?|(?:.* )?(?:{KINDS}|no|number) )({NUMBER.pattern})(?: .*)?"
)
"""A title that names a number, however it begins: `Sol. of 2`, `No. 2`."""
MODELS = r"(?:chatgpt|gpt\w{0,9}|claude|gemini|deepseek|llms?)"
WRITERS = rf"(?:students?|models?|ai|{MODELS})"
WORKS = r"(?:answer|solution|response|proof|attempt|output|submission)s?"
NO_PROOF = (
    r"sketch(?:es|ed)?|hints?|outlines?|ideas?|drafts?|bogus|flawed|faulty|wrong|incorrect|incomplete|unfinished|fake|"
    r"failed|discarded|heuristics?|informal|intuition|omitted|tbd|remarks?|comments?|attempt(?:s|ed)?|mistakes?|"
    rf"partial(?! (?:fraction|derivative|sum|order|product|quotient)s?\b)|submissions?|{MODELS}|old {WORKS}|"
    r"old wrong|false (?:proof|solution|start)|putative|purported|alleged|supposed|so called|proof by example|"
    r"hinweise?|(?:beweis)?skizze|beweisidee|indications?|esquisse|sugerencia|pista|esbozo|указани[ея]|подсказка|"
    r"набросок|(?:证明|解题|解答)?(?:提示|略|思路|概要|大意|梗概)|错解|(?:错误|学生)的?(?:证明|解答|解法)|ヒント|略解|"
    r"idée|idee|bosquejo|traccia|schizzo|suggerimento|esboço|szkic|wskazówka|falscher?|fausse?|fals[ao]|err[oó]ne[ao]|"
    r"incorrect[ao]|incorrecte|incomplet[ao]|incomplète|unvollständiger?|schülerlösung|copie d élève|"
    r"(?:marking|grading) scheme|rubric|model answers? of students"
)
DOUBTFUL = re.compile(
    rf"\b(?:{NO_PROOF}|false|fallacious|erroneous|invalid|errors?|old|{WRITERS}|machine|generated|graders?)(?!\w)"
)
PARTIAL = re.compile(r"\b(?:cases?|parts?|steps?|lemmas?|lemmata|claims?)\b")
HALF = re.compile(
    r"\b(?:plan|subcases?|corollary|proposition|notes?|motivation|summary|necessity|sufficiency|existence|uniqueness|"
    r"converse|only if|that|"
    r"(?:lower|upper) bound|half|halves|beginning|start|end|rest|remainder|continued|continuation|"
    r"conclusion|assuming|strategy|overview|roadmap|preliminar(?:y|ies)|directions?|implications?|inclusions?|"
    r"induction (?:step|base|start)|base case|special case|restricted|weaker|modulo)\b"
)
"""The same where no problem has the whole title."""
BENIGN = re.compile(
    rf"\b(?:{SOLUTION}s?|{ORDER}|other|method|approach|way|aliter|by|via|using|with|due|from|following|after)\b"
)
"""Words of a title that names no problem: `Second proof`, `By induction`. Any other may be another problem's name."""
FOREIGN = re.compile(
    r"(?:lösung|beweis|preuve|démonstration|corrigé|solución|demostración|soluzione|dimostrazione|solução|решение|"
    r"доказательство|解|解答|证明)(?: [0-9]{1,2})?"
)
LENGTH = re.compile(r"[^\w.]*[0-9.]+ ?(?:pt|cm|mm|in|em|ex)\W*")
PART = re.compile(r"\W*(?:[ivx]{1,5}|[a-h])\W*")
BRACKETS = re.compile(r"(?:[\w ]+ (?:of|to|for) +)?\([^()]+\)(?: (?:of|in)\b.*)?")
"""A part or a formula: `(a)`, `Proof of (1)`."""
FORMULA = re.compile(r"\$|\\[(\[]")
FORMAT = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|sl|tt|sc|up|normal)?|emph|bf|bfseries|it|itshape|rm|sf|sc|scshape|sl|tt|em|upshape)\b|"
    r"\\[^A-Za-z]|\\\w*ref\b\*?"
)
UNIT = re.compile(r"[0-9]*(?:pt|cm|mm|in|em|ex|bp|pc|plus|minus|fil{1,3})?")
CONTESTS = ("putnam", "usamo", "imo")
GENERIC = re.compile(
    rf"(?:(?:solution|answer|proof|problem|exercise|question)s?|{'|'.join(CONTESTS)}|william|lowell|mathematical|"
    r"olympiad|competition|contest|exam|official|the|to|of|for|and|[0-9]+(?:st|nd|rd|th)?)"
)
"""Words of a heading that say what it heads and no more."""


def putnam(title: str) -> str:
    r"""`A1` for `A1`, `A--1` and `Problem A1`: of a Putnam paper, or of a shortlist (A, C, G, N)."""
    found = PUTNAM.fullmatch(title)
    return (found[1] + found[2]).upper() if found else ""


def ref(label: str) -> str:
    """The name by which a solution calls the problem of a label."""
    return f"\\ref{{{label.strip()}}}"


def is_ref(said: str) -> bool:
    """Whether a solution names its problem by a label."""
    return said.startswith("\\")


def is_one_solution(said: str) -> bool:
    """Whether words between a problem and its solution say no more than `Solution` or `Second proof`."""
    return ONE.fullmatch(said) is not None


def is_alternative(said: str) -> bool:
    """Whether words over a solution, or its first ones, say that it is one of several: `Second proof`, `2`."""
    return ALTERNATIVE.match(plain(said)) is not None


def begins_solution(said: str) -> bool:
    """Whether words in bold begin a solution: `Solution.`, `Solution to Problem 2`."""
    return bool(said) and (ONE.fullmatch(said) or OF.fullmatch(said)) is not None


def is_generic(title: str) -> bool:
    """Whether a title consists of the words of any heading of problems or solutions."""
    return all(GENERIC.fullmatch(one) for one in plain(title).split())


def names_of(title: str, nodes: Sequence[Any] = ()) -> frozenset[str]:
    """All names of a problem: its title, and the labels of references to it.

    A label is the problem's where it is in it directly, and not in a list, a formula or another environment. Of
    several only those before its first word are: the others may be of its parts.
    """
    at = [place for place, one in enumerate(nodes) if macro(one) == "label"]
    mine, since = list[int](), 0
    for one in at:
        if len(at) > 1 and plain(written(nodes[since:one]) if since else text(nodes[since:one])):
            break
        mine.append(one)
        since = one
    labels = {ref(label_of(nodes[one])) for one in mine} | {ref(one) for one in LABEL_KEY.findall(title)}
    return frozenset((labels | {called(_bare(title))}) - {""})


def said_by_title(title: str, known: Container[str]) -> str:
    """The name that a solution's title has for its problem; empty where it names none.

    Args:
        known: the names of all problems.
    """
    refs = refs_of(title)[0]
    if ref(title) in known:
        return ref(title)
    if len(refs) == 1 and KEYS.fullmatch(title) and "=" in title:
        return ref(refs[0])
    title = _bare(title)
    name, said = called(title), plain(title)
    bare = " ".join(REF.sub("", title).split())
    doubts = [one.search(either) for one in (DOUBTFUL, PARTIAL) for either in (plain(bare), bare.casefold())]
    if any(doubts) or BRACKETS.fullmatch(bare):
        return NOBODYS
    if refs:
        return ref(refs[0]) if len(refs) == 1 and OF_REF.fullmatch(plain(bare)) else NOBODYS
    if not title.strip() or _is_length(title):
        return ""
    if name in known:
        return name
    if PART.fullmatch(title.strip()):
        return NOBODYS
    if found := OF.fullmatch(said):
        return called(found[1]) or NOBODYS
    if not name or FORMULA.search(title) or HALF.search(said):
        return NOBODYS
    if found := NUMBERED.fullmatch(said):
        return called(found[1])
    return (
        name
        if NUMBER.fullmatch(name)
        else ("" if BENIGN.search(said) or FOREIGN.fullmatch(said) or LENGTH.fullmatch(title) else NOBODYS)
    )


def refs_of(latex: str) -> tuple[list[str], str]:
    r"""The labels of `\ref`, `\Cref` and the like, and the text with ` zref0 `, ` zref1 ` in their place."""
    labels = list[str]()

    def take(found: re.Match[str]) -> str:
        labels.append(next(filter(None, found.groups()), "").strip())
        return f" zref{len(labels) - 1} "

    return labels, REF.sub(take, latex) if "ref" in latex else latex


def called(title: str) -> str:
    """A title as a name: `a1` for `Problem A--1`."""
    return PUTNAM_NAME.sub(r"\1\2", KIND.sub("", plain(title)))


def _bare(title: str) -> str:
    """The name in a title of keys: `name={Title}, label=x`."""
    if "=" not in title or FORMULA.search(title) or not KEYS.fullmatch(title):
        return title
    found = NAME_KEY.search(title)
    return (found[1] or found[2] or "") if found else ""


def _is_length(title: str) -> bool:
    """What exam.cls has there, the height of the answer's room: `\\stretch{1}`, `3\\baselineskip`."""
    bare = FORMAT.sub("", title)
    return (
        "\\" in bare
        and not FORMULA.search(title)
        and all(UNIT.fullmatch(one) for one in plain(title).split())
    )
