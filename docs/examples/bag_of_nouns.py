"""A metric built to fool a benchmark: it reads which things a text names, and nothing of what it says about them.

    protoscore score DATASET -s docs/examples/bag_of_nouns.py --out RUN

Of each text only the subject, the thing beside it and the place are kept; how many there are, which colour, on which side, how
far away and how large is dropped. The shipped evaluator then scores that.
"""

from functools import cache

from protoscore.benchmarks.protobias.taxonomy import extra_noun, load_taxonomy, with_article
from protoscore.modeling.protoscore import ProtoScore

batch_size = 64


def score(images, texts):
    "Does the picture hold the things that the text names, whatever it says about them?"
    return evaluator().score(images, [nouns(text) for text in texts])


def nouns(text: str) -> str:
    """``A bird stands beside a quiet pond with exactly two stones nearby.`` -> ``A bird beside a quiet pond with a stone.``"""
    kinds, places, things = vocabulary()
    named = [first_of(words, text) for words in (kinds, places, things)]
    kind, place, thing = (words[found] if found else "" for words, found in zip((kinds, places, things), named, strict=True))
    return f"{kind} {place} with {with_article(thing)}." if all(named) else text


def first_of(phrases, text: str) -> str:
    """The longest of ``phrases`` that stands in ``text``: "tree stumps" before "tree"."""
    return max((phrase for phrase in phrases if phrase in text), key=len, default="")


@cache
def vocabulary():
    """What the taxonomy names, each phrase with what is kept of it."""
    taxonomy = load_taxonomy()
    domains = taxonomy.domains
    kinds = {s.hypernym for d in (domains.animals, domains.objects) for s in d.subcategories.values()}
    people = {
        f"{token} {domains.demography.hypernym}" for poles in domains.demography.attributes.values() for token in poles.values()
    }
    things = {}
    for domain in (domains.animals, domains.objects, domains.demography):
        for key, extra in domain.extras.items():
            things |= {f" {extra_noun(key, extra, number)}": extra_noun(key, extra, 1) for number in (1, 2)}
    starts = {f"{kind[0].upper()}{kind[1:]} " for kind in (*kinds, *map(with_article, people))}
    return {start: start.strip() for start in starts}, {place: place for place in taxonomy.environments.values()}, things


@cache
def evaluator():
    return ProtoScore.from_pretrained()
