"""Grade metrics: how far a verifier's grades are from a human's, with intervals over questions.

x is the human's grade of a proof and y the verifier's, both as shares of the full points F. A vote of pair i has the
weight w_i / n_i, n_i votes with or without a grade, so that each pair counts once. Means, E, are over votes with a
grade unless "of all" says otherwise:

    MAE            E|y - x|                               in points: times F
    RMSE           sqrt(E(y - x)^2)
    bias           E(y - x)                               above 0: too generous
    QWK            1 - E(y - x)^2 / D,  D = E x^2 + E y^2 - 2 E x E y        quadratic weighted kappa
    score          of all: 1 - |y - x|, the reward of the format `grade`; a missing grade gets 0
    exact          of all: both are the same allowed grade
    within one     of all: they are at most one allowed grade apart
    accuracy       of all: both are at `accept` or above, or both below
    balanced       the mean of that accuracy on proofs from `accept` on, and below
    missing        of all: votes without a grade

D is the mean square of differences if y were drawn without looking at the proof. For allowed grades of equal distance
QWK is the kappa with quadratic weights of the table of grades (Cohen 1968); for others distances are in points. It is
0 for a constant grade, and needs no rounding, so that the mean of several votes has one too.

A grade that is not allowed, such as a mean of votes, counts as the nearest allowed one in exact, within one and
accuracy; halfway as the lower.

Example, F = 7: human 7, 0, 3, verifier 6, 0, 5. MAE 1 point = 0.143; bias 1/3 point; E(y-x)^2 = 5/3 points^2,
D = 58/3 + 61/3 - 2 (10/3)(11/3) = 15.22, QWK = 0.890; exact 1/3, within one 2/3; accuracy from 7 on: 2/3.

Sources: J. Cohen, Weighted kappa, 1968, doi:10.1037/h0026256. The score: DeepSeekMath-V2, arXiv 2511.22570.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pv_eval.best_of import BestOf, best_of_set
from pv_eval.checks import Checked, Finding, check, same_proofs
from pv_eval.counts import Columns, Floats, Statistic, Sums, VoteCounts, count_votes, quotient, ratio
from pv_eval.intervals import Estimate, Intervals, cluster_t, estimate_all, zero_test
from pv_eval.paired import OTHER, common, difference
from pv_eval.rank import rank_correlations
from pv_eval.run_files import RunInfo
from pv_eval.votes import Pair, Vote
from pv_rl.errors import ConfigError, DataError

__all__ = [
    "FLOORS",
    "GradeComparison",
    "GradeVersus",
    "Graded",
    "Scale",
    "compare_grades",
    "compare_with_first",
    "evaluate_grades",
    "grade_metrics",
    "grades_of",
]

FLOORS = ("mean", "median", "most frequent")
"""Constant grades that a verifier has to beat, each the best constant for RMSE, MAE and exact on this very set."""
SIGNED = ("bias", "qwk")
"""Metrics from -1 to 1; the others are shares."""
NEAR = 1e-9


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Allowed grades in points, and from which one on a proof is accepted."""

    grades: tuple[float, ...]
    """Ascending; the last is full points."""
    accept: float | None = None
    """Points; None for full points."""

    def __post_init__(self) -> None:
        listed = list(self.grades)
        if len(listed) < 2 or listed != sorted(set(listed)) or not all(0 <= one < 1e300 for one in listed):
            raise ConfigError(
                f"grades are {', '.join(map(str, listed))[:80] or 'none'}; expected two or more finite numbers, "
                "ascending, from 0 on"
            )
        number = isinstance(self.accept, int | float)
        if self.accept is not None and not (number and listed[0] < self.accept <= self.full):
            raise ConfigError(
                f"--accept {self.accept:g}: expected points above {listed[0]:g}, up to {self.full:g}"
            )

    @classmethod
    def of(cls, info: RunInfo) -> Scale | None:
        """The scale of a run; None where its verdict format has no grades.

        Raises:
            DataError: run.json has an `accept` that is not within the grades.
        """
        form = info.settings.get("format")
        options = form.get("options") if isinstance(form, Mapping) else None
        accept = options.get("accept") if isinstance(options, Mapping) else None
        try:
            return cls(grades=info.grades, accept=accept) if info.grades else None
        except ConfigError as error:
            raise DataError(
                f"settings.format of the run of {info.verifier[:80]!r} in its run.json: {error}"
            ) from error

    @property
    def full(self) -> float:
        """Full points."""
        return self.grades[-1]

    @property
    def accept_share(self) -> float:
        """Share of the full points from which a proof is accepted."""
        return self.grades[self.first_accepted] / self.full

    @cached_property
    def first_accepted(self) -> int:
        """Place of the lowest accepted grade among the allowed ones."""
        least = self.full if self.accept is None else self.accept
        return next(place for place, grade in enumerate(self.grades) if grade >= least - NEAR)

    def allows(self, share: float) -> bool:
        """Whether a share of the full points is an allowed grade."""
        return any(abs(share * self.full - grade) < 1e-6 for grade in self.grades)

    def place(self, shares: Floats) -> Floats:
        """(N,) shares of the full points to places of the nearest allowed grade; halfway is the lower."""
        points = np.array(self.grades)
        return np.searchsorted((points[1:] + points[:-1]) / 2 + NEAR, shares * self.full)


