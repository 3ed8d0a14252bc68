"""A small Hub on the loopback: the requests that huggingface_hub, datasets, transformers and evaluate really make.

It keeps what the Hub promises and publishing relies on: private repositories, one commit or none, ``parentCommit``, content
addresses, tags, pull requests, collections. It can be told to fail. What the Hub itself validates is not imitated.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

WRITE, READ, FOREIGN = (
    "hf_" + "w" * 34,
    "hf_" + "r" * 34,
    "hf_" + "f" * 34,
)  # may write; may only read; sees nobody's private things
LARGE = (".parquet", ".safetensors", ".png")
NOW = "2026-01-01T00:00:00.000Z"
REPO = r"/(?:api/)?(?:(?P<type>models|datasets|spaces)/)?(?P<id>[\w.-]+/[\w.-]+?)"


def git_oid(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


@dataclass
class Blob:
    data: bytes
    large: bool

    @property
    def oid(self) -> str:
        return hashlib.sha256(self.data).hexdigest() if self.large else git_oid(self.data)

    @property
    def facts(self) -> dict[str, Any]:
        pointer = git_oid(self.oid.encode()) if self.large else self.oid
        lfs = {"lfs": {"oid": self.oid, "sha256": self.oid, "size": len(self.data), "pointerSize": 130}} if self.large else {}
        return {"oid": pointer, "blobId": pointer, "size": len(self.data), **lfs}


@dataclass
class Repo:
    type: str
    id: str
    private: bool
    gated: str | bool = False
    sdk: str | None = None
    revisions: dict[str, dict[str, Blob]] = field(default_factory=dict)  # commit -> its files
    messages: dict[str, str] = field(default_factory=dict)  # commit -> its message
    refs: dict[str, str] = field(default_factory=dict)  # branch, tag or refs/pr/N -> commit
    tags: set[str] = field(default_factory=set)

    def add(self, files: dict[str, Blob], message: str, ref: str = "main") -> str:
        oid = hashlib.sha1(f"{self.id}{len(self.revisions)}{message}".encode()).hexdigest()
        self.revisions[oid], self.messages[oid], self.refs[ref] = files, message, oid
        return oid

    def commit(self, revision: str) -> str | None:
        return self.refs.get(revision, revision if revision in self.revisions else None)

    @property
    def main(self) -> dict[str, Blob]:
        return self.revisions[self.refs["main"]]


@dataclass
class Fault:
    """What happens to the next ``times`` requests that match, instead of an answer."""

    method: str
    path: str  # regular expression
    status: int = 500
    times: int = 1
    headers: dict[str, str] = field(default_factory=dict)
    message: str = "as told"
    before: Callable[[], None] | None = None  # run first
    cut: bool = False  # close the connection without a word
    after: bool = False  # do what was asked, then lose the answer


class Hub(ThreadingHTTPServer):
    """``with Hub() as hub: ... hub.url``."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.repos: dict[tuple[str, str], Repo] = {}
        self.large: dict[str, bytes] = {}  # sha256 -> content that was uploaded, committed or not
        self.collections: dict[str, dict[str, Any]] = {}
        self.faults: list[Fault] = []
        self.log: list[tuple[str, str, str | None]] = []  # method, path, token
        self.lock = threading.RLock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def __enter__(self) -> Hub:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def requests(self, method: str, path: str) -> list[str]:
        return [p for m, p, _ in self.log if m == method and re.search(path, p)]


