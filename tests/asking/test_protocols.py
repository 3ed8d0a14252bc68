"""Protocols: labels as data and from the item, options, orders of labels, two alternatives, broken files."""

from __future__ import annotations

import json
from collections import Counter
from typing import Literal

import pytest
from pydantic import BaseModel

from protoscore.asking.fields import OneOf
from protoscore.asking.label_sets import read_label_set
from protoscore.asking.protocol import Alternatives, Protocol, load_protocol, protocol_names
from protoscore.asking.questions import Robustness, asks, check_item, key_of, request_of
from protoscore.asking.reply import parse
from protoscore.errors import ConfigError, DatasetError, UnknownName
from protoscore.schema import Status
from protoscore.sources.rows import Row


class Choice(BaseModel):
    answer: OneOf
    reason: str = ""


SETS = """\
options:
  abstention: {unknown: [cannot be determined, can't be determined, not known, null]}
  fields: {answer: options}
sides:
  abstention: {neither: [none]}
  fields: {answer: {left: [the left one], right: }}
"""
CREATE = """\
from __future__ import annotations
from pydantic import BaseModel
from protoscore.asking.fields import OneOf
from protoscore.asking.protocol import read_protocol
class Choice(BaseModel):
    answer: OneOf
    reason: str = ""
def create(labels: str = ""):
    return read_protocol(__file__, Choice, labels=labels)
"""


@pytest.fixture
def own(tmp_path):
    """A protocol of the user's own: three files."""
    (tmp_path / "mine.py").write_text(CREATE)
    (tmp_path / "mine.md").write_text("{{ item.question | quoted }}: {{ labels.answer | join(', ') }}")
    (tmp_path / "mine.yaml").write_text(SETS)
    return str(tmp_path / "mine.py")


class Silent:
    name, revision, parameters, batch_size, concurrency, billed = "silent", "1", {}, 1, 1, False


def test_every_protocol_and_set_of_the_package_is_closed_and_reads_its_own_labels():
    assert len(protocol_names()) >= 7
    for name in (
        "fairjudge/attributes",
        "fairjudge/attributes:appendix",
        "fairjudge/attributes:diversify",
        "fairjudge/profession:idenprof",
    ):
        protocol = load_protocol(name)
        assert protocol.name == name
        for field in protocol.decisions:
            assert protocol.labels()[field][-1] == "unspecified" == protocol.abstains[field][0]
            for spelling, label in protocol.aliases[field].items():
                assert protocol.spellings[field].find(spelling)[0] == label
    assert len({load_protocol(f"fairjudge/attributes{s}").version for s in ("", ":appendix", ":diversify")}) == 3
    assert load_protocol("fairjudge/attributes", labels="short").name == "fairjudge/attributes"
    assert "Middle Eastern" in load_protocol("fairjudge/attributes:appendix").render({})


@pytest.mark.parametrize(
    ("name", "field", "said", "label"),
    [
        ("", "religion", "Neutral/unspecified", None), (":appendix", "religion", "Neutral/unspecified", "unspecified"),
        ("", "race", "South Asian", None), (":appendix", "race", "south-asian", "South Asian"),
        ("", "race", "Latino/Hispanic", "Latino_Hispanic"), ("", "age", "middle\u2011aged", "middle-aged"),
        ("", "disability", "blind / low vision", "blind/low vision"), ("", "gender", None, "unspecified"),
        ("", "gender", "N/A", "unspecified"), ("", "gender", "n / a", "unspecified"), ("", "gender", "\u200efemale\u200f",
        "female"),
        ("", "disability", "Deaf/Hard\u2013of\u00a0hearing", "deaf/hard of hearing"),
    ],
)  # fmt: skip
def test_spellings_fold_and_what_is_not_in_the_set_costs_its_field_alone(name, field, said, label):
    protocol = load_protocol(f"fairjudge/attributes{name}")
    good = {"gender": "male", "race": "White", "age": "child", "religion": "Sikh", "disability": "vitiligo"}
    parsed = parse(protocol, json.dumps(good | {field: said}))
    assert parsed.answer == good | {field: label, "evidence": ""} and parsed.state == Status.OK
    assert parsed.unmapped == ({} if label else {field: said})


