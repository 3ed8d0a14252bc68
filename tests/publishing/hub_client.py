"""The command line against the contract server: one warm process, since importing the libraries costs seconds.

``HF_ENDPOINT`` and its like are read when huggingface_hub is imported, so they cannot be set in the process of the tests.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from datasets import Features, Value

from tests.conftest import ROOT
from tests.publishing.hub_server import WRITE

COLUMNS = Features({"id": Value("string"), "score": Value("int32")})
LOOP = """
import contextlib, io, json, os, sys
from protoscore.cli import main
out, hosts = sys.stdout, set()
def watch(event, details):
    if event in ("socket.connect", "socket.getaddrinfo"):
        hosts.add(str(details[1][0] if event == "socket.connect" else details[0]))
sys.addaudithook(watch)
for line in sys.stdin:
    asked = json.loads(line)
    os.environ.pop("HF_TOKEN", None)
    os.environ.update({"HF_TOKEN": asked["token"]} if asked["token"] else {})
    sys.argv = ["protoscore", *asked["arguments"]]
    stdout, stderr, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        try:
            main()
        except SystemExit as end:
            code = end.code
        except BaseException as error:
            print(f"TRACEBACK {error!r}", file=stderr)
            code = 1
    print(json.dumps([code, stdout.getvalue(), stderr.getvalue(), sorted(hosts)]), file=out, flush=True)
"""


class Answer(NamedTuple):
    code: int
    stdout: str
    stderr: str
    hosts: list[str]  # every host that the process has connected to or asked the address of so far


def environment(url: str, home: Path, token: str | None = WRITE) -> dict[str, str]:
    """What a process must find to take ``url`` for the Hub and to touch nothing outside ``home``."""
    kept = {k: v for k, v in os.environ.items() if k not in ("HF_TOKEN", "HF_HUB_OFFLINE", "HF_DATASETS_CACHE")}
    names = {
        "HF_ENDPOINT": url,
        "HF_HOME": str(home),
        "HF_HUB_OFFLINE": "0",
        "HF_HUB_DISABLE_XET": "1",
        "NO_PROXY": "127.0.0.1",
    }
    return kept | names | {"PYTHONPATH": str(ROOT)} | ({"HF_TOKEN": token} if token else {})


class WarmCli:
    """``cli("publish", ...)`` is ``protoscore publish ...`` in a process that stays."""

    def __init__(self, url: str, home: Path):
        self.process = subprocess.Popen(
            [sys.executable, "-c", LOOP], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(url, home)
        )

    def __call__(self, *arguments: object, token: str | None = WRITE) -> Answer:
        assert self.process.stdin and self.process.stdout
        print(json.dumps({"arguments": list(map(str, arguments)), "token": token}), file=self.process.stdin, flush=True)
        return Answer(*json.loads(self.process.stdout.readline()))

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(10)


def small_dataset(folder: Path, rows: int = 4) -> Path:
    """A dataset of two Parquet files and a card; no other folder gives the same bytes."""
    info, configs = [], []
    for number, split in enumerate(("train", "test")):
        path = folder / "data" / f"{split}-00000.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        content = {"id": [f"{folder}-{split}-{i}" for i in range(rows)], "score": list(range(number, rows + number))}
        pq.write_table(pa.table(content, COLUMNS.arrow_schema), path)
        info.append({"name": split, "num_bytes": 100, "num_examples": rows})
        configs.append({"split": split, "path": f"data/{split}-*.parquet"})
    head = {
        "pretty_name": "Small", "license": "cc-by-4.0", "language": ["en"], "tags": ["test"], "size_categories": ["n<1K"],
        "task_categories": ["other"], "configs": [{"config_name": "default", "data_files": configs}],
        "dataset_info": {"features": COLUMNS._to_yaml_list(), "splits": info},
    }  # fmt: skip
    (folder / "README.md").write_text(f"---\n{yaml.safe_dump(head, sort_keys=False)}---\n\n# Small\n\nA test.\n")
    return folder