class Handler(BaseHTTPRequestHandler):
    """One request. Routes are tried from top to bottom."""

    protocol_version = "HTTP/1.1"
    server: Hub

    def handle_any(self) -> None:
        url = urlsplit(self.path)
        self.query = {key: values[-1] for key, values in parse_qs(url.query, keep_blank_values=True).items()}
        path = unquote(url.path)
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.token = (self.headers.get("Authorization") or "").removeprefix("Bearer ") or None
        with self.server.lock:
            self.server.log.append((self.command, path, self.token))
            fault = self._fault(path)
        if fault and self._fail(fault):
            return
        if self.token not in (None, WRITE, READ, FOREIGN):
            return self.refuse(401, "Invalid credentials in Authorization header")
        with self.server.lock:
            for method, pattern, answer in ROUTES:
                found = re.fullmatch(pattern, path)
                if found and self.command in method:
                    lost = fault is not None and fault.after
                    if lost:
                        self.wfile = open("/dev/null", "wb")  # noqa: PTH123, SIM115 - the answer goes nowhere
                    answer(self, **found.groupdict())
                    self.close_connection = self.close_connection or lost
                    return None
        return self.refuse(404, f"no such route: {self.command} {path}")

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = handle_any

    def _fault(self, path: str) -> Fault | None:
        for fault in self.server.faults:
            if fault.times > 0 and fault.method == self.command and re.search(fault.path, path):
                fault.times -= 1
                return fault
        return None

    def _fail(self, fault: Fault) -> bool:
        if fault.before:
            fault.before()
        if fault.cut:
            self.close_connection = True
        elif not fault.after and not fault.before:
            self.refuse(fault.status, fault.message, headers=fault.headers)
            return True
        return fault.cut

    def log_message(self, *_: object) -> None:
        pass

    def send(self, body: bytes, status: int = 200, headers: dict[str, str] | None = None, length: int | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body) if length is None else length), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def json(self, body: Any, status: int = 200) -> None:
        self.send(json.dumps(body).encode(), status, {"Content-Type": "application/json"})

    def refuse(self, status: int, message: str, code: str = "", headers: dict[str, str] | None = None) -> None:
        named = {"X-Error-Code": code} if code else {}
        body = json.dumps({"error": message}).encode()
        self.send(body, status, {"Content-Type": "application/json", "X-Error-Message": message, **named, **(headers or {})})

    def repo(self, type: str | None, id: str, write: bool = False) -> Repo | None:
        """The repository where this token may see it (or write to it); else None, and the refusal is sent."""
        found = self.server.repos.get((type or "models", id))
        if found is None or (found.private and self.token in (None, FOREIGN)):
            self.refuse(401 if self.token is None else 404, "Repository not found", "RepoNotFound")
            return None
        if write and self.token != WRITE:
            self.refuse(403, "you need the write role for this repository")
            return None
        return found

    def files(self, repo: Repo, revision: str) -> tuple[str, dict[str, Blob]] | None:
        commit = repo.commit(revision)
        if commit is None:
            self.refuse(404, f"Invalid rev id: {revision}", "RevisionNotFound")
            return None
        return commit, repo.revisions[commit]

    # -- repositories

    def create(self) -> None:
        asked = json.loads(self.body)
        key = (f"{asked.get('type', 'model')}s", f"{asked['organization']}/{asked['name']}")
        if self.token != WRITE:
            return self.refuse(
                401 if self.token is None else 403, f"you may not create a repository in {asked['organization']}"
            )
        if key in self.server.repos:
            return self.json({"error": "You already created this repo", "url": f"{self.server.url}/{key[1]}"}, 409)
        repo = self.server.repos[key] = Repo(*key, private=asked.get("visibility") == "private", sdk=asked.get("sdk"))
        template = {"README.md": Blob(b"---\ntitle: Space\n---\n", False)} if key[0] == "spaces" else {}
        repo.add({".gitattributes": Blob(b"*.parquet filter=lfs\n", False), **template}, "initial commit")
        return self.json({"url": f"{self.server.url}/{'' if key[0] == 'models' else key[0] + '/'}{key[1]}"})

    def info(self, type: str, id: str, revision: str | None = None) -> None:
        repo = self.repo(type, id)
        if repo is None or (at := self.files(repo, revision or "main")) is None:
            return
        siblings = [{"rfilename": name, **blob.facts} for name, blob in at[1].items()]
        facts = {"id": id, "sha": at[0], "private": repo.private, "gated": repo.gated, "siblings": siblings, "tags": []}
        self.json({**facts, "downloads": 0, "likes": 0, "lastModified": NOW, "createdAt": NOW, "disabled": False})

    def settings(self, type: str, id: str) -> None:
        if repo := self.repo(type, id, write=True):
            asked = json.loads(self.body)
            repo.private = {"private": True, "public": False}.get(asked.get("visibility"), asked.get("private", repo.private))
            repo.gated = asked.get("gated", repo.gated)
            self.json({})

    def list_refs(self, type: str, id: str) -> None:
        if repo := self.repo(type, id):
            tags = [{"name": t, "ref": f"refs/tags/{t}", "targetCommit": repo.refs[t]} for t in sorted(repo.tags)]
            main = {"name": "main", "ref": "refs/heads/main", "targetCommit": repo.refs["main"]}
            self.json({"branches": [main], "tags": tags, "converts": []})

    def tag(self, type: str, id: str, revision: str) -> None:
        if repo := self.repo(type, id, write=True):
            name = json.loads(self.body)["tag"]
            if name in repo.refs:
                return self.refuse(409, "Tag reference exists already")
            repo.refs[name] = repo.commit(revision) or revision
            repo.tags.add(name)
            self.json({})

    # -- uploads

    def preupload(self, type: str, id: str, revision: str) -> None:
        if repo := self.repo(type, id, write=True):
            have = repo.revisions[repo.commit(revision) or repo.refs["main"]]
            self.json({"files": [
                {"path": f["path"], "uploadMode": "lfs" if f["path"].endswith(LARGE) else "regular", "shouldIgnore": False,
                 "oid": have[f["path"]].oid if f["path"] in have else None}
                for f in json.loads(self.body)["files"]
            ]})  # fmt: skip

    def batch(self, type: str | None, id: str) -> None:
        if self.repo(type, id, write=True):
            objects = []
            for asked in json.loads(self.body)["objects"]:
                href = f"{self.server.url}/large/{asked['oid']}"
                here = asked["oid"] in self.server.large
                objects.append({**asked, **({} if here else {"actions": {"upload": {"href": href}, "verify": {"href": href}}})})
            self.json({"objects": objects, "transfer": "basic"})

    def put_large(self, oid: str) -> None:
        if hashlib.sha256(self.body).hexdigest() != oid:
            return self.refuse(400, "the content is not what was announced")
        self.server.large[oid] = self.body
        return self.send(b"")

    def verify(self, oid: str) -> None:
        self.json({}) if oid in self.server.large else self.refuse(404, "not uploaded")

    def commit(self, type: str, id: str, revision: str) -> None:
        repo = self.repo(type, id, write=True)
        if repo is None:
            return None
        lines = [json.loads(line) for line in self.body.splitlines()]
        header = lines[0]["value"]
        head = repo.refs["main"]
        propose = self.query.get("create_pr") == "1"
        if header.get("parentCommit") not in (None, head) and not propose:
            return self.refuse(412, "A commit has happened since. Please refresh and try again.")
        files = dict(repo.main)
        for line in lines[1:]:
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = Blob(base64.b64decode(value["content"]), False)
            elif line["key"] == "lfsFile":
                if value["oid"] not in self.server.large:
                    return self.refuse(400, f"{value['path']} was never uploaded")
                files[value["path"]] = Blob(self.server.large[value["oid"]], True)
            elif line["key"] == "deletedFile":
                files.pop(value["path"], None)
        number = sum(ref.startswith("refs/pr/") for ref in repo.refs) + 1
        oid = repo.add(files, header["summary"], f"refs/pr/{number}" if propose else "main")
        page = f"{self.server.url}/{'' if type == 'models' else type + '/'}{id}"
        answer = {"success": True, "commitOid": oid, "commitUrl": f"{page}/commit/{oid}"}
        return self.json(answer | ({"pullRequestUrl": f"{page}/discussions/{number}"} if propose else {}))

    # -- downloads

    def tree(self, type: str, id: str, revision: str, path: str | None) -> None:
        repo = self.repo(type, id)
        if repo is None or (at := self.files(repo, revision)) is None:
            return
        inside = (path or "").strip("/")
        prefix = f"{inside}/" if inside else ""
        below = {name: blob for name, blob in at[1].items() if name.startswith(prefix)}
        if prefix and not below:
            return self.refuse(404, f"{path} does not exist", "EntryNotFound")
        folders = {
            prefix + "/".join(n[len(prefix) :].split("/")[:i]) for n in below for i in range(1, n[len(prefix) :].count("/") + 1)
        }
        if self.query.get("recursive", "").lower() not in ("true", "1"):
            folders = {f for f in folders if "/" not in f[len(prefix) :]}
            below = {n: b for n, b in below.items() if "/" not in n[len(prefix) :]}
        rows: list[dict[str, Any]] = [
            {"type": "directory", "path": f, "oid": git_oid(f.encode()), "size": 0} for f in sorted(folders)
        ]
        self.json(rows + [{"type": "file", "path": n, **b.facts} for n, b in below.items()])

    def paths(self, type: str, id: str, revision: str) -> None:
        repo = self.repo(type, id)
        if repo is None or (at := self.files(repo, revision)) is None:
            return
        asked = json.loads(self.body)["paths"] if self.body.startswith(b"{") else parse_qs(self.body.decode())["paths"]
        files = [{"type": "file", "path": p, **at[1][p].facts} for p in asked if p in at[1]]
        folders = [p for p in asked if p not in at[1] and any(name.startswith(f"{p}/") for name in at[1])]
        self.json(files + [{"type": "directory", "path": p, "oid": git_oid(p.encode()), "size": 0} for p in folders])

    def resolve(self, type: str | None, id: str, revision: str, path: str) -> None:
        repo = self.repo(type, id)
        if repo is None or (at := self.files(repo, revision)) is None:
            return None
        blob = at[1].get(path)
        if blob is None:
            return self.refuse(404, "Entry not found", "EntryNotFound")
        headers = {"ETag": f'"{blob.oid}"', "X-Repo-Commit": at[0], "Accept-Ranges": "bytes"}
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if self.command == "HEAD" or not found:
            return self.send(blob.data, headers=headers)
        start, end = int(found[1]), min(int(found[2] or len(blob.data)), len(blob.data) - 1)
        headers["Content-Range"] = f"bytes {start}-{end}/{len(blob.data)}"
        return self.send(blob.data[start : end + 1], 206, headers)

    # -- collections

    def collect(self) -> None:
        asked = json.loads(self.body)
        if self.token != WRITE:
            return self.refuse(403, "you may not make collections here")
        name = re.sub(r"[^a-z0-9]+", "-", asked["title"].lower())
        slug = f"{asked['namespace']}/{name}-{hashlib.sha1(self.body).hexdigest()[:6]}"
        for known, found in self.server.collections.items():
            if found["title"] == asked["title"]:
                return self.json({"slug": known, "error": "exists"}, 409)
        self.server.collections[slug] = {
            "slug": slug, "title": asked["title"], "owner": {"name": asked["namespace"]}, "items": [], "lastUpdated": NOW,
            "position": 0, "private": asked["private"], "theme": "green", "upvotes": 0,
        }  # fmt: skip
        return self.json(self.server.collections[slug])

    def collection(self, slug: str) -> None:
        found = self.server.collections.get(slug)
        self.json(found) if found else self.refuse(404, "no such collection")

    def collect_item(self, slug: str) -> None:
        found, item = self.server.collections.get(slug), json.loads(self.body)["item"]
        if found is None:
            return self.refuse(404, "no such collection")
        if any((known["id"], known["type"]) == (item["id"], item["type"]) for known in found["items"]):
            return self.refuse(409, "exists")
        found["items"].append({"_id": f"{len(found['items'])}", "position": len(found["items"]), **item})
        return self.json(found)


