"""Other people's benchmarks, on generated files in their schemas, with numbers worked out by hand or by brute force."""

from __future__ import annotations

import csv
import io
import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy.stats import kendalltau

from protoscore.benchmarks import report
from protoscore.catalog import load
from protoscore.errors import DatasetError, UnknownName
from protoscore.schema import Status
from protoscore.scorers import Facts, Score
from protoscore.scoring.stage import score_rows
from protoscore.stats.transfer import tie_calibrated_over_all, winoground_scores
from tests.conftest import cli


class Redness:
    """A scorer whose numbers can be worked out by hand: the red value of the first pixel times the number in the text."""

    facts = Facts(question="How red?", paper="none", licence="Apache-2.0")
    name, revision, parameters, batch_size = "redness", "1", {}, 3

    def score(self, images, texts):
        reds = [image.getpixel((0, 0))[0] for image in images]
        return [
            Score(None, Status.REFUSED, "told to") if "refuse" in text else Score(float(red * int(text.split()[0])))
            for red, text in zip(reds, texts, strict=True)
        ]


def estimates(benchmark, out: Path) -> dict:
    """What a run of the scorer above comes to, as its results file has it."""
    score_rows(benchmark.items(), [Redness()], out)
    report(out, benchmark)
    return json.loads((out / "results.json").read_text())


def png(red: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (4, 4), (red, 0, 0)).save(buffer, "PNG")
    return buffer.getvalue()


def picture(red: int) -> dict:
    return {"bytes": png(red), "path": None}


# caption factors and picture reds of each item; the score is their product
ITEMS = [
    (1, -1, 9, 3),  # s00 9, s01 3, s10 -9, s11 -3: text 9>-9 but -3>3 fails; image 9>3 and -3>-9: right
    (2, 3, 0, 0),  # all scores 0: every comparison is a tie, so all fail
    (1, 2, 3, 9),  # s00 3, s01 9, s10 6, s11 18: text 3>6 fails, image 3>9 fails
]


def winoground_rows() -> list[dict]:
    return [
        {
            "id": i, "caption_0": f"{c0} a", "caption_1": f"{c1} b", "image_0": picture(r0), "image_1": picture(r1),
            "collapsed_tag": "Object" if i else "Both", "tag": "x",
        }
        for i, (c0, c1, r0, r1) in enumerate(ITEMS)
    ]  # fmt: skip


def write_parquet(path: Path, rows: list[dict], group: int = 2) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=group)


def test_winoground_from_parquet_and_from_the_original_download(tmp_path):
    write_parquet(tmp_path / "parquet" / "data" / "test-00000-of-00001.parquet", winoground_rows())
    listing = tmp_path / "original" / "data" / "examples.jsonl"
    (listing.parent / "images").mkdir(parents=True)
    lines = []
    for row in winoground_rows():
        names = {f"image_{i}": f"ex_{row['id']}_img_{i}" for i in (0, 1)}
        for column, name in names.items():
            (listing.parent / "images" / f"{name}.png").write_bytes(row[column]["bytes"])
        lines.append(json.dumps(row | names))
    listing.write_text("\n".join(lines))
    reports = []
    for layout in ("parquet", "original"):
        benchmark = load("benchmarks", f"winoground:{tmp_path / layout}", resamples=200)
        assert len(benchmark) == 12
        whole = list(benchmark.rows())
        assert list(benchmark.rows(3, 10)) == whole[3:10]
        reports.append(estimates(benchmark, tmp_path / f"out-{layout}")["estimates"]["redness"])
    assert reports[0] == reports[1]
    everything = reports[0]["all"]
    assert {name: (e["value"] * 3, e["n"], e["ties"]) for name, e in everything.items()} == {
        "text": (0, 3, 1), "image": (1, 3, 1), "group": (0, 3, 1),
    }  # fmt: skip
    assert reports[0]["Both"]["image"]["value"] == 1 and reports[0]["Object"]["image"]["n"] == 2


def test_winoground_counts_by_hand_and_leaves_failures_out():
    right = (4.0, 1.0, 2.0, 3.0)  # 4>2, 3>1 and 4>1, 3>2
    text_only = (4.0, 3.0, 2.0, 3.5)  # 4>2, 3.5>3; 4>3, 3.5>2: right too
    tie = (1.0, 1.0, 0.0, 2.0)  # text 1>0, 2>1 right; image 1>1 is a tie
    missing = (1.0, float("nan"), 0.0, 2.0)
    found = winoground_scores([right, text_only, tie, missing], resamples=300)
    assert (found.text.value, found.image.value, found.group.value) == pytest.approx((1, 2 / 3, 2 / 3))
    assert (found.text.n, found.text.left_out, found.image.ties, found.text.ties) == (3, 1, 1, 0)
    assert found.text.low < 0.5 < found.text.high == 1, "three items that agree do not make certain"
    assert np.isnan(winoground_scores([missing]).text.value)


