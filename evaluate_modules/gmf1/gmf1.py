"""Group-macro-F1 of a classifier or judge (FairJudge, Table 6): macro-F1 over the classes within each demographic group,
averaged uniformly over groups, with the worst group, the gaps between groups, and abstentions handled by name."""

import datasets
import evaluate

from protoscore.stats.groups import group_scores
from protoscore.stats.resampling import flat

CITATION = "@misc{fairjudge2025, title={FairJudge}, year={2025}, eprint={2510.22827}, archivePrefix={arXiv}}"


class GroupMacroF1(evaluate.Metric):
    """
    Args:
        predictions (list of str): predicted class; None where there is no readable answer (left out, and counted).
        references (list of str): right class.
        groups (list of str): demographic group of each row; None for no group.
        abstain_label (str): the prediction that means "I cannot tell"; default "unspecified". Right where it is the reference.
        abstention (str): "error" (default, as in the paper), "left_out", or "class" (a label like any other).
        classes (str): which classes a macro-F1 averages: "seen" in references or predictions (default), "reference", "all".
        unscored (str): rows without a prediction are "left_out" (default) or an "error".
        labels (list of str, optional): every label; an unknown one raises an error.
        min_size (int): rows that a group needs to enter averages and gaps; default 1.
        clusters (list of str, optional): what intervals resample; default each row.
        resamples, seed (int): of the bootstrap; default 2000 and 0.

    Returns:
        gmf1, macro_f1, accuracy, worst_group_f1 (0-1, ideal 1), f1_gap, accuracy_gap, equalised_odds (0-1, ideal 0), each with
        _interval (95 %), _n, _left_out; worst_group; small_groups; groups: macro_f1 and accuracy of each.

    Examples:
        >>> import evaluate
        >>> metric = evaluate.load("evaluate_modules/gmf1")
        >>> result = metric.compute(
        ...     predictions=["nurse", "doctor", "unspecified", "nurse"],
        ...     references=["nurse", "doctor", "doctor", "nurse"],
        ...     groups=["woman", "man", "man", "man"])
        >>> round(result["gmf1"], 3), result["worst_group"]
        (0.917, 'man')
    """

    def _info(self):
        return evaluate.MetricInfo(
            description=__doc__,
            citation=CITATION,
            inputs_description=GroupMacroF1.__doc__,
            features=datasets.Features({name: datasets.Value("string") for name in ("predictions", "references", "groups")}),
            license="apache-2.0",
        )

    def _compute(
        self, predictions, references, groups, abstain_label="unspecified", abstention="error", classes="seen",
        unscored="left_out", labels=None, min_size=1, clusters=None, resamples=2000, seed=0,
    ):  # fmt: skip
        found = group_scores(
            predictions, references, groups, labels=labels, classes=classes, abstain_label=abstain_label, abstention=abstention,
            unscored=unscored, min_size=min_size, clusters=clusters, resamples=resamples, seed=seed,
        )  # fmt: skip
        whole = flat(
            gmf1=found.gmf1, macro_f1=found.macro_f1, accuracy=found.accuracy, worst_group_f1=found.worst,
            f1_gap=found.gap, accuracy_gap=found.accuracy_gap, equalised_odds=found.equalised_odds,
        )  # fmt: skip
        by_group = {name: flat(macro_f1=score.macro_f1, accuracy=score.accuracy) for name, score in found.groups.items()}
        return whole | {"worst_group": found.worst_group, "small_groups": list(found.small), "groups": by_group}
