"""The models that are compared: a generator that draws for every pair, or a folder of pictures that are there."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from protoscore.benchmarks.diversity.pairs import ConceptPair
from protoscore.errors import ConfigError, DatasetError
from protoscore.generators import Wanted
from protoscore.schema import content_id, derive_seed
from protoscore.sources.rows import TEXT, Row, Rows, contents_of


class Model(NamedTuple):
    """A model by its name and by what was typed for it."""

    name: str
    spec: str

    @property
    def is_folder(self) -> bool:
        return Path(self.spec).exists()

    @property
    def simulated(self) -> bool:
        """Whether it draws scenes of its own."""
        return not self.is_folder and self.spec.partition(":")[0] == "simulated"


def read_models(typed: Sequence[str]) -> list[Model]:
    """``["NAME=SPEC", "SPEC"]`` as models; a spec is a generator's, or a folder.

    Raises:
        ConfigError: there are fewer than two, or two of one name.
    """
    models = []
    for text in typed:
        name, equals, spec = text.partition("=")
        models.append(Model(name, spec) if equals and name else Model(_name_of(text), text))
    if len(models) < 2:
        raise ConfigError(
            "diversity compares models: give at least --a and --b, each a folder or a generator such as simulated:3"
        )
    for model in models:
        if not model.name or "/" in model.name or model.name.startswith("."):
            raise ConfigError(f"{model.name!r} cannot be the name of a folder; write --a NAME={model.spec}")
        if sum(other.name == model.name for other in models) > 1:
            raise ConfigError(
                f"two models are called {model.name!r}; name them apart: --a ONE={model.spec} --b TWO={model.spec}"
            )
    return models


def _name_of(spec: str) -> str:
    return Path(spec).resolve().name if Path(spec).exists() else spec.replace("/", "-")


def wanted_of(pairs: Sequence[ConceptPair], model: str, pictures: int, seed: int = 0) -> list[Wanted]:
    """What a model has to draw."""
    return [
        Wanted(f"{pair.id}-{number}", pair.prompt, derive_seed(seed, model, pair.id, number), pair.spec, pair.fields())
        for pair in pairs
        for number in range(pictures)
    ]


class KnownRows:
    """The rows of a source that belong to a pair, with its fields, as :class:`protoscore.sources.rows.Rows`.

    A row is of the pair that its field ``pair`` names, or its ``concept`` and ``attribute``; else of the pair after whose id a
    folder of it is named, or its file (``apple-color.png``, ``apple-color_3.png``); else of the one that has its prompt.

    Raises:
        DatasetError: no row is of any pair.
    """

    columns: Sequence[str] = ("pair", "group", "image")

    def __init__(self, rows: Rows, pairs: Sequence[ConceptPair]):
        self._rows, self._pairs = rows, pairs
        self._finder = _Finder(pairs)
        found = ((place, self._finder.of(row)) for place, row in enumerate(rows.rows()))
        self._places = [(place, pair) for place, pair in found if pair is not None]
        self.strangers = len(rows) - len(self._places)  # rows of no pair
        self.source, self.parent, self.scenes = rows.source, rows.parent, rows.scenes
        if not self._places:
            raise DatasetError(
                f"{rows.source} has no picture of a known concept: name a folder for each pair, such as {pairs[0].id}, or give "
                "the rows a column 'pair'"
            )
        known = content_id(*(pair for pair in pairs), length=24)
        self.parameters: dict[str, Any] = {**rows.parameters, "pairs": known}

    def __len__(self) -> int:
        return len(self._places)

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        chosen = self._places[start:stop]
        if not chosen:
            return
        wanted = dict(chosen)
        first, last = chosen[0][0], chosen[-1][0]
        for place, row in enumerate(self._rows.rows(first, last + 1), first):
            if place in wanted:
                pair = wanted[place]
                image = {"image": str(row.fields.get("image") or row.id)}
                yield Row(row.id, row.images[:1], {**image, **pair.fields(), TEXT: pair.prompt, "prompt": pair.prompt})

    def fingerprint(self) -> str | None:
        inner = self._rows.fingerprint()
        return None if inner is None else hashlib.sha256(f"{inner}\n{self.parameters['pairs']}".encode()).hexdigest()

    def contents(self) -> str | None:
        return contents_of(self._rows)


class _Finder:
    """Which pair a row is of."""

    def __init__(self, pairs: Sequence[ConceptPair]):
        self._ids = {pair.id: pair for pair in pairs}
        self._named = {(pair.concept, pair.attribute): pair for pair in pairs}
        texts = [pair.prompt for pair in pairs]
        self._texts = {
            pair.prompt: pair for pair in pairs if texts.count(pair.prompt) == 1
        }  # one concept may have two attributes

    def of(self, row: Row) -> ConceptPair | None:
        fields = row.fields
        if fields.get("pair") in self._ids:
            return self._ids[fields["pair"]]
        named = self._named.get((str(fields.get("concept")), str(fields.get("attribute"))))
        return named or self._by_path(str(fields.get("image") or row.id)) or self._texts.get(str(fields.get(TEXT)))

    def _by_path(self, name: str) -> ConceptPair | None:
        path = PurePosixPath(name)
        stem = path.stem
        numberless = stem.rstrip("0123456789").rstrip("_-")
        return next((self._ids[part] for part in (*reversed(path.parts[:-1]), stem, numberless) if part in self._ids), None)