RATED = {"p0": (5, 3, 1), "p1": (4, 4, 2), "p2": (2, 1, 5), "p3": (3, 2, 3)}
REDS = {"p0": (50, 30, 10), "p1": (40, 41, 20), "p2": (10, 20, 60), "p3": (35, 25, 5)}


def brute(metric: list[float], human: list[float]) -> tuple[float, float]:
    """Best accuracy over every threshold, and the smallest threshold that has it."""
    pairs = list(combinations(range(len(metric)), 2))
    best = (-1.0, 0.0)
    for threshold in sorted({0.0} | {abs(metric[i] - metric[j]) for i, j in pairs}):
        right = 0
        for i, j in pairs:
            gap = metric[i] - metric[j]
            right += (0 if abs(gap) <= threshold else np.sign(gap)) == np.sign(human[i] - human[j])
        if right / len(pairs) > best[0]:
            best = (right / len(pairs), threshold)
    return best


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4), st.integers(0, 3)), min_size=2, max_size=12))
def test_tie_calibration_over_all_pairs_is_the_brute_force(rows):
    metric, human, cluster = (list(map(float, column)) for column in zip(*rows))
    value, threshold = brute(metric, human)
    found = tie_calibrated_over_all(metric, human, cluster, resamples=20)
    assert found.accuracy.value == pytest.approx(value) and found.threshold == threshold
    assert found.accuracy.n == len(rows) * (len(rows) - 1) // 2


