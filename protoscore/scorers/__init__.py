"""Metrics M(text, image). One file each; ``create(source=None, **options)`` returns a :class:`Scorer`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from protoscore.batches import refuse_unequal
from protoscore.errors import UnknownName
from protoscore.schema import Score as Score
from protoscore.schema import number as number
from protoscore.typed_yaml import Strict

if TYPE_CHECKING:
    from PIL.Image import Image


class Facts(Strict):
    """What is true of a metric before it is run."""

    question: str  # the one it answers, in a sentence
    paper: str
    hub_id: str | None = None
    revision: str | None = None  # pinned commit; None: the newest one, which is resolved and recorded when it is loaded
    licence: str  # of the weights
    gated: bool = False  # terms must be accepted on the Hub first
    higher_is_better: bool = True
    low: float | None = None  # bounds of the score; None: unbounded
    high: float | None = None
    variants: tuple[str, ...] = ()  # named forms with other numbers; the first is the default
    weights: int | None = None  # number of parameters of the default model
    speed: str | None = None  # only where it was measured: pairs a second, on what
    known_bias: str = "not measured here"
    trained_on: str = ""  # where it knows one kind of pictures only, e.g. "drawn scenes"

    @property
    def memory_gb(self) -> float | None:
        """What the weights of the default model take in float32, in 10^9 bytes; half of it in a 16-bit type."""
        return None if self.weights is None else self.weights * 4 / 1e9


class Scorer(Protocol):
    """Scores row-wise pairs of RGB images and texts. A higher ``facts.higher_is_better`` score is a better match.

    ``name``, ``revision`` and ``parameters`` are part of the key that a result is kept under: whatever moves a score belongs
    into one of them. The score of a pair depends on that pair alone, not on its batch.
    """

    @property
    def facts(self) -> Facts: ...

    name: str
    revision: str  # of the weights: a commit, or a digest of the files
    parameters: dict[str, Any]
    batch_size: int

    def score(self, images: Sequence[Image], texts: Sequence[str]) -> list[Score]: ...


class Separable:
    """A metric that looks at the picture before it knows the text, so that each picture is encoded once for all its texts.

    Subclasses define ``encode_images``, ``encode_texts`` and ``match``; ``score`` follows from them. Whoever holds many pairs
    calls them directly and keeps the features. Where image and text only meet in a fusion network, an image feature is what the
    vision encoder gives, a text feature the tokens, and ``match`` runs the network.
    """

    def prepare(self, image: Image) -> Any:
        """What ``encode_images`` takes of one image: usually its pixels, resized and normalised. The engine calls this in the
        threads that decode, while the device is busy with other pictures, so it must be safe to run in several at once."""
        return image

    def encode_images(self, images: Sequence[Any]) -> list[Any]:
        """One feature a prepared image, whatever the texts are (a tensor: on the CPU unless the model is elsewhere)."""
        raise NotImplementedError

    def encode_texts(self, texts: Sequence[str]) -> tuple[list[Any], list[bool]]:
        """One feature a text, and which texts lost their end to the model's length limit."""
        raise NotImplementedError

    def match(self, image_features: Sequence[Any], text_features: Sequence[Any]) -> list[float]:
        """Scores of row-wise pairs of features."""
        raise NotImplementedError

    def score(self, images: Sequence[Image], texts: Sequence[str]) -> list[Score]:
        """Scores of row-wise pairs; an image object or a text that comes twice is encoded once.

        Raises:
            ValueError: there are not as many texts as images.
        """
        refuse_unequal(images, texts)
        if not texts:
            return []
        pictures = {id(image): image for image in images}
        image_features = dict(
            zip(pictures, self.encode_images([self.prepare(image) for image in pictures.values()]), strict=True)
        )
        sentences = list(dict.fromkeys(texts))
        features, cut = self.encode_texts(sentences)
        text_features = dict(zip(sentences, zip(features, cut, strict=True), strict=True))
        values = self.match([image_features[id(image)] for image in images], [text_features[text][0] for text in texts])
        return [Score(value, truncated=text_features[text][1]) for value, text in zip(values, texts, strict=True)]


def facts_of(module: Any) -> Facts:
    """The facts of the scorer that a module defines, without loading any weights."""
    for value in vars(module).values():
        if isinstance(getattr(value, "facts", None), Facts):
            return value.facts
    raise AttributeError(f"{module.__name__} defines no scorer with facts")


def split_variant(source: str | None, variants: Sequence[str], variant: str | None = None) -> tuple[str, str | None]:
    """Which of ``variants`` and which weights are meant. ``source`` is ``VARIANT``, ``SOURCE`` or ``VARIANT:SOURCE`` as typed
    on a command line; a ``variant`` given apart leaves it whole. Without any it is the first one.

    >>> split_variant("cosine:some/folder", ("paper", "cosine"))
    ('cosine', 'some/folder')

    Raises:
        UnknownName: ``variant`` is none of ``variants``.
    """
    if variant is not None and variant not in variants:
        raise UnknownName("variant", variant, variants)
    head, _, rest = (source or "").partition(":")
    if variant is None and head in variants:
        return head, rest or None
    return variant or variants[0], source


def protobias_accuracy(animals: float, demography: float, objects: float) -> str:
    """How a metric fares on ProtoBias, as a fact of the paper and no measurement of ours."""
    return (
        f"ProtoBias accuracy {animals:.2f} animals, {demography:.2f} demography, {objects:.2f} objects; below 0.50 it prefers "
        "the prototypical picture (arXiv 2601.04946, Table 3)"
    )
