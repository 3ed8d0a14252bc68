"""Vendi score of embeddings: the effective number of distinct items in a set, from 1 (all alike) to the number of items."""

import datasets
import evaluate
import numpy as np

from protoscore.stats.diversity import vendi_estimate
from protoscore.stats.groups import by_group
from protoscore.stats.resampling import flat, mean

CITATION = "@misc{vendi2022, title={The Vendi Score}, year={2022}, eprint={2210.02410}, archivePrefix={arXiv}}"


class VendiScore(evaluate.Measurement):
    """
    Args:
        embeddings (list of list of float): one vector an item, all of one length. Similarity is the cosine.
        groups (list of str, optional): the set of each item, such as its prompt; adds the score of each set and their mean.
        order (float): order of the entropy, 0 or more; default 1 (Shannon). inf looks at the largest eigenvalue only.
        normalise (bool): scale vectors to length 1; default True.
        seed (int): of the blocks that the interval's jackknife leaves out; default 0.

    Returns:
        vendi_score (1 to n) with _interval (95 %, what other samples of n items would give), _n, _left_out;
        with groups mean_vendi_score (its interval resamples sets) and groups, the score of each set.

    Examples:
        >>> import evaluate
        >>> metric = evaluate.load("evaluate_modules/vendi_score")
        >>> round(metric.compute(embeddings=[[1, 0], [1, 0], [0, 1], [0, 1]])["vendi_score"], 6)
        2.0
        >>> result = metric.compute(embeddings=[[1, 0], [0, 1], [1, 1], [2, 2]], groups=["apple", "apple", "tree", "tree"])
        >>> round(result["mean_vendi_score"], 6), result["mean_vendi_score_n"]
        (1.5, 2)
    """

    def _info(self):
        return evaluate.MeasurementInfo(
            description=__doc__,
            citation=CITATION,
            inputs_description=VendiScore.__doc__,
            features=datasets.Features({"embeddings": datasets.List(datasets.Value("float64"))}),
            license="apache-2.0",
        )

    def _compute(self, embeddings, groups=None, order=1.0, normalise=True, seed=0):
        vectors = np.array([[np.nan if v is None else v for v in row] for row in embeddings], float)
        out = flat(vendi_score=vendi_estimate(vectors, float(order), normalise, seed=seed))
        if groups is None:
            return out
        sets = by_group(groups, lambda rows: vendi_estimate(vectors[rows], float(order), normalise, seed=seed))
        average = mean([estimate.value for estimate in sets.values()], seed=seed)
        by_set = {name: flat(vendi_score=estimate) for name, estimate in sets.items()}
        return out | flat(mean_vendi_score=average) | {"groups": by_set}
