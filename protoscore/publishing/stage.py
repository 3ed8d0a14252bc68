"""Stage: a folder in, one commit on the Hub out. Checked before anything is sent; private unless asked otherwise."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from rich.progress import Progress

import protoscore
from protoscore.errors import ConfigError, HubError, ProtoscoreError
from protoscore.folder import write_text
from protoscore.publishing import Kind
from protoscore.publishing.cards import Metadata, SpaceMetadata
from protoscore.publishing.files import RECORD, TRAINERS_OWN, File, build_id, collect, matches
from protoscore.publishing.hub import FileChanges, Remote, Repository, difference
from protoscore.publishing.kinds import check
from protoscore.publishing.leaderboard import check_repo_id, entry

WORTH_A_BAR = 50_000_000  # bytes
REVISION = re.compile(r"[0-9a-f]{7,40}")


class Options(NamedTuple):
    """How to publish. The defaults show nothing to anybody and overwrite nothing."""

    public: bool = False
    pull_request: bool = False
    tag: str | None = None
    collection: str | None = None
    expect_revision: str | None = None  # the revision that may be replaced; else the one last published from the folder
    overwrite: bool = False  # replace whatever is there
    benchmark: str | None = None  # of results: ORG/NAME or ORG/NAME@REVISION
    scorer: str | None = None  # of results: whose, where the file has several


class Parcel(NamedTuple):
    """A checked folder, ready to be sent."""

    kind: Kind
    folder: Path
    repo_id: str
    files: list[File]
    metadata: Metadata | None
    build: str  # sha256 that names what was built

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def message(self) -> str:
        return f"{self.kind.value} build {self.build[:12]} by protoscore {protoscore.__version__}"

    @property
    def description(self) -> str:
        licence = f", licence {', '.join(self.metadata.license)}" if self.metadata else ""
        return f"Build sha256 {self.build}; {len(self.files)} files, {self.size} bytes{licence}."


class Published(NamedTuple):
    """What became of it."""

    url: str
    revision: str | None
    change: FileChanges
    private: bool
    collection: str | None = None


@contextmanager
def pack(kind: Kind, folder: Path, repo_id: str, options: Options) -> Iterator[Parcel]:
    """Collect and check what would be published. No request is made.

    Raises:
        ConfigError: the card, the name or the options are wrong.
        DatasetError: the files are not what their kind needs, or must not be shown.
    """
    from huggingface_hub import get_token

    check_repo_id("--repo-id", repo_id)
    if options.pull_request and (options.tag or options.public or options.collection):
        raise ConfigError("a pull request changes nothing yet: --tag, --public and --collection go without --pull-request")
    if options.expect_revision and not REVISION.fullmatch(options.expect_revision):
        raise ConfigError(
            f"--expect-revision {options.expect_revision!r} is not a revision; it has 7 to 40 digits of 0-9 and a-f"
        )
    if kind != Kind.RESULTS:
        files = collect(folder, get_token(), TRAINERS_OWN if kind == Kind.MODEL else ())
        metadata = check(kind, folder, files, repo_id)
        with _progress("reading", files) as seen:
            build = build_id(folder, files, seen)
        yield Parcel(kind, folder, repo_id, files, metadata, build)
        return
    if not options.benchmark:
        raise ConfigError("results need --benchmark ORG/NAME: the dataset on the Hub that they were measured on")
    made = entry(folder, options.benchmark, options.scorer)
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "results.yaml"
        path.write_text(made.text, encoding="utf-8")
        yield Parcel(kind, folder, repo_id, [File(made.name, path, path.stat().st_size)], None, made.digest)


def publish(parcel: Parcel, options: Options) -> Published:
    """Send ``parcel`` in one commit, then tag it, show it and put it into its collection.

    The repository becomes what the folder is: files that the folder no longer has are deleted by the same commit
    (evaluation results and ``.gitattributes`` stay). What is there already is not sent again, so a broken publication
    is finished by the same call.

    Raises:
        HubError: the Hub refuses or cannot be reached, or it holds a revision that nobody said may be replaced.
    """
    repository = Repository(parcel.repo_id, parcel.kind.repo_type)
    with _quiet_library():
        remote = _open(repository, parcel, options)
        with _progress("comparing", parcel.files) as seen:
            change = difference(parcel.files, remote, mirror=parcel.kind != Kind.RESULTS, seen=seen)
        if not options.pull_request:
            _refuse_newer(repository, parcel, options, remote, change)
        revision, url = remote.head, repository.page
        at = _tag(repository, options, change, remote)
        if parcel.metadata and parcel.metadata.gated and not remote.gated and not options.pull_request:
            repository.settings(gated="auto")  # before anything that is to be gated can be seen
        if change:
            revision, url = repository.commit(change, parcel.message, parcel.description, remote.head, options.pull_request)
        if options.pull_request:
            return Published(url, None, change, remote.private)
        _remember(repository, parcel, revision)
        if options.tag and at is None:
            repository.tag(options.tag, revision)
        private = remote.private and not options.public
        if remote.private and options.public:
            repository.settings(private=False)  # only now that everything is there
        shown = repository.add_to_collection(options.collection, not options.public) if options.collection else None
        return Published(url, revision, change, private, shown)


def _open(repository: Repository, parcel: Parcel, options: Options) -> Remote:
    """The repository as it is; made, and remembered as ours, where it does not exist yet."""
    remote = repository.look()
    if remote is not None:
        return remote
    if parcel.kind == Kind.RESULTS or options.pull_request:
        raise HubError(
            f"there is no {repository.type} {repository.id} that this token can see; publish it first, or check --repo-id"
        )
    repository.create(parcel.metadata.sdk if isinstance(parcel.metadata, SpaceMetadata) else None)
    remote = repository.look()
    if remote is None:
        raise HubError(f"{repository.type} {repository.id} exists and this token cannot see it; check the token, or --repo-id")
    _remember(repository, parcel, remote.head)
    return remote


def _refuse_newer(repository: Repository, parcel: Parcel, options: Options, remote: Remote, change: FileChanges) -> None:
    """Stop where files would be replaced or deleted that are not as this folder was last published."""
    touched = [*change.deleted, *(file.name for file in change.changed)]
    if options.overwrite or not touched:
        return
    if options.expect_revision and remote.head.startswith(options.expect_revision):
        return
    known = None if options.expect_revision else _record(parcel).get(repository.page)
    # Other files may have come in the meantime (results, a merged proposal); what would be lost is what counts.
    then = remote if known == remote.head else repository.look(known) if known else None
    newer = [name for name in touched if then is None or then.files.get(name) != remote.files[name]]
    if newer:
        told = options.expect_revision or known
        why = f"and not at {told[:12]}" if told else "and nothing says that it came from this folder"
        raise HubError(
            f"{repository.type} {repository.id} is at revision {remote.head[:12]} {why}; {newer[0]} there would be lost. "
            f"Look at it, then add --expect-revision {remote.head[:12]} to replace it, or --pull-request to propose the change"
        )


def _tag(repository: Repository, options: Options, change: FileChanges, remote: Remote) -> str | None:
    """Where the wanted tag is already.

    Raises:
        HubError: it names another revision; a tag is never moved.
    """
    at = repository.tag_at(options.tag) if options.tag else None
    if at is not None and (change or at != remote.head):
        raise HubError(
            f"the tag {options.tag} of {repository.id} already names {at[:12]} and is not moved; choose another --tag"
        )
    return at


def _record(parcel: Parcel) -> dict[str, str]:
    """Page of a repository -> the revision that was last published there from this folder."""
    try:
        body = json.loads(_record_path(parcel).read_text(encoding="utf-8"))
        return body if isinstance(body, dict) else {}
    except (OSError, ValueError):
        return {}


def _record_path(parcel: Parcel) -> Path:
    return (parcel.folder if parcel.folder.is_dir() else parcel.folder.parent) / RECORD


def _remember(repository: Repository, parcel: Parcel, revision: str) -> None:
    record = _record(parcel) | {repository.page: revision}
    try:
        write_text(_record_path(parcel), json.dumps(record, indent=1, sort_keys=True) + "\n")
    except ProtoscoreError:  # a folder that is only readable can be published all the same
        print(f"{parcel.folder} cannot be written; next time add --expect-revision {revision[:12]}", file=sys.stderr)


@contextmanager
def _progress(what: str, files: list[File]) -> Iterator[Callable[[File], None]]:
    """A bar over the bytes of ``files`` where there is a terminal and enough of them to wait for."""
    total = sum(file.size for file in files)
    if total < WORTH_A_BAR or not sys.stderr.isatty():
        yield lambda file: None
        return
    with Progress(transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda file: bar.advance(task, file.size)


@contextmanager
def _quiet_library() -> Iterator[None]:
    """Errors are said once and by us; the client's progress bars are for terminals."""
    from huggingface_hub.utils import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars, logging

    level, hide_bars = logging.get_verbosity(), not (sys.stderr.isatty() or are_progress_bars_disabled())
    logging.set_verbosity_error()
    if hide_bars:
        disable_progress_bars()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if hide_bars:
            enable_progress_bars()


