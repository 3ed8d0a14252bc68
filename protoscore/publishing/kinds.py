"""What a folder must be to be published as a dataset, a model, a Space or an ``evaluate`` module."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path

import yaml
from pydantic import ValidationError

from protoscore.errors import ConfigError, DatasetError, first_line
from protoscore.publishing import Kind
from protoscore.publishing.cards import DatasetMetadata, Info, Metadata, ModelMetadata, SpaceMetadata, read_card, typed
from protoscore.publishing.files import File
from protoscore.publishing.leaderboard import EvalYaml


def check(kind: Kind, folder: Path, files: list[File], repo_id: str) -> Metadata:
    """Everything that can be wrong with ``folder`` and be seen from here; return the card's metadata.

    Raises:
        ConfigError: the card or the repository's name.
        DatasetError: the files.
    """
    return CHECKS[kind](folder, files, repo_id)


def check_dataset(folder: Path, files: list[File], repo_id: str) -> DatasetMetadata:
    """Card and Parquet files say the same: every file in one split of one config, columns and rows as announced."""
    metadata = typed(folder, read_card(folder), DatasetMetadata)
    _check_licence(folder, metadata)
    infos = {info.config_name: info for info in metadata.dataset_info}
    taken: dict[str, str] = {}
    for config in metadata.configs:
        info = infos.get(config.config_name)
        if info is None:
            raise ConfigError(f"{folder / 'README.md'}: dataset_info says nothing of the config {config.config_name!r}")
        for part in config.data_files:
            where = f"{config.config_name}/{part.split}"
            found = _matching(folder, files, part.path, where)
            for file in found:
                if file.name in taken:
                    raise ConfigError(f"{folder / 'README.md'}: {file.name} is in {taken[file.name]} and in {where}")
                taken[file.name] = where
            _check_table(folder, found, info, part.split)
    for file in files:
        if file.path.suffix == ".parquet" and file.name not in taken:
            raise ConfigError(f"{folder / 'README.md'}: no config holds {file.name}; name it there or take the file away")
    _check_eval_yaml(folder, metadata)
    return metadata


def check_model(folder: Path, files: list[File], repo_id: str) -> ModelMetadata:
    """A whole checkpoint or a PEFT adapter, in safetensors, with all that its configuration names."""
    metadata = typed(folder, read_card(folder), ModelMetadata)
    _check_licence(folder, metadata)
    names = {file.name for file in files}
    weights = [file for file in files if file.path.suffix == ".safetensors"]
    if not weights:
        raise DatasetError(f"{folder} holds no weights in safetensors; save the model with save_pretrained()")
    for file in weights:
        _check_safetensors(file)
    for index in [file for file in files if file.name.endswith(".safetensors.index.json")]:
        missing = sorted(set(_json(index.path).get("weight_map", {}).values()) - names)
        if missing:
            raise DatasetError(f"{index.name} names {missing[0]}, which is not there")
    if "adapter_config.json" in names:
        _check_adapter(folder, metadata)
    elif "config.json" not in names:
        raise DatasetError(f"{folder} has no config.json; save the model with save_pretrained()")
    else:
        for source in _json(folder / "config.json").get("auto_map", {}).values():
            module = f"{source.rsplit('--', 1)[-1].split('.')[0]}.py"
            if module not in names:
                raise DatasetError(f"config.json names {module}, which is not there")
    return metadata


def check_space(folder: Path, files: list[File], repo_id: str) -> SpaceMetadata:
    """An app that its card names, with its requirements, in Python that compiles."""
    metadata = typed(folder, read_card(folder), SpaceMetadata)
    _check_licence(folder, metadata)
    names = {file.name for file in files}
    needed = [metadata.app_file or "app.py", "requirements.txt"] if metadata.sdk == "gradio" else []
    if metadata.sdk == "gradio" and not metadata.sdk_version:
        raise ConfigError(f"{folder / 'README.md'}: sdk_version is missing; write the Gradio version that the app runs on")
    for name in [*needed, *(["Dockerfile"] if metadata.sdk == "docker" else [])]:
        if name not in names:
            raise DatasetError(f"{folder} has no {name}, which a {metadata.sdk} Space needs")
    for file in files:
        if file.path.suffix == ".py":
            try:
                ast.parse(file.path.read_bytes())
            except (SyntaxError, ValueError) as error:
                raise DatasetError(f"{file.name} is not Python that compiles ({error})") from error
    return metadata


def check_module(folder: Path, files: list[File], repo_id: str) -> SpaceMetadata:
    """A Space that ``evaluate.load(repo_id)`` finds its module in: ``evaluate`` looks for ``<repository name>.py``."""
    metadata = check_space(folder, files, repo_id)
    if "evaluate" not in metadata.tags:
        raise ConfigError(f"{folder / 'README.md'}: tags lack 'evaluate', by which modules are found")
    name = repo_id.rsplit("/", 1)[-1]
    if f"{name}.py" not in {file.name for file in files}:
        raise ConfigError(
            f"{folder} has no {name}.py, and evaluate.load({repo_id!r}) looks for that file; "
            f"publish it under the name of its module, as in --repo-id {repo_id.rsplit('/', 1)[0]}/{folder.resolve().name}"
        )
    return metadata


CHECKS: dict[Kind, Callable[[Path, list[File], str], Metadata]] = {
    Kind.DATASET: check_dataset, Kind.MODEL: check_model, Kind.SPACE: check_space, Kind.MODULE: check_module,
}  # fmt: skip


def _check_licence(folder: Path, metadata: Metadata) -> None:
    link = metadata.license_link
    if link and "://" not in link and not (folder / link).is_file():
        raise ConfigError(f"{folder / 'README.md'}: license_link names {link}, which is not there")


def _matching(folder: Path, files: list[File], patterns: list[str], where: str) -> list[File]:
    """The files of a split, each pattern with at least one."""
    found: dict[str, File] = {}
    for pattern in patterns:
        if pattern.startswith("/") or ".." in pattern.split("/") or "://" in pattern:
            raise ConfigError(f"{folder / 'README.md'}: {where} names {pattern}, which is not in this folder")
        paths = {path for path in folder.glob(pattern) if path.is_file()}
        new = {file.name: file for file in files if file.path in paths}
        if not new:
            raise ConfigError(f"{folder / 'README.md'}: {where} names {pattern}, and no file matches it")
        found |= new
    return list(found.values())


def _check_table(folder: Path, files: list[File], info: Info, split: str) -> None:
    """Columns and rows of a split's Parquet files are the card's."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from datasets import Features

    card = folder / "README.md"
    try:
        announced = Features._from_yaml_list(info.features)
    except Exception as error:  # the library raises what its parser happens to raise
        raise ConfigError(f"{card}: the features of {info.config_name!r} cannot be read ({error})") from error
    tables = [file for file in files if file.path.suffix == ".parquet"]
    rows = 0
    for file in tables:
        try:
            with pq.ParquetFile(file.path) as table:
                found = Features.from_arrow_schema(table.schema_arrow)
                rows += table.metadata.num_rows
        except (pa.ArrowException, OSError, ValueError) as error:
            raise DatasetError(f"{file.name} is not a Parquet file ({first_line(error)})") from error
        if list(found.items()) != list(announced.items()):
            other = [n for n in {**announced, **found} if announced.get(n) != found.get(n)] or ["the order of columns"]
            raise ConfigError(f"{card}: dataset_info and {file.name} differ in {other[0]}")
    said = next((s.num_examples for s in info.splits if s.name == split), None)
    if tables and said != rows:
        raise ConfigError(f"{card}: {info.config_name}/{split} has {rows} rows, and dataset_info says {said or 'nothing'}")


