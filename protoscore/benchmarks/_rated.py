"""What TIFA160 and GenAI-Bench have in common: pictures of several models under one prompt, rated by people."""

from __future__ import annotations

from typing import Any

import numpy as np

from protoscore.stats.correlation import correlation
from protoscore.stats.paired import tie_calibrated_accuracy
from protoscore.stats.resampling import Estimate
from protoscore.stats.transfer import tie_calibrated_over_all


def agreement(scores: list[dict[str, Any]], human: dict[tuple[str, str], float], resamples: int) -> dict[str, Estimate]:
    """How well scores agree with mean ratings; intervals by resampling prompts.

    ``pairwise_accuracy`` is over all pairs of pictures, as VQAScore reports TIFA160 and the paper's Table 11 follows;
    ``pairwise_accuracy_by_prompt`` compares pictures of one prompt only, as Deutsch et al. (2023) recommend. Both with tie
    calibration.

    Args:
        scores: rows with ``prompt``, ``model`` and ``score``.
        human: (prompt, model) to the mean rating.
    """
    metric = np.array([np.nan if row["score"] is None else row["score"] for row in scores], float)
    rated = np.array([human.get((row["prompt"], row["model"]), np.nan) for row in scores], float)
    prompts = np.array([row["prompt"] for row in scores])
    return {
        "pairwise_accuracy": tie_calibrated_over_all(metric, rated, prompts, resamples).accuracy,
        "pairwise_accuracy_by_prompt": tie_calibrated_accuracy(metric, rated, prompts, resamples=resamples).accuracy,
        "kendall_tau_b": correlation(metric, rated, "kendall", prompts, resamples),
        "pearson": correlation(metric, rated, "pearson", prompts, resamples),
    }
