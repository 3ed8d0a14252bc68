"""Qwen3-VL-Reranker as a metric: how relevant is the picture to the text, as a search engine would ask. Not trained for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from protoscore.batches import paired
from protoscore.errors import needs
from protoscore.scorers import Facts, Score

if TYPE_CHECKING:
    from PIL.Image import Image

HUB_ID = "Qwen/Qwen3-VL-Reranker-2B"
# The input format that the model was trained on, from the authors' code; it has no line breaks but this one.
SYSTEM = (
    "Judge whether the Document meets the requirements based on the Query and the Instruct provided. "
    'Note that the answer can only be "yes" or "no".'
)
INSTRUCTION = "Given a search query, retrieve relevant candidates that answer the query."
MAX_TEXT_TOKENS = 8192  # the authors cut the whole input at 10,240, of which a picture takes 1800 at most
MIN_PIXELS, MAX_PIXELS = 4 * 32 * 32, 1800 * 32 * 32


class Qwen3VlReranker:
    """P(yes) / (P(yes) + P(no)) for the first token of the answer, in [0, 1]; one forward pass and raw logits.

    The text is the query, the picture the document.

    Args:
        instruction: what makes a picture relevant, in the place where the model expects it.
    """

    facts = Facts(
        question="Would a search for the text want to find this picture?",
        paper="Qwen3-VL-Embedding and Qwen3-VL-Reranker, technical report (2026)",
        hub_id=HUB_ID,
        licence="Apache-2.0",
        low=0.0,
        high=1.0,
        weights=2_127_532_032,
        known_bias="not measured here; relevance is less than faithfulness, a picture with a wrong detail can be a good hit",
    )

    def __init__(
        self, source: str | None = None, instruction: str = INSTRUCTION, revision: str | None = None,
        device: str | None = None, dtype: str = "float32", batch_size: int = 8,
    ):  # fmt: skip
        with needs("models"):
            from protoscore.modeling.checkpoint import fetch
            from protoscore.modeling.records import processor_digest
            from protoscore.modeling.yes_no import load_chat_model
        checkpoint = fetch(source or HUB_ID, revision)
        self._first = load_chat_model(checkpoint, device, dtype, pillow=True)
        processor = self._first.processor
        processor.image_processor.size = {"shortest_edge": MIN_PIXELS, "longest_edge": MAX_PIXELS}  # Qwen's edges are areas
        self._yes, self._no = self._first.token("yes"), self._first.token("no")
        self._instruction = instruction
        self.name = f"qwen3_vl_reranker:{source}" if source else "qwen3_vl_reranker"
        self.revision = checkpoint.revision
        self.parameters: dict[str, Any] = {
            "dtype": dtype, "processor": processor_digest(processor), "instruction": instruction, "max_length": MAX_TEXT_TOKENS,
        }  # fmt: skip
        self.batch_size = batch_size

    def score(self, images: Sequence[Image], texts: Sequence[str]) -> list[Score]:
        from protoscore.modeling.first_token import cut

        scores: list[Score] = []
        for some, theirs in paired(images, texts, self.batch_size):
            cuts = [cut(self._first.processor.tokenizer, text, MAX_TEXT_TOKENS) for text in theirs]
            pairs = zip(some, cuts, strict=True)
            logits = self._first.logits([self._conversation(image, text) for image, (text, _) in pairs]).double()
            values = (logits[:, self._yes] - logits[:, self._no]).sigmoid().tolist()
            scores += [Score(value, truncated=was_cut) for value, (_, was_cut) in zip(values, cuts, strict=True)]
        return scores

    def _conversation(self, image: Image, text: str) -> list[dict[str, Any]]:
        from protoscore.modeling.first_token import picture

        user = [f"<Instruct>: {self._instruction}", "<Query>:", text, "\n<Document>:"]
        return [
            {"role": "system", "content": [{"type": "text", "text": SYSTEM}]},
            {"role": "user", "content": [*({"type": "text", "text": part} for part in user), picture(image)]},
        ]


def create(source: str | None = None, **options: Any) -> Qwen3VlReranker:
    return Qwen3VlReranker(source, **options)
