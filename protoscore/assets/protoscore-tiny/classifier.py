"""The checkpoint format: ``Qwen3VLForSequenceClassification`` with ``num_labels=1``.

The score is a bias-free linear head on the last token's raw state. transformers has no such class for ``qwen3_vl`` yet;
it is the generic one over Qwen3-VL's backbone. The file is self-contained, since ``save_pretrained`` copies it beside
the weights for users who load with ``trust_remote_code=True`` and do not have this package.
"""

from transformers import AutoModelForSequenceClassification, Qwen3VLConfig, Qwen3VLPreTrainedModel
from transformers.modeling_layers import GenericForSequenceClassification


class Qwen3VLForSequenceClassification(GenericForSequenceClassification, Qwen3VLPreTrainedModel):
    """Qwen3-VL with a linear ``score`` head (hidden -> num_labels, no bias) in place of the vocabulary head."""


def register() -> None:
    """Let ``AutoModelForSequenceClassification`` load ``qwen3_vl`` checkpoints; calling it again changes nothing."""
    # exist_ok: for a configuration that transformers ships itself, registration is otherwise ignored without a word.
    AutoModelForSequenceClassification.register(Qwen3VLConfig, Qwen3VLForSequenceClassification, exist_ok=True)