def grade_metrics() -> dict[str, Statistic]:
    """The formulas above, by name, as functions of sums; `square` is the square of RMSE."""
    square = quotient("square", "known")

    def kappa(s: Columns) -> Floats:
        x, y = ratio(s["x"], s["known"]), ratio(s["y"], s["known"])
        chance = ratio(s["xx"] + s["yy"], s["known"]) - 2 * x * y
        return np.round(1 - ratio(square(s), np.where(chance > 1e-12, chance, np.nan)), 12) + 0.0

    def balanced(s: Columns) -> Floats:
        return (ratio(s["tp"], s["right"]) + ratio(s["tn"], s["all"] - s["right"])) / 2

    return {
        "mae": quotient("absolute", "known"),
        "square": square,
        "bias": lambda s: ratio(s["y"] - s["x"], s["known"]),
        "qwk": kappa,
        "score": lambda s: ratio(s["known"] - s["absolute"], s["all"]),
        "exact": quotient("exact", "all"),
        "within_one": quotient("near", "all"),
        "accuracy": lambda s: ratio(s["tp"] + s["tn"], s["all"]),
        "balanced_accuracy": balanced,
        "missing": lambda s: 1 - ratio(s["known"], s["all"]),
    }


@dataclass(frozen=True, kw_only=True)
class Graded:
    """Grade metrics of a verifier on a set."""

    pairs: int
    questions: int
    votes: int
    samples: tuple[int, int]
    """Fewest and most of a pair."""
    grades: tuple[float, ...]
    """Allowed, in points; the last is full points."""
    accept: float
    """Points from which a proof is accepted."""
    of_votes: Mapping[str, Estimate]
    """Of single votes, by the names of `grade_metrics`; `rmse_points` and `bias_points` instead of `square` and `bias`,
    and `mae_points`."""
    of_means: Mapping[str, Estimate]
    """Of the mean of a pair's grades; further `spearman` and `kendall` over all pairs, and `kendall_within`: the mean
    of tau-b over the questions in which neither's grades are all the same."""
    ranked_within: int
    """Questions that count in `kendall_within`."""
    floors: Mapping[str, Mapping[str, Estimate]]
    """By the names of `FLOORS`; no intervals."""
    floor_points: Mapping[str, float]
    """The constant grades, in points."""
    humans: Mapping[str, Estimate] | None
    """Of one grading against another of the same proof, a proof counts once; None where no proof was graded twice."""
    graded_twice: int
    """Proofs with several gradings."""
    best_of: BestOf | None
    """Mean grade, in points, of the proof with the best mean of grades; None where no question has two proofs."""
    best_of_full: BestOf | None
    """How often that proof has full points."""
    problems: tuple[Finding, ...]
    how: Intervals


def evaluate_grades(
    checked: Checked | tuple[Sequence[Pair], Sequence[Vote]], scale: Scale, how: Intervals | None = None
) -> Graded:
    """Compute all grade metrics.

    Args:
        checked: the result of `check(pairs, votes, truth="grade")`, or pairs and votes.
        scale: of the grades.
        how: of the intervals.

    Raises:
        DataError: the set is refused, or no pair has a grade and votes.
    """
    how = how or Intervals()
    found = checked if isinstance(checked, Checked) else check(*checked, truth="grade")
    counts = count_votes(found)
    human, votes = _human(counts), _given(counts)
    of = counts.pair_of_vote

    def points(share: float) -> float:
        return scale.full * share

    def measure(
        question: Floats, weight: Floats, x: Floats, y: Floats, how: Intervals = how
    ) -> dict[str, Estimate]:
        sums = _sums(question, weight, x, y, scale, len(counts.questions))
        metrics = grade_metrics()
        signed = {name: metrics.pop(name) for name in SIGNED}
        found = estimate_all(sums, metrics, how) | estimate_all(sums, signed, how, signed=True)
        in_points = {
            "mae_points": found["mae"].to(points),
            "rmse_points": found.pop("square").to(lambda square: points(math.sqrt(square))),
            "bias_points": found.pop("bias").to(points),
        }
        return found | in_points

    mean = _means(counts)
    ranks, ranked_within = _ranks(counts, human, mean, how)
    constant = _floors(human, counts.weight, scale)
    bare = Intervals(flips=0)
    couples = _couples(counts)
    first, second, shared = couples if couples is not None else (of[:0], of[:0], human[:0])
    full = (scale.place(human) == len(scale.grades) - 1).astype(float)
    choice = len(counts.questions) < len(human) and not np.isnan(mean).all()
    return Graded(
        pairs=len(human),
        questions=len(counts.questions),
        votes=len(votes),
        samples=(int(counts.samples.min()), int(counts.samples.max())),
        grades=scale.grades,
        accept=scale.grades[scale.first_accepted],
        of_votes=measure(counts.question[of], (counts.weight / counts.samples)[of], human[of], votes),
        of_means=measure(counts.question, counts.weight, human, mean) | ranks,
        ranked_within=ranked_within,
        floors={
            name: measure(counts.question, counts.weight, human, np.full_like(human, share), bare)
            for name, share in constant.items()
        },
        floor_points={name: share * scale.full for name, share in constant.items()},
        humans=None
        if couples is None
        else measure(counts.question[first], shared, human[first], human[second]),
        graded_twice=0 if couples is None else round(float(shared.sum())),
        best_of=best_of_set(counts, how, "grade", worth=human).to(points) if choice else None,
        best_of_full=best_of_set(counts, how, "grade", worth=full) if choice else None,
        problems=found.problems,
        how=how,
    )


