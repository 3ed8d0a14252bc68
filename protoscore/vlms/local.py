"""Any image-text-to-text model of transformers, in this process: ``local:FOLDER_OR_HUB_ID``, or ``local`` for the embedded one.

Needs no server and no key. A model of text alone (a causal language model) answers the questions that show no picture.

Answers are generated JSON (``answers=json``), or read as label likelihoods (``answers=likelihood``): for each closed field
in turn, the model's probability of every label as the next thing in the JSON, given the labels already chosen. That reading
is always valid, gives a probability with each label, and costs one forward pass a label.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from protoscore.errors import CheckpointError, ConfigError, first_line, needs
from protoscore.vlms import Reply, Request

if TYPE_CHECKING:
    from PIL.Image import Image


_REASONING = re.compile("think|thought|reason|channel|message", re.IGNORECASE)
TAUGHT = "taught.json"  # beside weights that know some protocols only: their versions, by name, and how many questions they had
TINY = Path(str(files("protoscore") / "assets" / "scene-judge-tiny"))


class Local:
    """Batched with left padding, so that a batch gives the same greedy answers as one request at a time.

    Args:
        source: a model folder or Hub id; without one, ``scene-judge-tiny``, which ships and knows drawn scenes only.
        answers: "json" or "likelihood".
        batch_size: requests of one ``generate`` call; in likelihood mode, sequences of one forward pass.
        max_tokens: of a generated reply; one that reaches it is cut off, and so invalid.
        temperature: 0 is greedy. Above 0, each request draws by its own seed, one at a time.
        revision: of a Hub id.
        dtype, device, device_map: as in transformers; the first GPU when there is one. The default type is the
            checkpoint's own on a GPU, and float32 without one.

    Raises:
        CheckpointError: nothing that can be loaded is there.
    """

    billed = False
    concurrency = 1

    def __init__(
        self, source: str | None = None, answers: str = "json", batch_size: int = 16, max_tokens: int = 256,
        temperature: float = 0.0, revision: str | None = None, dtype: str | None = None, device: str | None = None,
        device_map: Any = None,
    ):  # fmt: skip
        with needs("models"):
            from protoscore.modeling.checkpoint import fetch, pick_device
            from protoscore.modeling.patches import embed_patches_by_product

        if answers not in ("json", "likelihood"):
            raise ConfigError(f"local: answers is 'json' or 'likelihood', not {answers!r}")
        checkpoint, place = fetch(str(source or TINY), revision), pick_device(device)
        self.processor, self.tokenizer, model = _load(
            checkpoint, dtype=dtype or ("float32" if place.type == "cpu" else "auto"), device_map=device_map
        )
        if device_map is None:
            model = model.to(place)
        if place.type == "cpu" and self.processor is not None:
            embed_patches_by_product(model)
        self.model = model.eval()
        self.tokenizer.padding_side = "left"
        # Marks of reasoning stay in a reply, though some tokenizers call them special: what they enclose is not an answer.
        self._silent = {
            number for token, number in zip(self.tokenizer.all_special_tokens, self.tokenizer.all_special_ids, strict=True)
            if not _REASONING.search(token)
        }  # fmt: skip
        self._answers, self._max_tokens = answers, max_tokens
        self.batch_size = batch_size
        self.name = f"local:{source if source and not Path(source).is_dir() else checkpoint.path.name}"
        self.revision = checkpoint.revision
        taught = read_taught(checkpoint.path)
        self.taught: dict[str, str] | None = taught["protocols"] if taught else None
        self.parameters: dict[str, Any] = {
            "answers": answers, "max_tokens": max_tokens, "temperature": temperature,
            "dtype": str(self.model.dtype).removeprefix("torch."),
        }  # fmt: skip

    async def reply(self, requests: Sequence[Request]) -> list[Reply]:
        start = time.perf_counter()
        replies: dict[int, Reply] = {}
        for shown in (True, False):  # questions with pictures, and those of text alone
            places = [place for place, request in enumerate(requests) if bool(request.images) == shown]
            if places:
                replies |= zip(places, self._answer([requests[place] for place in places]), strict=True)
        share = (time.perf_counter() - start) / max(1, len(requests))
        return [replies[place]._replace(seconds=share) for place in range(len(requests))]

    def _answer(self, requests: Sequence[Request]) -> list[Reply]:
        if self.processor is None and requests[0].images:
            reason = f"{self.name} reads text only, and the question shows a picture; give a model that sees"
            return [Reply(failure="permanent", reason=reason) for _ in requests]
        if self._answers == "likelihood":
            return self._by_likelihood(requests)
        if self.parameters["temperature"]:
            return [reply for request in requests for reply in self._generate([request])]
        return self._generate(requests)

    async def close(self) -> None:
        pass

    def _generate(self, requests: Sequence[Request]) -> list[Reply]:
        import torch
        from transformers import GenerationConfig

        tokenizer, temperature = self.tokenizer, self.parameters["temperature"]
        ends = self.model.generation_config.eos_token_id
        ends = ends if isinstance(ends, list) else [tokenizer.eos_token_id if ends is None else ends]
        # Written out in full: a checkpoint's own generation settings (sampling, penalties) must not move a judge's answers.
        drawn = (
            {"do_sample": True, "temperature": temperature, "top_p": 1.0, "top_k": 0} if temperature else {"do_sample": False}
        )
        plain = GenerationConfig(
            max_new_tokens=self._max_tokens, repetition_penalty=1.0, no_repeat_ngram_size=0, eos_token_id=ends,
            pad_token_id=ends[0] if tokenizer.pad_token_id is None else tokenizer.pad_token_id, **drawn,
        )  # fmt: skip
        if temperature:
            torch.manual_seed(requests[0].seed or 0)
        inputs = self._encode([request.images for request in requests], [self._prompt(request) for request in requests])
        with torch.inference_mode():
            tokens = self.model.generate(**inputs, generation_config=plain)[:, inputs["input_ids"].shape[1] :]
        asked = inputs["attention_mask"].sum(1).tolist()
        return [self._reply(row, ends, count) for row, count in zip(tokens.tolist(), asked, strict=True)]

    def _reply(self, row: list[int], ends: list[int], asked: int) -> Reply:
        stop = next((place for place, token in enumerate(row) if token in ends), None)
        text = self.tokenizer.decode([token for token in row[:stop] if token not in self._silent])
        return Reply(text, "length" if stop is None else "stop", asked, len(row) if stop is None else stop + 1)

    def _prompt(self, request: Request) -> str:
        """The chat template around a request. Special tokens spelled out in the prompt are broken up: they are text there."""
        from protoscore.modeling.encode import plain

        text = plain(request.prompt, self.tokenizer.all_special_tokens)
        shown = [*({"type": "image"} for _ in request.images), {"type": "text", "text": text}]
        turn = {"role": "user", "content": text if self.processor is None else shown}
        reader = self.tokenizer if self.processor is None else self.processor
        return reader.apply_chat_template([turn], tokenize=False, add_generation_prompt=True)

    def _encode(self, images: Sequence[Sequence[Image]], texts: Sequence[str]) -> Any:
        from protoscore.modeling.encode import not_too_long

        pictures = [[not_too_long(image) for image in some] for some in images]
        shown = {"images": pictures} if any(pictures) else {}
        reader = self.tokenizer if self.processor is None else self.processor
        return reader(text=list(texts), **shown, padding=True, return_tensors="pt").to(self.model.device)

    def _by_likelihood(self, requests: Sequence[Request]) -> list[Reply]:
        """Every closed field of the schema, label by label; free text is left out."""
        chosen: list[dict[str, Any]] = [{} for _ in requests]
        read: list[dict[str, dict[str, float]]] = [{} for _ in requests]
        for name in requests[0].schema["properties"]:
            choices = [_choices(request.schema, name) for request in requests]
            if not all(choices):
                if any(name in request.schema["required"] for request in requests):
                    reason = f"field {name!r} is not a single choice, so it cannot be read as likelihoods; use answers=json"
                    return [Reply(failure="permanent", reason=reason) for _ in requests]
                continue
            for place, found in enumerate(self.likelihoods(requests, choices, name, chosen)):
                best = max(found, key=lambda label: found[label])
                chosen[place][name] = best
                read[place][name] = {str(label): value for label, value in found.items()}
        return [Reply(json.dumps(c, ensure_ascii=False), "stop", probabilities=p) for c, p in zip(chosen, read, strict=True)]

    def likelihoods(
        self, requests: Sequence[Request], choices: Sequence[Sequence[Any]], name: str, before: Sequence[Mapping[str, Any]] = ()
    ) -> list[dict[Any, float]]:
        """Probabilities of each request's ``choices`` for the field ``name``; they sum to 1.

        A choice's weight is the product of the probabilities of its tokens, its closing mark included, after the prompt and
        the JSON of the fields ``before`` it.
        """
        import numpy as np

        rows = [(place, choice) for place, some in enumerate(choices) for choice in some]
        starts = [_start(before[place] if before else {}, name) for place in range(len(requests))]
        prompts = [self._prompt(request) for request in requests]
        weights: list[float] = []
        for at in range(0, len(rows), self.batch_size):
            part = rows[at : at + self.batch_size]
            weights += self._weights(
                [requests[place].images for place, _ in part], [prompts[place] for place, _ in part],
                [starts[place] + _written(choice) for place, choice in part],
            )  # fmt: skip
        found: list[dict[Any, float]] = [{} for _ in requests]
        for (place, choice), weight in zip(rows, weights, strict=True):
            found[place][choice] = weight
        for some in found:
            top = max(some.values())
            total = sum(np.exp(weight - top) for weight in some.values())
            some.update({choice: float(np.exp(weight - top) / total) for choice, weight in some.items()})
        return found

    def _weights(self, images: list[tuple[Image, ...]], prompts: list[str], answers: list[str]) -> list[float]:
        """Log-probability of each answer's tokens after its prompt."""
        import torch

        # The prompt ends in the template's own marks, so its tokens stay the same when an answer follows.
        tails = [self.tokenizer(answer, add_special_tokens=False)["input_ids"] for answer in answers]
        inputs = self._encode(images, [prompt + answer for prompt, answer in zip(prompts, answers, strict=True)])
        keep = max(map(len, tails)) + 1
        with torch.inference_mode():
            logits = self.model(**inputs, logits_to_keep=keep, use_cache=False).logits[:, -keep:].float()
        ids = inputs["input_ids"][:, -keep:]
        if any(ids[row, -len(tail) :].tolist() != tail for row, tail in enumerate(tails)):
            raise CheckpointError(
                f"{self.name}: its template runs into the answer, so likelihoods cannot be read; use answers=json"
            )
        scores = torch.log_softmax(logits[:, :-1], -1).gather(-1, ids[:, 1:, None])[..., 0]
        return [float(scores[row, -len(tail) :].sum()) for row, tail in enumerate(tails)]


