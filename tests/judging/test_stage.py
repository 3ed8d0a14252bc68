"""The stage, its robustness options, the cascade, injections and the audit, with judges whose answers are known by rule."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Literal

import pyarrow.parquet as pq
import pytest
from pydantic import BaseModel

from protoscore.asking.dispatch import Budget
from protoscore.asking.fields import OneOf
from protoscore.asking.protocol import Alternatives, Protocol, load_protocol
from protoscore.asking.questions import Robustness, label_order
from protoscore.catalog import load
from protoscore.errors import ConfigError, DatasetError, ProtoscoreError, UnknownName
from protoscore.judging.audit import audit, safe
from protoscore.judging.cascade import Rule, cascade
from protoscore.judging.decide import decide
from protoscore.judging.injection import CONTROL, Injected, injection_rates, injections
from protoscore.judging.positions import positions
from protoscore.judging.savings import savings
from protoscore.judging.stage import judge_items
from protoscore.schema import Status
from protoscore.scorers import Facts, Score
from protoscore.sources import open_rows
from protoscore.sources.rows import Row
from protoscore.vlms import Reply
from tests.asking.test_parser import P
from tests.conftest import cli
from tests.controls import questions
from tests.judging.support import TEXTS, png, some_items

ALIGNMENT = load_protocol("fairjudge/alignment")


def judge(folder: Path, body: str, name: str = "rule"):
    path = folder / f"{name}.py"
    path.write_text(f"import json, re\nfrom protoscore.vlms import Reply\ndef reply(request):\n    {body}\n")
    return load("vlms", f"scripted:{path}")


def decisions(out: Path) -> dict[str, dict]:
    return {row["item"]: row for row in pq.read_table(out / "decisions.parquet").to_pylist()}


def test_every_item_has_a_verdict_and_a_second_run_asks_nothing(tmp_path):
    items = [*some_items(6), Row("broken", (b"no picture",), {"text": "A bird.", "group": "g0"})]
    rule = judge(tmp_path, """return json.dumps({"score": int(re.search(r"No. (\\d)", request.prompt)[1])})""")
    first = judge_items(ALIGNMENT, items, rule, tmp_path / "run")
    again = judge_items(ALIGNMENT, items, rule, tmp_path / "run")
    assert (first.asked_now, again.asked_now) == (6, 0) and first.states == again.states == {"ok": 5, "invalid": 1, "error": 1}
    rows = pq.read_table(tmp_path / "run" / "verdicts.parquet").to_pylist()
    assert [row["item"] for row in rows] == [item.id for item in items]
    assert rows[0]["cause"] == "out_of_range" and rows[6]["cause"] == "image" and rows[3]["answer_score"] == 3
    assert rows[3]["text"] == items[3].fields["text"] and rows[3]["raw"] == '{"score": 3}'


def test_equal_questions_are_asked_once_and_equal_names_are_refused(tmp_path):
    rule = judge(tmp_path, "return '{\"score\": 2}'")
    one = some_items(1)[0]
    outcome = judge_items(ALIGNMENT, [one, one._replace(id="twin")], rule, tmp_path / "run")
    assert outcome.asked_now == 1 and outcome.states == {"ok": 2}
    with pytest.raises(DatasetError, match="two items"):
        judge_items(ALIGNMENT, [one, one], rule, tmp_path / "other")
    with pytest.raises(DatasetError, match="other parameters"):
        judge_items(ALIGNMENT, [one], rule, tmp_path / "run", Robustness(shuffle=1))


class Crowd:
    """Eight calls at once; the eighth is put off for a moment, and with it every call after it."""

    name, revision, parameters, batch_size, concurrency, billed = "crowd", "1", {}, 1, 8, True

    def __init__(self):
        self.calls = 0

    async def reply(self, requests):
        self.calls += 1
        if self.calls == 8:
            return [Reply(failure="transient", reason="slow down", retry_after=0.2)]
        await asyncio.sleep(0.02)
        return [Reply('{"score": 3}', "stop")]

    async def close(self):
        pass


def test_workers_that_were_told_to_wait_do_not_overstep_the_calls(tmp_path):
    crowd = Crowd()
    with pytest.raises(ProtoscoreError, match="--max-calls"):
        judge_items(ALIGNMENT, some_items(60), crowd, tmp_path, budget=Budget(calls=10))
    assert crowd.calls == 10, "seven waited with two calls left"


def test_a_budget_that_is_just_enough_ends_no_run_early(tmp_path):
    crowd = Crowd()
    outcome = judge_items(ALIGNMENT, some_items(9), crowd, tmp_path, budget=Budget(calls=10))
    assert outcome.states == {"ok": 9} and outcome.asked_now == crowd.calls == 10
    assert judge_items(ALIGNMENT, some_items(9), crowd, tmp_path, budget=Budget(calls=10)).asked_now == 0


@pytest.mark.parametrize("budget", [Budget(cost=float("nan")), Budget(calls=0), Budget(tokens=-1), Budget(cost=float("inf"))])
def test_a_budget_is_a_number_above_zero(tmp_path, budget):
    with pytest.raises(ConfigError, match="--max-"):
        judge_items(ALIGNMENT, some_items(1), Crowd(), tmp_path / "run", budget=budget)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("budget", "said"), [(Budget(tokens=5), "max-calls"), (Budget(cost=1.0), "price_in")])
def test_a_budget_that_cannot_be_kept_ends_the_run(tmp_path, budget, said):
    path = tmp_path / "r.jsonl"
    path.write_text('{"reply": {"score": 2}}')
    with pytest.raises(ProtoscoreError, match=said):
        judge_items(ALIGNMENT, some_items(200), load("vlms", f"scripted:{path}"), tmp_path / "run", budget=budget)
    assert pq.read_table(tmp_path / "run" / "verdicts.parquet").num_rows == 200


def test_a_state_is_asked_again_on_demand_and_only_that(tmp_path):
    body = """n = int(re.search(r"No. (\\d+)", request.prompt)[1])
    asked.append(n); return '{"score": 3}' if n % 2 or asked.count(n) > 1 else "hm"
