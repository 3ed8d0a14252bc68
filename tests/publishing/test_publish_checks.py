"""What must not go to the Hub is refused before anything is sent, and a change does what it says.

These run in the process of the suite, which is offline: a request would be an error of its own.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from protoscore.errors import ConfigError, ProtoscoreError
from protoscore.publishing import Kind
from protoscore.publishing.cards import read_card
from protoscore.publishing.files import File
from protoscore.publishing.hub import Remote, difference
from protoscore.publishing.stage import Options, pack
from tests.conftest import ROOT
from tests.publishing.hub_client import small_dataset
from tests.publishing.hub_server import Blob, git_oid
from tests.publishing.round_trips import write_module

TINY = ROOT / "protoscore" / "assets" / "protoscore-tiny"
TOKEN = "my-own-token-of-no-known-form"


def refused(kind: Kind, folder: Path, says: str, repo_id: str = "org/x") -> None:
    with pytest.raises(ProtoscoreError) as caught, pack(kind, folder, repo_id, Options()):
        pass
    assert says in str(caught.value) and TOKEN not in str(caught.value)


def edit(name: str, old: str, new: str) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text, old
        (folder / name).write_text(text.replace(old, new, 1))

    return change


def put(name: str, data: bytes = b"x") -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)

    return change


SPOILED_DATASETS = {
    "no card": (lambda d: (d / "README.md").unlink(), "card"),
    "no metadata": (edit("README.md", "---\n", "# x\n"), "no metadata"),
    "broken yaml": (edit("README.md", "license: cc-by-4.0", "license: [cc"), "README.md:"),
    "no licence": (edit("README.md", "license: cc-by-4.0\n", ""), "license is missing"),
    "empty licence": (edit("README.md", "license: cc-by-4.0", "license:"), "license is empty"),
    "own licence without a name": (edit("README.md", "cc-by-4.0", "other"), "license_name"),
    "unfilled jinja": (edit("README.md", "A test.", "{{ description }}"), "nobody filled"),
    "to do": (edit("README.md", "A test.", "TODO: describe"), "nobody filled"),
    "template of the hub": (edit("README.md", "A test.", "[More Information Needed]"), "nobody filled"),
    "no text": (edit("README.md", "# Small\n\nA test.\n", ""), "no heading"),
    "pattern without a file": (edit("README.md", "data/test-*", "data/tset-*"), "no file matches"),
    "pattern outside": (edit("README.md", "data/test-*.parquet", "../*.parquet"), "not in this folder"),
    "a file in two splits": (edit("README.md", "data/test-*", "data/t*"), "is in default/train and in default/test"),
    "a file in no split": (put("data/more-00000.parquet"), "no config holds data/more-00000.parquet"),
    "other columns": (edit("README.md", "int32", "int64"), "differ in score"),
    "other rows": (edit("README.md", "num_examples: 4", "num_examples: 40"), "has 4 rows"),
    "no bytes": (edit("README.md", "num_bytes: 100", "bytes: 100"), "num_bytes is missing"),
    "no parquet": (put("data/test-00000.parquet"), "not a Parquet file"),
    "task of no split": (
        put("eval.yaml", b"name: x\ndescription: y\nevaluation_framework: z\ntasks: [{id: a, config: b, split: c}]"),
        "b/c",
    ),
    "task list missing": (put("eval.yaml", b"name: x\ndescription: y\nevaluation_framework: z\n"), "tasks: Field required"),
    "dotenv": (put(".env"), "looks like a secret"),
    "token file": (put("logs/token"), "looks like a secret"),
    "key in a text": (put("notes.md", b"my key: hf_" + b"a" * 34), "access key"),
    "own token in a text": (put("run.json", f'{{"t": "{TOKEN}"}}'.encode()), "access key"),
    "pickle": (put("cache.pkl"), "safetensors"),
    "link out": (lambda d: (d / "passwd.txt").symlink_to("/etc/passwd"), "leads out of the folder"),
    "linked folder": (lambda d: (d / "more").symlink_to(d.parent), "link to a folder"),
    "pipe": (lambda d: os.mkfifo(d / "pipe"), "not an ordinary file"),
    "broken link": (lambda d: (d / "gone.txt").symlink_to(d / "nowhere"), "cannot be read"),
}


@pytest.mark.parametrize("spoil, says", SPOILED_DATASETS.values(), ids=SPOILED_DATASETS)
def test_a_spoiled_dataset_is_not_sent(tmp_path, monkeypatch, spoil, says):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    folder = small_dataset(tmp_path / "d")
    with pack(Kind.DATASET, folder, "org/good", Options()) as parcel:
        assert len(parcel.files) == 3
    spoil(folder)
    refused(Kind.DATASET, folder, says)


SPOILED_MODELS = {
    "pickled weights": (put("pytorch_model.bin"), "safetensors"),
    "pickled part of the weights": (put("parts/pytorch_model-1.bin"), "safetensors"),
    "no weights": (lambda d: (d / "model.safetensors").unlink(), "no weights in safetensors"),
    "cut weights": (lambda d: os.truncate(d / "model.safetensors", 1_000_000), "its header announces"),
    "cut header": (lambda d: os.truncate(d / "model.safetensors", 100), "not a safetensors file"),
    "no config": (lambda d: (d / "config.json").unlink(), "no config.json"),
    "code missing": (lambda d: (d / "classifier.py").unlink(), "names classifier.py"),
    "shard missing": (
        put("model.safetensors.index.json", b'{"weight_map": {"a": "model-2.safetensors"}}'),
        "model-2.safetensors",
    ),
    "no task": (edit("README.md", "pipeline_tag: text-classification\n", ""), "pipeline_tag is missing"),
    "local base": (put("adapter_config.json", b'{"base_model_name_or_path": "/home/me/model"}'), "a folder of this machine"),
    "other base": (put("adapter_config.json", b'{"base_model_name_or_path": "org/base"}'), "base_model is not org/base"),
}


@pytest.mark.parametrize("spoil, says", SPOILED_MODELS.values(), ids=SPOILED_MODELS)
def test_a_spoiled_model_is_not_sent(tmp_path, spoil, says):
    folder = shutil.copytree(TINY, tmp_path / "m")
    spoil(folder)
    refused(Kind.MODEL, folder, says)


SPOILED_MODULES = {
    "no title": (edit("README.md", "title: Share Above\n", ""), "title is missing"),
    "no licence": (edit("README.md", "license: apache-2.0\n", ""), "license is missing"),
    "no gradio version": (edit("README.md", "sdk_version: 6.31.0\n", ""), "sdk_version is missing"),
    "unknown sdk": (edit("README.md", "sdk: gradio", "sdk: flask"), "sdk: Input should be"),
    "not tagged": (edit("README.md", "[evaluate, metric]", "[metric]"), "tags lack 'evaluate'"),
    "no app": (lambda d: (d / "app.py").unlink(), "has no app.py"),
    "no requirements": (lambda d: (d / "requirements.txt").unlink(), "has no requirements.txt"),
    "other name": (lambda d: (d / "share_above.py").rename(d / "share.py"), "has no share_above.py"),
    "no python": (put("share_above.py", b"def :"), "not Python that compiles"),
}


@pytest.mark.parametrize("spoil, says", SPOILED_MODULES.values(), ids=SPOILED_MODULES)
def test_a_spoiled_module_is_not_sent(tmp_path, spoil, says):
    folder = write_module(tmp_path / "share_above")
    with pack(Kind.MODULE, folder, "org/share_above", Options()) as parcel:
        assert len(parcel.files) == 4
    spoil(folder)
    refused(Kind.MODULE, folder, says, "org/share_above")


# -- properties


contents = st.dictionaries(st.sampled_from(["a.txt", "b.parquet", "c/d.md", "e.bin"]), st.binary(max_size=3), max_size=4)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(local=contents, remote=contents, mirror=st.booleans())
def test_applying_a_change_gives_the_folder(tmp_path, local, remote, mirror):
    shutil.rmtree(tmp_path / "x", ignore_errors=True)
    files = []
    for name, data in local.items():
        put(name, data)(tmp_path / "x")
        files.append(File(name, tmp_path / "x" / name, len(data)))
    kept = {".gitattributes": b"g", ".eval_results/x.yaml": b"r"}
    ids = {n: {git_oid(d), Blob(d, n.endswith(".parquet")).oid} for n, d in (remote | kept).items()}
    change = difference(files, Remote("0" * 40, True, False, ids), mirror, lambda file: None)
    after = dict(remote | kept)
    for file in [*change.new, *change.changed]:
        assert after.get(file.name) != file.path.read_bytes()  # nothing is sent in vain
        after[file.name] = file.path.read_bytes()
    for name in change.deleted:
        del after[name]
    assert after == (local | kept if mirror else remote | kept | local)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=80), st.text(max_size=40))
def test_any_card_is_read_or_refused_in_words(tmp_path, head, body):
    (tmp_path / "README.md").write_bytes(f"---\n{head}\n---\n{body}".encode("utf-8", "surrogatepass"))
    try:
        read_card(tmp_path)
    except ConfigError as error:
        assert "README.md" in str(error)
