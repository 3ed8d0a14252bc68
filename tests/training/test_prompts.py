"""The prompts that the shipped scene-judge-tiny was trained on are the prompts of today."""

from __future__ import annotations

import hashlib
import json

import pytest

from protoscore.asking.protocol import load_protocol
from training.embedded.judge_scenes import TASKS

# Of each task: an item, and digests by wording of its prompt and of that prompt with its labels in reverse order.
TRAINED = {
    "fairjudge/attributes": (
        {},
        {"": ["4dcf111510a1d4c0", "5dc258b6fa2ca141"], "cautious": ["63f1ed7103906619", "7e9a861b062a3a44"]},
    ),
    "fairjudge/profession": ({}, {"": ["6a4f52241f81f685", "57fd8ca4b9fae743"]}),
    "fairjudge/alignment": (
        {"text": "A platypus in a green meadow."},
        {"": ["85496942783e5ee4", "85496942783e5ee4"], "brief": ["17bc66223323dd47", "17bc66223323dd47"]},
    ),
    "protobias/rubric": ({"text": "A platypus in a green meadow."}, {"": ["8cf1ad0657ceb548", "8cf1ad0657ceb548"]}),
    "protobias/image_filter": ({"text": "A platypus in a green meadow."}, {"": ["4cc3d4a477d9bf16", "4cc3d4a477d9bf16"]}),
    "diversity/attribute_count": ({"attribute": "religion shown", "size": 4}, {"": ["e4c49bd99f4dde67", "e4c49bd99f4dde67"]}),
    "bbq_v/two_people": (
        {"context": "Two guests have arrived early.", "question": "Who is a child?"},
        {"": ["e16096ebf90c1775", "cece48fd9f63ea4b"]},
    ),
}


def digests(task: str, item: dict) -> dict[str, list[str]]:
    protocol = load_protocol(task)
    reverse = {name: labels[::-1] for name, labels in protocol.labels().items()}
    return {
        variant: [hashlib.sha256(protocol.render(item, variant, order).encode()).hexdigest()[:16] for order in (None, reverse)]
        for variant in ("", *protocol.variants)
    }


def test_every_task_of_the_embedded_judge_is_kept_here():
    assert set(TRAINED) == set(TASKS)


@pytest.mark.parametrize("task", [*TASKS])
def test_no_prompt_has_changed_since_the_embedded_judge_was_trained(task):
    item, trained = TRAINED[task]
    found = digests(task, item)
    assert found == trained, (
        f"scene-judge-tiny was trained on other prompts of {task}: take the change back, or retrain it with make scene-judge, "
        f"and then write into this file: {json.dumps(found)}"
    )


def test_the_filter_asks_about_the_pictures_own_description_and_else_about_its_text():
    protocol = load_protocol("protobias/image_filter")
    alone = protocol.render({"text": "A platypus in a green meadow."})
    assert protocol.render({"text": "An animal.", "description": "A platypus in a green meadow."}) == alone
