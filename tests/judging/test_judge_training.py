"""The recipes of scene-judge-tiny run: reader, then judge, two steps each, as its makers run them."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from unittest.mock import patch

import pytest
from PIL import Image

from protoscore.judges.local import create
from protoscore.modeling.protoscore import ProtoScore
from tests.conftest import ROOT

pytest.importorskip("trl")
sys.path.insert(0, str(ROOT / "training"))
ASSETS = ROOT / "protoscore" / "assets"
STEPS = ["--max_steps", "2", "--per_device_train_batch_size", "4", "--dataloader_num_workers", "0", "--save_strategy", "no"]


def train(script: str, *options: str) -> int:
    """The script in this process: importing its libraries anew would cost more than the training."""
    path = str(ROOT / "training" / script)
    with patch.object(sys, "argv", [path, *options, *STEPS]):
        try:
            runpy.run_path(path, run_name="__main__")
        except SystemExit as end:
            return end.code
    return 0


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A reader from protoscore-tiny, and a judge from that reader."""
    folder = tmp_path_factory.mktemp("judge")
    reader = ["--recipe", "scene_reader", "--start", str(ASSETS / "protoscore-tiny"), "--pictures", "8"]
    assert train("train_scene_reader.py", *reader, "--output_dir", str(folder / "reader")) == 0
    judge = ["--recipe", "scene_judge", "--start", str(folder / "reader"), "--questions", "64", "--head_steps", "1"]
    assert train("train_scene_judge.py", *judge, "--output_dir", str(folder / "judge")) == 0
    return folder


def test_the_reader_loads_as_an_evaluator_and_the_judge_as_a_judge(trained):
    (score,) = ProtoScore.from_pretrained(trained / "reader").score([Image.new("RGB", (96, 96), "red")], ["A dog in a park."])
    assert abs(score) < 100
    judge = create(str(trained / "judge"), max_tokens=4)
    assert type(judge.model).__name__ == "Qwen3VLForConditionalGeneration"


def test_one_token_holds_a_sentence_of_a_prompt_a_label_or_a_grade(trained):
    tokenizer = create(str(trained / "judge"), max_tokens=4).processor.tokenizer
    for text in (
        '{"score": 3}',
        '"unspecified"',
        "Answer with one JSON object and nothing else, like this:\n",
        "Description: ",
    ):
        assert len(tokenizer.tokenize(text)) == 1, text
    assert len(tokenizer.tokenize("A dog in a green meadow.")) == 7


@pytest.mark.parametrize("script", ["scene_reader", "scene_judge"])
def test_a_start_that_is_not_there_is_one_line(script, tmp_path, capsys):
    options = ["--recipe", script, "--start", str(tmp_path / "nowhere"), "--output_dir", str(tmp_path / "out")]
    assert train(f"train_{script}.py", *options) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"train_{script}: ")
    assert not (tmp_path / "out").exists()
