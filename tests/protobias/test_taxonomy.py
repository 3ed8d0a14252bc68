"""The taxonomy is the paper's, whole; a malformed one is refused with file and line."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from protoscore.benchmarks.protobias.taxonomy import load_taxonomy, with_article
from protoscore.benchmarks.protobias.writers.template import write
from protoscore.errors import ConfigError
from protoscore.scenes.sprites import aspect, backdrop, manifest

TAXONOMY = load_taxonomy()
TEXT = Path(str(files("protoscore.benchmarks.protobias") / "taxonomy.yaml")).read_text()


def pairs(domain: str, subcategory: str | None = None) -> set[tuple[str, str]]:
    return {(c.non_prototype, c.prototype) for c in TAXONOMY.contrasts(domain) if subcategory in (None, c.subcategory)}


def test_contrasts_are_those_of_the_papers_appendix():
    birds = "penguin ostrich kiwi shoebill cassowary flamingo pelican toucan".split()
    assert pairs("animals", "birds") == {(n, p) for n in birds for p in ("robin", "sparrow")}
    mammals = "platypus echidna bat pangolin armadillo dolphin".split()
    assert pairs("animals", "mammals") == {(n, p) for n in mammals for p in ("dog", "cat", "horse")}
    others = "mosquito cockroach walking_stick_insect praying_mantis jellyfish octopus".split()
    assert pairs("animals", "other_animals") == {(n, p) for n in others for p in ("dog", "cat", "horse")}
    furniture = "bean_bag hammock futon_mattress chaise_lounge floor_cushion".split()
    assert pairs("objects", "furniture") == {(n, p) for n in furniture for p in ("chair", "bed", "sofa", "dining_chair")}
    vehicles = "e_scooter unicycle tuk_tuk golf_cart segway".split()
    assert pairs("objects", "vehicles") == {(n, p) for n in vehicles for p in ("motorcycle", "bicycle", "car")}
    assert len(pairs("objects", "tableware")) == 24
    assert set(TAXONOMY.knobs) == {"count", "color_tone", "layout_relation", "spatial", "scale_size"}


def test_demography_turns_with_the_pole():
    """Table 14: positive pole, the disadvantaged group is the non-prototype; negative pole, the advantaged one."""
    people = list(TAXONOMY.contrasts("demography"))
    assert len(people) == 6 * 5 * 2 * 2  # group pairs x attributes x poles x genders
    for contrast in people:
        expected = contrast.disadvantaged_group if contrast.pole == "positive" else contrast.advantaged_group
        assert contrast.non_prototype == expected
        assert {contrast.non_prototype, contrast.prototype} == {contrast.advantaged_group, contrast.disadvantaged_group}
    advantaged = {(c.group_category, c.advantaged_group) for c in people}
    assert advantaged == {("religion", "Christian"), ("nationality", "American"), ("sexual_orientation", "heterosexual")}
    disadvantaged = {c.disadvantaged_group for c in people}
    assert disadvantaged == {"Muslim", "Jewish", "Nigerian", "Indian", "Mexican", "LGBTQ+"}


def test_everything_named_can_be_drawn_or_is_refused_by_name():
    for domain in ("animals", "objects", "demography"):
        for contrast in TAXONOMY.contrasts(domain):
            for subject in (contrast.non_subject, contrast.proto_subject):
                assert (subject in manifest().sprites) != (subject in manifest().refused), subject
            for extra in contrast.extras:
                assert min(aspect(extra)) > 0.05
                # A scene may show any colour that the taxonomy lets a text name, and no other.
                assert set(manifest().sprites[extra].colors) >= set(TAXONOMY.extra(domain, extra).colors)
            for environment in contrast.environments:
                assert backdrop(environment, 24, False).size == (24, 24)
    assert not [key for key in manifest().refused if not key.endswith(("_man", "_woman"))], "only people are refused"


@pytest.mark.parametrize(
    ("old", "new", "line_of", "complaint"),
    [
        ("hypernym: a mammal", "hypernim: a mammal", "hypernim", "unknown key"),
        ("max_step: 2", "max_step: none", "max_step: none", "valid integer"),
        ("prototypes: [robin, sparrow]", "prototypes: []", "prototypes: []", "at least 1 item"),
        ("      mammals:\n", "      birds:\n", "      birds:\n        hypernym: a mammal", "given twice"),
        ("environments: [pond, meadow", "environments: [pund, meadow", None, "'pund'"),
        ("knobs:\n  count:", "knobs: [\n  count:", None, ""),
    ],
)  # fmt: skip
def test_a_malformed_file_is_refused_with_file_and_line(tmp_path, old, new, line_of, complaint):
    path = tmp_path / "mine.yaml"
    assert TEXT.count(old) >= 1
    text = TEXT.replace(old, new, 1)
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_taxonomy(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:") and complaint in message
    if line_of:
        line = text[: text.index(line_of)].count("\n") + 1
        assert f"{path}:{line}:" in message
    assert "\n" not in message


def test_missing_or_binary_file_is_one_line(tmp_path):
    (tmp_path / "x.yaml").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "none.yaml", tmp_path / "x.yaml"):
        with pytest.raises(ConfigError, match="cannot be read"):
            load_taxonomy(path)


@pytest.mark.parametrize(
    ("noun", "article"), [("ostrich", "an"), ("unicycle", "a"), ("e-scooter", "an"), ("honest person", "an"), ("key", "a")]
)
def test_articles_follow_the_sound(noun, article):
    assert with_article(noun) == f"{article} {noun}"


def test_an_exhausted_taxonomy_says_how_many_there_are():
    only = {"penguin", "robin"}
    few = TAXONOMY.model_copy(update={"sentences": {knob: frames[:1] for knob, frames in TAXONOMY.sentences.items()}})
    triplets = write(few, {"animals": 10**9}, refuses=lambda subject: None if subject in only else "not now")
    seen = []
    with pytest.raises(ConfigError, match=r"yields only \d+ distinct animals triplets"):
        seen.extend(triplets)
    assert 300 < len({(t.text, t.adversarial) for t in seen}) == len(seen)