def test_its_interval_is_the_bootstrap_of_prompts():
    """Against a resampling written out: whole prompts, own pairs kept, pairs of two copies of one prompt left out."""
    rng = np.random.default_rng(5)
    prompts = np.repeat(np.arange(30), 4)
    human = rng.integers(1, 6, 120).astype(float)
    metric = human + rng.normal(0, 1.5, 120)
    found = tie_calibrated_over_all(metric, human, prompts, resamples=1500)
    gap = metric[:, None] - metric
    order = np.where(np.abs(gap) <= found.threshold, 0, np.sign(gap)) == np.sign(human[:, None] - human)
    values = []
    for _ in range(1500):
        drawn = rng.integers(0, 30, 30)
        rows = np.concatenate([np.arange(4) + 4 * p for p in drawn])
        copy = np.repeat(np.arange(30), 4)
        i, j = np.triu_indices(120, 1)
        kept = (copy[i] == copy[j]) | (rows[i] // 4 != rows[j] // 4)
        values.append(order[rows[i[kept]], rows[j[kept]]].mean())
    np.testing.assert_allclose([found.accuracy.low, found.accuracy.high], np.quantile(values, [0.025, 0.975]), atol=0.02)


def tifa_folder(folder: Path) -> Path:
    names = {"mini-dalle": "mini_dalle", "sd1dot5": "stable_diffusion_v1_5", "sd2dot1": "stable_diffusion_v2_1"}
    listing, ratings = {}, []
    (folder / "tifa160").mkdir(parents=True)
    for prompt, humans in RATED.items():
        for (model, name), mean, red in zip(names.items(), humans, REDS[prompt]):
            key = f"{prompt}_{name}"
            listing[key] = {"text_id": prompt, "image_path": f"{key}.jpg", "text": "1 bird"}
            (folder / "tifa160" / f"{key}.jpg").write_bytes(png(red))
            ratings += [
                ("tifa160", model, "tifa160_1", prompt, worker, "How?", mean + d) for worker, d in ((1, 0.5), (2, -0.5))
            ]
    (folder / "tifa160.json").write_text(json.dumps(listing))
    with (folder / "dsg_tifa160_anns.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow("data_type model_type item_id source_id worker_id question answer".split())
        writer.writerows(ratings)
    return folder


def genai_file(folder: Path) -> Path:
    from protoscore.benchmarks.genai_bench import MODELS

    rows = []
    for i, (prompt, humans) in enumerate(RATED.items()):
        used = dict(zip(MODELS, zip(humans, REDS[prompt])))
        rows.append(
            {
                "Index": i, "Prompt": "1 bird", "Tags": {"basic": ["Attribute"]},
                "HumanRatings": {m: [used[m][0]] * 3 if m in used else [1, 1, 1] for m in MODELS},
                **{m: picture(used[m][1] if m in used else 0) for m in MODELS},
            }
        )  # fmt: skip
    write_parquet(folder / "data" / "train-00000-of-00001.parquet", rows, group=3)
    return folder


def test_tifa160_agrees_with_independent_numbers(tmp_path):
    benchmark = load("benchmarks", f"tifa160:{tifa_folder(tmp_path / 'tifa')}", resamples=200)
    found = estimates(benchmark, tmp_path / "out")["estimates"]["redness"]["all"]
    metric = [float(red) for reds in REDS.values() for red in reds]
    human = [float(mean) for means in RATED.values() for mean in means]
    assert found["pairwise_accuracy"]["value"] == pytest.approx(brute(metric, human)[0])
    assert found["pairwise_accuracy"]["n"] == 66
    assert found["kendall_tau_b"]["value"] == pytest.approx(kendalltau(metric, human).statistic)
    assert found["pearson"]["value"] == pytest.approx(np.corrcoef(metric, human)[0, 1])
    # by prompt, by hand: threshold 1 makes the first pair of p1 a tie, as people have it: p0 3/3, p1 3/3, p2 2/3, p3 1/3
    assert found["pairwise_accuracy_by_prompt"]["value"] == pytest.approx((1 + 1 + 2 / 3 + 1 / 3) / 4)
    assert found["pairwise_accuracy_by_prompt"]["n"] == 12
    for estimate in found.values():
        assert estimate["low"] <= estimate["value"] <= estimate["high"]


def test_genai_bench_and_a_picture_that_is_missing(tmp_path):
    folder = genai_file(tmp_path / "genai")
    benchmark = load("benchmarks", f"genai_bench:{folder}", resamples=200)
    assert len(benchmark) == 24 and list(benchmark.rows(5, 20)) == list(benchmark.rows())[5:20]
    results = estimates(benchmark, tmp_path / "out")
    assert results["estimates"]["redness"]["all"]["pairwise_accuracy_by_prompt"]["n"] == 4 * 15
    assert results["details"]["states"]["redness"] == {"ok": 24}
    rows = pq.read_table(folder / "data" / "train-00000-of-00001.parquet").to_pylist()
    rows[0]["DALLE_3"]["bytes"] = b""
    write_parquet(folder / "data" / "train-00000-of-00001.parquet", rows)
    results = estimates(load("benchmarks", f"genai_bench:{folder}", resamples=200), tmp_path / "again")
    assert results["details"]["states"]["redness"] == {"invalid": 1, "ok": 23}
    assert results["estimates"]["redness"]["all"]["pearson"]["left_out"] == 1


def test_what_is_not_there_gets_the_line_to_type(tmp_path):
    with pytest.raises(DatasetError, match="hf auth login"):
        len(load("benchmarks", "winoground"))
    with pytest.raises(DatasetError, match="tifa160:FOLDER"):
        len(load("benchmarks", "tifa160"))
    with pytest.raises(DatasetError, match=r"no tifa160\.json"):
        len(load("benchmarks", f"tifa160:{tmp_path}"))
    write_parquet(tmp_path / "wrong" / "test.parquet", [{"a": 1}])
    with pytest.raises(DatasetError, match="no column 'caption_0'"):
        len(load("benchmarks", f"winoground:{tmp_path / 'wrong'}"))
    with pytest.raises(UnknownName, match="did you mean 'winoground'"):
        load("benchmarks", "winogrund")


def test_the_command_line(tmp_path):
    folder, run = genai_file(tmp_path / "genai"), tmp_path / "o"
    result = cli("score", f"genai_bench:{folder}", "-s", "constant", "-s", "random", "--out", str(run))
    assert result.returncode == 0, result.stderr
    hint = result.stdout.strip().splitlines()[-1]
    assert hint == f"Next: protoscore report {run} --dataset genai_bench:{folder}"
    result = cli(*hint.split()[2:])
    assert result.returncode == 0, result.stderr
    assert "pairwise" in result.stdout and "random" in result.stdout
    constant = json.loads((run / "results.json").read_text())["estimates"]["constant"]["all"]
    assert constant["kendall_tau_b"]["value"] is None, "no correlation of a constant"
    assert (
        str(tmp_path) not in (run / "results.json").read_text() and "genai bench" in (run / "report.html").read_text().lower()
    )
    wrong = cli("score", f"tifa160:{folder}", "-s", "constant", "--out", str(tmp_path / "p"))
    assert wrong.returncode == 2 and "Traceback" not in wrong.stderr and not (tmp_path / "p").exists()