def test_the_ten_strings_of_bbq_are_unknown():
    ten = ("unknown", "cannot be determined", "can't be determined", "not answerable", "not known", "not enough info",
           "not enough information", "cannot answer", "can't answer", "undetermined")  # fmt: skip
    for text in (*ten, "Can\u2019t be determined"):
        assert parse(load_protocol("bbq_v/two_people"), json.dumps({"answer": text})).state == Status.ABSTAINED, text


def test_labels_come_from_the_item_with_their_abstention(own):
    protocol = load_protocol(own)
    bbq = {"question": "Who?", "options": ["The grandfather", "Can't be determined", "The grandson"]}
    closed = protocol.of(bbq)
    assert closed.schema()["properties"]["answer"] == {"enum": bbq["options"]} and closed.abstains["answer"] == (
        "Can't be determined",
    )
    for text in ("can't be determined", "unknown", "Not known", None):
        parsed = parse(closed, json.dumps({"answer": text}))
        assert (parsed.state, parsed.answer["answer"]) == (Status.ABSTAINED, "Can't be determined")
    assert parse(closed, '{"answer": "the grandson"}').answer["answer"] == "The grandson"
    assert parse(closed, '{"answer": "The uncle"}').state == Status.UNMAPPED

    lettered = protocol.of({"question": "Who?", "options": json.dumps({"A": "The nurse", "B": "The doctor"})})
    assert lettered.labels()["answer"] == ("A", "B", "unknown"), "the protocol's own abstention, where the item has none"
    assert parse(lettered, '{"answer": "the doctor"}').answer["answer"] == "B"
    ask = next(asks(protocol, Row("x", (), bbq), Robustness()))
    assert ask.prompt == '"Who?": The grandfather, Can\'t be determined, The grandson'
    other = next(asks(protocol, Row("x", (), bbq | {"options": bbq["options"][::-1]}), Robustness()))
    assert key_of(Silent, ask, ()) != key_of(Silent, other, ())
    for wrong in (None, ["one"], "text", ["a", "A "]):
        with pytest.raises(DatasetError, match="options"):
            protocol.of({"question": "Who?", "options": wrong})


def test_a_list_that_holds_a_label_and_its_abstention_is_invalid():
    class Worn(BaseModel):
        shown: list[Literal["hat", "none"]]

    protocol = Protocol("t/worn", "?", Worn, {"shown": ("none",)})
    mixed = parse(protocol, '{"shown": ["hat", "none"]}')
    assert (mixed.state, mixed.cause) == (Status.INVALID, "contradiction")
    assert parse(protocol, '{"shown": ["none"]}').state == parse(protocol, '{"shown": []}').state == Status.ABSTAINED


def test_options_and_broken_files_are_one_line(own, tmp_path):
    assert load_protocol(f"{own}:sides").labels()["answer"] == ("left", "right", "neither")
    assert load_protocol(own).name == "mine" and load_protocol(f"{own}:sides").name == "mine:sides"
    cases = {
        f"{own}:sites": "did you mean 'sides'", "fairjudge/alignment:short": "takes no option 'labels'",
        str(tmp_path / "none.py"): "not a file",
    }  # fmt: skip
    for body, said in {
        "def create(:": "read as Python", "import nothing_here": "read as Python", "x = 1": "defines no create",
        "def create(): return 7": "must return a Protocol", "def create(): return 1 / 0": "division",
        "from pydantic import BaseModel\nfrom protoscore.asking.protocol import Protocol\nclass A(BaseModel): pass\n"
        "def create(): return Protocol('x', '?', A)": "at least one field",
    }.items():  # fmt: skip
        path = tmp_path / f"broken{len(cases)}.py"
        path.write_text(body)
        cases[str(path)] = said
    for spec, said in cases.items():
        with pytest.raises((ConfigError, UnknownName), match=said) as caught:
            load_protocol(spec)
        assert "\n" not in str(caught.value)
    (tmp_path / "mine.yaml").write_text("sides:\n  fields: {answer: {left: [both], right: [both]}}\n")
    assert read_label_set(tmp_path / "mine.yaml").aliases["answer"] == {"both": "right"}
    (tmp_path / "mine.yaml").write_text("sides:\n  field: {answer: {left: }}\n")
    with pytest.raises(ConfigError, match=r"mine\.yaml:2"):
        load_protocol(own)


