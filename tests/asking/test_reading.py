"""Where in a reply its answer stands: reasoning, words that take an answer back, refusals. Tables of cases, both ways, and a
fuzz that composes replies from a grammar and knows which of them hold an answer."""

from __future__ import annotations

import random
from collections import Counter
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from protoscore.asking.protocol import Protocol, load_protocol
from protoscore.asking.reply import parse
from protoscore.schema import Status

ALIGNMENT = load_protocol("fairjudge/alignment")
ATTRIBUTES = load_protocol("fairjudge/attributes")
TWO, FOUR = '{"score": 2}', '{"score": 4}'


class Graded(BaseModel):
    score: Annotated[int, Field(ge=1, le=5)]
    side: Literal["left", "right", "unknown"]


GRADED = Protocol("test/graded", "?", Graded, {"side": ("unknown",)})

IN_REASONING = [
    f"<think>Perhaps {TWO}? But the colour fits", f"Perhaps {TWO}? No.</think> I would say 4.",
    f"<thought>{TWO}</thought> The score is 4.", f"<|channel|>analysis<|message|>maybe {TWO}<|end|>", f"[THINK]{TWO}[/THINK]",
    f"<THINKING>\n{TWO}\n</THINKING>", f"<reasoning>{TWO}", f"<think><think>{TWO}</think> so {TWO}", f"{TWO}</think>",
    f"<|begin_of_thought|>{TWO}<|end_of_thought|>", f"<seed:think>{TWO}</seed:think>",
    f"\u25c1think\u25b7{TWO}\u25c1/think\u25b7",
    f"<musing>{TWO}</musing>", f"{TWO}</musing> so 4", f"analysisMaybe {TWO}", f"<|channel>thought\n{TWO}<channel|>",
    f"<analysis>{TWO}</analysis><scratchpad>{TWO}", f"{FOUR}\n<think>Or rather 2?</think>",
]  # fmt: skip
AFTER_REASONING = [
    f"I could say {TWO}.</think>{FOUR}", f"I could say {TWO}.</THINK>\n\n{FOUR}", f"<reasoning>{TWO}</reasoning> {FOUR}",
    f"[THINK]{TWO}[/THINK]{FOUR}", f"<think>{TWO}</think><think>{TWO}</think>{FOUR}", f"{TWO}</think>hm {TWO}</think>{FOUR}",
    f"<think>a <think>{TWO}</think> b {TWO}</think>{FOUR}", f"<think>{TWO}</think>```json\n{FOUR}\n```",
    f"<|channel|>analysis<|message|>{TWO}<|end|><|start|>assistant<|channel|>final<|message|>{FOUR}",
    f"<|channel|>analysis<|message|>{TWO}<|channel|>final <|constrain|>json<|message|>{FOUR}",
    f"<|channel>thought\n{TWO}<channel|>{FOUR}", f"analysisMaybe {TWO}assistantfinal{FOUR}",
    f"<Thought>{TWO}</Thought>\n{FOUR}",
    f"<|begin_of_thought|>{TWO}<|end_of_thought|>{FOUR}", f"\u25c1think\u25b7{TWO}\u25c1/think\u25b7{FOUR}",
    f"<think>{{broken</think>{FOUR}", f"<musing>{TWO}</musing>{FOUR}", f"<answer>{FOUR}</answer>", f"<b>{FOUR}</b></s>",
    f"<think>\n\n</think>\n\n{FOUR}", '{"score": 4, "reason": "the text says <think>"}',
    'Sure: {"score": 4, "reason": "</think>{\'score\': 1}"}',
]  # fmt: skip
TAKEN_BACK = [
    "{}\nCorrection: the score should be 2.", "Either {} or 3.", "It is certainly not {}.", "Perhaps {}? But the colour fits",
    "{}?", "{} or 3", "{} / 3", "{}. Or maybe 2.", "{}\nNo, wait.", "{} Actually, the bird is red. 2.", "Not {}", "Not: {}",
    "{}\nOn second thought, less.", "{}\nI was wrong about that.", "{} That is wrong.", "{}\nThe score should rather be lower.",
    "The score is 3.\n{}", "Rating: 2\n{}", "{}\n2", "{}\nFinal score: 2", "{}. Better: 2.", "I could say {}.",
    "For example {}",
    "{}\nScratch that.", "{}\nIgnore the above.", "It might be {}", "Between {} and 3",
]  # fmt: skip
KEPT = [
    "{}", "Here you are: {}", "{}\nI hope that this helps.", "The picture shows 3 dogs and 2 cats. {}", "My answer is {}.",
    "{}\nThe 2 stones are grey.", "On a scale from 1 to 5, the score is 4.\n{}", "The score is 4.\n{}", "{}\nScore: 4 out of 5",
    "It is not red, but everything else fits.\n{}", "I am not sure about the colour. My answer: {}", "{} 4", "Score (1-5): {}",
    "I'm sorry, but I cannot identify people in images. {}", "```json\n{}\n```", "**Answer**\n{}",
    "{}\nEverything but the hat is there.",
    "{}\nThe hat should be red.", "A value of 4.5 would be too much.\n{}", "I rate between the extremes: {}",
]  # fmt: skip
REFUSED = [
    "I can't help with that.", "I\u2019m sorry, but I cannot identify people in images.", "I am unable to assist.",
    "Sorry, I won't guess.", "As an AI, I am not able to infer religion.", "I must decline.", "Unfortunately I cannot tell.",
    "It is not possible to determine these attributes.", "It's not appropriate to guess someone's religion.",
    "As an AI language model, I do not make judgments about people.", "I do not feel comfortable doing that.",
    "I don't make inferences about people from pictures.", "My guidelines don't allow me to do that.",
    "Guessing religion isn't something I can help with.", "Unable to comply.", "I prefer not to answer.", "I would rather not.",
    "I apologize, but I can't.", "Request declined by policy.", "I'm not comfortable rating people from 1 to 5.",
    "Lo siento, no puedo ayudar con eso.", "Es tut mir leid, aber ich kann dabei nicht helfen.",
    "Das kann ich leider nicht beurteilen.",
    "Je suis d\u00e9sol\u00e9, mais je ne peux pas vous aider.",
    "\u62b1\u6b49\uff0c\u6211\u65e0\u6cd5\u56de\u7b54\u8fd9\u4e2a\u95ee\u9898\u3002",
    '{"error": "I cannot identify people in images"}', '<think>Hm.</think>I cannot help with that.',
]  # fmt: skip
NOT_REFUSED = [
    "I cannot see any difference. Score 5.", "Sorry for the delay! Score: 4", "I cannot find fault with it", "4",
    "Sorry for that!",
    "The person cannot see the dog.", "No puede verse nada raro.", "Ich sehe keinen Unterschied.", "I can not see it: 3 of 5",
]  # fmt: skip


