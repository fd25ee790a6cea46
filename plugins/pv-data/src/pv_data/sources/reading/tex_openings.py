"""Opening of a solution: whether its words say that it is another problem's, or no full right solution."""

from __future__ import annotations

import re

from pv_data.sources.reading.tex import plain
from pv_data.sources.reading.tex_names import (
    KINDS,
    NO_PROOF,
    NOBODYS,
    ORDER,
    QUESTION,
    SOLUTION,
    WORKS,
    WRITERS,
    called,
    ref,
    refs_of,
)

__all__ = ["announced", "denied", "doubtful_heading", "said_by_body", "shortcoming"]

NUMBER = r"(?:zref[0-9]+|[abcgn]\W{0,3}[1-9]\b|[0-9]+(?:\.[0-9]+)*(?: ?\(?[a-h]\b)?|[a-z](?= ?[.:)]))"
LEAD = re.compile(
    rf"(?:{ORDER} )?(?:{SOLUTION}s? (?:of|to|for) (?:the )?(?P<kind>{KINDS})?|{QUESTION})(?:\W*(?:no\b|number))?\W*"
    rf"(?P<number>{NUMBER})(?P<end> ?[.:)\]]|$)?|"
    rf"(?:{ORDER} )?{SOLUTION}s? (?:of|to|for) (?:the )?(?:{KINDS}|necessity|sufficiency|(?:lower|upper) bound)\b"
)
"""First words that say what a solution solves."""
FOREIGN = re.compile(
    r"(?:lösung|musterlösung|beweis|solution|corrigé|preuve|démonstration|solución|demostración|soluzione|"
    r"dimostrazione|solução|решение|доказательство) (?:\w{1,3}\W )?(?:\w{1,5}\W?){0,2}?"
    rf"{QUESTION} (?:n \W )?(?P<number>[0-9]+)|"
    r"第 ?(?P<place>[0-9]+) ?题"
)
"""The same in other languages."""
TOLD = re.compile(rf"(?:{ORDER} )?{SOLUTION}(?: [0-9]{{1,2}})? ?[.:] ?")
NOT_READ = re.compile(r"\\(?:label\s{0,9}\{[^{}]*\}|[A-Za-z]+\*?|[^A-Za-z])|[{}~$]")
FILLERS = (
    r"(?:(?:a|an|the|this is|it is|here is|some|our|my|proof|solution|answer|brief|short|quick|rough|possible|very|"
    r"general|main|key|completely|entirely|exactly|essentially|also|just|beweis|lösung|preuve|démonstration|"
    r"demostración|solución|dimostrazione|soluzione|prova|de|d|la|le|l|du|des|der|die|das) ){0,8}"
)
SHOW = r"(?:give|do|prove|show|treat|consider|handle)"
OPENS = re.compile(
    rf"{FILLERS}(?:{NO_PROOF}|see|siehe|voir|véase|vedi|см|to ?do|to finish|"
    r"we (?:only )?(?:sketch|outline|omit|skip|leave)|"
    rf"we (?:(?:shall|will) )?(?:(?:only|just) (?:\w+ )?{SHOW}|{SHOW} (?:only|just))|"
    r"(?:similar|analogous|identical) to|(?:the )?same (?:proof )?as|repeat the)\b"
)
REFERS = re.compile(
    rf"{FILLERS}(?:left|leave|exercise|see|cf|trivial|obvious|clear|easy|immediate|straightforward|skipped|missing|"
    r"none|tba|n a|to be (?:added|written|done|filled|completed)|coming soon|not yet|no (?:proof|solution)|well known|"
    r"standard|similar|same|analogous|ditto|repeat|explicit|routine|hopefully|apply|combine|follows|by definition|"
    r"(?:this |the )?(?:assertion|claim|result|statement) follows|test$|expand|check|unfold|definitional|brute force|"
    r"(?:by )?(?:(?:direct|simple|structural) )?(?:calculation|computation|induction|inspection)(?: on \w+)?$)\b|"
    r".*\b(?:zref[0-9]+|previous|preceding|above|earlier|formali[sz]ed|mathlib|lean library|"
    r"should (?:be|hopefully|follow)|(?:particular|special) case|"
    r"exactly (?:\w+ )?(?:theorem|lemma|claim|proposition|corollary) [0-9]|(?:comes|boils) down to)\b"
)
"""Words of a short text that is no proof without what it refers to: first words, and words anywhere in it."""
CITE = re.compile(r"\\[A-Za-z]*cite[a-z]*\*?\b")
NOTE = re.compile(r"\\(?:[tT]odo|[fF]ixme|TODO|FIXME|sorry)\b|\b(?:TODO|FIXME|TBD|XXX)\b")
ELSEWHERE = re.compile(r"\\(?:input|include|subfile|includepdf|lstinputlisting|verbatiminput)\b")
PICTURE = re.compile(r"\\includegraphics\*?\s{0,9}(?:\[[^\[\]]*\])?\s{0,9}\{[^{}]*\}")
EXERCISE = re.compile(r"\\begin\s{0,9}\{[a-z]{0,20}(?:prob|exer|ques|task)[a-z]{0,20}\*?\}", re.IGNORECASE)
NEXT = re.compile(
    r"(?:\\(?:textbf|textsc|underline|(?:sub)?paragraph\*?)\s{0,9}\{|\{\s{0,9}\\(?:bf|bfseries|sc|scshape)\s{1,9})"
    rf"{QUESTION}\b[^{{}}]{{0,9}}\}}",
    re.IGNORECASE,
)
"""A heading of the next problem in bold."""
ROWS = (
    ("a", "b", "c", "d", "e", "f", "g"),
    ("i", "ii", "iii", "iv", "v", "vi"),
    ("1", "2", "3", "4", "5", "6"),
)
"""Labels of parts."""
PART = re.compile(
    r"(?:(?:enumerate|itemize|description) )?\[? ?(?:for )?"
    r"(?:\((?P<part>[a-g]|ii?i?|i?v|vi|[1-6])\)|part \(?(?P<said>[a-g]|ii?i?|i?v|vi|[1-6])\b|(?P<bare>[a-g])\))"
    r"(?! ?(?:is|and|or|to|with)\b)"
)
LIST = re.compile(r"\\begin\s{0,9}\{enumerate\}\s{0,9}\[[^\[\]]{0,40}\]")
"""The begin of a list with the format of its labels."""
LABEL = re.compile(r"(?<![\w\\])\(?([a-g]|ii?i?|i?v|vi|[1-6])\)", re.IGNORECASE)
LITTLE = 120
LEAVES = re.compile(
    r"\b(?:(?:left|leave|leaving) (?:\w+ ){0,8}(?:as|to|for) (?:\w+ ){0,4}(?:readers?|exercises?|students?|"
    r"you|zref[0-9]+)|\w+ as an exercise|(?:is|are) (?:now )?(?:an? |left )?(?:easy |simple )?exercises?|"
    r"(?:do|try|check|prove) (?:it|this|that) (?:by )?yourself|omitted|fixme|"
    r"(?:omit|omitting|skip|skipping|skipped) (?:the )?(?:\w+ )?(?:proof|detail|rest|verification|argument)s?|"
    r"(?:only|just) (?:do|prove|show|treat) (?:one|the first) (?:direction|case|part|implication)|"
    r"sketch(?:es|ed)?(?! (?:of )?(?:the |a )?(?:graph|curve|region|plot|picture|figure))|"
    r"outline of (?:the|a) (?:\w+ )?proof|"
    r"proof is (?:\w+ )?(?:the same|similar|identical|analogous|an? (?:repeat|variant|copy))|"
    r"this (?:proof|solution|argument|attempt) is (?:wrong|incorrect|flawed|incomplete|invalid|false|"
    r"not (?:correct|complete|right|valid))|"
    r"give (?:only )?the (?:main|key) (?:steps|ideas)|"
    r"under the (?:additional|extra|stronger) (?:assumption|hypothesis)|"
    r"for simplicity (?:we )?(?:\w+ )?(?:assume|suppose)|"
    r"restrict ourselves to|general case (?:will|is|was)|"
    r"(?:second|other|remaining|next) (?:part|half|case)s? (?:follows?|is|are|will be) (?:\w+ )?in|"
    r"rough (?:argument|idea)|the rest is (?:routine|omitted|left)|"
    r"(?:for|refer\w* (?:\w+ ){0,4}to (?:\w+ ){1,6}for) (?:the |a )?(?:full|complete|detailed) "
    r"(?:proof|argument|details)|"
    r"where is the (?:mistake|error|flaw|fallacy)|what (?:is|went) wrong|"
    r"(?:wrong|incorrect|bogus|flawed|fake|failed) (?:proof|solution|attempt|approach|argument)s?|"
    r"(?:marking|grading) scheme|rubric|graders?|(?:score|graded?) [0-9]+ [0-9]+|"
    r"[0-9]+ (?:points?|marks?) for (?!which|each|any|every|all|some))\b|dem leser überlassen|"
    r"überl(?:assen|ässt) (?:wir )?dem leser|laissée?s? (?:au lecteur|en exercice)|"
    r"se dejan? (?:al lector|como ejercicio)|предоставля\w+ читател|读者|留作|読者|从略"
)
"""A solution that leaves something out, or says that it is wrong."""
AUTHOR = re.compile(
    rf"\b(?:{WRITERS}(?: s)?(?: [0-9o]{{1,3}})? {WORKS}|(?:{WORKS}|submitted|written|generated) (?:by|from|of) "
    rf"(?:\w+ )?{WRITERS})\b"
)
FAULT = r"(?:wrong|mistakes?|errors?|flaws?|flawed|fault|incorrect|fallac(?:y|ious)|bogus|invalid)"
ARGUMENT = r"(?:proof|argument|reasoning|solution)s?"
ASKS_FOR_FAULT = re.compile(
    rf"\b(?:{FAULT}(?: \w+){{0,6}} {ARGUMENT}|{ARGUMENT}(?: \w+){{0,6}} {FAULT}|"
    r"(?:following|given) (?:\w+ )?(?:proof|argument|reasoning)|this (?:\w+ )?(?:proof|reasoning)|"
    r"this argument (?:is |be )?(?:valid|correct|sound|right|convincing)|(?:proof|argument|reasoning) (?:below|above)|"
    r"(?:grade|critique|criticize|evaluate|assess|complete|rewrite|repair|correct) (?:\w+ ){0,6}(?:proof|argument)|"
    r"why (?:\w+ ){0,6}(?:does not|doesn t) prove|not a (?:\w+ )?proof)\b"
)
DENIED = re.compile(
    r"(?:remark |note |warning |but |unfortunately |however ){0,3}"
    rf"(?:(?:this|that|it|the (?:above|previous|preceding|last)) ?(?:{ARGUMENT}|attempt)?(?: above)? (?:is|was) "
    rf"(?:\w+ )?(?:{FAULT}|false|incomplete|not (?:\w+ )?(?:correct|right|valid|complete|rigorous))|"
    rf"(?:what is|find|spot|where is|explain) (?:\w+ )?{FAULT}|erratum|corrigendum|"
    rf"(?:there is )?an? (?:\w+ )?(?:gap|{FAULT}) in (?:this|the)|"
    rf"(?:this|the) (?:above )?{ARGUMENT}(?: above)? (?:earned|received|scored|got|fails|does not|doesn t|is worth))\b"
)
"""Words behind a solution that take it back."""


