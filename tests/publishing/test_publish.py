"""Publishing, against a server that keeps the Hub's contract: round trips, faults, and nobody's work overwritten."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from tests.conftest import ROOT, cli, run
from tests.publishing.hub_client import Answer, WarmCli, environment, small_dataset
from tests.publishing.hub_server import FOREIGN, READ, WRITE, Blob, Fault, Hub

TINY = ROOT / "protoscore" / "assets" / "protoscore-tiny"
RESULTS = ROOT / "model_cards" / "protoscore-tiny.results.json"


@pytest.fixture(scope="module")
def hub() -> Iterator[Hub]:
    with Hub() as server:
        yield server


@pytest.fixture(scope="module")
def client(hub, tmp_path_factory) -> Iterator[WarmCli]:
    warm = WarmCli(hub.url, tmp_path_factory.mktemp("home"))
    yield warm
    warm.close()


@pytest.fixture
def publish(hub, client) -> Iterator[Callable[..., Answer]]:
    """``protoscore publish`` with what must hold for every call: no traceback, one line of error, no token, no other host."""

    def call(kind: str, folder: Path, repo_id: str, *options: str, token: str | None = WRITE) -> Answer:
        answer = client("publish", kind, folder, "--repo-id", repo_id, *options, token=token)
        said = answer.stdout + answer.stderr
        assert "TRACEBACK" not in said and "Traceback" not in said, said
        assert not any(secret in said for secret in (WRITE, READ, FOREIGN))
        assert set(answer.hosts) <= {"127.0.0.1"}
        if answer.code:
            errors = [line for line in answer.stderr.splitlines() if "of patience" not in line]
            assert answer.code == 2 and len(errors) == 1 and errors[0].startswith("protoscore: "), answer
        return answer

    yield call
    hub.faults.clear()


def main_of(hub: Hub, repo_id: str, type: str = "datasets") -> dict[str, bytes]:
    return {name: blob.data for name, blob in hub.repos[type, repo_id].main.items() if name != ".gitattributes"}


def files_of(folder: Path) -> dict[str, bytes]:
    found = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    return {name: data for name, data in found.items() if not name.startswith(".")}


# -- round trips: what was published loads with the libraries of the Hub


def test_what_was_published_loads_by_its_id(dataset, tmp_path_factory):
    with Hub() as server:
        scratch = tmp_path_factory.mktemp("trips")
        result = run(
            "-m", "tests.publishing.round_trips", str(dataset), str(scratch), env=environment(server.url, scratch / "home")
        )
        assert result.returncode == 0, result.stderr[-3000:]
        seen = json.loads(result.stdout.splitlines()[-1])
        assert seen == dict.fromkeys(seen, True) and len(seen) >= 12, seen
        assert not any(token for method, path, token in server.log if method == "PUT" and path.startswith("/large/"))
        assert not [path for _, path, token in server.log if token not in (None, WRITE)]


# -- what one publication does


def test_a_dry_run_lists_the_files_and_makes_no_request(hub, publish, tmp_path):
    folder = small_dataset(tmp_path / "d")
    before = len(hub.log)
    answer = publish("dataset", folder, "org/dry", "--dry-run", token=None)
    assert answer.code == 0 and len(hub.log) == before and "nothing was sent" in answer.stdout
    for name, data in files_of(folder).items():
        assert re.search(rf"^  {re.escape(name)} +{len(data):,} bytes$", answer.stdout, re.MULTILINE), name
    assert f"3 files, {sum(map(len, files_of(folder).values())):,} bytes" in answer.stdout
    assert not list(folder.glob(".*"))


def test_one_private_commit_that_names_the_build(hub, publish, tmp_path):
    folder = small_dataset(tmp_path / "d")
    (folder / "manifest.json").write_text('{"stage": "dataset"}\n')
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "x.pyc").write_bytes(b"x")
    answer = publish("dataset", folder, "org/first", "--tag", "v1", "--collection", "All of it")
    repo = hub.repos["datasets", "org/first"]
    assert answer.code == 0 and repo.private and "private" in answer.stdout
    published = {name: data for name, data in files_of(folder).items() if "pycache" not in name}
    assert main_of(hub, "org/first") == published and len(repo.revisions) == 2
    digest = hashlib.sha256((folder / "manifest.json").read_bytes()).hexdigest()
    assert re.fullmatch(rf"dataset build {digest[:12]} by protoscore [\d.]+", repo.messages[repo.refs["main"]])
    assert repo.refs["v1"] == repo.refs["main"]
    (made,) = hub.collections.values()
    assert (
        made["title"] == "All of it"
        and made["private"]
        and [(i["id"], i["type"]) for i in made["items"]] == [("org/first", "dataset")]
    )

    again = publish("dataset", folder, "org/first", "--tag", "v1", "--collection", "All of it")
    assert again.code == 0 and again.stdout.count("unchanged") == 1
    assert len(repo.revisions) == 2 and len(made["items"]) == 1 and len(hub.collections) == 1


def test_the_repository_becomes_the_folder_and_results_stay(hub, publish, tmp_path):
    folder = tmp_path / "protoscore-tiny"
    shutil.copytree(TINY, folder)
    assert publish("model", folder, "org/tiny").code == 0
    lone = ("--benchmark", "org/bench@1234567", "--scorer", "protoscore")
    assert publish("results", RESULTS, "org/tiny", *lone).code == 0
    (folder / "tokenizer_config.json").unlink()
    (folder / "chat_template.jinja").write_text("changed")
    assert publish("model", folder, "org/tiny").code == 0  # results that came in the meantime are nobody's loss
    main = main_of(hub, "org/tiny", "models")
    rows = yaml.safe_load(main.pop(".eval_results/bench.yaml"))
    assert main == files_of(folder)
    groups = json.loads(RESULTS.read_text())["estimates"]["protoscore"]["all"]
    assert [row["dataset"]["task_id"] for row in rows] == ["incongruent", "congruent", "sensitivity", "elements"]
    for row in rows:
        assert row["dataset"] | {"task_id": ""} == {"id": "org/bench", "task_id": "", "revision": "1234567"}
        assert (
            row["value"] == pytest.approx(groups[row["dataset"]["task_id"]]["value"], abs=1e-6)
            and f"n = {groups[row['dataset']['task_id']]['n']}," in row["notes"]
        )


def test_public_and_gated_only_once_everything_is_there(hub, publish, tmp_path):
    folder = small_dataset(tmp_path / "d")
    card = (folder / "README.md").read_text()
    (folder / "README.md").write_text(card.replace("license:", "extra_gated_prompt: Use it for research.\nlicense:", 1))
    hub.faults.append(Fault("POST", "org/gated/commit/"))
    assert publish("dataset", folder, "org/gated", "--public").code == 2
    repo = hub.repos["datasets", "org/gated"]
    assert repo.gated == "auto" and repo.private and set(repo.main) == {".gitattributes"}
    answer = publish("dataset", folder, "org/gated", "--public")
    assert answer.code == 0 and not repo.private and "public" in answer.stdout
    assert publish("dataset", folder, "org/gated").code == 0 and not repo.private  # and it is never hidden again by default


def test_a_pull_request_changes_nothing(hub, publish, tmp_path):
    folder = small_dataset(tmp_path / "d")
    assert "publish it first" in publish("dataset", folder, "org/pr", "--pull-request").stderr
    publish("dataset", folder, "org/pr")
    repo = hub.repos["datasets", "org/pr"]
    head = repo.refs["main"]
    small_dataset(folder, rows=5)
    answer = publish("dataset", folder, "org/pr", "--pull-request")
    assert answer.code == 0 and f"{hub.url}/datasets/org/pr/discussions/1" in answer.stdout
    proposed = {name: blob.data for name, blob in repo.revisions[repo.refs["refs/pr/1"]].items() if name != ".gitattributes"}
    assert repo.refs["main"] == head and proposed == files_of(folder)
    assert "without --pull-request" in publish("dataset", folder, "org/pr", "--pull-request", "--tag", "v2").stderr


def test_a_tag_is_never_moved(hub, publish, tmp_path):
    folder = small_dataset(tmp_path / "d")
    publish("dataset", folder, "org/tagged", "--tag", "v1")
    head = hub.repos["datasets", "org/tagged"].refs["main"]
    small_dataset(folder, rows=5)
    answer = publish("dataset", folder, "org/tagged", "--tag", "v1")
    assert answer.code == 2 and "not moved" in answer.stderr
    assert hub.repos["datasets", "org/tagged"].refs["main"] == head
    assert publish("dataset", folder, "org/tagged", "--tag", "v2").code == 0


# -- nobody's work is overwritten


def test_a_newer_revision_is_not_overwritten_without_being_told(hub, publish, tmp_path):
    folder = small_dataset(tmp_path / "d")
    publish("dataset", folder, "org/theirs")
    repo = hub.repos["datasets", "org/theirs"]
    theirs = repo.add({**repo.main, "README.md": Blob(b"somebody improved this", False)}, "by somebody else")
    small_dataset(folder, rows=6)
    answer = publish("dataset", folder, "org/theirs")
    assert (
        answer.code == 2
        and "README.md there would be lost" in answer.stderr
        and f"--expect-revision {theirs[:12]}" in answer.stderr
    )
    assert repo.refs["main"] == theirs
    assert publish("dataset", folder, "org/theirs", "--expect-revision", "0" * 12).code == 2 and repo.refs["main"] == theirs
    assert publish("dataset", folder, "org/theirs", "--expect-revision", theirs[:12]).code == 0
    assert main_of(hub, "org/theirs") == files_of(folder)

    stranger = small_dataset(tmp_path / "elsewhere")  # the same repository from a folder that knows nothing of it
    assert "nothing says that it came from this folder" in publish("dataset", stranger, "org/theirs").stderr
    assert publish("dataset", stranger, "org/theirs", "--overwrite").code == 0


def test_a_commit_that_comes_between_is_not_overwritten(hub, publish, tmp_path):
    folder = small_dataset(tmp_path / "d")
    publish("dataset", folder, "org/race")
    repo = hub.repos["datasets", "org/race"]
    small_dataset(folder, rows=5)
    between = lambda: repo.add({**repo.main, "theirs.txt": Blob(b"quick", False)}, "in between")  # noqa: E731
    hub.faults.append(Fault("POST", "org/race/commit/", before=between))
    answer = publish("dataset", folder, "org/race")
    assert answer.code == 2 and "412" in answer.stderr and "nothing was published" in answer.stderr
    assert repo.main["theirs.txt"].data == b"quick" and repo.messages[repo.refs["main"]] == "in between"


# -- the Hub refuses, or breaks: one line, nothing half-published, and the same command goes on


@pytest.mark.parametrize(
    "fault, says",
    [
        (Fault("POST", "/commit/", 400, message="eval.yaml: tasks: Required"), "eval.yaml: tasks: Required"),
        (Fault("POST", "/commit/", 401, message="Invalid credentials in Authorization header"), "hf auth login"),
        (Fault("POST", "/repos/create", 402, message="subscribe first"), "paid plan"),
        (Fault("POST", "/commit/", 403, message="no write role"), "may not write to dataset"),
        (Fault("POST", "/refs|/repos/create", 403, message=f"no role for {WRITE}"), "no role for ***"),
        (Fault("POST", "/preupload/", 404, message="gone"), "check --repo-id"),
        (Fault("POST", "/commit/", 409, message="busy"), "changed by somebody else"),
        (Fault("POST", "/commit/", 413, message="too much"), "413: too much"),
        (Fault("POST", "/commit/", 429, times=99, headers={"Retry-After": "0"}), "too many requests"),
        (Fault("POST", "/commit/", 429, headers={"Retry-After": "86400"}), "too many requests"),
        (Fault("POST", "/commit/", 500, message="Internal"), "a fault of its own (500: Internal)"),
        (Fault("POST", "/commit/", cut=True), "connection to"),
        (Fault("PUT", "/large/", 400, times=9, message="EntityTooLarge"), "EntityTooLarge"),
    ],
    ids=lambda value: f"{value.status}{'-cut' * value.cut}-{value.path.strip('/')}" if isinstance(value, Fault) else "",
)
def test_a_refusal_is_one_line_and_the_same_command_goes_on(hub, publish, tmp_path, request, fault, says):
    repo_id = f"org/{re.sub(r'[^a-z0-9]+', '-', request.node.callspec.id).strip('-')}"
    folder = small_dataset(tmp_path / "d")
    hub.faults.append(fault)
    answer = publish("dataset", folder, repo_id, "--public")
    assert answer.code == 2 and says in answer.stderr
    repo = hub.repos.get(("datasets", repo_id))
    assert repo is None or (repo.private and set(repo.main) == {".gitattributes"})
    commits = len(hub.requests("POST", f"{repo_id}/commit/"))
    assert commits <= (5 if fault.status == 429 and fault.headers["Retry-After"] == "0" else 1)  # patience has an end
    uploads = len(hub.requests("PUT", "/large/"))
    arrived = set(hub.large)
    hub.faults.clear()
    assert publish("dataset", folder, repo_id, "--public").code == 0
    assert main_of(hub, repo_id) == files_of(folder) and not hub.repos["datasets", repo_id].private
    assert len(hub.requests("PUT", "/large/")) - uploads == len(set(hub.large) - arrived)  # what had arrived is not sent again


def test_a_busy_hub_is_waited_for(hub, publish, tmp_path):
    hub.faults.append(Fault("POST", "org/busy/commit/", 429, times=2, headers={"Retry-After": "0"}))
    answer = publish("dataset", small_dataset(tmp_path / "d"), "org/busy")
    assert answer.code == 0 and answer.stderr.count("of patience") == 2
    assert len(hub.repos["datasets", "org/busy"].revisions) == 2


def test_a_lost_answer_does_not_publish_twice(hub, publish, tmp_path):
    folder = small_dataset(tmp_path / "d")
    hub.faults.append(Fault("POST", "org/lost/commit/", after=True))
    assert publish("dataset", folder, "org/lost", "--tag", "v1").code == 2
    again = publish("dataset", folder, "org/lost", "--tag", "v1")
    repo = hub.repos["datasets", "org/lost"]
    assert again.code == 0 and "unchanged" in again.stdout and len(repo.revisions) == 2 and repo.refs["v1"] == repo.refs["main"]


@pytest.mark.parametrize(
    "token, says", [(None, "no Hub token"), ("hf_" + "x" * 34, "401"), (READ, "403"), (FOREIGN, "may not write")],
)  # fmt: skip
def test_a_token_that_may_not(hub, publish, tmp_path, token, says):
    answer = publish("dataset", small_dataset(tmp_path / "d"), "org/forbidden", token=token)
    assert answer.code == 2 and says in answer.stderr and ("datasets", "org/forbidden") not in hub.repos


def test_killed_in_the_middle_of_an_upload_it_goes_on(hub, publish, client, tmp_path):
    folder = small_dataset(tmp_path / "d", rows=7)
    reached, free = threading.Event(), threading.Event()
    arrived = len(hub.requests("PUT", "/large/"))
    hold = lambda: (reached.set(), free.wait(20))  # noqa: E731
    hub.faults.append(Fault("POST", "org/killed/commit/", before=hold, cut=True))
    command = [
        sys.executable,
        "-c",
        "from protoscore.cli import main; main()",
        "publish",
        "dataset",
        str(folder),
        "--repo-id",
        "org/killed",
    ]
    process = subprocess.Popen(command, env=environment(hub.url, tmp_path / "home"), stdout=subprocess.DEVNULL)
    assert reached.wait(60)
    process.send_signal(signal.SIGKILL)
    process.wait()
    free.set()
    assert set(hub.repos["datasets", "org/killed"].main) == {".gitattributes"}
    assert len(hub.requests("PUT", "/large/")) == arrived + 2
    assert publish("dataset", folder, "org/killed").code == 0
    assert len(hub.requests("PUT", "/large/")) == arrived + 2 and main_of(hub, "org/killed") == files_of(folder)


def test_offline_and_unreachable_are_said(tmp_path):
    folder = small_dataset(tmp_path / "d")
    offline = cli("publish", "dataset", str(folder), "--repo-id", "org/x", env={"HF_TOKEN": WRITE})
    assert offline.returncode == 2 and "HF_HUB_OFFLINE is set" in offline.stderr and offline.stderr.count("\n") == 1
    nowhere = cli(
        "publish", "dataset", str(folder), "--repo-id", "org/x", env=environment("http://127.0.0.1:9", tmp_path / "home")
    )
    assert nowhere.returncode == 2 and "http://127.0.0.1:9 broke" in nowhere.stderr and nowhere.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "options, says",
    [
        (["model", TINY, "--repo-id", "no-owner"], "ORG/NAME"),
        (["model", TINY, "--repo-id", "org/a b"], "--repo-id: Repo id must use alphanumeric"),
        (["model", TINY, "--repo-id", "org/x", "--expect-revision", "main"], "not a revision"),
        (["results", RESULTS, "--repo-id", "org/x"], "--benchmark"),
        (["results", RESULTS, "--repo-id", "org/x", "--benchmark", "org/b"], "--scorer"),
        (
            ["results", RESULTS, "--repo-id", "org/x", "--benchmark", "org/b", "--scorer", "protscore"],
            "did you mean 'protoscore'",
        ),
        (["results", ROOT / "README.md", "--repo-id", "org/x", "--benchmark", "org/b"], "not a results file"),
        (["results", ROOT / "nothing.json", "--repo-id", "org/x", "--benchmark", "org/b"], "protoscore report"),
        (["model", ROOT / "nothing", "--repo-id", "org/x"], "not a folder"),
        (["poem", TINY, "--repo-id", "org/x"], "poem"),
    ],
)
def test_bad_arguments_are_one_line(client, options, says):
    answer = client("publish", *options)
    assert answer.code == 2 and says in answer.stderr and answer.stderr.count("\n") == 1 and "TRACEBACK" not in answer.stderr
