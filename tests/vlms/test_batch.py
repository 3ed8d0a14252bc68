"""Batches of a provider: submitted, waited for, taken up after a kill; nothing is paid twice, and no key is written."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from protoscore.asking.dispatch import Patience
from protoscore.asking.protocol import load_protocol
from protoscore.errors import ConfigError, ProtoscoreError
from protoscore.judging.stage import judge_items
from protoscore.vlms.batch import create
from tests.conftest import ROOT
from tests.judging.support import some_items
from tests.vlms.batch_server import PASSING, REFUSED, Batches

ITEMS, QUICK = 120, Patience(tries=3, first_wait=0.01)


@pytest.fixture
def server(monkeypatch):
    """The address of a fresh server of batches."""
    monkeypatch.setenv("PROTOSCORE_API_KEY", Batches.key)
    process = subprocess.Popen([sys.executable, "-m", "tests.vlms.batch_server"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    finally:
        process.kill()
        process.wait()


def asked(server: str) -> dict:
    with urllib.request.urlopen(f"{server}/billed") as reply:
        return json.load(reply)


def ask(server: str, out: Path, items: int = ITEMS, poll: float = 0.02):
    judge = create(f"m@{server}", batch_size=25, concurrency=2, poll=poll, price_in=1.0, price_out=2.0)
    return judge_items(load_protocol("fairjudge/alignment"), some_items(items, side=8), judge, out, patience=QUICK)


def test_every_question_has_its_own_reply_and_a_run_that_was_killed_waits_for_what_it_sent(server, tmp_path):
    out = tmp_path / "run"
    code = (
        "from pathlib import Path; from tests.vlms.test_batch import ask\n"
        f"if __name__ == '__main__': ask({server!r}, Path({str(out)!r}), poll=3600)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    while asked(server)["batches"] < 2:
        assert process.poll() is None
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()

    outcome = ask(server, out)
    rows = {int(row["item"]): row for row in pq.read_table(out / "verdicts.parquet").to_pylist()}
    refused = {n for n in range(ITEMS) if n % 50 == REFUSED}
    assert outcome.states == {"ok": ITEMS - len(refused), "error": len(refused)}
    for number, row in rows.items():
        if number in refused:
            assert row["cause"] == "permanent" and "HTTP 400" in row["reason"]
        else:
            assert row["answer_score"] == 1 + number % 5, row
    passing = {n for n in range(ITEMS) if n % 50 == PASSING}
    billed = {int(n): count for n, count in asked(server)["billed"].items()}
    assert {n for n, count in billed.items() if count == 2} == passing and set(billed) == set(range(ITEMS))
    assert set(billed.values()) == {1, 2}  # once, but for what failed and was asked again
    assert not any(Batches.key.encode() in path.read_bytes() for path in out.rglob("*") if path.is_file())

    before = asked(server)["batches"]
    judge_items(
        load_protocol("fairjudge/alignment"), some_items(50, side=8)[:5], create(f"m@{server}", batch_size=25, poll=0.02),
        tmp_path / "other", patience=QUICK,
    )  # fmt: skip
    assert asked(server)["batches"] == before + 1  # other questions are another batch


def test_what_cannot_be_is_said_before_or_at_once(server, tmp_path, monkeypatch):
    for source, options in (("m", {}), (f"m@{server}", {"batch_size": 10_000}), (f"m@{server}", {"poll": 0})):
        with pytest.raises(ConfigError):
            create(source, **options)
    monkeypatch.setenv("PROTOSCORE_API_KEY", "sk-wrong-0000000")
    with pytest.raises(ProtoscoreError, match="refused the key") as error:
        ask(server, tmp_path / "wrong", items=3)
    assert "sk-wrong" not in str(error.value)
    with pytest.raises(ProtoscoreError, match="no server answers"):
        ask("http://127.0.0.1:9/v1", tmp_path / "none", items=3)
