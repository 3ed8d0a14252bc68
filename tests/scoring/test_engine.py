"""The engine: everything is encoded once, the table depends on rows and scorers only; metrics of one's own."""

from __future__ import annotations

import json
import os
import random
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protoscore.benchmarks.protobias.cells import CellRows
from protoscore.benchmarks.protobias.schema import Cell
from protoscore.catalog import load
from protoscore.errors import ConfigError, DatasetError, ProtoscoreError, UnknownName
from protoscore.schema import Status
from protoscore.scoring.engine import block_size, score_blocks
from protoscore.scoring.index import Index, read_index
from protoscore.scoring.sharding import Shard
from protoscore.scoring.stage import score_named, score_rows
from protoscore.scoring.store import Store
from protoscore.sources.decoding import open_image
from protoscore.sources.rows import Row
from tests.conftest import cli
from tests.controls import Apart, Drifting, Picky, Probe, brightness, digest, png, questions, table, write_controls


class Listed:
    """Rows from a list of (text, bytes), as any caller may make them."""

    columns, source, parent, scenes = (), "a list", None, False

    def __init__(self, pairs):
        self.pairs, self.parameters, self.reads = pairs, {}, 0

    def __len__(self):
        return len(self.pairs)

    def rows(self, start=0, stop=None):
        for number, (text, data) in list(enumerate(self.pairs))[start:stop]:
            self.reads += 1
            yield Row(str(number), (data,), {"text": text})

    def fingerprint(self):
        return None


@pytest.fixture(scope="module")
def controls(tmp_path_factory) -> Path:
    return write_controls(tmp_path_factory.mktemp("controls") / "data", 60)


def test_a_grid_is_encoded_once_whichever_way_it_is_listed(tmp_path):
    pictures, texts = [png(i) for i in range(12)], ["one", "a second", "a third text", "the fourth and longest text"]
    grids = {
        "by picture": [(text, picture) for picture in pictures for text in texts],
        "by text": [(text, picture) for text in texts for picture in pictures],
    }
    for name, pairs in grids.items():
        scorer = Apart()
        counts = score_rows(Listed(pairs), [scorer], tmp_path / name)
        assert counts == (48, 48, 0, "")
        assert len(scorer.images) == len(set(scorer.images)) == 12
        assert set(scorer.texts) == set(texts) and len(scorer.texts) <= 4 * 3, "texts are encoded once a block of 16 pairs"
        for row, (text, data) in zip(table(tmp_path / name), pairs, strict=True):
            assert row["score"] == pytest.approx(brightness(open_image(data)) + len(text), abs=1e-6)
            assert row["truncated"] == (len(text) > 24)


class Prepared(Apart):
    """Prepares pictures in its own way: the brightness, once a picture; one of one pixel's width cannot be prepared."""

    def __init__(self):
        super().__init__()
        self.threads = []

    def prepare(self, image):
        self.threads.append(threading.current_thread().name)
        if image.width == 1:
            raise ValueError("too narrow")
        return brightness(image)

    def encode_images(self, images):
        assert all(isinstance(image, float) for image in images)
        return images


def test_pictures_are_prepared_once_each_in_the_decoding_threads(tmp_path):
    pictures = [png(i, size=80) for i in range(9)] + [png(9, size=1)]  # a tiny one is not worth a thread
    scorer = Prepared()
    pairs = [(text, picture) for picture in pictures for text in ("one", "two")]
    assert score_rows(Listed(pairs), [scorer], tmp_path) == (20, 20, 2, "ValueError: too narrow")
    assert len(scorer.threads) == 10 and sum(name.startswith("decode") for name in scorer.threads) == 9
    rows = table(tmp_path)
    assert [(row["status"], row["reason"]) for row in rows[18:]] == [("error", "ValueError: too narrow")] * 2
    for row, picture in zip(rows[:18:2], pictures, strict=False):
        assert row["score"] == pytest.approx(brightness(open_image(picture)) + 3, abs=1e-6)
    image = open_image(pictures[0])
    assert scorer.score([image, image], ["one", "three"])[1].value == pytest.approx(brightness(image) + 5)


