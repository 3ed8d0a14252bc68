"""Everything that scene-judge-tiny is taught, in one list: a protocol with a function that draws its questions, or, in training
only, a task that no protocol sets.

Its words, the batches it learns from, its measures, and what it says that it was taught all come from this list. So another
protocol is one function, and one entry here.
"""

from __future__ import annotations

from protoscore.asking.protocol import Protocol, load_protocol
from training.embedded.tasks import people, sets, texts
from training.embedded.tasks.base import SceneQuestion, Seeded, Task

DESCRIPTION, BOTH, CHECK = "description", "both people", "check"

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task("fairjudge/attributes", people.attributes, 0.08),
        Task("fairjudge/profession", people.profession, 0.02),
        Task("fairjudge/alignment", texts.alignment, 0.06, words=texts.sentences),
        Task("protobias/rubric", texts.rubric, 0.06),
        Task(
            "protobias/image_filter", texts.image_filter, 0.10,
            measures={"kept or rejected as by the masks": lambda row: _kept(row["answer_score"]) == _kept(row["true_score"])},
        ),
        Task(
            "bbq_v/two_people", people.two_people, 0.22,
            words=people.meetings,
        ),
        Task(
            "diversity/attribute_value", sets.attribute_value, 0.18, words=sets.attributes, phrases=sets.value_phrases,
            by=("attribute",),
        ),
        Task(
            "diversity/attribute_count", sets.attribute_count, 0.30, phrases=sets.count_phrases, pictures=8,
            by=("size", "attribute"),
        ),
    )
}  # fmt: skip
TRAINING_ONLY: dict[str, Task] = {
    task.name: task
    for task in (
        Task(DESCRIPTION, texts.description, 0.02), Task(BOTH, people.both, 0.08), Task(CHECK, texts.check, 0.05),
    )
}  # fmt: skip


def example(task: str, seed: int, split: str) -> SceneQuestion:
    """The question of ``seed``; the same arguments give the same one."""
    return (TASKS | TRAINING_ONLY)[task].draw(Seeded(task, split, seed), split)


def protocols() -> dict[str, Protocol]:
    """The protocols that are taught."""
    return {name: load_protocol(name) for name in TASKS}


def _kept(score: int | None) -> bool:
    return score is not None and score >= 8
