"""scene-judge-tiny does what its card says: in this process, in any batch, and behind ``transformers serve``."""

from __future__ import annotations

import io
import socket
import subprocess
import sys
import time
import urllib.request

import pyarrow.parquet as pq
import pytest

from protoscore.asking.protocol import load_protocol
from protoscore.judging.stage import judge_items
from protoscore.sources.rows import Row
from protoscore.vlms.chat import create as create_chat
from protoscore.vlms.local import TINY
from protoscore.vlms.local import create as create_local
from tests.conftest import cli
from training.embedded.tasks import TASKS, example

COUNT = 60
# Of 60 questions: the lowest rate of a field on the card, over 1,000, less about two and a half standard errors.
LEAST = {
    "fairjudge/attributes": 0.95, "fairjudge/profession": 0.95, "fairjudge/alignment": 0.84, "protobias/rubric": 0.79,
    "protobias/image_filter": 0.80, "diversity/attribute_value": 0.78, "diversity/attribute_count": 0.44,
    "bbq_v/two_people": 0.91,
}  # fmt: skip


def questions(task: str, count: int) -> tuple[list[Row], list[dict]]:
    """Fresh questions, with a seed of this test's own, and their right answers."""
    items, truth = [], []
    for number in range(count):
        drawn = example(task, 777_000_000 + number, "test")
        pictures = []
        for image in drawn.images:
            data = io.BytesIO()
            image.save(data, "PNG")
            pictures.append(data.getvalue())
        items.append(Row(f"{number:04}", tuple(pictures), drawn.fields))
        truth.append(drawn.answer)
    return items, truth


def answers(run, protocol) -> list[dict]:
    rows = pq.read_table(run / "decisions.parquet").to_pylist()
    return [{name: row[f"answer_{name}"] for name in protocol.decisions} for row in rows]


@pytest.fixture(scope="module")
def judge():
    return create_local(max_tokens=48)


@pytest.mark.parametrize("task", [*TASKS])
def test_it_answers_every_protocol_in_strict_json(judge, task, tmp_path):
    items, truth = questions(task, COUNT)
    outcome = judge_items(load_protocol(task), items, judge, tmp_path)
    rows = pq.read_table(tmp_path / "verdicts.parquet").to_pylist()
    assert sum(outcome.states.get(state, 0) for state in ("ok", "abstained")) >= COUNT - 1
    assert not any(row["repairs"] for row in rows)
    found = answers(tmp_path, load_protocol(task))
    for field in load_protocol(task).decisions:
        right = sum(a[field] == t[field] for a, t in zip(found, truth, strict=True)) / COUNT
        assert right >= LEAST[task], (field, right)


def test_a_batch_changes_no_answer(judge, tmp_path):
    items, _ = questions("fairjudge/attributes", 12)
    protocol = load_protocol("fairjudge/attributes")
    judge_items(protocol, items, judge, tmp_path / "together")
    judge_items(protocol, items, create_local(max_tokens=48, batch_size=1), tmp_path / "alone")
    assert answers(tmp_path / "together", protocol) == answers(tmp_path / "alone", protocol)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The address of ``transformers serve`` with the shipped judge."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    start = "from transformers.cli.transformers import main; main()"
    command = [sys.executable, "-c", start, "serve", str(TINY), "--device", "cpu", "--dtype", "float32", "--port", str(port)]
    log = tmp_path_factory.mktemp("serve") / "log"  # a file: a pipe that nobody reads would fill and stop the server
    with log.open("wb") as handle:
        process = subprocess.Popen(command, stdout=handle, stderr=handle)
    try:
        for _ in range(900):
            assert process.poll() is None, log.read_text()[-2000:]
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5)
                break
            except OSError:
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait()


def test_behind_a_real_server_it_gives_the_same_answers(served, judge, tmp_path):
    """The chat judge over HTTP, pictures as data URIs, against the same weights in this process."""
    items, _ = questions("fairjudge/attributes", 6)
    protocol = load_protocol("fairjudge/attributes")
    chat = create_chat(f"{TINY}@{served}", max_tokens=48, concurrency=2, timeout=300)
    outcome = judge_items(protocol, items, chat, tmp_path / "chat")
    assert outcome.spent.calls == 6 and sum(outcome.states.get(state, 0) for state in ("ok", "abstained")) == 6
    judge_items(protocol, items, judge, tmp_path / "local")
    assert answers(tmp_path / "chat", protocol) == answers(tmp_path / "local", protocol)
    rows = pq.read_table(tmp_path / "chat" / "verdicts.parquet").to_pylist()
    assert all(row["tokens_in"] > 10 and row["tokens_out"] > 5 and row["seconds"] > 0 for row in rows)
    assert str(TINY.parent) not in (tmp_path / "chat" / "manifest.json").read_text()


def test_the_command_needs_no_model_and_no_server(dataset, tmp_path):
    result = cli("judge", "protobias/rubric", "--items", dataset, "--judge", "local", "--limit", "3", "--out", tmp_path / "run")
    assert result.returncode == 0, result.stderr
    assert "of 3 items" in result.stdout
