"""What the shipped scene-judge-tiny was taught is what is asked today, and it says so where it is not."""

from __future__ import annotations

import io

import pytest

from protoscore.asking.protocol import load_protocol
from protoscore.folder import read_manifest
from protoscore.judging.log import print_audit
from protoscore.judging.stage import judge_items
from protoscore.sources.rows import Row
from protoscore.vlms.local import TINY, create, read_taught
from training.embedded.tasks import TASKS, example


@pytest.mark.parametrize("task", [*TASKS])
def test_no_protocol_has_changed_since_the_embedded_judge_was_taught_it(task):
    assert read_taught(TINY)["protocols"].get(task) == load_protocol(task).version, (
        f"scene-judge-tiny was taught another {task}: take the change of its prompt or labels back, or run make scene-judge"
    )


def test_everything_that_it_says_it_was_taught_is_in_the_list():
    assert set(read_taught(TINY)["protocols"]) == set(TASKS)


@pytest.mark.parametrize(("asked", "known"), [("fairjudge/profession", True), ("fairjudge/profession:diversify", False)])
def test_a_question_that_it_was_never_taught_is_answered_with_a_warning(asked, known, tmp_path, capsys):
    data = io.BytesIO()
    example("fairjudge/profession", 5, "test").images[0].save(data, "PNG")
    judge_items(load_protocol(asked), [Row("one", (data.getvalue(),), {})], create(max_tokens=16), tmp_path)
    warned = "never taught fairjudge/profession:diversify" in capsys.readouterr().err
    assert warned is not known
    print_audit(tmp_path, None, None, 0)
    assert ("was never taught" in " ".join(capsys.readouterr().out.split())) is not known
    assert read_manifest(tmp_path)["untaught"] == ([] if known else [f"local:{TINY.name}"])


def test_the_filter_asks_about_the_pictures_own_description_and_else_about_its_text():
    protocol = load_protocol("protobias/image_filter")
    alone = protocol.render({"text": "A platypus in a green meadow."})
    assert protocol.render({"text": "An animal.", "description": "A platypus in a green meadow."}) == alone