@dataclass(frozen=True, kw_only=True)
class GradeComparison:
    """Grades of two verifiers: the means of their votes, on the proofs that both graded."""

    pairs: int
    questions: int
    left_out: int
    """Pairs that only one of them graded, or neither."""
    differences: Mapping[str, Estimate]
    """Second minus first, of `mae_points`, `qwk`, `exact` and `within_one` (see `grade_metrics`)."""
    p: Mapping[str, float]
    """By the same names, two-sided, by the t of the interval; NaN where it has none."""


@dataclass(frozen=True, kw_only=True)
class GradeVersus:
    """A later verifier against the first, by their names."""

    first: str
    second: str
    comparison: GradeComparison


def compare_grades(
    first: Checked | tuple[Sequence[Pair], Sequence[Vote]],
    second: Checked | tuple[Sequence[Pair], Sequence[Vote]],
    scale: Scale,
    how: Intervals | None = None,
) -> GradeComparison:
    """Compare two verifiers by their grades; arguments as for `evaluate_grades`, the scale is of the first.

    Raises:
        DataError: a set is refused, the two share no pair or have other human grades, or no pair is graded by both.
    """
    both = [
        count_votes(one if isinstance(one, Checked) else check(*one, truth="grade"))
        for one in (first, second)
    ]
    one, two = common(*both)
    keep = ~np.isnan(_means(one)) & ~np.isnan(_means(two))
    if not keep.any():
        raise DataError("no pair is graded by both verifiers; compare them on the same set")
    one, two = one.part(keep), two.part(keep)
    sums, other = (
        _sums(one.question, one.weight, _human(one), _means(each), scale, len(one.questions))
        for each in (one, two)
    )
    sums, metrics = sums.beside(other, OTHER), grade_metrics()
    compared = {
        "mae_points": lambda s: metrics["mae"](s) * scale.full,
        **{name: metrics[name] for name in ("qwk", "exact", "within_one")},
    }
    moved = {name: difference(statistic) for name, statistic in compared.items()}
    return GradeComparison(
        pairs=len(one.pairs),
        questions=len(one.questions),
        left_out=len({pair.pair_id for counts in both for pair in counts.pairs}) - len(one.pairs),
        differences=estimate_all(sums, moved, how or Intervals(), plain=True),
        p={name: zero_test(sums, statistic) for name, statistic in moved.items()},
    )


def compare_with_first(
    verifiers: Sequence[tuple[str, Sequence[Pair], Sequence[Vote], Scale]], how: Intervals
) -> tuple[list[GradeVersus], list[str]]:
    """Compare each later verifier with the first.

    Args:
        verifiers: name, pairs, votes and scale of each.
        how: of the intervals.

    Returns:
        The comparisons, and a sentence for each verifier that cannot be compared.
    """
    found: list[GradeVersus] = []
    reasons: list[str] = []
    for name, *other, _ in verifiers[1:]:
        first, *base, scale = verifiers[0]
        try:
            comparison = compare_grades((base[0], base[1]), (other[0], other[1]), scale, how)
            found.append(GradeVersus(first=first, second=name, comparison=comparison))
        except DataError as error:
            reasons.append(f"{name} is not compared with {first}: {error}.")
    return found, reasons


