"""HPSv2 and HPSv2.1 (Wu et al. 2023, arXiv 2306.09341): CLIP ViT-H/14 tuned on people's rankings of pictures."""

from __future__ import annotations

from protoscore.errors import needs
from protoscore.scorers import Facts, protobias_accuracy, split_variant
from protoscore.scorers._two_tower import TwoTower, named

FILES = {"v2.0": "HPS_v2_compressed.pt", "v2.1": "HPS_v2.1_compressed.pt"}


class HpsV2(TwoTower):
    """The raw cosine, about 0.2 to 0.35 for real weights; tables often show it times 100. The authors' ``score()`` and
    their benchmark differ in the version that they default to, so that the version belongs to every number. Scores are
    comparable within one prompt and one version only.

    ``antialias=False`` scales pictures as torchvision did before 0.17, when the metric was published.
    """

    facts = Facts(
        question="Which picture would people prefer for this prompt?",
        paper="arXiv 2306.09341",
        hub_id="xswu/HPSv2",
        licence="Apache-2.0",
        low=-1.0,
        high=1.0,
        variants=tuple(FILES),
        weights=986_109_441,
        known_bias=protobias_accuracy(0.25, 0.38, 0.38),
    )

    def __init__(
        self, source: str | None = None, variant: str | None = None, antialias: bool = True, revision: str | None = None,
        device: str | None = None, dtype: str = "float32", batch_size: int = 16,
    ):  # fmt: skip
        name = named("hps_v2", source, variant)
        variant, source = split_variant(source, tuple(FILES), variant)
        with needs("models"):
            from protoscore.modeling.hps import HpsTowers
        towers = HpsTowers(source or str(self.facts.hub_id), FILES[variant], antialias, revision, device, dtype)
        super().__init__(name, towers, batch_size, "cos")
        self.parameters["version"] = variant


def create(source: str | None = None, **options) -> HpsV2:
    return HpsV2(source, **options)
