"""ImageReward (Xu et al. 2023, arXiv 2304.05977): a reward learned from rankings by people."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from protoscore.batches import batched, paired
from protoscore.errors import needs
from protoscore.scorers import Facts, Separable, protobias_accuracy

if TYPE_CHECKING:
    import torch
    from PIL.Image import Image

HUB_ID = "zai-org/ImageReward"  # was THUDM/ImageReward
TOKENIZER = "google-bert/bert-base-uncased"
MAX_TEXT_TOKENS = 35  # with [CLS] and [SEP]


class ImageRewardScorer(Separable):
    """An unbounded reward; over the authors' Stable Diffusion 1.4 pictures 62.4 % lie in [-1, 1] and 98.2 % in [-2, 2].

    The vision tower runs once a picture; the text tower, which looks at the picture, once a pair.

    Args:
        source: a folder or Hub id with ``ImageReward.pt`` and ``med_config.json``.
        tokenizer: a folder or Hub id of BERT's tokenizer, where ``source`` has none.
    """

    facts = Facts(
        question="How much would people like this picture for this prompt?",
        paper="arXiv 2304.05977",
        hub_id=HUB_ID,
        licence="Apache-2.0",
        weights=445_279_489,
        known_bias=protobias_accuracy(0.52, 0.48, 0.62),
    )

    def __init__(
        self, source: str | None = None, tokenizer: str | None = None, revision: str | None = None,
        device: str | None = None, dtype: str = "float32", batch_size: int = 32,
    ):  # fmt: skip
        with needs("models"):
            from protoscore.modeling import image_reward
            from protoscore.modeling.checkpoint import fetch, pick_device, pick_dtype
            from protoscore.modeling.records import tokenizer_digest
        checkpoint = fetch(source or HUB_ID, revision, files=("ImageReward.pt", "med_config.json"))
        self._tokenizer = _tokenizer(tokenizer, checkpoint.path)
        model = image_reward.load(checkpoint.path / "ImageReward.pt", checkpoint.path / "med_config.json")
        self._model = model.to(pick_device(device), pick_dtype(dtype))
        self._side = model.vision.config.image_size
        self.name = f"image_reward:{source}" if source else "image_reward"
        self.revision = checkpoint.revision
        self.parameters: dict[str, Any] = {
            "dtype": dtype, "max_length": MAX_TEXT_TOKENS, "tokenizer": tokenizer_digest(self._tokenizer),
            "resize": f"shortest side {self._side} bicubic, crop, pillow",
        }  # fmt: skip
        self.batch_size = batch_size

    def prepare(self, image: Image) -> torch.Tensor:
        from protoscore.modeling.pixels import cropped

        return cropped(image, self._side)

    def encode_images(self, images: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        import torch

        patches: list[torch.Tensor] = []
        with torch.inference_mode():
            for part in batched(images, self.batch_size):
                patches += self._model.encode(torch.stack(part))
        return patches

    def encode_texts(self, texts: Sequence[str]) -> tuple[list[torch.Tensor], list[bool]]:
        """One tensor (2, 35) a text: its tokens, and which of them are not padding."""
        import torch

        if not texts:
            return [], []
        encoded = self._tokenizer(
            list(texts), truncation=True, max_length=MAX_TEXT_TOKENS, padding="max_length", padding_side="right",
            split_special_tokens=True, return_tensors="pt",
        )  # fmt: skip
        tokens = torch.stack([encoded["input_ids"], encoded["attention_mask"]], dim=1)
        return list(tokens), [bool(each.overflowing) for each in encoded.encodings]

    def match(self, image_features: Sequence[torch.Tensor], text_features: Sequence[torch.Tensor]) -> list[float]:
        import torch

        values: list[float] = []
        with torch.inference_mode():
            for patches, texts in paired(image_features, text_features, self.batch_size):
                tokens, mask = torch.stack(texts).unbind(dim=1)
                values += self._model.reward(torch.stack(patches), tokens, mask).tolist()
        return values


def _tokenizer(source: str | None, folder: Path) -> Any:
    """BERT's tokenizer: the one asked for, else the one beside the weights, else that of the Hub."""
    from transformers import BertTokenizer

    from protoscore.errors import CheckpointError, first_line
    from protoscore.modeling.checkpoint import fetch

    beside = any((folder / name).is_file() for name in ("tokenizer.json", "vocab.txt"))
    path = folder if source is None and beside else fetch(source or TOKENIZER, files=("*.json", "*.txt")).path
    try:
        return BertTokenizer.from_pretrained(path, local_files_only=True)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} holds no BERT tokenizer ({first_line(error)}); give one as tokenizer=FOLDER") from error


def create(source: str | None = None, **options: Any) -> ImageRewardScorer:
    return ImageRewardScorer(source, **options)
