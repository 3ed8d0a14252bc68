"""Weights from the Hub, over a real connection to a small Hub on this machine: what is fetched, pinned, and said."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.conftest import run

COMMIT = "d" * 40


class Hub(BaseHTTPRequestHandler):
    """The routes that a snapshot needs. ``org/gated`` is refused as the real one refuses it."""

    repos: dict[str, Path] = {}
    served: list[str] = []

    def do_GET(self, body: bool = True) -> None:
        path = self.path.split("?")[0].strip("/")
        if "org/gated" in path:
            return self.answer(403, b"{}", {"X-Error-Code": "GatedRepo"})
        repo = next((name for name in self.repos if f"{name}/" in f"{path}/"), None)
        if repo is None:
            return self.answer(404, b"{}", {"X-Error-Code": "RepoNotFound"})
        folder = self.repos[repo]
        if path.startswith("api/"):
            files = {str(p.relative_to(folder)): p.stat().st_size for p in sorted(folder.rglob("*")) if p.is_file()}
            tree = [{"type": "file", "path": name, "size": size, "oid": "0" * 40} for name, size in files.items()]
            info = {"id": repo, "sha": COMMIT, "siblings": [{"rfilename": name} for name in files]}
            return self.answer(200, json.dumps(tree if "/tree/" in path else info).encode())
        file = path.partition(f"{repo}/resolve/{COMMIT}/")[2]
        data = (folder / file).read_bytes()
        if body:
            self.served.append(f"{repo}/{file}")
        return self.answer(200, data, {"ETag": f'"{hashlib.sha256(data).hexdigest()}"', "X-Repo-Commit": COMMIT})

    def do_HEAD(self) -> None:
        self.do_GET(body=False)

    def answer(self, status: int, data: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for key, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def log_message(self, *args) -> None:
        pass


FETCH = """
import json, sys
from protoscore.errors import CheckpointError
from protoscore.modeling.checkpoint import fetch
from protoscore.catalog import load
for source in ("org/safe", "org/old", "org/gated", "org/none", "org/empty"):
    try:
        print(json.dumps([source, fetch(source).revision]))
    except CheckpointError as error:
        print(json.dumps([source, str(error)]))
print(json.dumps(["score", load("scorers", "clip_score:org/safe").revision]))
"""


@pytest.fixture(scope="module")
def answers(checkpoints, tmp_path_factory):
    root = tmp_path_factory.mktemp("hub")
    clip = checkpoints["clip_score"]
    weights = {
        "safe": ["model.safetensors", "pytorch_model.bin", "tf_model.h5", "deep/other.safetensors"],
        "old": ["pytorch_model.bin"],
        "empty": [],
    }
    for repo, files in weights.items():
        shutil.copytree(clip, root / repo, ignore=shutil.ignore_patterns("*.safetensors"))
        (root / repo / "deep").mkdir()
        for file in files:
            shutil.copy(clip / "model.safetensors", root / repo / file)
    Hub.repos = {f"org/{repo}": root / repo for repo in weights}
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    env = {"HF_ENDPOINT": endpoint, "HF_HUB_OFFLINE": "0", "HF_HOME": str(root / "home"), "HF_TOKEN": "", "NO_PROXY": "*"}
    result = run("-c", FETCH, env=env)
    server.shutdown()
    assert result.returncode == 0, result.stderr
    return dict(json.loads(line) for line in result.stdout.splitlines()), list(Hub.served)


def test_a_download_is_pinned_and_takes_safetensors_only(answers):
    said, served = answers
    assert said["org/safe"] == said["score"] == COMMIT
    files = [file for file in served if file.startswith("org/safe/")]
    assert "org/safe/model.safetensors" in files and len(files) == len(set(files))
    assert not [file for file in files if file.endswith((".bin", ".h5")) or "deep" in file]


def test_plain_tensors_are_taken_where_there_is_nothing_else(answers):
    said, served = answers
    assert said["org/old"] == COMMIT and "org/old/pytorch_model.bin" in served


def test_what_the_hub_refuses_is_told_with_the_command(answers):
    said, _ = answers
    assert "accept its terms" in said["org/gated"] and said["org/gated"].endswith("type: hf auth login")
    assert "check the name" in said["org/none"] and "hf download org/none" in said["org/none"]
    assert "holds no *.safetensors" in said["org/empty"]
    assert not any("\n" in message for message in said.values())