def test_equal_content_is_scored_once_and_reported_in_every_row(tmp_path):
    probe = Probe()
    counts = score_rows(Listed([("same", png(1))] * 5 + [("other", png(1))] + [("same", png(1))]), [probe], tmp_path)
    assert counts.rows == 7 and counts.scored_now == probe.calls == 2
    assert len({row["score"] for row in table(tmp_path)}) == 1


def test_pairs_go_by_length_within_their_block(tmp_path):
    rng = random.Random(1)
    texts = ["x" * rng.randint(1, 200) for _ in range(64)]
    probe = Probe(batch_size=4)
    score_rows(Listed([(f"{text}{i}", png(i)) for i, text in enumerate(texts)]), [probe], tmp_path)
    assert max(map(len, probe.batches)) == 4
    for block in (probe.batches[i : i + 4] for i in range(0, 16, 4)):
        lengths = [len(text) for batch in block for text in batch]
        assert lengths == sorted(lengths)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=60), st.integers(1, 9))
@settings(max_examples=40, deadline=None)
def test_blocks_hold_each_pair_once_with_its_picture_together(tmp_path_factory, pairs, size):
    rows = Listed([(f"text {text}", png(picture)) for picture, text in pairs])
    index = read_index(rows, tmp_path_factory.mktemp("index"))
    blocks = list(index.blocks(size))
    seen = [pair for block in blocks for pair in zip(block.images, block.texts, strict=True)]
    assert len(seen) == len(set(seen)) == len(set(pairs)) == len(index)
    assert [seen[pair][1] for pair in index.pair_of_row] == [text for text, _ in rows.pairs]
    for block in blocks:
        assert len(block.texts) <= 4 * size and block.rows == sorted(block.rows)
        if block is not blocks[-1]:
            assert len(block.texts) >= size
    assert [b for part in (1, 2, 3) for b in Shard(part, 3).part(len(blocks))] == list(range(len(blocks)))


@pytest.mark.parametrize("make", [Drifting, Apart])
def test_the_table_does_not_depend_on_what_is_in_the_store(controls, tmp_path, make):
    score_rows(CellRows(str(controls)), [make()], tmp_path / "calm")
    for limit in (1, 3, 7, 40):  # other rows in other blocks, scored before into the same store
        score_rows(questions(controls, limit), [make()], tmp_path / "used")
    counts = score_rows(CellRows(str(controls)), [make()], tmp_path / "used")
    assert 0 < counts.scored_now < counts.rows
    assert digest(tmp_path / "used") == digest(tmp_path / "calm")
    assert score_rows(CellRows(str(controls)), [make()], tmp_path / "used").scored_now == 0


def test_a_scorer_that_does_not_depend_on_the_batch_never_scores_a_pair_twice(controls, tmp_path):
    probe = Probe()
    probe.batch_free = True
    for limit in (3, 10, None):
        score_rows(questions(controls, limit), [probe], tmp_path)
    assert probe.calls == 240


@pytest.mark.parametrize("make", [Drifting, Apart])
def test_shards_give_the_same_table(controls, tmp_path, make):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    score_rows(CellRows(str(controls)), [make()], whole)
    rows = CellRows(str(controls))
    done = [score_rows(rows, [make()], parts, shard=Shard(number, 3)).scored_now for number in (3, 1, 2)]
    assert sum(done) == 240 and min(done) > 0 and not (parts / "scores.parquet").exists()
    assert score_rows(rows, [make()], parts, shard=Shard(2, 3)).scored_now == 0
    assert score_rows(rows, [make()], parts).scored_now == 0, "a run without --shard takes over what the shards did"
    assert digest(parts) == digest(whole)
    assert score_rows(rows, [make()], whole, shard=Shard(1, 2)).scored_now == 0, "a shard knows what the folder holds"


