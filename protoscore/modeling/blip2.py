"""BLIP-2's image-text retrieval network, taken apart where the text comes in."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import normalize
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoTokenizer, Blip2ForImageTextRetrieval

from protoscore.errors import CheckpointError, first_line
from protoscore.modeling.checkpoint import fetch, load_model
from protoscore.modeling.records import config_of, tokenizer_digest

MAX_TEXT_TOKENS = 32  # of the reference implementation (LAVIS), with [CLS] and [SEP]


class Blip2:
    """A ``Blip2ForImageTextRetrieval`` checkpoint.

    Texts are tokenised here and not by Blip2Processor: it puts one image token per query before them when its own
    ``num_query_tokens`` is set, the model takes them off when its ``image_token_index`` is set, and where only one of the two
    is set every score is silently another.

    Raises:
        CheckpointError: the checkpoint is missing, incomplete or of another kind.
    """

    def __init__(self, source: str, revision: str | None = None, device: str | None = None, dtype: str = "float32"):
        checkpoint = fetch(source, revision)
        found = config_of(checkpoint).get("model_type")
        if found != "blip-2":
            raise CheckpointError(f"{source} holds a {found!r} model; this metric needs blip-2, as Salesforce/blip2-itm-vit-g")
        try:
            self.tokenizer = AutoTokenizer.from_pretrained(checkpoint.path, local_files_only=True, trust_remote_code=False)
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{source} misses its tokenizer ({first_line(error)})") from error
        self.model = load_model(Blip2ForImageTextRetrieval, checkpoint, dtype, device)
        self.revision = checkpoint.revision
        self.side = self.model.config.vision_config.image_size
        self.parameters = {
            "dtype": dtype, "max_length": MAX_TEXT_TOKENS, "tokenizer": tokenizer_digest(self.tokenizer),
            "resize": f"{self.side}x{self.side} bicubic, pillow",
        }  # fmt: skip

    def tokens(self, texts: Sequence[str]) -> tuple[list[Tensor], list[bool]]:
        """Token ids of each text, [CLS] ... [SEP], and which texts were cut. A special token spelled out in a text is text."""
        if not texts:
            return [], []
        encoded = self.tokenizer(list(texts), truncation=True, max_length=MAX_TEXT_TOKENS, split_special_tokens=True)
        return [torch.tensor(ids) for ids in encoded["input_ids"]], [bool(each.overflowing) for each in encoded.encodings]

    def patches(self, pixels: Sequence[Tensor]) -> Tensor:
        """States of the vision tower for pictures of (3, side, side), (batch, patches + 1, width)."""
        batch = torch.stack(list(pixels)).to(self.model.device, self.model.dtype)
        return self.model.vision_model(pixel_values=batch).last_hidden_state

    def image_vectors(self, pixels: Sequence[Tensor]) -> Tensor:
        """One unit vector per query token, (batch, queries, d), float32."""
        patches = self.patches(pixels)
        queries = self.model.query_tokens.expand(len(patches), -1, -1)
        states = self._qformer(queries, len(queries[0]), None, patches)
        return normalize(self.model.vision_projection(states).float(), dim=-1)

    def text_vectors(self, tokens: Sequence[Tensor]) -> Tensor:
        """One unit vector a text, (batch, d), float32; from the state of [CLS]."""
        ids, mask = self._padded(tokens)
        states = self._qformer(self.model.embeddings(input_ids=ids), 0, mask, None)
        return normalize(self.model.text_projection(states[:, 0]).float(), dim=-1)

    def match_probability(self, patches: Tensor, tokens: Sequence[Tensor]) -> Tensor:
        """P(match) of row-wise pairs, (batch,): queries and text attend to one another, the queries to the picture."""
        ids, mask = self._padded(tokens)
        queries = self.model.query_tokens.expand(len(patches), -1, -1)
        count = queries.shape[1]
        mask = torch.cat([mask.new_ones(len(mask), count), mask], dim=1)
        states = self._qformer(self.model.embeddings(input_ids=ids, query_embeds=queries), count, mask, patches)
        return self.model.itm_head(states[:, :count]).float().mean(dim=1).softmax(dim=-1)[:, 1]

    def _qformer(self, embeddings: Tensor, queries: int, mask: Tensor | None, patches: Tensor | None) -> Tensor:
        seen = None if patches is None else torch.ones(patches.shape[:2], dtype=torch.long, device=patches.device)
        states = self.model.qformer(
            query_embeds=embeddings, query_length=queries, attention_mask=mask, encoder_hidden_states=patches,
            encoder_attention_mask=seen,
        ).last_hidden_state  # fmt: skip
        return states.to(self.model.itm_head.weight.dtype)  # the Q-Former stays in fp32 where the rest does not

    def _padded(self, tokens: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        device = self.model.device
        ids = pad_sequence(list(tokens), batch_first=True, padding_value=self.tokenizer.pad_token_id)
        mask = pad_sequence([torch.ones_like(row) for row in tokens], batch_first=True)
        return ids.to(device), mask.to(device)
