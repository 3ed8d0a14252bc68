"""Sets of rows: who is in them, that they share nothing where they need not, and what is asked about them."""

from __future__ import annotations

import io
import json

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from protoscore.errors import ConfigError, DatasetError
from protoscore.sources import open_rows
from protoscore.sources.sets import Sets, Way, draw_sets
from tests.conftest import cli


def picture(number: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (4, 4), (number % 256, number // 256, 7)).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.fixture
def folder(tmp_path):
    """Two concepts, two models, nine pictures each, mixed in the list."""
    root = tmp_path / "pictures"
    root.mkdir()
    lines = ["file_name,concept,model,text"]
    for number in range(36):
        concept, model = ("apple", "tree")[number % 2], ("a", "b")[number // 2 % 2]
        (root / f"{number}.png").write_bytes(picture(number))
        lines.append(f"{number}.png,{concept},{model},An image of one {concept}.")
    (root / "metadata.csv").write_text("\n".join(lines) + "\n")
    return root


@given(st.integers(2, 30), st.integers(2, 9), st.one_of(st.none(), st.integers(1, 12)), st.integers(0, 99))
def test_sets_share_no_member_as_far_as_there_are_enough(n, size, number, seed):
    drawn = draw_sets(range(n), size, number, seed)
    fit = n // size
    assert len(drawn) == ((fit if number is None else number) if fit else 0)
    assert all(len(set(one)) == size and set(one) <= set(range(n)) for one in drawn)
    first = [member for one in drawn[:fit] for member in one]
    assert len(set(first)) == len(first)
    assert drawn == draw_sets(range(n), size, number, seed)


def test_sets_agree_in_their_columns_and_hold_the_pictures_of_their_members(folder):
    rows = open_rows(folder)
    held = {row.id: row for row in rows.rows()}
    sets = list(Sets(rows, Way(("concept", "model"), 4)).rows())
    assert len(sets) == 8 and len({one.id for one in sets}) == 8
    for one in sets:
        members = [held[name] for name in one.fields["members"]]
        assert tuple(member.images[0] for member in members) == one.images
        assert {(m.fields["concept"], m.fields["model"]) for m in members} == {(one.fields["concept"], one.fields["model"])}
        assert one.fields["text"] == f"An image of one {one.fields['concept']}." and "file_name" not in one.fields
    assert len({name for one in sets for name in one.fields["members"]}) == 32
    other = list(Sets(rows, Way(("concept", "model"), 4, seed=1)).rows())
    assert [one.images for one in other] != [one.images for one in sets]


def test_two_sets_side_by_side_are_of_one_concept_and_two_models(folder):
    rows = open_rows(folder)
    held = {row.id: row.fields for row in rows.rows()}
    sets = list(Sets(rows, Way(("concept", "model"), 4, 2, beside="model")).rows())
    assert [(one.fields["concept"], one.fields["first"], one.fields["second"]) for one in sets] == [
        ("apple", "a", "b"), ("apple", "a", "b"), ("tree", "a", "b"), ("tree", "a", "b"),
    ]  # fmt: skip
    for one in sets:
        assert [held[name]["model"] for name in one.fields["members"]] == ["a"] * 4 + ["b"] * 4 and len(one.images) == 8


def test_what_cannot_be_a_set_is_one_line(folder):
    rows = open_rows(folder)
    for way, error, words in [
        (Way(("concept", "model"), 10), DatasetError, r"apple / a has 9 picture.*set of 10 \(4 groups"),
        (Way(("concept", "style"), 4), DatasetError, "has no 'style'"),
        (Way((), 4), ConfigError, "at least one"), (Way(("concept",), 1), ConfigError, "2 rows or more"),
        (Way(("concept",), 4, beside="model"), ConfigError, "must be among: concept"),
        (Way(("concept", "text"), 4, beside="text"), DatasetError, "two values of 'text'"),
    ]:  # fmt: skip
        with pytest.raises(error, match=words):
            Sets(rows, way)


def test_a_judge_is_asked_about_sets_from_the_command_line(folder, tmp_path):
    script = tmp_path / "script.jsonl"
    script.write_text(json.dumps({"reply": {"values": "red", "count": 1}}) + "\n")
    told = [
        "judge",
        "diversity/attribute_count",
        "--items",
        folder,
        "--judge",
        f"scripted:{script}",
        "--field",
        "attribute=concept",
    ]
    out = tmp_path / "run"
    done = cli(*told, "--sets", "concept,model", "--set-size", "4", "--out", out)
    assert done.returncode == 0, done.stderr
    table = pq.read_table(out / "decisions.parquet").to_pylist()
    assert len(table) == 8 and {len(json.loads(row["members"])) for row in table} == {4} and table[0]["size"] == 4
    few = cli(*told, "--sets", "concept,model", "--set-size", "10", "--out", tmp_path / "no")
    assert few.returncode == 2 and len(few.stderr.strip().splitlines()) == 1 and "set of 10" in few.stderr


def test_an_embedding_needs_no_prompts(folder, tmp_path):
    done = cli("embed", "--images", folder, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    table = pq.read_table(tmp_path / "run" / "embeddings.parquet")
    assert table.num_rows == 36 and set(table["status"].to_pylist()) == {"ok"}
