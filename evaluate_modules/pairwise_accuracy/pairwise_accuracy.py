"""How often a text-to-image metric scores the semantically correct image strictly higher than one that looks more prototypical
but violates the prompt (ProtoBias, Eq. 1). A tie is a failure, and is counted."""

import datasets
import evaluate
import numpy as np

from protoscore.errors import ConfigError
from protoscore.stats.agreement import cohen_kappa
from protoscore.stats.groups import by_group
from protoscore.stats.pairwise import choices, element_sensitivity, five_quantities, pairwise_accuracy
from protoscore.stats.resampling import flat

CITATION = "@misc{protobias2026, title={ProtoBias}, year={2026}, eprint={2601.04946}, archivePrefix={arXiv}}"


class PairwiseAccuracy(evaluate.Metric):
    """
    Args:
        score_correct (list of float): the metric's score of each correct image; None where there is none.
        score_adv (list of float): its score of the prototypical, wrong image under the same text.
        proto_correct, non_violated (lists of float, optional): scores of a triplet's two other cells: the correct image of the
            prototypical subject, the wrong image of the other one. With both, the five quantities are given too.
        foils (list of 3 lists of 2 floats, optional, with the cells): scores of the right pictures with one element wrong:
            another extra thing, environment, subject; of each, the foil of score_correct's picture and of proto_correct's.
        human (list of str, optional): what people prefer, "correct" or "adversarial", None for no preference; adds kappa.
        groups (list of str, optional): the domain of each pair; adds the same by group.
        clusters (list of str, optional): the triplet of each pair, what intervals resample; default each pair.
        resamples, seed (int): of the bootstrap; default 2000 and 0.

    Returns:
        pairwise_accuracy (0-1, ideal 1) with _interval (95 %), _n, _left_out; ties; with cells incongruent, congruent,
        sensitivity (ideal 1), preference (ideal 0.5) and gap (ideal 0); with foils element_extra, element_environment,
        element_subject and elements, their mean (ideal 1); with human kappa; with groups a dictionary by group.

    Examples:
        >>> import evaluate
        >>> metric = evaluate.load("evaluate_modules/pairwise_accuracy")
        >>> result = metric.compute(score_correct=[0.9, 0.2, 0.5, 0.7], score_adv=[0.1, 0.3, 0.5, 0.6])
        >>> result["pairwise_accuracy"], result["ties"], result["pairwise_accuracy_n"]
        (0.5, 1, 4)
        >>> result = metric.compute(score_correct=[3, 1], score_adv=[1, 3], groups=["animal", "object"])
        >>> result["groups"]["animal"]["pairwise_accuracy"]
        1.0
    """

    def _info(self):
        return evaluate.MetricInfo(
            description=__doc__,
            citation=CITATION,
            inputs_description=PairwiseAccuracy.__doc__,
            features=datasets.Features({name: datasets.Value("float64") for name in ("score_correct", "score_adv")}),
            license="apache-2.0",
        )

    def _compute(
        self, score_correct, score_adv, proto_correct=None, non_violated=None, foils=None,
        human=None, groups=None, clusters=None, resamples=2000, seed=0,
    ):  # fmt: skip
        given = [c for c in (score_correct, score_adv, proto_correct, non_violated) if c is not None]
        scores = np.array(given if len(given) == 4 else given[:2], float)
        clusters = np.arange(scores.shape[1]) if clusters is None else np.asarray(clusters)
        if foils is not None and len(given) < 4:
            raise ConfigError(
                "foils are compared with the right pictures of both subjects; give proto_correct and non_violated too"
            )
        wrong = None if foils is None else np.asarray(foils, float)
        people = None if human is None else np.asarray(human, object)

        def result(rows):
            draw = (clusters[rows], resamples, seed)
            correct, adversarial, *others = scores[:, rows]
            accuracy = pairwise_accuracy(correct, adversarial, *draw)
            out = flat(pairwise_accuracy=accuracy) | {"ties": accuracy.ties}
            if others:
                out |= flat(**five_quantities(correct, adversarial, *others, *draw)._asdict())
            if wrong is not None:
                found = element_sensitivity(scores[[0, 2]][:, rows].T, wrong[rows], *draw)._asdict()
                out |= flat(elements=found.pop("all"), **{f"element_{name}": e for name, e in found.items()})
            if people is not None:
                labels = ["adversarial", "correct"]
                out |= flat(kappa=cohen_kappa(choices(correct, adversarial), people[rows], labels, None, *draw))
            return out

        everything = result(slice(None))
        return everything if groups is None else everything | {"groups": by_group(groups, result)}