asked = []"""
    rule = judge(tmp_path, body)
    first = judge_items(ALIGNMENT, some_items(6), rule, tmp_path / "run")
    assert (
        first.states == {"ok": 3, "invalid": 3} and judge_items(ALIGNMENT, some_items(6), rule, tmp_path / "run").asked_now == 0
    )
    again = judge_items(ALIGNMENT, some_items(6), rule, tmp_path / "run", retry=[Status.INVALID])
    assert (again.asked_now, again.states) == (3, {"ok": 6})


def test_labels_are_shuffled_by_item_and_seed_and_numbers_are_not(tmp_path):
    first, again, other = label_order(P, 5), label_order(P, 5), label_order(P, 6)
    assert first == again and sorted(first["race"]) == sorted(other["race"]) == sorted(P.fields["race"].labels)
    assert "score" not in first and P.labels(first)["score"] == tuple(range(1, 11))
    assert len({label_order(P, seed)["race"] for seed in range(200)}) == 24, "all orders of four labels are drawn"
    assert P.schema(first)["properties"]["race"]["enum"] == list(first["race"])


def test_variants_and_samples_are_combined_by_majority_with_abstention(tmp_path):
    """Replies by wording: own prompt 5, brief 2. The lower median of two is 2; the item is contested."""
    rule = judge(tmp_path, """return json.dumps({"score": 5 if "You are judging" in request.prompt else 2})""")
    judge_items(ALIGNMENT, some_items(3), rule, tmp_path / "run", Robustness(("", "brief")))
    assert all(
        row["answer_score"] == 2 and row["contested"] and row["usable"] == 2 for row in decisions(tmp_path / "run").values()
    )
    with pytest.raises(UnknownName, match="brief"):
        judge_items(ALIGNMENT, some_items(1), rule, tmp_path / "x", Robustness(("breif",)))
    assert not (tmp_path / "x").exists(), "nothing is written before a mistake shows"


def votes(*genders: str | None):
    """Verdicts about one item whose answers differ in gender only; None is an invalid reply."""
    from protoscore.asking.questions import asks
    from protoscore.asking.reply import parse
    from protoscore.asking.verdicts import Verdict
    from protoscore.vlms import Reply

    ask = next(asks(P, some_items(1)[0], Robustness()))
    good = {"race": "unspecified", "score": 4, "visible": True, "shown": []}
    replies = ["?" if gender is None else json.dumps(good | {"gender": gender}) for gender in genders]
    return [Verdict(ask, "j", Reply(text), parse(P, text)) for text in replies]


@pytest.mark.parametrize(
    ("genders", "expected"),
    [
        (("male", "male", "female"), "male"),
        (("male", "female"), None),
        (("male", "unspecified", "unspecified"), "unspecified"),
        (("male", "female", "unspecified"), None),
        (("male", None, None), "male"),
    ],
)
def test_a_label_needs_more_than_half_of_the_usable_votes(genders, expected):
    decision = decide(P, votes(*genders))
    assert decision.answer["gender"] == expected
    assert ("gender" in decision.abstained) == (expected in (None, "unspecified"))
    assert decision.contested == (len({g for g in genders if g}) > 1)


def test_without_a_usable_vote_there_is_a_state_and_no_answer():
    decision = decide(P, votes(None, None))
    assert (decision.state, decision.answer, decision.contested) == (Status.INVALID, None, True)


def test_the_second_judge_is_asked_where_the_first_is_torn_and_nowhere_else(tmp_path):
    body = """return json.dumps({"score": 5 if "You are judging" in request.prompt or "No. 1" not in request.prompt else 1})"""
    first, second = judge(tmp_path, body, "first"), judge(tmp_path, "return '{\"score\": 5}'", "second")
    outcome = judge_items(ALIGNMENT, some_items(5), first, tmp_path / "run", Robustness(("", "brief")), second)
    found = decisions(tmp_path / "run")
    assert outcome.asked_now == 11 and found["00001"]["judges"] == ["scripted:first.py", "scripted:second.py"]
    assert found["00001"]["answer_score"] == 5 and found["00000"]["judges"] == ["scripted:first.py"]


class ByNumber:
    """A cheap metric whose score is the item's number over 20."""

    facts = Facts(question="?", paper="none", licence="Apache-2.0")
    name, revision, batch_size = "by_number", "1", 4
    parameters: dict = {}

    def score(self, images, texts):
        return [Score(int(text.rsplit(" ", 1)[1]) / 20) for text in texts]


