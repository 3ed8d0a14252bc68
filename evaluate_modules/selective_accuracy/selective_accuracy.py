"""Accuracy of a judge that may abstain: coverage, accuracy with abstentions as errors and without them, what unscored rows
could change, and, with confidences, the risk-coverage curve."""

import datasets
import evaluate
import numpy as np

from protoscore.stats.abstention import abstention_scores, outcomes, risk_coverage
from protoscore.stats.groups import by_group
from protoscore.stats.resampling import flat

CITATION = "@misc{fairjudge2025, title={FairJudge}, year={2025}, eprint={2510.22827}, archivePrefix={arXiv}}"
TEXT = datasets.Value("large_string")  # of "string", evaluate refuses a column that starts with None


class SelectiveAccuracy(evaluate.Metric):
    """
    Args:
        predictions (list of str): predicted label; None where there is no readable answer (left out, and counted).
        references (list of str): right label.
        abstain_label (str): the prediction that abstains; default "unspecified". Right where it is the reference, and never a
            claim.
        confidences (list of float, optional): any scale, higher is surer; adds the risk-coverage curve and its area.
        groups (list of str, optional): adds the same by group.
        clusters (list of str, optional): what intervals resample; default each row.
        resamples, seed (int): of the bootstrap; default 2000 and 0.

    Returns:
        coverage (claims among scored), accuracy (abstaining is an error but where it is right), selective_accuracy (of claims),
        worst_case and best_case (accuracy if every unscored row were wrong or right), each 0-1 with _interval (95 %), _n,
        _left_out; with confidences aurc (0-1, ideal 0), excess_aurc and risk_coverage, the curve's coverage and risk.

    Examples:
        >>> import evaluate
        >>> metric = evaluate.load("evaluate_modules/selective_accuracy")
        >>> result = metric.compute(
        ...     predictions=["old", "unspecified", "young", None], references=["old", "old", "old", "young"],
        ...     confidences=[0.9, 0.2, 0.6, 0.5])
        >>> [round(result[name], 3) for name in ("coverage", "accuracy", "selective_accuracy", "worst_case", "best_case")]
        [0.667, 0.333, 0.5, 0.25, 0.5]
        >>> result["risk_coverage"]["risk"]
        [0.0, 0.5]
    """

    def _info(self):
        return evaluate.MetricInfo(
            description=__doc__,
            citation=CITATION,
            inputs_description=SelectiveAccuracy.__doc__,
            features=datasets.Features(dict.fromkeys(("predictions", "references"), TEXT)),
            license="apache-2.0",
        )

    def _compute(
        self, predictions, references, abstain_label="unspecified", confidences=None, groups=None, clusters=None,
        resamples=2000, seed=0,
    ):  # fmt: skip
        correct, abstained = outcomes(predictions, references, abstain_label)
        clusters = np.arange(len(correct)) if clusters is None else np.asarray(clusters)
        sure = None if confidences is None else np.asarray(confidences, float)

        def result(rows, curve=False):
            draw = (clusters[rows], resamples, seed)
            out = flat(**abstention_scores(correct[rows], abstained[rows], *draw)._asdict())
            if sure is not None:
                found = risk_coverage(sure[rows], correct[rows], abstained[rows], *draw)
                out |= flat(aurc=found.aurc) | {"excess_aurc": found.excess_aurc}
                if curve:
                    out["risk_coverage"] = {"coverage": found.coverage.tolist(), "risk": found.risk.tolist()}
            return out

        everything = result(slice(None), curve=True)
        return everything if groups is None else everything | {"groups": by_group(groups, result)}
