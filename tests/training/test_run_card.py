"""What a training run leaves can be published, and its card claims no more than is so."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from PIL import Image

from protoscore.errors import DatasetError
from protoscore.modeling.protoscore import ProtoScore
from protoscore.publishing import Kind
from protoscore.publishing.stage import Options, listing, pack
from training.protoscore import reward
from training.protoscore.run_card import card


def test_a_run_leaves_a_whole_checkpoint_a_record_and_its_own_card(trained):
    assert np.isfinite(ProtoScore.from_pretrained(trained).score([Image.new("RGB", (96, 96), "red")], ["A bird."])).all()
    names = {p.name for p in trained.iterdir()}
    assert {"model.safetensors", "config.json", "tokenizer.json", "chat_template.jinja", "training_run.json"} <= names
    assert not [path for path in trained.glob("*") if path.suffix in (".bin", ".pt")], "no pickle among the weights"
    record = json.loads((trained / "training_run.json").read_text())
    assert record["steps"] == 6 and record["pairs"]["incongruent"] == 1 and record["base"] == "tiny"
    assert str(trained) not in json.dumps(record)
    card = (trained / "README.md").read_text()
    assert "Shortcut" in card and "not measured on a test set" in card
    assert "trl" not in card.lower() and "licence:" not in card, "marks of TRL's card, which speaks of a text model"
    value, n = (record["last_evaluation"][f"eval_congruent{part}"] for part in ("", "_n"))
    assert f"| congruent | {value:.3f} [" in card and f"| {n} |" in card


def test_what_is_uploaded_is_ours_alone(trained, tmp_path, monkeypatch):
    """The upload itself is huggingface_hub's; what it is given is looked at: no foreign card, pickle, or checkpoint."""
    from huggingface_hub.utils import filter_repo_objects

    seen = []

    class Api:
        def upload_folder(self, **given):
            seen.append(given)

    trained = Path(shutil.copytree(trained, tmp_path / "trained"))
    monkeypatch.setattr(reward, "HfApi", Api)
    args = SimpleNamespace(output_dir=str(trained), hub_token=None, hub_revision=None)
    trainer = SimpleNamespace(args=args, hub_model_id="me/mine", is_world_process_zero=lambda: True)
    (trained / "training_args.bin").write_bytes(b"pickle")
    (trained / "checkpoint-9").mkdir()
    (trained / "checkpoint-9" / "optimizer.pt").write_bytes(b"pickle")
    reward.PairTrainer.push_to_hub(trainer)
    (given,) = seen
    paths = [str(path.relative_to(trained)) for path in trained.rglob("*") if path.is_file()]
    sent = set(filter_repo_objects(paths, ignore_patterns=given["ignore_patterns"]))
    assert {"model.safetensors", "README.md", "training_run.json", "classifier.py", "tokenizer.json"} <= sent
    assert not [path for path in sent if path.startswith("checkpoint") or path.endswith((".bin", ".pt"))]


def test_what_a_run_leaves_can_be_published_without_what_only_the_trainer_needs(trained, tmp_path):
    """Checkpoints with their optimizers, logs and arguments stay here, and that is said; pickled weights are refused."""
    folder = Path(shutil.copytree(trained, tmp_path / "trained"))
    (folder / "training_args.bin").write_bytes(b"pickle")
    (folder / "runs").mkdir()
    (folder / "runs" / "events.out").write_bytes(b"log")
    assert list(folder.glob("checkpoint-*/optimizer.pt"))
    with pack(Kind.MODEL, folder, "org/mine", Options()) as parcel:
        assert {file.name for file in parcel.files} == {path.name for path in trained.iterdir() if path.is_file()}
        assert "needs it: checkpoint-3, checkpoint-6, runs, training_args.bin" in listing(parcel)[-1]
    (folder / "pytorch_model.bin").write_bytes(b"pickle")
    with (
        pytest.raises(DatasetError, match=r"pytorch_model\.bin may hold code"),
        pack(Kind.MODEL, folder, "org/mine", Options()),
    ):
        pass


@pytest.mark.parametrize(
    ("incongruent", "congruent", "says"),
    [
        (0.34, 0.33, None),
        (0.75, 0.25, "In 75 % of its pairs the right picture shows the less"),
        (0.2, 0.5, "In 50 % of its pairs the right picture shows the more"),
    ],
)
def test_a_card_tells_of_a_shortcut_where_the_pairs_teach_one(trained, incongruent, congruent, says):
    record = json.loads((trained / "training_run.json").read_text())
    record["pairs"] |= {"incongruent": incongruent, "congruent": congruent, "same_subject": 1 - incongruent - congruent}
    text = card(record | {"adapter": True, "base": "Qwen/Qwen3-VL-4B-Instruct"})
    assert ("Shortcut" in text) == (says is not None) and (says or "") in text
    metadata = yaml.safe_load(text.split("---")[1])
    assert (metadata["library_name"], metadata["base_model"]) == ("peft", "Qwen/Qwen3-VL-4B-Instruct")
    assert metadata["license"] == "cc-by-sa-4.0" and "CC BY-SA 4.0" in text and "a licence of its own" in text
