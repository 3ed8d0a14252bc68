"""Asking a server that fails in every way, over thousands of items, with a kill in the middle."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from protoscore.asking.dispatch import Budget, Patience
from protoscore.asking.protocol import load_protocol
from protoscore.errors import DatasetError, ProtoscoreError
from protoscore.judging.stage import judge_items
from protoscore.vlms import Reply
from protoscore.vlms.chat import create
from tests.asking.chaos_server import ANSWERED, plan
from tests.conftest import ROOT
from tests.judging.support import some_items

CONCURRENCY, ITEMS, KEY = 12, 5000, "sk-secret-of-the-test-42"
QUICK = Patience(tries=4, first_wait=0.01, longest_wait=1.0)


@pytest.fixture
def server(monkeypatch):
    """The address of a fresh chaos server."""
    monkeypatch.setenv("PROTOSCORE_API_KEY", KEY)
    process = subprocess.Popen([sys.executable, "-m", "tests.asking.chaos_server"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    finally:
        process.kill()
        process.wait()


def counts(server: str) -> dict:
    with urllib.request.urlopen(server.replace("/v1", "/counts")) as reply:
        found = json.load(reply)
    return {
        "most": found["most"], "asked": {int(k): v for k, v in found["asked"].items()},
        "billed": {int(k): v for k, v in found["billed"].items()},
    }  # fmt: skip


def ask(server: str, out: Path, items: int, **options):
    judge = create(f"m@{server}", concurrency=CONCURRENCY, price_in=1.0, price_out=2.0)
    return judge_items(load_protocol("fairjudge/alignment"), some_items(items, side=8), judge, out, patience=QUICK, **options)


def rows_of(out: Path) -> dict[int, dict]:
    return {int(row["item"]): row for row in pq.read_table(out / "verdicts.parquet").to_pylist()}


def test_five_thousand_items_a_kill_and_a_resume(server, tmp_path):
    """Every item ends in a state, none is billed twice, the bound on calls holds, and no key is to be found anywhere."""
    out = tmp_path / "run"
    code = f"from pathlib import Path; from tests.asking.test_chaos import ask; ask({server!r}, Path({str(out)!r}), {ITEMS})"
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while sum(counts(server)["billed"].values()) < ITEMS // 3:
        assert process.poll() is None, process.stderr.read().decode()
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = counts(server)["billed"]

    outcome = ask(server, out, ITEMS)
    rows, seen = rows_of(out), counts(server)
    assert len(rows) == ITEMS and sum(outcome.states.values()) == ITEMS
    assert max(seen["billed"].values()) == 1 and seen["most"] <= CONCURRENCY
    lost = {number for number, row in rows.items() if row["cause"] == "lost"}
    assert len(lost) <= CONCURRENCY
    for number, row in rows.items():
        if number not in lost:
            check_row(number, row)
    assert sum(rows[n]["state"] == "ok" for n in before) >= len(before) * 0.9

    # What was in flight at the kill is asked again only on demand, and nothing else is, but for what has no reply.
    ask(server, out, ITEMS, ask_lost=True)
    after = counts(server)["billed"]
    assert {n for n, times in after.items() if times > 1} <= lost and max(after.values()) <= 2
    assert not any(row["cause"] == "lost" for row in rows_of(out).values())
    assert not [path for path in out.iterdir() if KEY.encode() in path.read_bytes()]
    usage = json.loads((out / "usage.json").read_text())
    assert 0 <= usage["calls"] - sum(counts(server)["asked"].values()) <= CONCURRENCY, (
        "what was written down may not have been sent"
    )


def check_row(number: int, row: dict) -> None:
    """The state follows from what the server did at the last attempt."""
    kind = next(
        k for k in (plan(number, attempt) for attempt in range(1, 9)) if k in ANSWERED or k == "400" or number % 500 == 499
    )
    states = {"refusal": "refused", "filtered": "refused", "500": "error", "400": "error"}
    expected = states.get(kind, "ok" if kind in ("ok", "slow", "text_plain") else "invalid")
    assert row["state"] == expected, (kind, row["state"], row["reason"])
    if expected == "ok":
        assert row["answer_score"] == 1 + number % 5
        assert row["tokens_in"] == 50 and row["cost"] == pytest.approx(70e-6)
    causes = {"huge": "too_long", "cut_off": "cut_off", "400": "permanent", "500": "transient"}
    assert row["cause"] == causes.get(kind, row["cause"])


def test_a_budget_of_calls_is_exact_and_the_run_goes_on_when_it_is_raised(server, tmp_path):
    with pytest.raises(ProtoscoreError, match="--max-calls"):
        ask(server, tmp_path, 300, budget=Budget(calls=100))
    seen = counts(server)
    assert sum(seen["asked"].values()) == 100
    states = [row["cause"] for row in rows_of(tmp_path).values()]
    assert len(states) == 300 and states.count("not_asked") >= 200
    with pytest.raises(ProtoscoreError, match="--max-calls"):
        ask(server, tmp_path, 300, budget=Budget(calls=100))
    assert sum(counts(server)["asked"].values()) == 100, "a used-up budget stays used up"
    ask(server, tmp_path, 300)
    assert max(counts(server)["billed"].values()) == 1


@pytest.mark.parametrize("budget", [Budget(tokens=3000), Budget(cost=50 * 70e-6)])
def test_budgets_of_tokens_and_cost_are_overstepped_by_the_calls_in_flight_at_most(server, tmp_path, budget):
    with pytest.raises(ProtoscoreError, match="budget"):
        ask(server, tmp_path, 300, budget=budget)
    assert 50 <= sum(counts(server)["billed"].values()) <= 50 + CONCURRENCY


def test_two_processes_do_not_judge_into_one_folder(server, tmp_path):
    from filelock import FileLock

    ask(server, tmp_path, 3)
    with FileLock(tmp_path / ".lock"), pytest.raises(DatasetError, match="another process"):
        ask(server, tmp_path, 3)


def test_a_server_that_was_never_there_ends_the_run_at_once_and_costs_nothing(tmp_path):
    with pytest.raises(ProtoscoreError, match=r"no server answers at http://127\.0\.0\.1:9/v1") as caught:
        ask("http://127.0.0.1:9/v1", tmp_path, 400, budget=Budget(calls=500))
    assert "\n" not in str(caught.value)
    assert len(rows_of(tmp_path)) == 400
    assert json.loads((tmp_path / "usage.json").read_text())["calls"] == 0


class Deaf:
    """Answered once, and refuses every connection since."""

    name, revision, parameters, batch_size, concurrency, billed = "deaf", "1", {}, 1, 4, True

    async def reply(self, requests):
        return [Reply(failure="transient", reason="no server answers at http://there", sent=False)]

    async def close(self):
        pass


@pytest.mark.parametrize(("items", "said"), [(2, "none of 2 questions got a reply"), (400, "in a row")])
def test_a_server_that_went_away_ends_the_run_with_its_address(tmp_path, items, said):
    with pytest.raises(ProtoscoreError, match=f"{said}.*http://there"):
        judge_items(load_protocol("fairjudge/alignment"), some_items(items, side=8), Deaf(), tmp_path, patience=QUICK)
    assert json.loads((tmp_path / "usage.json").read_text())["calls"] == 0


def test_ctrl_c_waits_for_the_calls_in_flight(server, tmp_path):
    code = f"from pathlib import Path; from tests.asking.test_chaos import ask; ask({server!r}, Path({str(tmp_path)!r}), 2000)"
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n" + code
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while sum(counts(server)["billed"].values()) < 50:
        assert process.poll() is None, process.stderr.read().decode()
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    process.wait(timeout=30)
    billed = sum(counts(server)["billed"].values())
    kept, open_ = (
        sqlite3.connect(tmp_path / "replies.sqlite").execute(query).fetchone()[0]
        for query in ("SELECT COUNT(*) FROM replies", "SELECT COUNT(*) FROM attempts WHERE outcome IS NULL")
    )
    assert kept == billed and open_ == 0
