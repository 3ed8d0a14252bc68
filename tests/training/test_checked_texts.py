"""The scene reader's training texts: what is marked as wrong is what a reader who knows the scene would mark."""

from __future__ import annotations

import random
import re

import pytest

from protoscore.benchmarks.protobias.schema import Cell
from tests.conftest import ROOT
from training import scenes
from training.embedded import checked_texts


@pytest.fixture(scope="module")
def triplets():
    return scenes.scene_triplets(900, seed=4)


def test_each_change_marks_its_own_words(triplets):
    """Something is marked where something was changed, and what is not marked is the picture's own text, word by word."""
    rng = random.Random(0)
    for triplet in triplets[:300]:
        domain = [other for other in triplets if other.domain == triplet.domain]
        cell = rng.choice(list(Cell))
        own, changed = checked_texts.checked_texts(triplet, cell, domain, rng)
        assert own.wrong == []
        assert own.text in (triplet.description(cell), triplet.text) or not cell.is_correct
        assert bool(changed.wrong) == (own.text != changed.text), (own.text, changed.text)
        # What is not marked are those of the own text, in their order.
        kept = list(changed.text)
        for a, b in reversed(changed.wrong):
            del kept[a:b]
        theirs = iter(_words(own.text))
        assert all(any(word == other for other in theirs) for word in _words("".join(kept))), (own.text, changed.text)


@pytest.mark.parametrize(
    ("asked", "true", "wrong"),
    [
        (
            "A robin in a park with two stones behind it.",
            "A kiwi in a park with two stones in front of it.",
            ["robin", "behind"],
        ),
        ("An egg cup next to a red box.", "A tuk-tuk next to a blue box.", ["egg", "cup", "red"]),
        ("A dog with a tree behind it.", "A dog with a tree stump behind it.", ["tree"]),
        ("A dog with a tree behind it.", "A dog with a pine tree behind it.", ["tree"]),
        ("A dog with a tree stump behind it.", "A dog with a tree behind it.", ["stump"]),
        ("An umbrella.", "An umbrella.", []),
    ],
)
def test_wrong_words_by_hand(asked, true, wrong):
    assert [asked[a:b] for a, b in checked_texts._wrong_words(asked, true)] == wrong


def test_a_thing_whose_name_is_part_of_the_others_is_swapped_once(triplets):
    tree = next(t for t in triplets if t.extra == "tree" and "a tree " in t.correct)
    stump = next(t for t in triplets if t.extra == "log")
    changed = checked_texts._extra(tree.correct, tree, Cell.NON_CORRECT, [stump], random.Random(0))
    assert changed == tree.correct.replace("a tree ", "a tree stump ")


def _words(text: str) -> list[str]:
    return [word for word in re.findall(r"[\w-]+", text) if word.lower() not in ("a", "an")]


@pytest.mark.parametrize("part", ["knob", "extra", "environment", "subject"])
def test_one_change_alone_leaves_the_rest(triplets, part):
    changed = 0
    for number, triplet in enumerate(triplets[:200]):
        domain = [other for other in triplets if other.domain == triplet.domain]
        cell = list(Cell)[number % 4]
        true = triplet.description(cell)
        text = checked_texts._CHANGES[part](true, triplet, cell, domain, random.Random(number))
        changed += text != true
        if part == "knob":
            assert text in {triplet.description(c) for c in Cell if c.subject == cell.subject}
        if part == "environment":
            assert text.split()[1] == true.split()[1]
        if part == "subject":
            phrase = triplet.non_phrase if cell.subject == "non" else triplet.proto_phrase
            assert text == true or phrase.lower() not in text.lower()
            assert text.endswith(true.split(" with ")[-1][-12:])
    assert changed >= 160  # some scenes have no other place, or no other thing, to show


def test_the_marks_reach_the_tokens():
    """Of a hand-made row: the tokens of the wrong word and the verdict say wrong, every other one right."""
    from PIL import Image
    from transformers import AutoProcessor

    from training.embedded import judge_model as model
    from training.embedded import train_scene_judge as trainer

    processor = AutoProcessor.from_pretrained(ROOT / "protoscore" / "assets" / "scene-judge-tiny")
    text = "A walking stick insect in a park with two mushrooms nearby."
    prompt, first = model.CHECK_PROMPT + text, len(model.CHECK_PROMPT)
    start = first + text.index("two")
    row = {"images": [Image.new("RGB", (96, 96))], "prompt": prompt, "answer": "", "place": (first, len(prompt))}
    batch = trainer.AnswerCollator(processor)([row | {"wrong": []}, row | {"wrong": [(start, start + 3)]}])
    right, wrong = processor.tokenizer.convert_tokens_to_ids([model.RIGHT, model.WRONG])
    for labels, ids, marked in zip(batch["labels"], batch["input_ids"], ([], ["two", "<|im_end|>"]), strict=True):
        said = [(processor.tokenizer.decode([i]), int(v)) for i, v in zip(ids[:-1], labels[1:], strict=True) if v != -100]
        assert [word.strip() for word, verdict in said if verdict == wrong] == marked
        assert {verdict for _, verdict in said} <= {right, wrong}
        assert "".join(word for word, _ in said).startswith(text + "<|im_end|>")