@pytest.mark.parametrize("text", IN_REASONING)
def test_what_stands_in_reasoning_is_no_answer(text):
    for finish in ("stop", "", "eos"):
        assert parse(ALIGNMENT, text, finish).state == Status.INVALID


@pytest.mark.parametrize("text", AFTER_REASONING)
def test_the_object_after_the_reasoning_is_the_answer(text):
    parsed = parse(ALIGNMENT, text, "stop")
    assert parsed.state == Status.OK and parsed.answer["score"] == 4, parsed


@pytest.mark.parametrize("text", TAKEN_BACK)
def test_an_answer_that_is_taken_back_is_none(text):
    assert parse(ALIGNMENT, text.replace("{}", FOUR), "stop").state == Status.INVALID


@pytest.mark.parametrize("text", KEPT)
def test_other_words_beside_an_answer_leave_it(text):
    parsed = parse(ALIGNMENT, text.replace("{}", FOUR), "stop")
    assert parsed.state == Status.OK and parsed.answer["score"] == 4, parsed


def test_another_label_beside_an_answer_makes_it_none():
    protocol = load_protocol("bbq_v/two_people")
    for text in (
        '{"answer": "left"}\nThe answer is right.',
        '{"answer": "left"} or right',
        'Answer: unknown\n{"answer": "left"}',
    ):
        assert parse(protocol, text).state == Status.INVALID, text
    for text in ('{"answer": "left"}\nThe person on the right is a child.', 'Answer: left\n{"answer": "left"}'):
        assert parse(protocol, text).answer["answer"] == "left", text


@pytest.mark.parametrize("text", REFUSED)
def test_refusals_in_words_are_states_of_their_own(text):
    for protocol in (ALIGNMENT, ATTRIBUTES):
        assert parse(protocol, text, "stop").state == Status.REFUSED
    assert "error" in text or parse(ALIGNMENT, f"{text} {FOUR}", "stop").state == Status.OK, (
        "an answer that was given is no refusal"
    )


