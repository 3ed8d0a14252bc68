"""What an image-text-to-text model would say first: the logits of one forward pass, for any number of conversations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from protoscore.errors import CheckpointError
from protoscore.modeling.encode import not_too_long

if TYPE_CHECKING:
    from PIL.Image import Image
    from transformers import PreTrainedModel, PreTrainedTokenizerBase, ProcessorMixin

Message = dict[str, Any]


class FirstToken:
    """Logits over the vocabulary for the first token of the model's answer."""

    def __init__(self, model: PreTrainedModel, processor: ProcessorMixin, origin: str):
        if not getattr(processor, "chat_template", None):
            raise CheckpointError(f"{origin} has no chat template; give an instruction-tuned image-text-to-text model")
        self.model = model.eval()
        self.processor = processor
        self.origin = origin

    def token(self, word: str) -> int:
        """The id of ``word`` as one token.

        Raises:
            CheckpointError: the tokenizer splits it, so that its probability is not that of a first token.
        """
        return single_token(self.processor.tokenizer, word, self.origin)

    @torch.inference_mode()
    def logits(self, conversations: Sequence[Sequence[Message]]) -> Tensor:
        """Raw logits (batch, vocabulary) in fp32, before any generation setting touches them.

        Padding is on the left, so that the last place is the same for all. A control token spelled out in a text is text.
        """
        # A model that thinks first would spend its first token on that.
        thinking = {"enable_thinking": False} if "enable_thinking" in str(self.processor.chat_template) else {}
        inputs = self.processor.apply_chat_template(
            [list(messages) for messages in conversations],
            tokenize=True, return_dict=True, return_tensors="pt", add_generation_prompt=True,
            sanitize_control_tokens=True, processor_kwargs={"padding": True, "padding_side": "left"}, **thinking,
        )  # fmt: skip
        inputs = inputs.to(self.model.device, dtype=self.model.dtype)
        return self.model(**inputs, use_cache=False, logits_to_keep=1).logits[:, -1].float()


def single_token(tokenizer: PreTrainedTokenizerBase, word: str, origin: str) -> int:
    """The id of ``word`` as one token of ``tokenizer``.

    Raises:
        CheckpointError: it is split, or unknown.
    """
    ids = tokenizer(word, add_special_tokens=False)["input_ids"]
    if len(ids) != 1 or ids[0] == tokenizer.unk_token_id:
        raise CheckpointError(f"the tokenizer of {origin} has no single token for {word!r}; this metric cannot use that model")
    return ids[0]


def cut(tokenizer: PreTrainedTokenizerBase, text: str, limit: int) -> tuple[str, bool]:
    """``text`` without what comes after ``limit`` tokens, and whether anything did."""
    if len(text) <= limit:  # a token is at least one character
        return text, False
    ids = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
    return (tokenizer.decode(ids[:limit], skip_special_tokens=False), True) if len(ids) > limit else (text, False)


def picture(image: Image) -> Message:
    """``image`` as a part of a message: RGB, and not longer than any vision tower can take."""
    return {"type": "image", "image": not_too_long(image.convert("RGB"))}