def denied(after: str) -> bool:
    """Whether the words behind a solution say that it is wrong, or ask why."""
    return DENIED.match(after) is not None


def said_by_body(body: str) -> str:
    """The name that the first words of a solution have for its problem; empty where they name none."""
    labels, lead = refs_of(body[:400])
    said = TOLD.sub("", " ".join(NOT_READ.sub(" ", lead).split()).casefold())
    if found := FOREIGN.match(said):
        return found["number"] or found["place"]
    found = LEAD.match(said)
    if not found:
        return ""
    number, kind = found["number"], found["kind"]
    if not number:
        return NOBODYS
    if (
        not kind
        and not found["end"]
        and "of" not in found[0]
        and "to" not in found[0]
        and "for" not in found[0]
    ):
        return ""  # `Problem 3 shows that`
    if number.startswith("zref"):
        return ref(labels[int(number[4:])])
    return called(number) if re.fullmatch(QUESTION, kind or "problem") else f"{kind} {called(number)}"


def shortcoming(problem: str, body: str) -> str:
    """Why a text is no full right solution, by its own words or by its problem's; empty where nothing says so."""
    asked = plain(problem)
    said = plain(refs_of(CITE.sub(r" \\ref{x} ", NOTE.sub(" fixme ", body)))[1])
    found = (
        OPENS.match(said)
        or (len(said) < LITTLE and REFERS.match(said))
        or AUTHOR.search(said[:150])
        or LEAVES.search(said)
    )
    if found:
        return f"the solution says {found[0]!r}"
    if found := EXERCISE.search(body) or ELSEWHERE.search(problem + body):
        return f"a part is elsewhere: {found[0]}"
    if re.fullmatch(r"[0-9 ]{1,12}", said):
        return f"it is an answer without a proof: {said!r}"
    if not plain(PICTURE.sub("", body)):
        return "it has no words" if body else ""
    if found := ASKS_FOR_FAULT.search(asked):
        return f"its problem may ask for the fault of a proof: {found[0]!r}"
    if found := NEXT.search(body):
        return f"another problem begins in it: {found[0]!r}"
    return _part(problem, body)


