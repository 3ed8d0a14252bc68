"""The Hub as publishing needs it: one commit or none, and every refusal said in one line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from protoscore.backoff import patiently
from protoscore.errors import HubError, first_line
from protoscore.publishing.files import File

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from huggingface_hub.errors import HfHubHTTPError

RETRIES = 4
LONGEST_WAIT = 300  # seconds; a server that asks for more is obeyed by stopping
KEPT = (".gitattributes", ".eval_results/")  # what a repository has besides the published folder

T = TypeVar("T")


class Remote(NamedTuple):
    """A repository as it is now."""

    head: str
    private: bool
    gated: bool
    files: dict[str, set[str]]  # name -> the ids of its content (git's, and sha256 for large files)


class FileChanges(NamedTuple):
    """What a commit would do to a repository."""

    new: list[File]
    changed: list[File]
    deleted: list[str]

    def __bool__(self) -> bool:
        return bool(self.new or self.changed or self.deleted)

    def __str__(self) -> str:
        return f"{len(self.new)} new, {len(self.changed)} changed, {len(self.deleted)} deleted"


class Repository:
    """One repository of the Hub. The token is what huggingface_hub finds; it is never shown.

    Every method raises ``HubError`` where the Hub refuses or cannot be reached.
    """

    def __init__(self, repo_id: str, repo_type: str):
        from huggingface_hub import HfApi, get_token

        if get_token() is None:
            raise HubError("there is no Hub token here; log in with: hf auth login (or set HF_TOKEN)")
        self.id, self.type = repo_id, repo_type
        self.api: HfApi = HfApi(library_name="protoscore")
        self.endpoint: str = self.api.endpoint

    def look(self, revision: str | None = None) -> Remote | None:
        """What is there now or was at ``revision``; None where nothing is, or nothing that the token may see."""
        from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

        def info() -> Any:
            try:
                return self.api.repo_info(self.id, repo_type=self.type, revision=revision, files_metadata=True)
            except (RepositoryNotFoundError, RevisionNotFoundError) as error:
                if error.response.status_code == 404:
                    return None
                raise

        found = self._ask(info)
        if found is None:
            return None
        files = {f.rfilename: {f.blob_id, f.lfs.sha256 if f.lfs else f.blob_id} for f in found.siblings or []}
        return Remote(found.sha, bool(found.private), bool(found.gated), files)

    def create(self, sdk: str | None) -> None:
        """An empty private repository."""
        self._ask(lambda: self.api.create_repo(self.id, repo_type=self.type, private=True, exist_ok=True, space_sdk=sdk))

    @property
    def page(self) -> str:
        """The address of the repository."""
        return f"{self.endpoint}/{'' if self.type == 'model' else self.type + 's/'}{self.id}"

    def commit(self, change: FileChanges, message: str, description: str, parent: str, pull_request: bool) -> tuple[str, str]:
        """Send ``change`` on top of ``parent``, all of it or nothing; return the new revision and where to see it.

        Files that the Hub already holds, from an upload that broke, are not sent again.
        """
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        def send() -> Any:  # operations are used up by a commit and made again for another try
            adds = [CommitOperationAdd(file.name, str(file.path)) for file in [*change.new, *change.changed]]
            deletes = [CommitOperationDelete(name) for name in change.deleted]
            return self.api.create_commit(
                self.id, [*adds, *deletes], commit_message=message, commit_description=description,
                repo_type=self.type, parent_commit=parent, create_pr=pull_request,
            )  # fmt: skip

        info = self._ask(send)
        return info.oid, info.pr_url or self.page

    def tag_at(self, tag: str) -> str | None:
        """The revision that ``tag`` names, or None."""
        refs = self._ask(lambda: self.api.list_repo_refs(self.id, repo_type=self.type))
        return next((ref.target_commit for ref in refs.tags if ref.name == tag), None)

    def tag(self, tag: str, revision: str) -> None:
        self._ask(lambda: self.api.create_tag(self.id, tag=tag, revision=revision, repo_type=self.type))

    def settings(self, **asked: Any) -> None:
        """Change what the owner settles: ``gated="auto"`` (readers agree first), ``private=False``."""
        self._ask(lambda: self.api.update_repo_settings(self.id, repo_type=self.type, **asked))

    def add_to_collection(self, collection: str, private: bool) -> str:
        """Put the repository into a collection (a slug with ``/``, or a title of the owner's, made if needed)."""
        slug = collection
        if "/" not in collection:
            made = self._ask(
                lambda: self.api.create_collection(collection, namespace=self.id.split("/")[0], private=private, exists_ok=True)
            )
            slug = made.slug
        item: Any = self.type
        return self._ask(lambda: self.api.add_collection_item(slug, self.id, item, exists_ok=True)).url

    def _ask(self, call: Callable[[], T]) -> T:
        """``call`` with patience for a busy server, and its errors as one line."""
        with _plain_errors(self):
            return patiently(call, _wait, RETRIES + 1)


def difference(files: list[File], remote: Remote, mirror: bool, seen: Callable[[File], None]) -> FileChanges:
    """What turns ``remote`` into ``files``. With ``mirror``, what the folder does not have goes away."""
    new, changed = [], []
    for file in files:
        ids = remote.files.get(file.name)
        if ids is None:
            new.append(file)
        elif not _same(file, ids):
            changed.append(file)
        seen(file)
    names = {file.name for file in files}
    gone = [name for name in remote.files if name not in names and not name.startswith(KEPT)] if mirror else []
    return FileChanges(new, changed, gone)


def _same(file: File, ids: set[str]) -> bool:
    """Whether the Hub's content ids are this file's: sha256 for large files, git's own for the others."""
    return (file.sha256() if any(len(i) == 64 for i in ids if i) else file.git_oid()) in ids


def _wait(error: Exception, attempt: int) -> int | None:
    """Seconds until another try makes sense, which are announced, or None."""
    from huggingface_hub.errors import HfHubHTTPError

    if not isinstance(error, HfHubHTTPError) or error.response.status_code not in (429, 503):
        return None
    asked = error.response.headers.get("Retry-After", "")
    wait = int(asked) if asked.isdigit() else 2**attempt
    if wait > LONGEST_WAIT:
        return None
    print(f"the Hub is busy and asks for {wait} s of patience", file=sys.stderr)
    return wait


@contextmanager
def _plain_errors(repository: Repository) -> Iterator[None]:
    import httpx2
    from huggingface_hub import get_token
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

    try:
        yield
    except (OSError, ValueError, RuntimeError, httpx2.HTTPError) as error:
        cause: BaseException = error
        while isinstance(cause, RuntimeError) and cause.__cause__ is not None:  # the upload threads wrap what went wrong
            cause = cause.__cause__
        if isinstance(cause, HfHubHTTPError):
            message = _refusal(cause, repository)
        elif isinstance(cause, OfflineModeIsEnabled):
            message = "HF_HUB_OFFLINE is set, so nothing can be published; unset it"
        elif isinstance(cause, httpx2.HTTPError):
            message = (
                f"the connection to {repository.endpoint} broke ({type(cause).__name__}); nothing was published. "
                "Check the network, or HF_ENDPOINT; the same command goes on, and files that arrived are not sent again"
            )
        elif isinstance(cause, json.JSONDecodeError):
            message = f"{repository.endpoint} gave an answer that is none of the Hub's; check HF_ENDPOINT"
        elif isinstance(cause, ValueError):
            message = f"the Hub does not take this: {' '.join(str(cause).split())}"
        elif isinstance(cause, OSError):
            message = f"{cause.filename or 'a file'} cannot be read any more ({cause.strerror or cause}); nothing was published"
        else:
            raise
        token = get_token()
        raise HubError(message.replace(token, "***") if token else message) from error


def _refusal(error: HfHubHTTPError, repository: Repository) -> str:
    """What a status of the Hub means for somebody who publishes, and what to do."""
    status = error.response.status_code
    said = f"{status}: {first_line(error.server_message).rstrip('.')}" if error.server_message else f"{status}"
    name = f"{repository.type} {repository.id}"
    known = {
        400: f"the Hub does not take this ({said}); nothing was published",
        401: f"the Hub does not know this token ({said}); log in again with: hf auth login (or set HF_TOKEN)",
        402: f"the Hub asks for a paid plan to make {name} ({said})",
        403: f"this token may not write to {name} ({said}); take one with the write role, or another --repo-id",
        404: f"there is no {name} that this token can see ({said}); check --repo-id and the token",
        429: f"the Hub has had too many requests ({said}); nothing was published, and the same command goes on later",
    }
    if status in (409, 412):
        return (
            f"{name} was changed by somebody else in the meantime ({said}); nothing was published. "
            "Look at what is there, and run the command again"
        )
    if status >= 500:
        return f"the Hub has a fault of its own ({said}); the same command goes on later, and what arrived is not sent again"
    return known.get(status, f"the Hub refuses ({said})")
