"""The checkpoint format: ``Qwen3VLForSequenceClassification`` with ``num_labels=1``, and its mixture-of-experts twin.

The score is a bias-free linear head on the last token's raw state. transformers has no such class for ``qwen3_vl`` and
``qwen3_vl_moe`` yet; it is the generic one over their backbones. Qwen3.5 has its own in transformers. The file is
self-contained, since ``save_pretrained`` copies it beside the weights for users who load with ``trust_remote_code=True`` and
do not have this package.
"""

from typing import Any

from transformers import AutoModelForSequenceClassification, Qwen3VLConfig, Qwen3VLMoeConfig, Qwen3VLPreTrainedModel
from transformers.modeling_layers import GenericForSequenceClassification
from transformers.models.qwen3_vl_moe.modeling_qwen3_vl_moe import Qwen3VLMoePreTrainedModel


class Qwen3VLForSequenceClassification(GenericForSequenceClassification, Qwen3VLPreTrainedModel):
    """Qwen3-VL with a linear ``score`` head (hidden -> num_labels, no bias) in place of the vocabulary head."""


class Qwen3VLMoeForSequenceClassification(GenericForSequenceClassification, Qwen3VLMoePreTrainedModel):
    """The same over a mixture of experts (Qwen3-VL-30B-A3B and larger)."""


OWN: dict[Any, Any] = {
    Qwen3VLConfig: Qwen3VLForSequenceClassification,
    Qwen3VLMoeConfig: Qwen3VLMoeForSequenceClassification,
}


def register() -> None:
    """Let ``AutoModelForSequenceClassification`` load these checkpoints; calling it again changes nothing."""
    for config, model in OWN.items():
        # exist_ok: for a configuration that transformers ships itself, registration is otherwise ignored without a word.
        AutoModelForSequenceClassification.register(config, model, exist_ok=True)
        model.register_for_auto_class("AutoModelForSequenceClassification")