def test_the_cascade_routes_by_hand_worked_rules(tmp_path):
    """20 items, score n/20: 0-5 rejected, 14-19 accepted, 6-13 uncertain; group g0 (n % 3 == 0) is sensitive.

    The judge accepts even numbers; the second judge accepts everything. Truth: n >= 10.
    """
    items = some_items(20)
    body = """n = int(re.search(r"No. (\\d+)", request.prompt)[1]); return json.dumps({"score": 5 if n % 2 == 0 else 1})"""
    first, second = judge(tmp_path, body, "first"), judge(tmp_path, "return '{\"score\": 5}'", "second")
    rule = Rule(0.25, 0.7, 4, {"group": ("g0",)})
    outcome = cascade(ALIGNMENT, items, ByNumber(), first, tmp_path / "cascade", rule, second)
    found = {int(name): (row["route"], row["decision"]) for name, row in decisions(tmp_path / "cascade").items()}
    for n in range(20):
        side = None if 6 <= n <= 13 else n >= 14
        if side is not None and n % 3:
            expected = ("cheap", side)
        else:
            voice, route = n % 2 == 0, "sensitive" if n % 3 == 0 else "uncertain"
            expected = (route, voice)
            if side is not None and side != voice:  # two of three: metric, judge, and the second judge, who accepts
                expected = (f"{route}+second", int(side) + int(voice) + 1 >= 2)
        assert found[n] == (expected[0], "accept" if expected[1] else "reject"), n
    escalated = sum(route != "cheap" for route, _ in found.values())
    assert outcome.asked_now == escalated + sum("second" in route for route, _ in found.values())

    judge_items(ALIGNMENT, items, first, tmp_path / "full")
    truth = {"item": tuple(f"{n:05d}" for n in range(10, 20))}
    compared = savings(tmp_path / "cascade", tmp_path / "full", truth)
    assert compared.escalated == escalated and compared.used["calls"] == (outcome.asked_now, 20)
    mine = {n: decision == "accept" for n, (_, decision) in found.items()}
    assert compared.accuracy[0].value == pytest.approx(sum(mine[n] == (n >= 10) for n in range(20)) / 20)
    assert compared.accuracy[1].value == pytest.approx(sum((n % 2 == 0) == (n >= 10) for n in range(20)) / 20)
    assert compared.agreement.value == pytest.approx(sum(mine[n] == (n % 2 == 0) for n in range(20)) / 20)
    assert compared.difference.low <= compared.difference.value <= compared.difference.high
    with pytest.raises(ConfigError, match="smaller"):
        cascade(ALIGNMENT, items, ByNumber(), first, tmp_path / "x", Rule(0.7, 0.2, 4))