def _load(checkpoint: Any, **options: Any) -> tuple[Any, Any, Any]:
    """Processor (None for a model of text alone), tokenizer and model.

    Raises:
        CheckpointError: nothing that can be loaded is there.
    """
    with needs("models"):
        from safetensors import SafetensorError
        from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText, AutoProcessor, AutoTokenizer
        from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES as SEEING

    try:
        sees = AutoConfig.from_pretrained(checkpoint.path, trust_remote_code=False).model_type in SEEING
        reader = (AutoProcessor if sees else AutoTokenizer).from_pretrained(checkpoint.path, trust_remote_code=False)
        kind = AutoModelForImageTextToText if sees else AutoModelForCausalLM
        model = kind.from_pretrained(checkpoint.path, use_safetensors=True, trust_remote_code=False, **options)
    except (OSError, ValueError, KeyError, SafetensorError) as error:
        named = f"{checkpoint.source} holds no model that answers in words"
        raise CheckpointError(f"{named} ({first_line(error)}); give a folder or a Hub id") from error
    return (reader, reader.tokenizer, model) if sees else (None, reader, model)


def read_taught(folder: Path) -> dict[str, Any] | None:
    """``protocols`` and ``questions`` of :data:`TAUGHT`, where a model says that it knows some protocols only."""
    path = folder / TAUGHT
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def _choices(schema: Mapping[str, Any], name: str) -> list[Any]:
    field = schema["properties"][name]
    return [True, False] if field.get("type") == "boolean" else list(field.get("enum", []))


def _start(before: Mapping[str, Any], name: str) -> str:
    """The JSON of an answer up to the value of ``name``."""
    return json.dumps(dict(before), ensure_ascii=False)[:-1] + (", " if before else "") + json.dumps(name) + ": "


def _written(choice: Any) -> str:
    """A value with the mark that ends it, so that 1 is not the beginning of 10."""
    return json.dumps(choice, ensure_ascii=False) + ("" if isinstance(choice, str) else "}")


def create(source: str | None = None, **options: Any) -> Local:
    return Local(source, **options)