def test_a_lost_shard_is_made_up_for(controls, tmp_path):
    score_rows(CellRows(str(controls)), [Apart()], tmp_path / "whole")
    score_rows(CellRows(str(controls)), [Apart()], tmp_path / "parts", shard=Shard(1, 2))
    assert 0 < score_rows(CellRows(str(controls)), [Apart()], tmp_path / "parts").scored_now < 240
    assert digest(tmp_path / "parts") == digest(tmp_path / "whole")


@pytest.mark.parametrize("make", [Picky, Apart])
def test_an_input_that_the_scorer_cannot_take_fails_alone(tmp_path, make):
    pairs = [(f"text {i}", png(i, size=1 if i == 5 else 8)) for i in range(20)]
    counts = score_rows(Listed(pairs), [make()], tmp_path)
    rows = table(tmp_path)
    assert [row["id"] for row in rows if row["status"] != "ok"] == ["5"] and counts.not_ok == 1
    assert rows[5]["status"] == "error" and rows[5]["score"] is None and counts.reason == rows[5]["reason"]
    assert rows[5]["reason"].startswith("ValueError: ")
    again = make()
    assert score_rows(Listed(pairs), [again], tmp_path).scored_now == min(20, block_size(again)), (
        "an error is tried again in its block"
    )


def test_states_are_tried_again_only_when_asked_and_numbers_never(tmp_path):
    pairs = [("fine", png(1)), ("broken", b"no picture"), ("unsure", png(2))]

    class Moody(Probe):
        batch_free, mood = True, Status.ABSTAINED

        def score(self, images, texts):
            scored = super().score(images, texts)
            return [s if t == "fine" or self.mood == Status.OK else s._replace(value=None, status=self.mood, reason="so")
                    for s, t in zip(scored, texts, strict=True)]  # fmt: skip

    scorer = Moody()
    assert score_rows(Listed(pairs), [scorer], tmp_path).scored_now == 3
    assert [row["status"] for row in table(tmp_path)] == ["ok", "invalid", "abstained"]
    scorer.mood = Status.OK
    assert score_rows(Listed(pairs), [scorer], tmp_path, retry=[Status.REFUSED]).scored_now == 0
    assert score_rows(Listed(pairs), [scorer], tmp_path, retry=[Status.ABSTAINED]).scored_now == 1
    assert [row["status"] for row in table(tmp_path)] == ["ok", "invalid", "ok"]
    assert score_rows(Listed(pairs), [scorer], tmp_path, retry=list(Status)[1:]).scored_now == 1


def test_a_number_in_the_store_is_never_replaced(tmp_path):
    from protoscore.scoring.store import Result

    store = Store(tmp_path / "s.sqlite")
    store.add("s", [Result("k", Status.OK, 1.0, "", False, 0.1), Result("f", Status.INVALID, None, "so", False, 0.1)])
    store.add("s", [Result("k", Status.ERROR, None, "later", False, 0.1), Result("f", Status.OK, 2.0, "", False, 0.1)])
    assert [store.known([key])[key].score for key in ("k", "f")] == [1.0, 2.0]
    store.close()


def test_a_scorer_that_gives_too_few_scores_is_stopped(tmp_path):
    short = Probe()
    short.score = lambda images, texts: []
    with pytest.raises(ProtoscoreError, match="gave 0 scores for 1"):
        score_rows(Listed([("a", png(1))]), [short], tmp_path)


def test_rows_that_change_while_they_are_scored_are_noticed(tmp_path):
    rows = Listed([("a", png(1)), ("b", png(2))])
    index = read_index(rows, tmp_path)
    rows.pairs.pop()
    with pytest.raises(ProtoscoreError, match="changed meanwhile"):
        list(score_blocks(rows, Probe(), index.blocks(8)))


