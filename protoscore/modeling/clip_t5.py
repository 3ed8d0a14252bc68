"""CLIP-FlanT5, the network of the original VQAScore, out of transformers' T5 and CLIP classes.

Its published class is T5 with two attributes more, ``mm_projector`` and ``vision_tower``, hence the names of its weights. The
vision tower was frozen in training and is read from CLIP's own repository, as the authors' code does.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax
from torch.nn.utils.rnn import pad_sequence
from transformers import CLIPVisionModel, T5Config, T5ForConditionalGeneration


class ClipT5Config(T5Config):
    """T5's configuration and how pictures enter, under the names of the published ``config.json``."""

    model_type = "clip_t5"
    mm_vision_tower: str = "openai/clip-vit-large-patch14-336"
    mm_hidden_size: int = 1024
    mm_vision_select_layer: int = -2
    mm_vision_select_feature: str = "patch"
    mm_projector_type: str = "mlp2x_gelu"


class ClipT5(T5ForConditionalGeneration):
    """T5 whose encoder reads picture states in place of an image token."""

    config_class = ClipT5Config
    config: ClipT5Config
    # Flan-T5's output layer is not tied to its input embeddings: without it a checkpoint is incomplete.
    _tied_weights_keys = {"encoder.embed_tokens.weight": "shared.weight", "decoder.embed_tokens.weight": "shared.weight"}
    _keys_to_ignore_on_load_unexpected = [r"^vision_tower\.", r"^embed_tokens\.weight$"]  # the tower; an alias of shared

    def __init__(self, config: ClipT5Config):
        super().__init__(config)
        width = config.d_model
        self.mm_projector = nn.Sequential(nn.Linear(config.mm_hidden_size, width), nn.GELU(), nn.Linear(width, width))
        self.post_init()

    def encode_pixels(self, tower: CLIPVisionModel, pixels: Tensor) -> Tensor:
        """Picture states (batch, patches, d_model) of normalised pixels: a late layer of CLIP without its class token."""
        states = tower(pixels, output_hidden_states=True).hidden_states[self.config.mm_vision_select_layer]
        return self.mm_projector(states[:, 1:])

    def answer_log_probs(
        self, pictures: Sequence[Tensor], before: Sequence[int], after: Sequence[Sequence[int]], answer: Sequence[int],
        size: int,
    ) -> Tensor:  # fmt: skip
        """Log probabilities (batch, len(answer), size) of the vocabulary at each place of ``answer``.

        Args:
            pictures: states (patches, d_model) of each picture.
            before: tokens in front of the picture, the same for all.
            after: tokens behind the picture.
            answer: tokens whose earlier ones each place is conditioned on.
            size: of the tokenizer's vocabulary. The output layer is padded beyond it.
        """
        device = self.shared.weight.device
        head = self.shared(torch.tensor(before, device=device))
        rows = [
            torch.cat([head, picture.to(head), self.shared(torch.tensor(tokens, device=device))])
            for picture, tokens in zip(pictures, after, strict=True)
        ]
        mask = pad_sequence([torch.ones(len(row), dtype=torch.long, device=device) for row in rows], batch_first=True)
        given = self.prepare_decoder_input_ids_from_labels(torch.tensor(answer, device=device).expand(len(rows), -1))
        states = pad_sequence(rows, batch_first=True)
        out = self(inputs_embeds=states, attention_mask=mask, decoder_input_ids=given, use_cache=False)
        return log_softmax(out.logits[..., :size].float(), dim=-1)