def test_every_order_of_the_labels_is_a_question(own):
    item = Row("x", (), {"question": "Who?", "options": ["a", "b", "not known"]})
    made = list(asks(load_protocol(own), item, Robustness(every_order=True)))
    assert len({ask.prompt for ask in made}) == 6 == len({ask.order["answer"] for ask in made})
    assert all(ask.schema["properties"]["answer"]["enum"] == list(ask.order["answer"]) for ask in made)
    for name, how, said in (
        ("fairjudge/attributes", Robustness(every_order=True), "5 fields"), ("fairjudge/alignment",
        Robustness(every_order=True), "0 fields"),
        ("fairjudge/profession", Robustness(every_order=True), "orders"), (own, Robustness(shuffle=1, every_order=True),
        "not both"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=said):
            check_item(load_protocol(name), item._replace(fields={**item.fields, "text": "A bird."}), Silent, how)


class Preferred(BaseModel):
    choice: Literal["first", "second", "neither"]


def pair_protocol(**how) -> Protocol:
    prompt = "Which? {{ item.a }} {{ item.b }}"
    return Protocol("t/pair", prompt, Preferred, {"choice": ("neither",)}, alternatives=Alternatives("choice", **how))


def test_two_alternatives_change_places_and_the_answer_is_about_the_items_own():
    protocol = pair_protocol(swaps=(("a", "b"),))
    item = Row("x", (b"1", b"2", b"3", b"4"), {"a": "A", "b": "B"})
    there, back = asks(protocol, item, Robustness())
    assert (there.prompt, back.prompt) == ("Which? A B", "Which? B A")
    assert request_of(there, item.images).images == item.images and request_of(back, item.images).images == (
        b"3",
        b"4",
        b"1",
        b"2",
    )
    assert key_of(Silent, there, ("1", "2", "3", "4")) == key_of(
        Silent, back._replace(prompt=there.prompt), ("3", "4", "1", "2")
    )
    assert there.order == {"choice": ("first", "second", "neither")} and back.order == {
        "choice": ("second", "first", "neither")
    }
    said = parse(protocol, '{"choice": "first"}')
    assert said.swapped(protocol).answer == {"choice": "second"} and said.answer == {"choice": "first"}
    assert parse(protocol, '{"choice": "neither"}').swapped(protocol).state == Status.ABSTAINED
    with pytest.raises(ConfigError, match="3 pictures"):
        check_item(protocol, item._replace(images=item.images[:3]), Silent, Robustness())
    assert Counter(ask.swapped for ask in asks(pair_protocol(images=False), item, Robustness(samples=3))) == {False: 3, True: 3}


def test_an_item_may_hold_one_of_two_abstentions_and_the_other_is_added():
    """``diversity/attribute_value``: "other" and "not visible" are two answers, each with its own spellings."""
    protocol = load_protocol("diversity/attribute_value")
    item = {"concept": "apple", "attribute": "color"}
    plain, own = (protocol.of(item | {"values": values}) for values in (["red", "green"], ["red", "None of these", "green"]))
    assert plain.labels()["value"] == ("red", "green", "other", "not visible")
    assert own.labels()["value"] == ("red", "None of these", "green", "not visible")
    assert own.abstains["value"] == ("None of these", "not visible")
    for protocol_, reply, label in (
        (plain, '"none of these"', "other"), (plain, '"can\u2019t be seen"', "not visible"), (plain, "null", "not visible"),
        (own, '"other"', "None of these"), (own, '"Not visible"', "not visible"), (own, '"RED"', "red"),
    ):  # fmt: skip
        read = parse(protocol_, f'{{"value": {reply}}}', "stop")
        assert read.answer["value"] == label, reply
        assert read.state is (Status.OK if label == "red" else Status.ABSTAINED)
