"""From triplets, their pictures and what the filters said to the published configs of ProtoBias."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.progress import track

from protoscore.benchmarks.protobias.schema import DOMAINS, KNOBS, PICTURES, Domain, Triplet, features
from protoscore.benchmarks.protobias.taxonomy import Contrast, Taxonomy
from protoscore.benchmarks.protobias.triplets import read_triplets
from protoscore.errors import UnknownName
from protoscore.filters import read_verdicts
from protoscore.folder import parts, read_manifest, read_rows
from protoscore.publishing.datasets import DatasetTables
from protoscore.schema import Status, content_id

if TYPE_CHECKING:
    from datasets import Features

PAPER_COUNTS: dict[Domain, int] = {"animals": 2932, "demography": 3027, "objects": 2266}  # section 4.1; 8,225 in all
PAPER_TRAIN_PAIRS = 12_000  # section 5
HUMAN_PER_DOMAIN = 300  # paper, section 5: 900 test examples, 300 per domain
EXPECTED = (
    "controls/test", "controls/train", "foils/test", "foils/train", "human/test", "pairs/test", "pairs/train",
    "triplets/test", "triplets/train",
)  # fmt: skip
WHAT = {
    "pairs": "the paper's pair: right but unusual, typical but wrong",
    "controls": "all four pictures: both subjects, right and wrong",
    "foils": "those four, and six right ones with one noun of the text wrong: another thing, place or subject",
    "triplets": "texts only, also of what is not drawn",
    "human": "a pair for human annotation, sides fixed",
    "rejected": "a picture that the filter refused, with its reason",
}


def domain_counts(total: int, domains: Sequence[Domain] = DOMAINS) -> dict[Domain, int]:
    """``total`` triplets over ``domains`` in the paper's proportions."""
    whole = sum(PAPER_COUNTS[domain] for domain in domains)
    counts = {domain: total * PAPER_COUNTS[domain] // whole for domain in domains}
    counts[domains[-1]] += total - sum(counts.values())
    return counts


def with_subjects(taxonomy: Taxonomy, subjects: Sequence[str], domains: Sequence[Domain]) -> Callable[[Contrast], bool]:
    """Whether a contrast shows one of ``subjects``; without any, every contrast does.

    Raises:
        UnknownName: one of them is in no contrast of ``domains``.
    """
    known = {subject for domain in domains for c in taxonomy.contrasts(domain) for subject in (c.non_subject, c.proto_subject)}
    for subject in subjects:
        if subject not in known:
            raise UnknownName("subject", subject, known)
    return lambda contrast: not subjects or contrast.non_subject in subjects or contrast.proto_subject in subjects


def config_features() -> dict[str, Features]:
    """The columns of every published config, in the order of the card."""
    from datasets import Features, Image, Value

    text = {name: Value("string") for name in ("triplet", "cell", "why")}
    return {
        "pairs": features("pairs"),
        "controls": features("controls"),
        "foils": features("foils"),
        "triplets": features("triplets"),
        "human": Features(features("pairs") | {"left": Value("string")}),
        "rejected": Features(text | {"rendition": Value("int32"), "score": Value("int32"), "image": Image()}),
    }


def write_configs(triplets: Path, pictures: Path, filtered: Path, out: Path, train_pairs: int) -> dict[str, Any]:
    """Write the configs ``triplets``, ``pairs``, ``controls``, ``foils``, ``human`` and ``rejected`` to ``out``.

    Args:
        triplets, pictures, filtered: folders of the three stages.
        train_pairs: at most this many training pairs.

    Returns:
        What a manifest says: rows by ``config/split``, pairs for people by domain, what was refused and rejected.
    """
    layout = _Layout(triplets, filtered, DatasetTables(out, config_features()), train_pairs)
    made = read_manifest(pictures, "images")
    generator = made["parameters"]["generator"]
    files = parts(pictures)
    cells = (
        row for path in track(files, description="assembling", disable=len(files) < 10) for row in read_rows([path], batch=16)
    )
    for _, group in groupby(cells, key=lambda row: (row["triplet"], row["rendition"])):
        layout.add(list(group), generator["name"])
    rows = layout.close()
    return {
        "rows": dict.fromkeys(EXPECTED, 0) | rows, "photographic": made["photographic"], "refusals": made["refusals"],
        "filter": read_manifest(filtered)["counts"], "generator": generator,
        "human": dict(Counter(layout.triplets[name].domain for name, _ in sorted(layout.human))),
    }  # fmt: skip


class _Layout:
    """Puts every rendition of a triplet where it belongs."""

    def __init__(self, triplets: Path, filtered: Path, tables: DatasetTables, train_pairs: int):
        self.triplets = {t.id: t for t in read_triplets(triplets)}
        self.verdicts = read_verdicts(filtered)
        self.human = _for_people(self.triplets, self.verdicts.values())
        self._tables, self._train_left = tables, train_pairs

    def add(self, group: list[dict[str, Any]], generator: str) -> None:
        """Kept pairs and controls by split, rejected pictures apart."""
        if any(row["status"] != Status.OK for row in group):
            return  # counted in the manifest, nothing to publish
        triplet, rendition = self.triplets[group[0]["triplet"]], int(group[0]["rendition"])
        for row in group:
            verdict = self.verdicts[row["id"]]
            if not verdict["kept"]:
                why = {"cell": row["cell"], "score": verdict["score"], "why": verdict["reason"], "image": row["image"]}
                self._tables.add("rejected", triplet.split, {"triplet": triplet.id, "rendition": rendition} | why)
        kept = {row["cell"]: row for row in group if self.verdicts[row["id"]]["kept"]}
        if not PICTURES["pairs"].keys() <= kept.keys() or (triplet.split == "train" and not self._train_left):
            return
        self._train_left -= triplet.split == "train"
        base = triplet.model_dump() | {"triplet": triplet.id, "rendition": rendition, "generator": generator}
        for config, names in PICTURES.items():
            if names.keys() <= kept.keys():
                row = base | self._columns({name: kept[picture] for picture, name in names.items()})
                self._tables.add(config, triplet.split, row)
        if (triplet.id, rendition) in self.human:
            # Which side is which is settled here, so that every annotator sees the same order.
            swap = int(content_id("side", triplet.id), 16) % 2 == 1
            pair = self._columns({name: kept[cell] for cell, name in PICTURES["pairs"].items()})
            self._tables.add("human", "test", base | pair | {"left": "adversarial" if swap else "correct"})

    def close(self) -> dict[str, int]:
        for triplet in self.triplets.values():
            self._tables.add("triplets", triplet.split, triplet.model_dump())
        return self._tables.close()

    def _columns(self, cells: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
        columns: dict[str, Any] = {}
        for name, row in cells.items():
            columns |= {f"{name}_image": row["image"], f"{name}_filter_score": self.verdicts[row["id"]]["score"]}
        return columns


def _for_people(triplets: Mapping[str, Triplet], verdicts: Iterable[dict[str, Any]]) -> set[tuple[str, int]]:
    """The pairs to annotate: the same number per domain where there are enough, different triplets first."""
    kept: dict[tuple[str, int], set[str]] = {}
    for row in verdicts:
        if row["kept"]:
            kept.setdefault((row["triplet"], int(row["rendition"])), set()).add(row["cell"])
    chosen: set[tuple[str, int]] = set()
    for domain in DOMAINS:
        pairs = [
            (rendition, content_id("human", triplet), triplet)
            for (triplet, rendition), cells in kept.items()
            if cells >= PICTURES["pairs"].keys() and triplets[triplet].split == "test" and triplets[triplet].domain == domain
        ]
        chosen |= {(triplet, rendition) for rendition, _, triplet in sorted(pairs)[:HUMAN_PER_DOMAIN]}
    return chosen


def card_facts(facts: Mapping[str, Any], triplets: Sequence[Triplet]) -> dict[str, Any]:
    """What the card's template says of a dataset, from its manifest's facts and its triplets."""
    counts = Counter((t.domain, t.knob) for t in triplets)
    held = [(key.split("/"), rows) for key, rows in facts["rows"].items() if rows]
    named = "; ".join(f"{reason} ({count})" for reason, count in sorted(facts["refusals"].items()))
    return {
        "table": [
            {"config": config, "split": split, "rows": rows, "what": what}
            for config, what in WHAT.items() for (its, split), rows in held if its == config
        ],
        "by_domain": [
            {"domain": d, "counts": [counts[d, k] for k in KNOBS], "total": sum(counts[d, k] for k in KNOBS)} for d in DOMAINS
        ],
        "knobs": KNOBS, "filter": facts["filter"], "size": facts["generator"]["parameters"].get("size"),
        "refused_text": f"Refused by the scene generator, in pictures: {named}." if named else "No picture was refused.",
    }  # fmt: skip
