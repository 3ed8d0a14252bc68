"""How likely a model is to answer Yes to a question about a picture: the two kinds of network that VQAScore runs on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from PIL.Image import Image
from transformers import AutoImageProcessor, AutoModelForImageTextToText, AutoProcessor, CLIPModel, T5Tokenizer

from protoscore.errors import CheckpointError, first_line
from protoscore.modeling.checkpoint import Checkpoint, fetch, load_model
from protoscore.modeling.clip_t5 import ClipT5
from protoscore.modeling.first_token import FirstToken, cut, picture, single_token
from protoscore.modeling.pixels import padded
from protoscore.modeling.records import processor_digest, tokenizer_digest

MAX_TEXT_TOKENS = 1900  # of the text asked about; CLIP-FlanT5 reads 2048 tokens in all


class Answer(NamedTuple):
    """Log probabilities for one pair."""

    yes: float  # of Yes as the first token, among the whole vocabulary
    no: float
    end: float | None  # of the end of the answer after Yes; None where the published score does not look at it


class ChatYesNo:
    """Any image-text-to-text model of transformers that has a chat template."""

    default_question = 'Does this figure show "{}"? Please answer Yes or No.'

    def __init__(self, checkpoint: Checkpoint, device: str | None, dtype: str):
        self._first = load_chat_model(checkpoint, device, dtype)
        self._yes, self._no = self._first.token("Yes"), self._first.token("No")
        self.parameters: dict[str, Any] = {"dtype": dtype, "processor": processor_digest(self._first.processor)}

    def ask(self, images: Sequence[Image], texts: Sequence[str], question: str) -> tuple[list[Answer], list[bool]]:
        """Answers to ``question`` about row-wise pairs, and which texts were cut."""
        cuts = [cut(self._first.processor.tokenizer, text, MAX_TEXT_TOKENS) for text in texts]
        conversations = [
            [{"role": "user", "content": [picture(image), {"type": "text", "text": question.replace("{}", text)}]}]
            for image, (text, _) in zip(images, cuts, strict=True)
        ]
        logs = self._first.logits(conversations).double().log_softmax(dim=-1)
        rows = logs[:, [self._yes, self._no]].tolist()
        return [Answer(yes, no, None) for yes, no in rows], [was_cut for _, was_cut in cuts]


class ClipT5YesNo:
    """CLIP-FlanT5. Its answer is "Yes" and the end of the text, and its published score the geometric mean of the two."""

    default_question = 'Does this figure show "{}"? Please answer yes or no.'
    # The conversation that the model was trained on. The text around the picture is tokenised in two pieces, each with
    # its own end token.
    before = (
        "A chat between a curious user and an artificial intelligence assistant. The assistant gives helpful, detailed, "
        "and polite answers to the user's questions. USER: "
    )
    after = "\n{} ASSISTANT: "

    def __init__(
        self, checkpoint: Checkpoint, device: str | None, dtype: str, tokenizer: str | None = None, tower: str | None = None
    ):
        self._model: Any = load_model(ClipT5, checkpoint, dtype, device)
        config = self._model.config
        if (config.mm_projector_type, config.mm_vision_select_feature) != ("mlp2x_gelu", "patch"):
            raise CheckpointError(f"{checkpoint.source}: only a projector of type mlp2x_gelu on patches is known")
        self._tokenizer = _t5_tokenizer(checkpoint, tokenizer, config.d_model)
        clip = fetch(tower or config.mm_vision_tower)
        self._tower: Any = load_model(CLIPModel, clip, dtype, device).vision_model
        self._yes = self._answer("Yes", checkpoint.source)
        self._no = self._answer("No", checkpoint.source)[0]
        self.parameters: dict[str, Any] = {
            "dtype": dtype, "tokenizer": tokenizer_digest(self._tokenizer), "tower": clip.revision,
            "resize": f"padded to a square, {self._tower.config.image_size} bicubic, pillow",
        }  # fmt: skip

    @torch.inference_mode()
    def ask(self, images: Sequence[Image], texts: Sequence[str], question: str) -> tuple[list[Answer], list[bool]]:
        """Answers to ``question`` about row-wise pairs, and which texts were cut. Each picture is encoded once."""
        distinct = {id(image): image for image in images}
        pixels = torch.stack([padded(image, self._tower.config.image_size) for image in distinct.values()])
        states = dict(zip(distinct, self._model.encode_pixels(self._tower, pixels.to(self._tower.device, self._tower.dtype))))
        cuts = [cut(self._tokenizer, text, MAX_TEXT_TOKENS) for text in texts]
        after = [self._ids(self.after.replace("{}", question.replace("{}", text))) for text, _ in cuts]
        logs = self._model.answer_log_probs(
            [states[id(image)] for image in images], self._ids(self.before), after, self._yes, len(self._tokenizer)
        ).double()
        yes, end = self._yes
        rows = torch.stack([logs[:, 0, yes], logs[:, 0, self._no], logs[:, 1, end]], dim=1).tolist()
        return [Answer(*row) for row in rows], [was_cut for _, was_cut in cuts]

    def _ids(self, text: str) -> list[int]:
        return self._tokenizer(text, split_special_tokens=True)["input_ids"]

    def _answer(self, word: str, origin: str) -> list[int]:
        ids = [single_token(self._tokenizer, word, origin), self._tokenizer.eos_token_id]
        if self._ids(word) != ids:
            raise CheckpointError(f"the tokenizer of {origin} does not close {word!r} with its end token; give T5's tokenizer")
        return ids


def load_chat_model(checkpoint: Checkpoint, device: str | None, dtype: str, pillow: bool = False) -> FirstToken:
    """An image-text-to-text model with its processor; ``pillow``: which resizes pictures by Pillow and not as tensors.

    Raises:
        CheckpointError: transformers knows no such model, or files are missing.
    """
    try:
        processor = AutoProcessor.from_pretrained(checkpoint.path, local_files_only=True, trust_remote_code=False)
        if not hasattr(processor, "image_processor"):
            raise CheckpointError(f"{checkpoint.source} takes no pictures; give an image-text-to-text model")
        if pillow:
            processor.image_processor = AutoImageProcessor.from_pretrained(
                checkpoint.path, backend="pil", local_files_only=True, trust_remote_code=False
            )
    except (OSError, ValueError, KeyError) as error:
        raise CheckpointError(f"{checkpoint.source} misses its configuration or processor ({first_line(error)})") from error
    return FirstToken(load_model(AutoModelForImageTextToText, checkpoint, dtype, device), processor, checkpoint.source)


def _t5_tokenizer(checkpoint: Checkpoint, source: str | None, width: int) -> Any:
    """The tokenizer asked for, else the one beside the weights, else that of the Flan-T5 they were trained from."""
    beside = any((checkpoint.path / name).is_file() for name in ("tokenizer.json", "spiece.model"))
    if source is None and beside:
        path = checkpoint.path
    else:
        flan = "google/flan-t5-xxl" if width > 2048 else "google/flan-t5-xl"
        path = fetch(source or flan, files=("tokenizer.json", "spiece.model")).path
    try:
        return T5Tokenizer.from_pretrained(path, local_files_only=True)
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} holds no T5 tokenizer ({first_line(error)}); give one as tokenizer=FOLDER") from error