@pytest.mark.parametrize("make", [Probe, Apart])
def test_a_picture_that_is_replaced_while_it_is_scored_gets_no_number(tmp_path, make):
    """Else the new picture's score would be kept under the old picture's content for good."""
    rows = Listed([("a", png(1)), ("b", png(2)), ("c", png(2))])
    index = read_index(rows, tmp_path)
    rows.pairs[1:] = [("b", png(3)), ("c", png(3))]
    (scored,) = score_blocks(rows, make(), index.blocks(8))
    assert [(o.status, o.score is None) for o in scored.outcomes] == [("ok", False), ("error", True), ("error", True)]
    assert scored.outcomes[1].reason == "changed while scoring; run the command again"


def test_a_new_scorer_joins_those_that_a_run_has(controls, tmp_path):
    both, later, rows = tmp_path / "both", tmp_path / "later", CellRows(str(controls))
    score_rows(rows, [Probe(name="up"), Apart()], both)
    score_rows(rows, [Probe(name="up")], later)
    counts = score_rows(rows, [Apart()], later)
    assert (counts.rows, counts.scored_now) == (480, 240) and digest(later) == digest(both)
    assert score_rows(rows, [Probe(name="up")], later).scored_now == 0 and digest(later) == digest(both)
    fewer = questions(controls, 3)
    with pytest.raises(DatasetError, match=r"holds scores of up over other rows, which this would replace; .* -s up"):
        score_rows(fewer, [Apart()], later)
    assert digest(later) == digest(both), "nothing is replaced before that is said"
    assert score_rows(fewer, [Apart(), Probe(name="up")], later).rows == 24


def test_a_run_folder_of_another_stage_is_refused(tmp_path):
    (tmp_path / "manifest.json").write_text('{"stage": "images", "parameters": {}}')
    with pytest.raises(DatasetError, match="was made by 'images'"):
        score_rows(Listed([("a", png(1))]), [Probe()], tmp_path)


def test_the_index_is_read_again_only_when_the_rows_may_differ(tmp_path):
    data = write_controls(tmp_path / "data", 6)
    rows = CellRows(str(data))
    index = read_index(rows, tmp_path / "run")
    stamp = index.path.stat().st_mtime_ns
    assert read_index(CellRows(str(data)), tmp_path / "run").path.stat().st_mtime_ns == stamp
    assert read_index(questions(data, 2), tmp_path / "run").path.stat().st_mtime_ns != stamp
    for path in (data / "controls").iterdir():
        path.unlink()
    (data / "controls").rmdir()
    write_controls(data, 6, picture=lambda *seed: png("new", *seed))
    score_rows(CellRows(str(data)), [Probe()], tmp_path / "run")
    assert table(tmp_path / "run")[0]["score"] == brightness(open_image(png("new", 0, "non_correct")))


@given(st.integers(0, 25), st.integers(0, 25))
@settings(max_examples=60, deadline=None)
def test_a_stretch_of_cells_is_the_same_as_a_slice_of_all(small_cells, start, stop):
    rows, everything = small_cells
    assert list(rows.rows(start, stop)) == everything[start:stop]


@pytest.fixture(scope="module")
def small_cells(tmp_path_factory):
    rows = questions(write_controls(tmp_path_factory.mktemp("cells") / "data", 7, group=2), 6)
    everything = list(rows.rows())
    assert len(everything) == len(rows) == 24 and everything[5].id == f"t1-0-{Cell.PROTO_VIOLATED}"
    return rows, everything


CUSTOM = '''\
"""Is the picture bright?"""


def score(images, texts):
    return [sum(image.convert("L").resize((8, 8)).tobytes()) / 64 for image in images]
'''


