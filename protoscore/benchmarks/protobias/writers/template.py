"""The embedded writer: triplets by grammar, so that every text is exact and a whole benchmark takes seconds."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from protoscore.benchmarks.protobias.foils import others
from protoscore.benchmarks.protobias.schema import NUMBERS, Domain, Knob, Triplet
from protoscore.benchmarks.protobias.taxonomy import Contrast, Extra, Taxonomy, extra_noun, noun_of, with_article
from protoscore.errors import ConfigError
from protoscore.schema import content_id

PATIENCE = 10_000  # draws in a row without a new triplet after which the taxonomy counts as exhausted
TEST_SHARE = 4  # one key in four belongs to the test split

RELATION_WORDS = {"left": "to the left of", "right": "to the right of", "in_front": "in front of", "behind": "behind"}


def write(
    taxonomy: Taxonomy,
    counts: dict[Domain, int],
    seed: int = 0,
    split: str | None = None,
    refuses: Callable[[str], str | None] = lambda subject: None,
    keeps: Callable[[Contrast], bool] = lambda contrast: True,
) -> Iterator[Triplet]:
    """Write ``counts[domain]`` unique triplets for each domain.

    Contrasts are visited in turn, so that the benchmark is balanced over them, and knobs within a contrast at random.
    The same arguments give the same triplets, in the same order. ``split`` keeps one side of the fixed train/test
    partition (see :func:`split_of`); contrasts with a subject that ``refuses`` names a reason for are left out, and so are
    those that ``keeps`` says no to.

    Raises:
        ConfigError: the taxonomy cannot yield that many distinct triplets.
    """
    for domain, wanted in counts.items():
        rng = random.Random(f"{seed}-{domain}")
        drawable = (c for c in taxonomy.contrasts(domain) if not (refuses(c.non_subject) or refuses(c.proto_subject)))
        contrasts = list(filter(keeps, drawable))
        seen: set[tuple[str, str, str]] = set()
        made = drawn = misses = 0
        while made < wanted and contrasts:
            if drawn % len(contrasts) == 0:
                rng.shuffle(contrasts)
            contrast = contrasts[drawn % len(contrasts)]
            triplet, sentence = _draw(taxonomy, contrast, rng)
            drawn += 1
            key = (triplet.text, triplet.correct, triplet.adversarial)
            if key in seen or (split and triplet.split != split):
                misses += 1
                if misses == PATIENCE:
                    side = f"{split} " if split else ""
                    raise ConfigError(f"the taxonomy yields only {made} distinct {side}{domain} triplets; ask for fewer")
                continue
            seen.add(key)
            made, misses = made + 1, 0
            yield triplet.model_copy(update=_foils(taxonomy, contrast, triplet, sentence, refuses))


def split_of(hypernym: str, attr_token: str | None, environment: str, extra: str, knob: str) -> str:
    """``train`` or ``test``, by what the neutral text is about.

    The partition is a property of the scene and not of a seed: a neutral text of one side never occurs on the other,
    whoever builds, and a model trained on one build may be tested on any other.
    """
    digest = int(content_id("split", hypernym, attr_token or "", environment, extra, knob), 16)
    return "test" if digest % TEST_SHARE == 0 else "train"


def _draw(taxonomy: Taxonomy, contrast: Contrast, rng: random.Random) -> tuple[Triplet, Callable[..., str]]:
    """One random triplet of a contrast: knob, then extra, environment, unordered value pair, and its orientation.

    With it comes what writes its sentences, for the foils: those are made for a triplet that is kept only.
    """
    knob: Knob = rng.choice(getattr(taxonomy.domains, contrast.domain).knobs)
    places = taxonomy.places(contrast, knob)
    if not places:
        raise ConfigError(
            f"{contrast.domain}/{contrast.subcategory}: no extra element in any environment allows the knob {knob!r}"
        )
    name, environment = rng.choice(places)
    pairs = taxonomy.value_pairs(knob, taxonomy.extra(contrast.domain, name))
    # An unordered pair and a coin: each value is stated as often as it is shown wrongly, so no value gives the answer away.
    value, violation = rng.choice(pairs) if rng.random() < 0.5 else rng.choice(pairs)[::-1]
    frame, people = rng.choice(taxonomy.sentences[knob]), contrast.domain == "demography"

    def sentence(subject: str, shown: str, extra: str = name, place: str = environment, person: bool = people) -> str:
        subject = with_article(f"{contrast.attr_token} {subject}") if person else subject
        return _fill(frame, taxonomy, taxonomy.extra(contrast.domain, extra), subject, extra, place, shown, person)

    fields: dict[str, Any] = {
        "text": sentence(contrast.hypernym, value),
        "correct": sentence(contrast.non_phrase, value),
        "adversarial": sentence(contrast.proto_phrase, violation),
        "proto_correct": sentence(contrast.proto_phrase, value),
        "non_violated": sentence(contrast.non_phrase, violation),
    }
    triplet = Triplet.model_construct(
        id=content_id(*fields.values()),
        **{field: getattr(contrast, field) for field in _CONTRAST_FIELDS},
        knob=knob, value=value, violation=violation, extra=name, environment=environment, **fields,
        writer="template", split=split_of(contrast.hypernym, contrast.attr_token, environment, name, knob),
    )  # fmt: skip
    return triplet, sentence


def _foils(
    taxonomy: Taxonomy, contrast: Contrast, t: Triplet, sentence: Callable[..., str], refuses: Callable[[str], str | None]
) -> dict[str, str]:
    """What a triplet's foils show, and their descriptions; nothing where the taxonomy has nothing else to show."""
    foils = others(taxonomy, contrast, t.knob, t.value, t.extra, t.environment, random.Random(f"foils-{t.id}"), refuses)
    if not foils:
        return {}
    fields = {"foil_extra": foils.extra, "foil_environment": foils.environment}
    for side, phrase in (("non", contrast.non_phrase), ("proto", contrast.proto_phrase)):
        other = getattr(foils, f"{side}_subject")
        fields |= {
            f"foil_{side}_subject": other,
            f"{side}_extra_foil": sentence(phrase, t.value, extra=foils.extra),
            f"{side}_environment_foil": sentence(phrase, t.value, place=foils.environment),
            f"{side}_subject_foil": sentence(with_article(noun_of(other)), t.value, person=False),
        }
    return fields


_CONTRAST_FIELDS = [field for field in Contrast._fields if field in Triplet.model_fields]


def _fill(
    frame: str, taxonomy: Taxonomy, extra: Extra, subject: str, name: str, environment: str, value: str, person: bool
) -> str:
    noun = extra_noun(name, extra, 1)
    number = NUMBERS.get(value, 1)
    sentence = frame.format(
        S=subject,
        place=taxonomy.environments[environment],
        a_E=with_article(noun),
        n_E=f"{value} {extra_noun(name, extra, number)}",
        a_v_E=with_article(f"{value} {noun}"),
        relation=RELATION_WORDS.get(value, ""),
        ground=value,
        size=value,
        it="them" if person else "it",
    )
    return sentence[0].upper() + sentence[1:]


class TemplateWriter:
    """The writer as a component."""

    name = "template"
    revision = "2"  # raise it when the same arguments give other triplets
    parameters: dict[str, Any] = {}
    write = staticmethod(write)


def create() -> TemplateWriter:
    return TemplateWriter()
