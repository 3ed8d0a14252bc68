"""What a result must be kept under besides the weights: the configuration, and digests of what is done before the network."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from protoscore.errors import CheckpointError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase, ProcessorMixin

    from protoscore.modeling.checkpoint import Checkpoint


def config_of(checkpoint: Checkpoint) -> dict[str, Any]:
    """The content of ``config.json``, of a model that transformers need not know.

    Raises:
        CheckpointError: there is none, or it is no JSON object.
    """
    try:
        config = json.loads((checkpoint.path / "config.json").read_text(encoding="utf-8"))
        if not isinstance(config, dict):
            raise ValueError("no JSON object")
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{checkpoint.source} has no readable config.json ({type(error).__name__})") from error
    return config


def tokenizer_digest(tokenizer: PreTrainedTokenizerBase) -> str:
    """A short name for a tokenizer; another vocabulary or rule has another one."""
    return _digest(tokenizer.backend_tokenizer.to_str())


def image_processor_of(checkpoint: Checkpoint) -> Any:
    """The image processor of a checkpoint, in its Pillow form where there is one.

    Raises:
        CheckpointError: there is none.
    """
    from transformers import AutoImageProcessor

    try:
        return AutoImageProcessor.from_pretrained(
            checkpoint.path, backend="pil", local_files_only=True, trust_remote_code=False
        )
    except (OSError, ValueError, KeyError) as error:
        raise CheckpointError(f"{checkpoint.source} has no image processor ({str(error).strip().splitlines()[0]})") from error


def rules_digest(image_processor: Any) -> str:
    """A short name for what an image processor does."""
    return _digest(json.dumps(image_processor.to_dict(), sort_keys=True, default=str))


def processor_digest(processor: ProcessorMixin) -> str:
    """A short name for tokenizer, chat template and image processor."""
    image_rules = json.dumps(processor.image_processor.to_dict(), sort_keys=True, default=str)
    return _digest(f"{processor.tokenizer.backend_tokenizer.to_str()}{processor.chat_template}{image_rules}")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
