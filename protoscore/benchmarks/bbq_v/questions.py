"""BBQ's questions: read from its own files or the Hub, checked, and as rows of text to ask a model.

A row is one question about two people with three options. What is wrong with a record is said with its file and line; no
record is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from protoscore.asking.labels import fold
from protoscore.benchmarks.bbq_v.taxonomy import domain_of, subdomain_of
from protoscore.errors import DatasetError, ProtoscoreError
from protoscore.sources.records import ListedRecords, Origin, Records, find
from protoscore.sources.rows import Row
from protoscore.sources.tables import read_table
from protoscore.stats.bbq import answer_roles

LETTERS = ("A", "B", "C")
ANSWERS = ("ans0", "ans1", "ans2")
COLUMNS = (
    "example_id", "question_index", "question_polarity", "context_condition", "category", "answer_info",
    "additional_metadata", "context", "question", *ANSWERS, "label",
)  # fmt: skip
FIELDS = ("category", "domain", "subdomain", "stem", "polarity", "condition", "right", "unknown", "target")
ORIGIN = Origin(
    "oskarvanderwal/bbq", "CC BY 4.0",
    "BBQ is on GitHub as nyu-mll/BBQ: give the folder of its .jsonl files, as bbq_v:FOLDER",
)  # fmt: skip


class BBQQuestion(NamedTuple):
    """One question of BBQ. Letters name options by their place: A is ``ans0``."""

    id: str
    category: str  # as BBQ writes it
    domain: str
    subdomain: str
    stem: str  # category and question_index: what was sampled independently
    polarity: str  # neg or nonneg
    condition: str  # ambig or disambig
    context: str
    question: str
    options: dict[str, str]  # letter -> text
    right: str
    unknown: str
    target: str  # the stereotyped person; empty where not exactly one is

    def row(self) -> Row:
        """The question as a stage asks it: text alone, with its options."""
        fields = {name: value for name, value in self._asdict().items() if name != "id"}
        return Row(self.id, (), fields | {"right_text": self.options[self.right]})


def read_question(record: Mapping[str, Any], where: str) -> BBQQuestion:
    """A record of BBQ, checked.

    Args:
        where: file and line, for the message.

    Raises:
        DatasetError: it is not one; the message says why.
    """
    try:
        return _question(record)
    except ProtoscoreError as error:
        raise DatasetError(f"{where}: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:  # another shape than BBQ's
        raise DatasetError(f"{where} is not a question of BBQ ({type(error).__name__}: {error})") from error


def _question(record: Mapping[str, Any]) -> BBQQuestion:
    if missing := [name for name in COLUMNS if record.get(name) is None]:
        raise DatasetError(f"it has no {missing[0]!r}")
    about, metadata = record["answer_info"], record["additional_metadata"]
    if "ans3" in record or set(about) != set(ANSWERS):
        raise DatasetError(f"it has the options {', '.join(sorted(about))}; BBQ has three: {', '.join(ANSWERS)}")
    answers, groups = [list(map(str, about[name])) for name in ANSWERS], list(map(str, metadata["stereotyped_groups"]))
    unknown, target = answer_roles(answers, groups)
    options = {letter: _text(record, name) for letter, name in zip(LETTERS, ANSWERS, strict=True)}
    if len({fold(text) for text in options.values()}) < len(options):
        raise DatasetError(f"two of its options are the same: {list(options.values())}")
    polarity = _one_of(record, "question_polarity", ("neg", "nonneg"))
    condition = _one_of(record, "context_condition", ("ambig", "disambig"))
    right = int(record["label"])
    if right not in range(3) or (right == unknown) != (condition == "ambig"):
        raise DatasetError(f"its label {right} cannot be right: {condition} with the unknown option {unknown}")
    category, domain = _text(record, "category"), domain_of(_text(record, "category"))
    stereotyped = [] if target is None else [answers[target][0], answers[target][-1]]
    subdomain = subdomain_of(domain, [str(metadata.get("subcategory")), *stereotyped])
    stem = f"{category}-{record['question_index']}"
    return BBQQuestion(
        f"{category}-{record['example_id']}", category, domain, subdomain, stem, polarity, condition,
        _text(record, "context"), _text(record, "question"), options, LETTERS[right], LETTERS[unknown],
        "" if target is None else LETTERS[target],
    )  # fmt: skip


def _text(record: Mapping[str, Any], name: str) -> str:
    if not isinstance(record[name], str) or not record[name].strip():
        raise DatasetError(f"its {name!r} is no text: {record[name]!r:.60}")
    return record[name].strip()


def _one_of(record: Mapping[str, Any], name: str, known: tuple[str, ...]) -> str:
    if record[name] not in known:
        raise DatasetError(f"its {name} is {record[name]!r:.60}, not {' or '.join(known)}")
    return str(record[name])


class Questions:
    """Rows of BBQ, from a folder of its ``.jsonl`` files, one such file, or the Hub.

    Raises:
        DatasetError: when a record is not a question of BBQ.
    """

    columns: Sequence[str] = FIELDS
    scenes: bool | None = False
    parent: Path | None = None

    def __init__(self, source: str | None, split: str, parameters: dict[str, Any]):
        self.source, self.parameters = source or ORIGIN.hub_id or "", parameters
        self._given, self._split = source, split

    @cached_property
    def _found(self) -> tuple[Records, list[str]]:
        """The records, and where each stands."""
        if not self._given or not Path(self._given).exists():
            records = find(self._given, self._split, COLUMNS, ORIGIN)
            return records, [f"{self.source}, record {n}" for n in range(len(records))]
        place = Path(self._given)
        files = sorted(place.glob("**/*.jsonl")) if place.is_dir() else [place]
        if not files:
            raise DatasetError(f"{place} holds no .jsonl file. {ORIGIN.help}")
        lines = [(path, line) for path in files for line in read_table(path)]
        listed = ListedRecords([line.values for _, line in lines], lambda record: {}, files)
        return listed, [f"{path}, line {line.number}" for path, line in lines]

    def __len__(self) -> int:
        return len(self._found[0])

    def rows(self, start: int = 0, stop: int | None = None) -> Iterator[Row]:
        records, places = self._found
        stop = len(self) if stop is None else min(stop, len(self))
        for where, record in zip(places[start:stop], records.read(start, stop), strict=True):
            yield read_question(record, where).row()

    def fingerprint(self) -> str | None:
        return self._found[0].fingerprint()

    def contents(self) -> str | None:
        return self._found[0].contents()
