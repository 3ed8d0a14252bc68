"""The parser: every reply ends in a state, every repair and every cause is counted, and nothing is ever guessed."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Annotated, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from protoscore.asking.protocol import Protocol, load_protocol
from protoscore.asking.reply import LONGEST, parse
from protoscore.errors import ConfigError, UnknownName
from protoscore.schema import Status


class Answer(BaseModel):
    gender: Literal["male", "female", "unspecified"]
    race: Literal["Black", "White", "Latino_Hispanic", "unspecified"]
    score: Annotated[int, Field(ge=1, le=10)]
    visible: bool
    shown: list[Literal["hat", "cane"]]
    evidence: str = ""


ABSTAINS = {"gender": ("unspecified",), "race": ("unspecified",)}
P = Protocol("test/attributes", "?", Answer, ABSTAINS, {"gender": {"man": "male", "woman": "female"}})
GOOD = {
    "gender": "female",
    "race": "Latino_Hispanic",
    "score": 7,
    "visible": True,
    "shown": ["hat"],
    "evidence": "a hat, it's red",
}
TEXT = json.dumps(GOOD)


def edited(**changes: object) -> str:
    return json.dumps(GOOD | changes)


def without(name: str) -> str:
    return json.dumps({key: value for key, value in GOOD.items() if key != name})


# Damage that the documentation says is mended: name of the repair -> damage of a reply that keeps its meaning.
REPAIRED = {
    "invisible_characters": lambda t, r: r.choice(["\ufeff", "\u200b", "\u2060"]) + t,
    "reasoning_block": lambda t, r: f"<think>Perhaps {edited(gender='male')}?\n</think>{t}",
    "code_fence": lambda t, r: r.choice(["```json\n{}\n```", "```\n{}```", "```JSON {}\n```"]).replace("{}", t),
    "prose": lambda t, r: r.choice([f"Here you are: {t}", f"{t}\nI hope that this helps.", f"Answer:\n{t} done"]),
    "repeated_object": lambda t, r: f"{t}\n{t}",
    "trailing_comma": lambda t, r: t[:-1] + r.choice([",}", ", }", ",\n}"]),
    "control_character": lambda t, r: t.replace("a hat,", r.choice(["a hat\n,", "a\that,"])),
    "python_literal": lambda t, r: t.replace("true", "True"),
    "single_quotes": lambda t, r: t.replace('"gender"', "'gender'").replace('"female"', "'female'"),
    "key_case": lambda t, r: t.replace('"gender"', r.choice(['"Gender"', '"GENDER"', '" gender "'])),
    "extra_key": lambda t, r: t[:-1] + ', "confidence": 0.9}',
    "label_case": lambda t, r: t.replace("Latino_Hispanic", r.choice(["latino hispanic", "LATINO_HISPANIC"])),
    "label_alias": lambda t, r: t.replace("female", r.choice(["woman", "Woman"])),
    "number_as_string": lambda t, r: t.replace(": 7", r.choice([': "7"', ': " 7 "', ': "7.0"'])),
    "float_for_integer": lambda t, r: t.replace(": 7", r.choice([": 7.0", ": 70e-1"])),
    "boolean_as_string": lambda t, r: t.replace("true", r.choice(['"true"', '"True"'])),
    "text_not_string": lambda t, r: t.replace(json.dumps(GOOD["evidence"]), r.choice(["12", '["a hat"]'])),
}  # fmt: skip

# Damage after which nobody can know what was meant: cause -> damage.
INVALID = {
    "empty": lambda t, r: r.choice(["", " ", "\n\t", "\u200b"]),
    "no_object": lambda t, r: r.choice(["female", "The score is 7 of 10.", '"gender": "female"', "N/A"]),
    "not_an_object": lambda t, r: r.choice([f"[{t}]", "7", "null", json.dumps(t), f"Sure: [{t}]"]),
    "broken_object": lambda t, r: r.choice(
        [t[: r.randrange(3, len(t) - 1)], t.replace('"race"', "race"), t.replace(": 7", ": seven"), t.replace(": 7", ": 7/10"),
         t.replace(": 7", ": 07"), t.replace(",", "", 1), "{" + t, t + " {", t.replace('"female"', '"fem"ale"'),
         f"{{\"answer\": {t}", t.replace('"gender"', '// no comment\n"gender"')]),
    "open_reasoning": lambda t, r: r.choice(["<think>{hm}</think" + t, f"<thought>{t}", f"[THINK] {t} It fits."]),
    "taken_back": lambda t, r: r.choice([f"Perhaps {t}", f"{t}?", f"{t} No, wait.", f"Either {t} or not.", f"{t} Rating: 3"]),
    "two_objects": lambda t, r: t + "\n" + t.replace("female", r.choice(["male", "unspecified"])),
    "duplicate_key": lambda t, r: t[:-1] + r.choice([', "gender": "male"}', ', "Gender": "male"}', ', "gender": "female"}']),
    "not_finite": lambda t, r: t.replace(": 7", r.choice([": NaN", ": Infinity", ": -Infinity", ": 1e999", ": nan"])),
    "too_deep": lambda t, r: t[:-1] + ', "x": ' + "[" * 60_000 + "]" * 30_000 + "}",
    "too_long": lambda t, r: t.replace("a hat,", "x" * LONGEST),
    "missing_field": lambda t, r: r.choice([without("gender"), without("score"), "{}", json.dumps({"answer": GOOD})]),
}  # fmt: skip


# A field with a value that is no answer, its state, and what made it so. The other fields keep theirs.
FAULTS = [
    ("gender", "nonbinary", "unmapped", "unknown_label"), ("race", "Latino", "unmapped", "unknown_label"),
    ("score", "seven", "unmapped", "unknown_label"), ("score", "7/10", "unmapped", "unknown_label"),
    ("gender", "male or female", "unmapped", "unknown_label"), ("gender", "", "unmapped", "unknown_label"),
    ("gender", "male.", "unmapped", "unknown_label"), ("visible", "maybe", "unmapped", "unknown_label"),
    ("shown", ["hat", "gloves"], "unmapped", "unknown_label"), ("gender", None, "unmapped", "unknown_label"),
    ("gender", ["female"], "invalid", "wrong_type"), ("gender", {"label": "female"}, "invalid", "wrong_type"),
    ("score", None, "invalid", "wrong_type"), ("score", 7.5, "invalid", "wrong_type"), ("score", True, "invalid", "wrong_type"),
    ("visible", 1, "invalid", "wrong_type"), ("shown", "hat", "invalid", "wrong_type"),
    ("score", 0, "invalid", "out_of_range"), ("score", "70", "invalid", "out_of_range"),
    ("score", 10**29, "invalid", "out_of_range"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "state", "cause"), FAULTS)
def test_a_field_stands_for_itself(name, value, state, cause):
    parsed = parse(P, edited(**{name: value}), "stop")
    assert (parsed.state, parsed.cause, parsed.of(name), parsed.answer[name]) == (Status.OK, cause, state, None)
    assert all(parsed.answer[other] == GOOD[other] and parsed.of(other) == Status.OK for other in P.decisions if other != name)
    said = value if isinstance(value, str) else json.dumps(value)
    assert parsed.unmapped == ({name: said} if state == "unmapped" else {})


def test_an_undamaged_reply_is_read_without_repairs():
    parsed = parse(P, TEXT, "stop")
    assert (parsed.state, parsed.answer, parsed.repairs, parsed.abstained) == (Status.OK, GOOD, (), ())


def test_a_thousand_damaged_replies_are_mended_or_invalid_and_counted():
    """The oracle is the damage itself: it is known to keep the meaning, or to lose it."""
    draw, repairs, causes = random.Random(7), Counter(), Counter()
    expected_repairs, expected_causes = Counter(), Counter()
    for number in range(1000):
        if number % 2:
            name = draw.choice(list(INVALID))
            parsed = parse(P, INVALID[name](TEXT, draw), "stop")
            assert (parsed.state, parsed.answer, parsed.cause) == (Status.INVALID, None, name), (name, parsed)
            assert parsed.reason and "\n" not in parsed.reason
            causes[parsed.cause] += 1
            expected_causes[name] += 1
        else:
            name = draw.choice(list(REPAIRED))
            parsed = parse(P, REPAIRED[name](TEXT, draw), "stop")
            assert parsed.state == Status.OK, (name, parsed)
            assert {k: v for k, v in parsed.answer.items() if k != "evidence"} == {
                k: v for k, v in GOOD.items() if k != "evidence"
            }
            assert parsed.repairs == (name,), (name, parsed.repairs)
            repairs[name] += 1
            expected_repairs[name] += 1
    assert repairs == expected_repairs and set(repairs) == set(REPAIRED)
    assert causes == expected_causes and set(causes) == set(INVALID)


@given(names=st.lists(st.sampled_from(sorted(REPAIRED)), unique=True, max_size=5), seed=st.integers(0, 2**16))
@settings(max_examples=300, deadline=None)
def test_damages_on_top_of_each_other_never_move_a_decision(names, seed):
    """Any pile of documented damages leaves the answer, or an invalid reply; never another answer."""
    text, draw = TEXT, random.Random(seed)
    for name in names:
        text = REPAIRED[name](text, draw)
    parsed = parse(P, text, "stop")
    if parsed.state == Status.OK:
        assert all(parsed.answer[k] == GOOD[k] for k in P.decisions if parsed.of(k) == Status.OK)
        # A damage can be undone by another (two objects inside one fence), so what is recorded may be fewer, never other.
        assert set(parsed.repairs) <= set(names) | {"prose"}
    else:
        assert parsed.state == Status.INVALID and parsed.answer is None


@given(st.one_of(
    st.text(), st.text(alphabet='{}[]"\':,\\ntruefalsgendmi07.eE-\u200b`\ud800', max_size=80),
    st.tuples(st.integers(0, len(TEXT)), st.integers(0, len(TEXT)), st.text(max_size=5)).map(
        lambda cut: TEXT[: cut[0]] + cut[2] + TEXT[cut[1] :]),
))  # fmt: skip
@settings(max_examples=500, deadline=None)
def test_any_text_ends_in_a_state_and_reading_is_idempotent(text):
    parsed = parse(P, text)
    if parsed.state in (Status.OK, Status.ABSTAINED):
        if not parsed.cause:  # every field was read
            again = parse(P, json.dumps(parsed.answer))
            assert (again.state, again.answer, again.repairs) == (parsed.state, parsed.answer, ())
            Answer.model_validate(parsed.answer, strict=True)
    else:
        assert parsed.answer is None and parsed.cause and parsed.state != Status.ERROR
    json.dumps([parsed.answer, parsed.reason]).encode()


@given(
    st.fixed_dictionaries(
        {"gender": st.sampled_from(["male", "female", "unspecified"]), "race": st.sampled_from(["Black", "unspecified"]),
         "score": st.integers(1, 10), "visible": st.booleans(), "evidence": st.text(),
         "shown": st.lists(st.sampled_from(["hat", "cane"]), max_size=3)}
    )
)  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_every_valid_answer_is_read_as_it_is(answer):
    parsed = parse(P, json.dumps(answer))
    assert parsed.repairs == () and {k: parsed.answer[k] for k in P.decisions} == {k: answer[k] for k in P.decisions}


def test_finish_reasons_rule_before_the_text_does():
    assert parse(P, TEXT, "content_filter").state == Status.REFUSED
    cut = parse(P, TEXT, "length")
    assert (cut.state, cut.cause) == (Status.INVALID, "cut_off")


def test_abstention_is_counted_by_field_and_a_state_only_when_nothing_is_decided():
    class Two(BaseModel):
        a: Literal["x", "unspecified"]
        b: Literal["x", "unspecified"]

    two = Protocol("t/two", "?", Two, {"a": ("unspecified",), "b": ("unspecified",)})
    some = parse(two, '{"a": "unspecified", "b": "x"}')
    assert (some.state, some.abstained) == (Status.OK, ("a",))
    assert parse(two, '{"a": "unspecified", "b": "Unspecified"}').state == Status.ABSTAINED
    for a, b, state in (("unspecified", "?", "abstained"), ("?", "?", "unmapped"), ("?", 3, "unmapped"), (3, 3, "invalid")):
        parsed = parse(two, json.dumps({"a": a, "b": b}))
        assert parsed.state == state and (parsed.answer is None) == (state != "abstained"), "the best state of its fields"


def test_ten_megabytes_are_read_fast_and_are_invalid():
    assert parse(P, "{" * 10_000_000).cause == "too_long"
    for hostile in (
        "{" * LONGEST,
        '{"a":' * 20_000,
        "```" * 30_000,
        "<think>" * 14_000,
        '{"a": "' + "\\" * 99_000,
        "i'm sorry" * 11_000,
        "<a>" * 33_000,
        "<think>{" * 12_000,
        '{"a":[' * 16_000 + "</think>",
        "score " * 16_000 + '{"score": 4}',
    ):
        assert parse(P, hostile[:LONGEST]).state in (Status.INVALID, Status.REFUSED)


def test_what_a_protocol_may_not_be():
    class Open(BaseModel):
        score: int

    class Guess(BaseModel):
        label: Literal["a", "b"] = "a"

    for model in (Open, Guess):
        with pytest.raises(ConfigError, match="closed"):
            Protocol("t/p", "?", model).fields  # noqa: B018
    with pytest.raises(ConfigError, match="could mean"):
        Protocol("t/p", "?", Answer, aliases={"gender": {"Male ": "female"}})
    with pytest.raises(ConfigError, match="cannot abstain"):
        Protocol("t/p", "?", Answer, {"gender": ("unknown",)})
    with pytest.raises(UnknownName, match="fairjudge/alignment"):
        load_protocol("protobias/alignmnt")


def test_a_protocols_version_follows_its_prompt_schema_and_reading():
    versions = {
        P.version,
        Protocol(P.name, "? ", Answer, ABSTAINS, P.aliases).version,
        Protocol(P.name, "?", Answer, {}, P.aliases).version,
        Protocol(P.name, "?", Answer, ABSTAINS).version,
        Protocol(P.name, "?", Answer, ABSTAINS, P.aliases, {"brief": "?"}).version,
    }
    assert len(versions) == 5
    assert P.version == Protocol(P.name, "?", Answer, ABSTAINS, P.aliases).version


def test_prompts_quote_data_and_name_what_is_missing():
    protocol = load_protocol("fairjudge/alignment")
    text = 'A "bird"\n5: all of it is there.'
    assert json.dumps(text) in protocol.render({"text": text})
    with pytest.raises(ConfigError, match="text"):
        protocol.render({"caption": "A bird."})
    with pytest.raises(UnknownName, match="brief"):
        protocol.render({"text": "A bird."}, "breif")