def grades_of(
    pairs: Sequence[Pair], votes: Sequence[Vote], scale: Scale | None, how: Intervals
) -> Graded | None:
    """The grade metrics of a run; None where the pairs or the verifier have no grades.

    Raises:
        DataError: the set is refused, or the votes have grades on an unknown scale.
    """
    if all(pair.grade is None for pair in pairs):
        return None
    if scale is None:
        if any(vote.grade is not None for vote in votes):
            raise DataError(
                "the votes have grades, and run.json has no `grades`; write the allowed ones there"
            )
        return None
    return evaluate_grades((pairs, votes), scale, how)


def _human(counts: VoteCounts) -> Floats:
    """(P,) human grades."""
    return np.array([pair.grade for pair in counts.pairs], dtype=float)


def _given(counts: VoteCounts) -> Floats:
    """(V,) grades of the votes, NaN where one is missing."""
    return np.array([np.nan if vote.grade is None else vote.grade for vote in counts.votes])


def _means(counts: VoteCounts) -> Floats:
    """(P,) means of the grades of each pair, NaN where it has none."""
    votes, of, number = _given(counts), counts.pair_of_vote, len(counts.pairs)
    given = np.bincount(of, weights=~np.isnan(votes), minlength=number)
    return ratio(np.bincount(of, weights=np.nan_to_num(votes), minlength=number), given)


def _sums(question: Floats, weight: Floats, x: Floats, y: Floats, scale: Scale, number: int) -> Sums:
    """Sums over `number` questions of (N,) grades; y is NaN where it is missing."""
    known = ~np.isnan(y)
    y = np.where(known, y, 0.0)
    gap = np.where(known, y - x, 0.0)
    places = scale.place(x), scale.place(y)
    apart = np.abs(places[0] - places[1])
    right, accepted = (place >= scale.first_accepted for place in places)
    columns = {
        "all": np.ones_like(x),
        "known": known,
        "x": known * x,
        "y": y,
        "xx": known * x**2,
        "yy": y**2,
        "absolute": np.abs(gap),
        "square": gap**2,
        "exact": known & (apart == 0),
        "near": known & (apart <= 1),
        "right": right,
        "tp": right & known & accepted,
        "tn": ~right & known & ~accepted,
    }
    by_question = [np.bincount(question, weights=weight * one, minlength=number) for one in columns.values()]
    return Sums(names=tuple(columns), table=np.column_stack(by_question))


def _ranks(
    counts: VoteCounts, human: Floats, mean: Floats, how: Intervals
) -> tuple[dict[str, Estimate], int]:
    """Rank correlations of the pairs that have a grade, and the questions that have one of their own."""
    known = ~np.isnan(mean)
    if not known.any():
        none = Estimate(value=np.nan, note="no vote has a grade")
        return dict.fromkeys(("spearman", "kendall", "kendall_within"), none), 0
    ranks = rank_correlations(
        counts.question[known], counts.weight[known], human[known], mean[known], len(counts.questions)
    )
    found = {
        "spearman": cluster_t(ranks.spearman, ranks.spearman_without, how, signed=True),
        "kendall": cluster_t(ranks.kendall, ranks.kendall_without, how, signed=True),
    }
    tau = ranks.kendall_within
    has = ~np.isnan(tau)
    if not has.any():
        none = Estimate(
            value=np.nan,
            note="needs a question with several proofs to which human and verifier give different grades",
        )
        return found | {"kendall_within": none}, 0
    inside = Sums(names=("tau", "has"), table=np.column_stack([np.where(has, tau, 0.0), has]))
    return found | estimate_all(inside, {"kendall_within": quotient("tau", "has")}, how, signed=True), int(
        has.sum()
    )


def _floors(human: Floats, weight: Floats, scale: Scale) -> dict[str, float]:
    """Constant shares: mean, median and most frequent of the human's grades, by weight."""
    order = np.argsort(human, kind="stable")
    through = np.cumsum(weight[order])
    middle = int(np.searchsorted(through, through[-1] / 2))
    often = np.bincount(scale.place(human), weights=weight, minlength=len(scale.grades)).argmax()
    constants = (
        float((human * weight).sum() / weight.sum()),
        float(human[order][middle]),
        scale.grades[int(often)] / scale.full,
    )
    return dict(zip(FLOORS, constants, strict=True))


def _couples(counts: VoteCounts) -> tuple[Floats, Floats, Floats] | None:
    """Ordered couples of gradings of a proof: places of both, and weights that add up to 1 for each proof."""
    place = {pair.pair_id: number for number, pair in enumerate(counts.pairs)}
    couples = [
        (place[one.pair_id], place[other.pair_id], 1 / (len(group) * (len(group) - 1)))
        for group in same_proofs(counts.pairs)
        for one in group
        for other in group
        if one is not other
    ]
    if not couples:
        return None
    first, second, weight = (np.array(column) for column in zip(*couples, strict=True))
    return first, second, weight
