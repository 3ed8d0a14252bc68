"""Is one image generator more diverse than another? Side-by-side votes become one outcome a concept (mode over raters, then
over comparisons), which an exact binomial test compares; with scores such as Vendi's, how well they agree with people."""

import datasets
import evaluate
import numpy as np

from protoscore.errors import ConfigError
from protoscore.stats.diversity import autorater_accuracy, compare, concept_outcomes, equal_auc
from protoscore.stats.resampling import flat

CITATION = (
    "@misc{diversity2025, title={Benchmarking Diversity in Image Generation via Attribute-Conditional Human Evaluation}, \
year={2025}, eprint={2511.10547}, archivePrefix={arXiv}}"
)
VOTES = {"first": 1.0, "equal": 0.0, "second": -1.0, "unable": np.nan, None: np.nan}


class DiversityTest(evaluate.Comparison):
    """
    Args:
        votes (list of str): "first" or "second" (that model's set is more diverse), "equal", or "unable" (left out).
        concepts (list of str): the concept that each vote is about.
        comparisons (list of str, optional): which side-by-side of the concept; default one a concept.
        first_scores, second_scores (lists of float, optional): an autorater's score of both sets of the vote's comparison.
        split (str): a vote without a single mode is "equal" (default) or "left_out".
        tie_rule (str): equal concepts are left out of the test ("drop", default), shared out ("half") or a "loss".
        resamples, seed (int): of the bootstrap; default 2000 and 0.

    Returns:
        win_rate of the first model (0-1, 0.5 is no difference) with _interval (95 %, exact), _n, _left_out; p_value
        (two-sided); wins, losses, ties (concepts); with scores also autorater_win_rate and autorater_p_value, and against
        the votes autorater_accuracy and equal_auc (0.5 is chance), one row a comparison.

    Examples:
        >>> import evaluate
        >>> test = evaluate.load("evaluate_modules/diversity_test")
        >>> result = test.compute(votes=["first"] * 9 + ["second", "equal"], concepts=[f"concept {i}" for i in range(11)])
        >>> result["wins"], result["losses"], result["ties"], round(result["p_value"], 4)
        (9, 1, 1, 0.0215)
    """

    def _info(self):
        return evaluate.ComparisonInfo(
            description=__doc__,
            citation=CITATION,
            inputs_description=DiversityTest.__doc__,
            features=datasets.Features({name: datasets.Value("string") for name in ("votes", "concepts")}),
            license="apache-2.0",
        )

    def _compute(
        self, votes, concepts, comparisons=None, first_scores=None, second_scores=None, split="equal", tie_rule="drop",
        resamples=2000, seed=0,
    ):  # fmt: skip
        if unknown := sorted({v for v in votes if v not in VOTES}):
            raise ConfigError(f"a vote is first, second, equal or unable, not {unknown[0]!r}")
        ballots, sides = np.array([VOTES[v] for v in votes]), concepts if comparisons is None else comparisons
        test = compare(list(concept_outcomes(ballots, concepts, sides, split).values()), tie_rule)
        out = flat(win_rate=test.rate) | {"p_value": test.p, "wins": test.wins, "losses": test.losses, "ties": test.ties}
        if first_scores is None or second_scores is None:
            return out
        first, second = np.asarray(first_scores, float), np.asarray(second_scores, float)
        rater = compare(list(concept_outcomes(np.sign(first - second), concepts, sides, split).values()), tie_rule)
        names, rows, index = np.unique([f"{c}\0{s}" for c, s in zip(concepts, sides)], return_index=True, return_inverse=True)
        people = concept_outcomes(ballots, names[index], split=split)
        draw = (first[rows], second[rows], [people[name] for name in names], np.asarray(concepts)[rows], resamples, seed)
        agreement = flat(autorater_accuracy=autorater_accuracy(*draw), equal_auc=equal_auc(*draw))
        return out | flat(autorater_win_rate=rater.rate) | {"autorater_p_value": rater.p} | agreement