def test_a_custom_metric_is_a_file_with_a_function(controls, tmp_path):
    path = tmp_path / "my_metric.py"
    path.write_text(CUSTOM)
    assert len(CUSTOM.splitlines()) <= 10
    result = cli("score", controls, "-s", path, "-s", "constant", "--out", tmp_path / "run")
    assert result.returncode == 0, result.stderr
    rows = [row for row in table(tmp_path / "run") if row["scorer"] == "my_metric"]
    grey = open_image(png(0, "non_correct")).convert("L")
    assert rows[0]["score"] == brightness(grey) and len(rows) == 240
    described = json.loads((tmp_path / "run" / "manifest.json").read_text())["parameters"]["scorers"][0]
    assert described["question"] == "Is the picture bright?" and str(tmp_path) not in json.dumps(described)
    before = described["revision"]
    path.write_text(CUSTOM.replace("/ 64", "/ 65"))
    scorer = load("scorers", str(path))
    assert scorer.revision != before and score_rows(CellRows(str(controls)), [scorer], tmp_path / "run").scored_now == 240


def test_a_custom_metric_may_abstain_and_turn_round(tmp_path):
    path = tmp_path / "odd.py"
    path.write_text(
        "higher_is_better = False\ndef score(images, texts):\n    return [None if t == 'a' else len(t) for t in texts]\n"
    )
    score_rows(Listed([("a", png(1)), ("bb", png(1))]), [load("scorers", str(path))], tmp_path / "run")
    assert [(r["status"], r["score"]) for r in table(tmp_path / "run")] == [("abstained", None), ("ok", -2.0)]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("['123', 4.0]", "the metric gave '123' (str) is not a number"),
        ("[True, 4.0]", "the metric gave True (bool) is not a number"),
        ("[{0: 1}, 4.0]", "the metric gave {0: 1} (dict) is not a number"),
        ("__import__('protoscore.scorers').scorers.Score('7') and [__import__('protoscore.scorers').scorers.Score('7'), 4.0]",
         "the scorer gave '7' (str) is not a number"),
    ],
)  # fmt: skip
def test_what_is_not_a_number_is_an_error_and_not_read_as_one(tmp_path, given, reason):
    path = tmp_path / "odd.py"
    path.write_text(f"import numpy\ndef score(images, texts):\n    return {given}[: len(texts)]\n")
    score_rows(Listed([("a", png(1)), ("bb", png(1))]), [load("scorers", str(path))], tmp_path / "run")
    assert [(r["status"], r["score"], r["reason"]) for r in table(tmp_path / "run")] == [
        ("error", None, reason),
        ("ok", 4.0, ""),
    ]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("return dict.fromkeys(range(len(texts)), 1.0)", "TypeError: the metric gave a dict, not a list of numbers"),
        ("return '12'[: len(texts)]", "TypeError: the metric gave a str, not a list of numbers"),
        ("raise SystemExit(0)", "SystemExit: 0"),
    ],
)
def test_a_metric_that_gives_no_list_or_leaves_ends_in_errors(tmp_path, body, reason):
    (tmp_path / "odd.py").write_text(f"def score(images, texts):\n    {body}\n")
    score_rows(Listed([("a", png(1)), ("bb", png(1))]), [load("scorers", str(tmp_path / "odd.py"))], tmp_path / "run")
    assert [(r["status"], r["score"], r["reason"]) for r in table(tmp_path / "run")] == [("error", None, reason)] * 2


def test_numbers_of_numpy_and_torch_are_numbers(tmp_path):
    import torch

    from protoscore.scorers import number

    assert [number(x) for x in (1, 2.5, np.float32(0.5), np.int64(3), np.array(4.0), torch.tensor(5.0))] == [
        1,
        2.5,
        0.5,
        3,
        4,
        5,
    ]
    for wrong in (np.bool_(True), torch.tensor(True), None, "1", [1.0], 1j):
        with pytest.raises(TypeError, match="is not a number"):
            number(wrong)


