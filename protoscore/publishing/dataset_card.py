"""The card of a dataset: a template, filled from the files and from facts, and from nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

import protoscore
from protoscore.folder import write_text

if TYPE_CHECKING:
    from datasets import Features

SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"), (10_000_000, "1M<n<10M"))


def write_card(
    folder: Path, template: Path, features: Mapping[str, Features], rows: Mapping[str, int], default: str, **facts: Any
) -> None:
    """Write ``README.md`` into a dataset folder. Every field of the template must be filled.

    Args:
        template: Jinja2. It may use ``configs`` and ``dataset_info`` (YAML for the front matter), ``size_category``,
            ``version`` and every one of ``facts``.
        features: the columns of every config, in the order in which the card lists them.
        rows: by ``config/split``, as :class:`protoscore.publishing.datasets.DatasetTables` counted them.
        default: the config that is loaded when none is named.
    """
    held = {key: count for key, count in rows.items() if count}
    environment = Environment(
        loader=FileSystemLoader(template.parent), undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False
    )
    card = environment.get_template(template.name).render(
        configs=configs([config for config in features if splits_of(held, config)], held, default),
        dataset_info=dataset_info(folder, features, held), size_category=size_category(sum(held.values())),
        version=protoscore.__version__, **facts,
    )  # fmt: skip
    write_text(folder / "README.md", card)


def configs(names: list[str], rows: Mapping[str, int], default: str) -> str:
    """``configs:`` of the front matter: which files belong to which split of which config."""
    body = [
        {
            "config_name": name,
            **({"default": True} if name == default else {}),
            "data_files": [{"split": split, "path": f"{name}/{split}-*.parquet"} for split in splits_of(rows, name)],
        }
        for name in names
    ]
    return _yaml({"configs": body})


def dataset_info(folder: Path, features: Mapping[str, Features], rows: Mapping[str, int]) -> str:
    """``dataset_info:`` of the front matter: columns, rows and bytes."""
    names = dict.fromkeys(key.split("/")[0] for key in rows)
    body = [{"config_name": name, "features": features[name]._to_yaml_list(), **_sizes(folder, name, rows)} for name in names]
    return _yaml({"dataset_info": body})


def splits_of(rows: Mapping[str, int], config: str) -> list[str]:
    """The splits of a config, as ``rows`` has them by ``config/split``."""
    return [key.split("/")[1] for key in rows if key.split("/")[0] == config]


def size_category(rows: int) -> str:
    """The Hub's name for so many rows."""
    return next((name for limit, name in SIZES if rows < limit), "n>10M")


def _sizes(folder: Path, config: str, rows: Mapping[str, int]) -> dict[str, Any]:
    """Rows and bytes of the splits as the library wants them: ``num_bytes`` unpacked, ``download_size`` on disk."""
    files = {split: sorted((folder / config).glob(f"{split}-*.parquet")) for split in splits_of(rows, config)}
    unpacked = {split: sum(map(_unpacked, paths)) for split, paths in files.items()}
    return {
        "splits": [{"name": s, "num_bytes": unpacked[s], "num_examples": rows[f"{config}/{s}"]} for s in files],
        "download_size": sum(path.stat().st_size for paths in files.values() for path in paths),
        "dataset_size": sum(unpacked.values()),
    }


def _unpacked(path: Path) -> int:
    facts = pq.read_metadata(path)
    return sum(facts.row_group(group).total_byte_size for group in range(facts.num_row_groups))


def _yaml(body: dict[str, Any]) -> str:
    return yaml.safe_dump(body, sort_keys=False).rstrip()