API = REPO.replace("(?:api/)?(?:(?P<type>models|datasets|spaces)/)?", "api/(?P<type>models|datasets|spaces)/")
SLUG = r"(?P<slug>[\w.-]+/[\w.-]+)"
Route = tuple[tuple[str, ...], str, Callable[..., None]]
ROUTES: list[Route] = [
    (("POST",), r"/api/repos/create", Handler.create),
    (("POST",), r"/api/validate-yaml", lambda self: self.json({"errors": [], "warnings": []})),
    (("POST",), r"/api/collections", Handler.collect),
    (("GET",), rf"/api/collections/{SLUG}", Handler.collection),
    (("POST",), rf"/api/collections/{SLUG}/items?", Handler.collect_item),
    (("PUT",), rf"{API}/settings", Handler.settings),
    (("GET",), rf"{API}/refs", Handler.list_refs),
    (("POST",), rf"{API}/tag/(?P<revision>.+)", Handler.tag),
    (("POST",), rf"{API}/preupload/(?P<revision>.+)", Handler.preupload),
    (("POST",), rf"{API}/commit/(?P<revision>.+)", Handler.commit),
    (("POST",), rf"{API}/paths-info/(?P<revision>.+)", Handler.paths),
    (("GET",), rf"{API}/tree/(?P<revision>refs/[^/]+/[^/]+|[^/]+)(?P<path>/.*)?", Handler.tree),
    (("GET",), rf"{API}(?:/revision/(?P<revision>.+))?", Handler.info),
    (("POST",), rf"{REPO}\.git/info/lfs/objects/batch", Handler.batch),
    (("PUT",), r"/large/(?P<oid>\w+)", Handler.put_large),
    (("POST",), r"/large/(?P<oid>\w+)", Handler.verify),
    (("GET", "HEAD"), rf"{REPO}/resolve/(?P<revision>refs/[^/]+/[^/]+|[^/]+)/(?P<path>.+)", Handler.resolve),
]