def _part(problem: str, body: str) -> str:
    """Why a solution may be one of a part; it begins with the label of a part, and another part has no label in it."""
    found = PART.match(" ".join(NOT_READ.sub(" ", LIST.sub("", body[:LITTLE])).split()).casefold())
    if not found:
        return ""
    first = found["part"] or found["said"] or found["bare"]
    row = next(one for one in ROWS if first in one)
    have = {one.casefold() for one in LABEL.findall(body)} | {first}
    need = {one.casefold() for one in LABEL.findall(problem)} & set(row) | {row[0], row[1]}
    return f"it begins with part ({first}) and has not all parts" if need - have else ""


def announced(words: str) -> bool:
    """Whether words between problems say that the solutions behind them are a model's or a student's."""
    return (
        AUTHOR.search(words) is not None
        and re.search(r"\b(?:all|these|following|below)\b", words) is not None
    )


def doubtful_heading(title: str) -> bool:
    """Whether a heading, a file's title or words before a solution announce solutions that are not right and full."""
    said = plain(title.replace("_", " "))
    found = re.search(rf"\b(?:{NO_PROOF}|false)\b", said)
    return bool(AUTHOR.search(said)) or (
        found is not None
        and (found[0] == said or re.search(rf"\b{WORKS}\b|\b{ARGUMENT}\b", said) is not None)
    )
