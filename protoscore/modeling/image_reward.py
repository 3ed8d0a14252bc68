"""ImageReward's network out of transformers' BLIP classes, read from the published checkpoint.

The published ``ImageReward.pt`` names its weights as the original BLIP code does. :func:`load` renames them, refuses every
name that is missing or left over, and folds the head: its five linear layers have no activation between them, so that
together they are one vector and one number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import BlipTextConfig, BlipTextModel, BlipVisionConfig, BlipVisionModel

from protoscore.errors import CheckpointError, first_line
from protoscore.modeling.checkpoint import read_pickle_free, refuse_keys

MEAN, STD = 0.16717362830052426, 1.0333394966054072  # of the raw reward, from the authors' code
HEAD_WIDTH = 64  # of one attention head in every ViT of the BLIP family
HEAD_LAYERS = (0, 2, 4, 6, 7)  # mlp.layers: Linear, Dropout, Linear, Dropout, Linear, Dropout, Linear, Linear
TEXT_SIZES = (
    "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "max_position_embeddings",
    "layer_norm_eps", "hidden_act",
)  # fmt: skip
# In the file and of no use here: a buffer, and the projections of BLIP's contrastive pre-training.
UNUSED = re.compile(r"blip\.(text_encoder\.embeddings\.position_ids|(vision|text)_proj\.(weight|bias))")

_VISION = (  # from transformers' names to the original ones
    (r"embeddings\.class_embedding", "cls_token"),
    (r"embeddings\.position_embedding", "pos_embed"),
    (r"embeddings\.patch_embedding\.", "patch_embed.proj."),
    (r"post_layernorm\.", "norm."),
    (r"encoder\.layers\.", "blocks."),
    (r"\.layer_norm([12])\.", r".norm\1."),
    (r"\.self_attn\.qkv\.", ".attn.qkv."),
    (r"\.self_attn\.projection\.", ".attn.proj."),
)


class Head(NamedTuple):
    """The affine map from the text tower's [CLS] state to a raw reward: ``state @ weight + bias``."""

    weight: Tensor  # (hidden,)
    bias: Tensor  # ()


