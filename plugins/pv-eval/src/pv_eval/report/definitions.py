"""What the numbers are, in a sentence each, as a report ends."""

from __future__ import annotations

__all__ = ["DEFINITIONS"]

DEFINITIONS = (
    "Avg@n: mean share of the n votes on a pair that are its label. A vote without a verdict is wrong. The same number "
    "is the mean of Avg@k over all k of n votes.",
    "Right and wrong proofs: Avg@n of each class; balanced is their mean, 50 % for who accepts everything.",
    "Precision, F1: of right proofs, accepting one is the positive; of wrong proofs, rejecting one. A missing verdict "
    "is in no precision and lowers the recall.",
    "maj@k: the majority of k of the n votes, exactly over all subsets; missing verdicts do not vote.",
    "Agreement, kappa, AC1: majority of all votes against the label; a tie or no verdict is a category of its own. "
    "Percentile bootstrap over questions.",
    "Brier, ECE: of the share of accepting votes as a probability, over ten bins of equal width. An ECE is too high in "
    "small samples.",
    "best-of-k: the proof with the largest share of accepting votes among k of a question's, exactly over all subsets; "
    "questions count alike. It is not verl's best@N, which is the largest of the metric itself.",
    "p, sign flips: verifiers swapped question by question. McNemar: pairs taken as independent, which is too sure.",
)