def listing(parcel: Parcel) -> list[str]:
    """The files and their sizes, a line each, and the sum; of results, the figures themselves."""
    width = max(len(file.name) for file in parcel.files)
    lines = [f"  {file.name:<{width}}  {file.size:>13,} bytes" for file in parcel.files]
    if parcel.kind == Kind.RESULTS:
        lines += parcel.files[0].path.read_text(encoding="utf-8").splitlines()
    lines.append(f"{len(parcel.files)} files, {parcel.size:,} bytes; {parcel.message}")
    kept = _of_the_trainer(parcel)
    if kept:
        lines.append(f"not sent, since only the training needs it: {', '.join(kept[:4])}{', ...' if len(kept) > 4 else ''}")
    return lines


def _of_the_trainer(parcel: Parcel) -> list[str]:
    """The files and folders of a model that stay here."""
    if parcel.kind != Kind.MODEL:
        return []
    return sorted(
        path.name
        for path in parcel.folder.iterdir()
        if matches(path.name, TRAINERS_OWN) or (path.is_dir() and matches(f"{path.name}/", TRAINERS_OWN))
    )


def report(parcel: Parcel, done: Published, options: Options) -> list[str]:
    """What to tell the user, a line each."""
    lines: list[str] = []
    if options.pull_request:
        return [f"proposed: {done.url} ({done.change})" if done.change else "nothing to propose: the same is there already"]
    verb = "published" if done.change else "unchanged"
    lines.append(
        f"{verb}: {done.url} ({done.change}), {'private' if done.private else 'public'}, revision {(done.revision or '')[:12]}"
    )
    if options.collection:
        lines.append(f"in the collection {done.collection}")
    if parcel.kind == Kind.MODULE and done.private:
        lines.append("evaluate.load sends no token and cannot read a private Space; add --public when it may be seen")
    return lines
