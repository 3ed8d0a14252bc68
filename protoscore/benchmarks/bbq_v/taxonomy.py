"""The domains and sub-domains of BBQ-V, found by any spelling that data use (``taxonomy.yaml``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from protoscore.asking.labels import Spelling
from protoscore.errors import UnknownName
from protoscore.typed_yaml import Strict, load_yaml

DATA = Path(__file__).with_name("taxonomy.yaml")
OTHER = "other"  # a sub-domain that BBQ has and BBQ-V has not, such as neurodiversity


class SocialDomain(Strict):
    """One domain. ``subdomains``: name -> its other spellings."""

    spellings: list[str]
    subdomains: dict[str, list[str]]


class SocialDomains(Strict):
    domains: dict[str, SocialDomain]
    intersections: list[str]


@cache
def taxonomy() -> SocialDomains:
    return load_yaml(DATA, SocialDomains)


def domain_of(category: str) -> str:
    """The domain that a category's name means, in any of its spellings.

    Raises:
        UnknownName: it is neither a domain nor one of BBQ's intersections.
    """
    found = _domains().find(category)
    if found is None:
        raise UnknownName("category", category, [*taxonomy().domains, *taxonomy().intersections])
    return str(found[0])


def subdomain_of(domain: str, names: Iterable[str]) -> str:
    """The sub-domain that the first known one of ``names`` means; :data:`OTHER` where none is known."""
    if domain not in taxonomy().domains:
        return OTHER
    spelling = _subdomains(domain)
    return next((str(found[0]) for name in names if (found := spelling.find(name))), OTHER)


@cache
def _domains() -> Spelling:
    known = {name: domain.spellings for name, domain in taxonomy().domains.items()}
    return _spelling("domains", known | {name: [] for name in taxonomy().intersections})


@cache
def _subdomains(domain: str) -> Spelling:
    return _spelling(domain, taxonomy().domains[domain].subdomains)


def _spelling(where: str, known: Mapping[str, list[str]]) -> Spelling:
    aliases: dict[str | None, object] = {other: name for name, others in known.items() for other in others}
    return Spelling(f"{DATA.name}, {where}", tuple(known), aliases)