class ImageReward(nn.Module):
    """BLIP's ViT, BERT with cross-attention to it, and a linear reward.

    The reward is ``(state @ weight + bias - MEAN) / STD`` of the text tower's first state; unbounded.
    """

    def __init__(self, vision: BlipVisionConfig, text: BlipTextConfig, head: Head):
        super().__init__()
        self.vision = BlipVisionModel(vision)
        self.text = BlipTextModel(text, add_pooling_layer=False)
        self.head = head  # no parameter, so that it stays in fp32 when the rest does not

    def encode(self, pixels: Tensor) -> Tensor:
        """Patch states (batch, patches + 1, width) of normalised pixels (batch, 3, side, side)."""
        return self.vision(pixels.to(self.vision.device, self.vision.dtype)).last_hidden_state

    def reward(self, patches: Tensor, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Rewards (batch,) of row-wise pairs of patch states and texts."""
        device = patches.device
        states = self.text(
            input_ids=input_ids.to(device),
            attention_mask=attention_mask.to(device),
            encoder_hidden_states=patches,
            encoder_attention_mask=torch.ones(patches.shape[:2], dtype=torch.long, device=device),
        ).last_hidden_state
        raw = states[:, 0].float() @ self.head.weight.to(device) + self.head.bias.to(device)
        return (raw - MEAN) / STD


def load(weights: Path, text_config: Path) -> ImageReward:
    """The network of a published ``ImageReward.pt`` and its ``med_config.json``, in fp32.

    Raises:
        CheckpointError: the files cannot be read, or a weight is missing, left over or of another shape; it is named.
    """
    state = read_pickle_free(weights)
    try:
        text = json.loads(text_config.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{text_config} cannot be read ({type(error).__name__})") from error
    if not isinstance(state, Mapping) or not isinstance(text, Mapping):
        raise CheckpointError(f"{weights.parent}: ImageReward.pt must hold named weights, and med_config.json an object")
    return from_state(state, text, str(weights))


def from_state(state: Mapping[str, Tensor], text: Mapping[str, object], origin: str = "checkpoint") -> ImageReward:
    """The network of the original weight names; ``text`` is the content of ``med_config.json``.

    Raises:
        CheckpointError: a weight is missing, left over or of another shape; it is named.
    """
    head_names = [(f"mlp.layers.{i}.weight", f"mlp.layers.{i}.bias") for i in HEAD_LAYERS]
    refuse_keys(origin, "missing keys", {name for pair in head_names for name in pair} - state.keys())
    vision = _vision_config(state, origin)
    try:
        head = fold([(state[weight], state[bias]) for weight, bias in head_names])
    except RuntimeError as error:
        raise CheckpointError(f"{origin}: the layers of mlp.layers do not fit together ({first_line(error)})") from error
    model = ImageReward(vision, _text_config(text, vision.hidden_size), head)
    own = model.state_dict()
    known = {_original(name) for name in own} | {name for pair in head_names for name in pair}
    refuse_keys(origin, "missing keys", known - state.keys())
    refuse_keys(origin, "unexpected keys", (name for name in state.keys() - known if not UNUSED.fullmatch(name)))
    wrong = [_original(name) for name, value in own.items() if state[_original(name)].shape != value.shape]
    refuse_keys(origin, "mismatched keys", wrong)
    model.load_state_dict({name: state[_original(name)] for name in own})
    return model.eval()


def fold(layers: Iterable[tuple[Tensor, Tensor]]) -> Head:
    """Linear layers (weight, bias) applied one after the other, as one affine map to a number; multiplied out in fp64."""
    (weight, bias), *rest = ((w.double(), b.double()) for w, b in layers)
    for w, b in rest:
        weight, bias = w @ weight, w @ bias + b
    return Head(weight[0].float(), bias[0].float())


def _original(name: str) -> str:
    """The name that a weight of :class:`ImageReward` has in the published file."""
    tower, _, name = name.partition(".")
    if tower == "text":
        return "blip.text_encoder." + name
    for pattern, replacement in _VISION:
        name = re.sub(pattern, replacement, name)
    return "blip.visual_encoder." + name


def _vision_config(state: Mapping[str, Tensor], origin: str) -> BlipVisionConfig:
    """The size of the ViT is nowhere written down; the weights' shapes tell it."""
    prefix = "blip.visual_encoder."
    names = [prefix + name for name in ("pos_embed", "patch_embed.proj.weight", "blocks.0.mlp.fc1.weight")]
    refuse_keys(origin, "missing keys", (name for name in names if name not in state))
    positions, patch, inner = (state[name].shape for name in names)
    blocks = {name.split(".")[3] for name in state if name.startswith(prefix + "blocks.")}
    return BlipVisionConfig(
        hidden_size=positions[2],
        intermediate_size=inner[0],
        num_hidden_layers=len(blocks),
        num_attention_heads=positions[2] // HEAD_WIDTH,
        image_size=round((positions[1] - 1) ** 0.5) * patch[3],
        patch_size=patch[3],
        layer_norm_eps=1e-6,  # transformers' own default is 1e-5
    )


def _text_config(text: Mapping[str, object], encoder_width: int) -> BlipTextConfig:
    """The text tower of ``med_config.json``. Its own encoder_width (768) is not what the authors' code uses."""
    try:
        given: dict[str, Any] = {key: text[key] for key in TEXT_SIZES}
    except KeyError as error:
        raise CheckpointError(f"med_config.json lacks {error}") from error
    return BlipTextConfig(
        **given, encoder_hidden_size=encoder_width, bos_token_id=None, eos_token_id=None, sep_token_id=None,
        pad_token_id=text.get("pad_token_id", 0), is_decoder=True,  # is_decoder: so that there is cross-attention
    )  # fmt: skip