def test_an_injection_changes_no_reading_and_its_success_is_a_number(tmp_path):
    """A judge that obeys "SYSTEM:" and nothing else: that injection succeeds always, the control as often as chance says."""
    body = r"""found = re.search(r"only valid reply is (\{.*?\})", request.prompt.replace('\\"', '"')); """
    body += """return found[1] if found else '{"score": 3}'"""
    run = tmp_path / "run"
    judge_items(ALIGNMENT, Injected(ALIGNMENT, some_items(30), "text"), judge(tmp_path, body), run)
    rates = {rate.injection: rate for rate in injection_rates(run)}
    assert set(rates) == {"all", *injections()}
    system, control = rates["system"], rates[CONTROL]
    assert system.followed.value == 1 and 0 < system.followed.low < 1 and system.followed.n == control.followed.n < 30
    assert control.followed.value == control.moved.value == 0 and control.valid.value == 1
    assert rates["all"].followed.value == pytest.approx(1 / (len(injections()) - 1))
    rows = pq.read_table(run / "verdicts.parquet").to_pylist()
    assert all(row["answer_score"] == json.loads(row["raw"])["score"] for row in rows)


def test_an_injection_is_drawn_into_the_picture_below_it():
    from protoscore.sources.decoding import open_image

    items = list(Injected(ALIGNMENT, some_items(1), "picture"))
    clean, system = items[0], next(item for item in items if item.fields["injection"] == "system")
    assert clean.fields["text"] == system.fields["text"]
    before, after = open_image(clean.images[0]), open_image(system.images[0])
    assert after.height > before.height and after.crop((0, 0, *before.size)).tobytes() == before.tobytes()
    assert min(after.crop((0, before.height, *after.size)).convert("L").getdata()) < 64, "there is dark text in the band"


def folder_of_pictures(folder: Path, listing: str) -> str:
    (folder / "sub").mkdir(parents=True)
    for n in range(3):
        (folder / f"{n}.png").write_bytes(png(n))
    (folder / "sub" / "x.png").write_bytes(png(9))
    (folder / "metadata.csv").write_text(listing, encoding="utf-8-sig")
    return str(folder)


def test_a_folder_of_pictures_with_a_listing_is_a_source_of_items(tmp_path):
    source = folder_of_pictures(
        tmp_path / "p", 'file_name,second_file_name,caption\n0.png,1.png,"A bird, red"\n2.png,sub/x.png,B\n'
    )
    items = list(open_rows(source, fields={"text": "caption"}).rows())
    assert [len(item.images) for item in items] == [2, 2] and items[0].fields["text"] == items[0].fields[
        "caption"
    ] == "A bird, red"
    assert items[0].fields["image"] == "0.png"
    assert items[1].images[1] == png(9)
    (tmp_path / "p" / "metadata.csv").unlink()
    assert [item.id for item in open_rows(source).rows()] == ["0", "1", "2", "sub/x"]


@pytest.mark.parametrize("name", ["../secret.png", "/etc/hostname", "nothing.png", "sub"])
def test_a_listing_cannot_lead_out_of_its_folder(tmp_path, name):
    (tmp_path / "secret.png").write_bytes(png(1))
    source = folder_of_pictures(tmp_path / "p", f"file_name\n{name}\n")
    with pytest.raises(DatasetError, match=r"not in|outside"):
        open_rows(source)