def _check_eval_yaml(folder: Path, metadata: DatasetMetadata) -> None:
    path = folder / "eval.yaml"
    if not path.is_file():
        return
    try:
        benchmark = EvalYaml.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not YAML ({first_line(error)})") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    splits = {(config.config_name, part.split) for config in metadata.configs for part in config.data_files}
    for task in benchmark.tasks:
        if (task.config, task.split) not in splits:
            raise ConfigError(f"{path}: task {task.id!r} names {task.config}/{task.split}, which the card does not have")


def _check_safetensors(file: File) -> None:
    from huggingface_hub import parse_local_safetensors_file_metadata
    from huggingface_hub.errors import SafetensorsParsingError

    try:
        tensors = parse_local_safetensors_file_metadata(file.path).tensors
    except (SafetensorsParsingError, OSError, ValueError, KeyError, TypeError) as error:
        raise DatasetError(f"{file.name} is not a safetensors file ({first_line(error)})") from error
    length = int.from_bytes(file.path.open("rb").read(8), "little")
    end = 8 + length + max((tensor.data_offsets[1] for tensor in tensors.values()), default=0)
    if end != file.size:
        raise DatasetError(f"{file.name} has {file.size} bytes, and its header announces {end}; copy it again")


def _check_adapter(folder: Path, metadata: ModelMetadata) -> None:
    base = str(_json(folder / "adapter_config.json").get("base_model_name_or_path") or "")
    if base.count("/") != 1 or base.startswith((".", "/")) or Path(base).exists():
        raise ConfigError(
            f"adapter_config.json names the base model {base!r}, a folder of this machine; write its Hub id there"
        )
    if base not in (metadata.base_model or []):
        raise ConfigError(f"{folder / 'README.md'}: base_model is not {base}, which adapter_config.json names")


def _json(path: Path) -> dict:
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DatasetError(f"{path} is not JSON ({error})") from error
    if not isinstance(body, dict):
        raise DatasetError(f"{path} holds no JSON object")
    return body