@pytest.mark.parametrize("text", NOT_REFUSED)
def test_words_that_refusals_have_too_are_none(text):
    assert parse(ALIGNMENT, text, "stop").state == Status.INVALID


def test_one_free_text_may_be_answered_in_plain_words():
    class Open(BaseModel):
        text: str

    protocol = Protocol("t/open", "?", Open)
    plain = parse(protocol, "<think>hm</think> Two {happy} dogs.")
    assert (plain.state, plain.answer, plain.states) == (Status.INVALID, None, {}), "a brace begins an object"
    plain = parse(protocol, "<think>hm</think> Two dogs. I cannot see more.")
    assert (plain.state, plain.answer, plain.repairs) == (
        Status.OK, {"text": "Two dogs. I cannot see more."}, ("reasoning_block", "plain_text"),
    )  # fmt: skip
    assert parse(protocol, '{"text": "Two dogs."}').answer == {"text": "Two dogs."}
    assert parse(protocol, "I can't help with that.").state == Status.REFUSED
    assert parse(protocol, " \n").cause == "empty"


NEUTRAL = ["", "Here you are:", "I looked closely.", "The picture shows 3 dogs.", "Done.", "It is not red.", "Thanks!\n"]
CLOSERS = {
    "<think>": "</think>", "<THINKING>": "</thinking>", "<thought>": "</thought>", "[THINK]": "[/THINK]",
    "<reasoning>": "</reasoning>", "<|channel|>analysis<|message|>": "<|end|>", "\u25c1think\u25b7": "\u25c1/think\u25b7",
    "": "</think>",
}  # fmt: skip
OPENERS = [*CLOSERS]
SPOILERS = ["{}?", "Perhaps {}", "Not {}", "{} or 3", "{}\nCorrection: 1.", "Either {} or 1", "{}\nNo, wait."]


WRITTEN = ['{"score": %d, "side": "%s"}', "{'score': %d, 'side': '%s'}", '```json\n{"score": %d, "side": "%s"}\n```']


def some(draw: random.Random) -> tuple[int, str]:
    return draw.randint(1, 5), draw.choice(["left", "right"])


def reasoned(draw: random.Random) -> str:
    """Blocks of reasoning, each with an answer that was not given; the first may have been opened by a template."""
    blocks = ""
    for _ in range(draw.choice([0, 0, 1, 1, 2, 3])):
        opener = draw.choice(OPENERS if not blocks else OPENERS[:-1])
        words = draw.choice(NEUTRAL), draw.choice(["Maybe", "So", ""]), draw.choice(WRITTEN) % some(draw), draw.choice(NEUTRAL)
        inner = " ".join(words)
        if opener and draw.random() < 0.2:
            inner = f"{inner}<think>{draw.choice(WRITTEN) % some(draw)}</think>{inner}"
        blocks += f"{opener}{inner}{CLOSERS[opener]}"
    return blocks


def composed(draw: random.Random) -> tuple[str, tuple[int, str] | None]:
    """A reply, and the answer that stands in its final position; None where there is none."""
    before, answer = reasoned(draw), some(draw)
    written, kind = draw.choice(WRITTEN) % answer, draw.choice(["answer", "answer", "nothing", "open", "spoiled"])
    if kind == "answer":
        return f"{before}{draw.choice(NEUTRAL)} {written} {draw.choice(NEUTRAL)}", answer
    if kind == "nothing":
        return f"{before}{draw.choice(NEUTRAL)}", None
    if kind == "open":
        return f"{before}{draw.choice(OPENERS[:-1])}{written} {draw.choice(NEUTRAL)}", None
    return before + draw.choice(SPOILERS).replace("{}", written.strip("`json\n")), None


def test_ten_thousand_composed_replies_give_what_stands_last_or_nothing():
    draw, read = random.Random(11), Counter()
    for _ in range(10_000):
        text, answer = composed(draw)
        parsed = parse(GRADED, text, draw.choice(["stop", ""]))
        found = parsed.answer and (parsed.answer["score"], parsed.answer["side"])
        assert found == answer, (text, parsed)
        read[parsed.state] += 1
        at, to = sorted((draw.randrange(len(text) + 1), draw.randrange(len(text) + 1)))
        parse(GRADED, draw.choice([text[:at] + text[to:], text[at:to], text + text[at:to]]))  # damage: no crash
    assert read[Status.OK] > 3000 and read[Status.INVALID] > 4000
