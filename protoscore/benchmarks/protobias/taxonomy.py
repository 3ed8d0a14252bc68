"""The ProtoBias taxonomy: typed, and walked as contrasts (paper section 4.1, appendix 8.1)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field, PrivateAttr, model_validator

from protoscore.benchmarks.protobias.schema import Domain, Knob, Pole
from protoscore.typed_yaml import Strict, load_yaml

Look = dict[Literal["man", "woman"], str]


class KnobSpec(Strict):
    """The values a knob can take: a closed list with an optional largest step, or pairs that flip."""

    values: list[str] = []
    max_step: int | None = Field(None, ge=1)
    flips: list[tuple[str, str]] = []

    @model_validator(mode="after")
    def _one_kind(self) -> KnobSpec:
        if bool(self.values) == bool(self.flips):
            raise ValueError("give either 'values' or 'flips'")
        return self


class Extra(Strict):
    """An auxiliary scene element, the only thing that a knob touches."""

    noun: str | None = None
    plural: str | None = None
    colors: list[str] = []
    environments: list[str] = []


class Subcategory(Strict):
    hypernym: str
    non_prototypes: list[str] = Field(min_length=1)
    prototypes: list[str] = Field(min_length=1)
    environments: list[str] = Field(min_length=1)
    extras: list[str] = []
    names_also: list[str] = []  # other subcategories of the domain whose members the hypernym names too


class ObjectDomain(Strict):
    """Animals and Objects: graded category membership."""

    knobs: list[Knob]
    subcategories: dict[str, Subcategory]
    extras: dict[str, Extra]


class GroupAxis(Strict):
    advantaged: dict[str, Look]
    disadvantaged: dict[str, Look]


class DemographyDomain(Strict):
    """Demography: social associations, by group, attribute and pole."""

    knobs: list[Knob]
    hypernym: str
    genders: list[Literal["man", "woman"]]
    environments: list[str]
    extras: dict[str, Extra]
    attributes: dict[str, dict[Pole, str]]
    groups: dict[str, GroupAxis]


class Domains(Strict):
    animals: ObjectDomain
    objects: ObjectDomain
    demography: DemographyDomain


class Contrast(NamedTuple):
    """One non-prototype against one prototype, with the sentence parts that both need."""

    domain: Domain
    subcategory: str
    hypernym: str
    non_prototype: str
    prototype: str
    non_phrase: str
    proto_phrase: str
    non_subject: str
    proto_subject: str
    environments: tuple[str, ...]
    extras: tuple[str, ...]
    group_category: str | None = None
    socio_attr: str | None = None
    pole: Pole | None = None
    attr_token: str | None = None
    gender: Literal["man", "woman"] | None = None
    advantaged_group: str | None = None
    disadvantaged_group: str | None = None


class Taxonomy(Strict):
    """The whole taxonomy file."""

    knobs: dict[Knob, KnobSpec]
    domains: Domains
    environments: dict[str, str]
    habitats: dict[str, list[str]] = {}
    sentences: dict[Knob, list[str]]
    _places: dict[tuple[Contrast, Knob], list[tuple[str, str]]] = PrivateAttr(default_factory=dict)

    @model_validator(mode="after")
    def _names_exist(self) -> Taxonomy:
        for domain in ("animals", "objects", "demography"):
            spec = getattr(self.domains, domain)
            for sub in getattr(spec, "subcategories", {}).values():
                self._check(domain, "subcategory", sub.names_also, spec.subcategories)
            users = [spec] if domain == "demography" else list(spec.subcategories.values())
            for user in users:
                self._check(domain, "environment", user.environments, self.environments)
                self._check(domain, "extra", getattr(user, "extras", {}), spec.extras)
            for name, extra in spec.extras.items():
                self._check(f"{domain}.extras.{name}", "environment", extra.environments, self.environments)
                self._check(f"{domain}.extras.{name}", "color", extra.colors, self.knobs["color_tone"].values)
            self._check(domain, "knob", spec.knobs, self.knobs)
        return self

    @staticmethod
    def _check(where: str, kind: str, names, known) -> None:
        unknown = [name for name in names if name not in known]
        if unknown:
            raise ValueError(f"{where} uses the unknown {kind} {unknown[0]!r}; known: {', '.join(known)}")

    def extra(self, domain: Domain, name: str) -> Extra:
        return getattr(self.domains, domain).extras[name]

    def value_pairs(self, knob: Knob, extra: Extra) -> list[tuple[str, str]]:
        """Every unordered (value, violation) that ``knob`` allows on ``extra``; empty when it allows none."""
        spec = self.knobs[knob]
        if spec.flips:
            return list(spec.flips)
        values = [v for v in spec.values if v in extra.colors] if knob == "color_tone" else spec.values
        step = spec.max_step or len(values)
        return [(a, b) for i, a in enumerate(values) for j, b in enumerate(values) if i < j <= i + step]

    def places(self, contrast: Contrast, knob: Knob) -> list[tuple[str, str]]:
        """Every (extra element, environment) in which ``knob`` can be turned for ``contrast``."""
        key = (contrast, knob)
        if key not in self._places:
            extras = {name: self.extra(contrast.domain, name) for name in contrast.extras}
            self._places[key] = [
                (name, environment)
                for name, extra in extras.items()
                if self.value_pairs(knob, extra)
                for environment in contrast.environments
                if not extra.environments or environment in extra.environments
            ]
        return self._places[key]

    def environments_of(self, contrast: Contrast) -> list[str]:
        """Every environment of the contrast's subcategory, whatever its subjects' habitats."""
        spec = getattr(self.domains, contrast.domain)
        return (spec if contrast.domain == "demography" else spec.subcategories[contrast.subcategory]).environments

    def strangers(self, contrast: Contrast) -> list[Subcategory]:
        """Subcategories of things, none of whose members the contrast's hypernym names."""
        found = []
        for domain in ("animals", "objects"):
            subs: dict[str, Subcategory] = getattr(self.domains, domain).subcategories
            own = subs.get(contrast.subcategory) if domain == contrast.domain else None
            named = {contrast.subcategory, *own.names_also} if own else set()
            members = {key for name in named for key in (*subs[name].non_prototypes, *subs[name].prototypes)}
            found += [
                sub for name, sub in subs.items()
                if name not in named and members.isdisjoint((*sub.non_prototypes, *sub.prototypes))
            ]  # fmt: skip
        return found

    def contrasts(self, domain: Domain) -> Iterator[Contrast]:
        """Every contrast of a domain, in file order."""
        yield from self._people() if domain == "demography" else self._things(domain)

    def _things(self, domain: Domain) -> Iterator[Contrast]:
        spec: ObjectDomain = getattr(self.domains, domain)
        for name, sub in spec.subcategories.items():
            for non in sub.non_prototypes:
                places = tuple(e for e in sub.environments if e in self.habitats.get(non, sub.environments))
                for proto in sub.prototypes:
                    yield Contrast(
                        domain, name, sub.hypernym, non, proto, with_article(noun_of(non)), with_article(noun_of(proto)),
                        non, proto, places, tuple(sub.extras or spec.extras),
                    )  # fmt: skip

    def _people(self) -> Iterator[Contrast]:
        spec = self.domains.demography
        for category, axis in spec.groups.items():
            groups = axis.advantaged | axis.disadvantaged
            for high in axis.advantaged:
                for low in axis.disadvantaged:
                    for attribute, poles in spec.attributes.items():
                        for pole, token in poles.items():
                            # Table 14: the unexpected pairing is the non-prototype, and which one it is turns with the pole.
                            non, proto = (low, high) if pole == "positive" else (high, low)
                            for gender in spec.genders:
                                yield Contrast(
                                    "demography", category, spec.hypernym, non, proto,
                                    f"{non} {gender} {groups[non][gender]}", f"{proto} {gender} {groups[proto][gender]}",
                                    person_key(non, gender), person_key(proto, gender),
                                    tuple(spec.environments), tuple(spec.extras),
                                    category, attribute, pole, token, gender, high, low,
                                )  # fmt: skip

    def group_terms(self) -> frozenset[str]:
        """Lower-cased words that name a group; none may stand in a neutral text."""
        names = {g.lower() for axis in self.domains.demography.groups.values() for g in axis.advantaged | axis.disadvantaged}
        return frozenset(names | {"gay", "lesbian", "bisexual", "straight", "christianity", "islam", "judaism", "jew"})