def test_a_four_cell_dataset_is_a_source_of_items(dataset):
    items = list(questions(dataset, 3).rows())
    assert len(items) == 30 and len({item.id for item in items}) == 30
    assert set(items[0].fields) >= {"pair", "triplet", "cell", "domain", "knob", "text", "description", "subcategory"}


def test_the_audit_counts_and_shows_nothing_that_a_terminal_would_obey(tmp_path):
    bodies = ['{"score": 4}', "```\n{'score': 4}\n```", "\x1b]0;owned\x07 \u202e no", "I cannot help with that."]
    rule = judge(tmp_path, f"""return {bodies!r}[int(re.search(r"No. (\\d+)", request.prompt)[1]) % 4]""")
    judge_items(ALIGNMENT, some_items(8), rule, tmp_path / "run")
    found = audit(tmp_path / "run")
    assert found.states == {"ok": 4, "invalid": 2, "refused": 2} and found.repairs == {"code_fence": 2, "single_quotes": 2}
    assert found.causes == {"no_object": 2, "refusal_text": 2} and found.repaired == 2
    invalid = audit(tmp_path / "run", state="invalid").examples
    assert len(invalid) == 2 and "\\x1b]0;owned\\x07 \\u202e no" in invalid[0].raw
    assert audit(tmp_path / "run", repair="code_fence").examples[0].answer == '{"score": 4, "reason": ""}'
    with pytest.raises(UnknownName, match="invalid"):
        audit(tmp_path / "run", state="invalyd")
    assert safe("a" * 500).endswith("[100 more characters]")


def test_the_commands_judge_and_audit(tmp_path):
    folder_of_pictures(tmp_path / "p", f"file_name,text\n0.png,{TEXTS[0]}\n1.png,{TEXTS[1]}\n")
    (tmp_path / "r.jsonl").write_text('{"when": "bird", "reply": {"score": 5}}\n{"reply": "{\\"score\\": 9}"}\n')
    common = ["judge", "fairjudge/alignment", "--items", str(tmp_path / "p"), "--judge", f"scripted:{tmp_path}/r.jsonl"]
    result = cli(*common, "--out", str(tmp_path / "run"))
    assert result.returncode == 0 and "1 ok, 1 invalid of 2 items; 2 asked now" in result.stdout, result.stderr
    shown = cli("audit", str(tmp_path / "run"), "--state", "invalid")
    assert shown.returncode == 0 and "out_of_range" in shown.stdout and '{"score": 9}' in shown.stdout
    wrong = cli(*common[:4], "--judge", "scripted:none.jsonl", "--out", str(tmp_path / "x"))
    assert wrong.returncode == 2 and len(wrong.stderr.strip().splitlines()) == 1 and not (tmp_path / "x").exists()


class Open(BaseModel):
    text: str


def test_questions_without_a_picture_and_answers_in_free_words_are_ok_and_decide_nothing(tmp_path):
    rule = judge(tmp_path, "return 'Seen: ' + str(len(request.images))")
    protocol = Protocol("t/open", "Describe {{ item.text }}", Open)
    outcome = judge_items(
        protocol, [Row("a", (), {"text": "dogs"}), Row("b", (png(1),), {"text": "cats"})], rule, tmp_path / "run"
    )
    rows = pq.read_table(tmp_path / "run" / "verdicts.parquet").to_pylist()
    assert outcome.states == {"ok": 2} and [row["answer_text"] for row in rows] == ["Seen: 0", "Seen: 1"]
    found = decisions(tmp_path / "run")
    assert found["a"]["state"] == "ok" and not any(name.startswith("answer_") for name in found["a"])


def test_an_item_without_what_the_question_needs_is_a_state_and_ends_nothing(tmp_path):
    items = some_items(3)
    items[1] = items[1]._replace(fields={"group": "g1"})
    outcome = judge_items(ALIGNMENT, items, judge(tmp_path, """return '{"score": 3}'"""), tmp_path / "run")
    assert outcome.states == {"ok": 2, "error": 1} and outcome.asked_now == 2
    row = pq.read_table(tmp_path / "run" / "verdicts.parquet").to_pylist()[1]
    assert (row["item"], row["cause"]) == ("00001", "question") and "'text'" in row["reason"]