def test_a_custom_metric_is_another_one_when_a_file_that_it_imports_changes(tmp_path):
    metric, helper = tmp_path / "mine.py", tmp_path / "helper_of_mine.py"
    metric.write_text(
        "import json\ndef score(images, texts):\n    from helper_of_mine import f\n    return [f(t) for t in texts]\n"
    )
    helper.write_text("import deeper_of_mine\ndef f(text):\n    return deeper_of_mine.g(text)\n")
    (tmp_path / "deeper_of_mine.py").write_text("def g(text):\n    return len(text)\n")
    (tmp_path / "unrelated.py").write_text("x = 1")
    first = load("scorers", str(metric))
    assert [s.value for s in first.score([None], ["abc"])] == [3.0], "what lies beside it can be imported"
    (tmp_path / "unrelated.py").write_text("x = 2")
    assert load("scorers", str(metric)).revision == first.revision
    (tmp_path / "deeper_of_mine.py").write_text("def g(text):\n    return 2 * len(text)\n")
    assert load("scorers", str(metric)).revision != first.revision


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "no such file"),
        ("x = 1", "no function score"),
        ("1 / 0", "ZeroDivisionError"),
        ("def score(", "SyntaxError"),
        ("import sys; sys.exit(0)", "SystemExit"),
    ],
)
def test_a_bad_metric_file_is_one_line(controls, tmp_path, content, says):
    if content:
        (tmp_path / "bad.py").write_text(content)
    with pytest.raises(ConfigError, match=says):
        score_named(CellRows(str(controls)), [str(tmp_path / "bad.py")], tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_installed_package_adds_a_metric(controls, tmp_path):
    """A package as an installer leaves it: a module and its metadata with an entry point."""
    site = tmp_path / "site"
    (site / "brightly-1.0.dist-info").mkdir(parents=True)
    (site / "brightly-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: brightly\nVersion: 1.0\n")
    (site / "brightly-1.0.dist-info" / "entry_points.txt").write_text("[protoscore.scorers]\nbrightness = brightly\n")
    (site / "brightly.py").write_text(CUSTOM)
    search = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    result = cli("score", controls, "-s", "brightness", "--limit", "2", "--out", tmp_path / "run", env={"PYTHONPATH": search})
    assert result.returncode == 0, result.stderr
    assert {row["scorer"] for row in table(tmp_path / "run")} == {"brightness"}
    result = cli("score", controls, "-s", "brightnes", "--out", tmp_path / "run", env={"PYTHONPATH": search})
    assert result.returncode == 2 and "did you mean 'brightness'" in result.stderr


def test_two_scorers_of_one_name_are_refused(controls, tmp_path):
    with pytest.raises(ConfigError, match="two scorers are called 'probe'"):
        score_rows(CellRows(str(controls)), [Probe(), Probe()], tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "1/0", "-1/2", ""])
def test_a_bad_shard_is_one_line(text):
    with pytest.raises(ConfigError, match="give i/n"):
        Shard.parse(text)


def test_bad_words_are_refused_before_anything_is_written(controls, tmp_path):
    rows = CellRows(str(controls))
    with pytest.raises(UnknownName, match="did you mean 'invalid'"):
        score_named(rows, ["constant"], tmp_path / "run", retry=["invalide"])
    with pytest.raises(UnknownName, match="unknown engine 'rai'"):
        score_named(rows, ["constant"], tmp_path / "run", engine="rai")
    assert not (tmp_path / "run").exists()


def test_no_four_cells_no_run(tmp_path):
    (tmp_path / "controls").mkdir()
    (tmp_path / "controls" / "test-0.parquet").write_bytes(b"PAR1 none")
    with pytest.raises(DatasetError, match=r"test-0\.parquet"):
        CellRows(str(tmp_path))


def test_an_empty_dataset_gives_an_empty_table(tmp_path):
    assert score_rows(Listed([]), [Apart()], tmp_path) == (0, 0, 0, "")
    assert table(tmp_path) == [] and len(Index(tmp_path / "rows.parquet")) == 0
