"""What a training run leaves can be published, and its card claims no more than is so."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from PIL import Image

from protoscore.modeling.protoscore import ProtoScore
from training.protoscore import reward


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