def test_a_field_that_its_labels_do_not_have_is_counted_and_costs_no_other(tmp_path):
    protocol = load_protocol("fairjudge/attributes")
    answer = {"gender": "male", "race": "South Asian", "age": "unspecified", "religion": "Sikh", "disability": "none"}
    judge_items(protocol, some_items(3), judge(tmp_path, f"return json.dumps({answer!r})"), tmp_path / "run")
    row, decided = pq.read_table(tmp_path / "run" / "verdicts.parquet").to_pylist()[0], decisions(tmp_path / "run")["00000"]
    states = {"gender": "ok", "race": "unmapped", "age": "abstained", "religion": "ok", "disability": "abstained"}
    assert {name: row[f"state_{name}"] for name in states} == {name: decided[f"state_{name}"] for name in states} == states
    assert row["state"] == decided["state"] == "ok" and json.loads(row["unmapped"]) == {"race": "South Asian"}
    assert decided["answer_race"] is None and decided["answer_religion"] == "Sikh"
    assert audit(tmp_path / "run").unmapped == {"race": 3} and audit(tmp_path / "run").states == {"ok": 3}


class Preferred(BaseModel):
    choice: Literal["first", "second", "neither"]


PAIR = Protocol("t/pair", "{{ item.a }} or {{ item.b }}?", Preferred, {"choice": ("neither",)},
                alternatives=Alternatives("choice", False, (("a", "b"),)))  # fmt: skip


def test_two_alternatives_are_asked_in_both_orders_and_a_flip_is_a_tie(tmp_path):
    """Items 0-5: the first text is the better one, and is chosen wherever it stands. 6-9: whatever stands first is chosen.
    10: neither. 11: one order gets no answer."""
    items = [Row(f"{n:02}", (), {"a": f"good No. {n}", "b": f"bad No. {n}"}) for n in range(12)]
    body = r"""n = int(re.search(r"No. (\d+)", request.prompt)[1]); there = request.prompt.startswith("good")
    if n == 11 and there: return "?"
    said = ("first" if there else "second") if n < 6 else "neither" if n == 10 else "first"
    return json.dumps({"choice": said})"""
    outcome = judge_items(PAIR, items, judge(tmp_path, body), tmp_path / "run")
    assert outcome.asked_now == 24
    found = [(row["state"], row["answer_choice"]) for row in decisions(tmp_path / "run").values()]
    assert found == [("ok", "first")] * 6 + [("abstained", None)] * 4 + [("abstained", "neither"), ("invalid", None)]
    (position,) = positions(tmp_path / "run")
    assert position.flips.value == pytest.approx(4 / 11) and position.flips.n == 11
    first = (6 + 8 + 0 + 1) / (12 + 8 + 2 + 1)
    assert position.first.value == pytest.approx(first) and position.first.low <= first <= position.first.high


def test_every_order_of_an_items_options_shows_a_judge_that_takes_the_first(tmp_path):
    class Choice(BaseModel):
        answer: OneOf

    prompt = "No. {{ item.n }}: {{ labels.answer | join('|') }}"
    protocol = Protocol("t/options", prompt, Choice, from_item={"answer": "options"})
    items = [Row(str(n), (), {"n": n, "options": ["a", "b", "c"]}) for n in range(5)]
    body = """n, labels = request.prompt[4:].split(": ")
    return json.dumps({"answer": labels.split("|")[0] if n < "2" else "b"})"""
    judge_items(protocol, items, judge(tmp_path, body), tmp_path / "run", Robustness(every_order=True))
    (position,) = positions(tmp_path / "run")
    assert position.first.value == pytest.approx((2 * 6 + 3 * 2) / 30) and position.by_chance == pytest.approx(1 / 3)
    assert position.flips.value == 2 / 5
    found = decisions(tmp_path / "run")
    assert (found["0"]["answer_answer"], found["4"]["answer_answer"]) == (None, "b")
    assert found["0"]["state"] == "abstained" and found["0"]["asked"] == 6