def person_key(group: str, gender: str) -> str:
    """The scene subject of a group and gender, e.g. ``muslim_woman``."""
    return f"{group.lower().replace('+', '')}_{gender}"


def noun_of(key: str) -> str:
    """A taxonomy key as words: ``golf_cart`` -> ``golf cart``."""
    return {"chopsticks": "pair of chopsticks", "e_scooter": "e-scooter", "tuk_tuk": "tuk-tuk"}.get(
        key, key.replace("_", " ").replace("french", "French")
    )


def with_article(noun: str) -> str:
    """``ostrich`` -> ``an ostrich``, by sound: an honest person, but a unicycle."""
    vowel = (noun[0].lower() in "aeiou" and not noun.startswith("uni")) or noun.startswith("hon")
    return f"{'an' if vowel else 'a'} {noun}"


def extra_noun(key: str, extra: Extra, number: int) -> str:
    """The noun of an extra element in the singular or plural."""
    noun = extra.noun or key.replace("_", " ")
    return noun if number == 1 else (extra.plural or f"{noun}s")


@lru_cache(maxsize=8)
def load_taxonomy(path: str | Path | None = None) -> Taxonomy:
    """The packaged taxonomy, or a user's own file in the same form.

    Raises:
        ConfigError: with file and line, when the file breaks the schema or names something that it does not define.
    """
    return load_yaml(path or str(files(__package__) / "taxonomy.yaml"), Taxonomy)
