"""A team's own pictures: who belongs to whom, what is refused by name, and that a hostile name gets nowhere."""

from __future__ import annotations

import csv
import json
import os
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from protoscore.errors import DatasetError
from protoscore.scoring.stage import score_rows
from protoscore.sources.pairing import FILE, TEXT, OwnImages, natural, pair_up
from protoscore.sources.pictures import pictures_below
from tests.controls import Apart, Probe
from tests.controls import table as scored


@pytest.fixture
def folder(tmp_path):
    """Makes pictures of these names and returns their folder."""

    def make(*names: str):
        root = tmp_path / "pictures"
        for number, name in enumerate(names):
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (8, 8), (number, 0, 0)).save(path)
        return root

    return make


def prompts(folder, rows, kind="jsonl"):
    path = folder.parent / f"prompts.{kind}"
    if kind == "csv":
        with path.open("w", newline="") as handle:
            writer = csv.DictWriter(handle, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    elif kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif kind == "txt":
        path.write_text("\n".join(rows) + "\n")
    elif kind == "json":
        path.write_text(json.dumps(rows))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def pairs(pairing):
    return [(p.image, p.prompt) for p in pairing.pairs]


@pytest.mark.parametrize("kind", ["csv", "json", "jsonl", "parquet"])
@pytest.mark.parametrize(("file", "text"), [("file", "prompt"), ("image", "caption"), ("file_name", "text")])
def test_by_file_name_in_every_form(folder, kind, file, text):
    root = folder("b.png", "sub/a.jpg", "left_over.png")
    table = prompts(
        root, [{file: "sub/a.jpg", text: "one"}, {file: "b.png", text: "two"}, {file: "b.png", text: "three"}], kind
    )
    found = pair_up(root, table)
    assert pairs(found) == [("sub/a.jpg", "one"), ("b.png", "two"), ("b.png", "three")]
    assert found.rule == "by file name" and found.unused == ["left_over.png"]


def test_one_to_one_is_in_natural_order_and_one_serves_many(folder):
    root = folder("10.png", "9.png", "1.png")
    found = pair_up(root, prompts(root, ["first", "second", "third"], "txt"))
    assert pairs(found) == [("1.png", "first"), ("9.png", "second"), ("10.png", "third")]
    assert pairs(pair_up(root, prompts(root, ["all"], "txt"))) == [("1.png", "all"), ("9.png", "all"), ("10.png", "all")]
    (root / "1.png").unlink(), (root / "9.png").unlink()
    assert pairs(pair_up(root, prompts(root, ["a", "b"], "txt"))) == [("10.png", "a"), ("10.png", "b")]


def test_a_folder_or_a_file_per_prompt_id(folder):
    root = folder("1/a.png", "1/b.png", "2_0.png", "2-1.png", "2_1/x.png", "deep/3/samples/2.png", "4.png", "4/4_7.png")
    table = prompts(root, [{"id": i, "prompt": f"p{i}"} for i in ("1", "2", "2_1", "3", "4")])
    owners = {p.image: p.id for p in pair_up(root, table).pairs}
    assert owners == {
        "1/a.png": "1", "1/b.png": "1", "2_0.png": "2", "2-1.png": "2", "2_1/x.png": "2_1",
        "deep/3/samples/2.png": "3", "4.png": "4", "4/4_7.png": "4",
    }  # fmt: skip


def test_a_list_holds_its_own_prompts_and_keeps_its_order(folder):
    root = folder("b.png", "a.png")
    listing = root / "list.csv"
    listing.write_text("file,prompt\nb.png,bee\n./a.png,ay\n")
    assert pairs(pair_up(listing)) == [("b.png", "bee"), ("a.png", "ay")]
    (root / "list.txt").write_text("b.png\na.png\n")
    assert pairs(pair_up(root / "list.txt", prompts(root, ["bee", "ay"], "txt"))) == [("b.png", "bee"), ("a.png", "ay")]


@pytest.mark.parametrize(
    ("rows", "kind", "says"),
    [
        (
            [{"file": f"{n}.png", "prompt": "x"} for n in "adefgh"],
            "csv",
            r"5 named file\(s\).*'d.png', 'e.png', 'f.png' \.\.\.",
        ),
        (
            [{"id": "a", "prompt": "x"}, {"id": "q", "prompt": "y"}],
            "csv",
            r"2 picture\(s\) belong to no prompt id.*'b.png', 'c.png'",
        ),
        ([{"id": "abc"[n % 3], "prompt": str(n)} for n in range(4)], "csv", r"1 id\(s\) stand for several prompts: 'a'"),
        (
            [{"id": i, "prompt": i} for i in ("a", "b", "c", "d10", "d9")],
            "csv",
            r"2 prompt id\(s\) have no picture: 'd9', 'd10'",
        ),
        (["one", "two"], "txt", "3 pictures and 2 prompts cannot be paired"),
        ([{"words": "x"}], "csv", "one must be prompt or text or caption"),
        ([{"words": "x"}], "parquet", "'words'.*one must be prompt"),
        ([{"file": "a.png", "prompt": "x"}, {"file": "", "prompt": "lost"}], "csv", "1 prompt.*no file.*'lost'"),
        ([{"file": "a.png", "prompt": "x"}] * 2, "csv", "given twice: 'a.png under x'"),
        ([{"file": "a.png", "prompt": " "}], "csv", "all 1 prompts are empty"),
        ([{"prompt": ["x"]}], "json", "must be text"),
        ({"prompt": "x"}, "json", "must be a list"),
        ([7], "json", "must be an object"),
        ([], "txt", "has no lines"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(folder, rows, kind, says):
    root = folder("a.png", "b.png", "c.png")
    with pytest.raises(DatasetError, match=says):
        pair_up(root, prompts(root, rows, kind))


@pytest.mark.parametrize("name", ["../secret.png", "/etc/passwd", "sub/../../secret.png", "link.png", "linked/secret.png"])
def test_no_name_leads_out_of_the_folder(folder, name):
    root = folder("a.png")
    (root.parent / "out").mkdir()
    for place in (root.parent / "secret.png", root.parent / "out" / "secret.png"):
        Image.new("RGB", (8, 8)).save(place)
    (root / "sub").mkdir()
    table = prompts(root, [{"file": name, "prompt": "x"}])
    (root / "link.png").symlink_to(root.parent / "secret.png")
    (root / "linked").symlink_to(root.parent / "out")
    with pytest.raises(DatasetError, match="outside"):
        pair_up(root, table)


def test_a_link_in_a_folder_is_refused_and_odd_names_are_names(folder):
    root = folder("=cmd|' /C calc'!A0.png", "a\nb.png", "[red].png")
    broken = os.fsdecode(b"caf\xe9.png")
    (root / "[red].png").rename(root / broken)
    names = {p.image for p in pair_up(root, prompts(root, ["x"], "txt")).pairs}
    assert names == {"=cmd|' /C calc'!A0.png", "a\nb.png", "caf\\xe9.png"}
    (root / "link.png").symlink_to(root.parent / "prompts.txt")
    with pytest.raises(DatasetError, match=r"1 picture\(s\) or folder\(s\) are links to outside.*'link.png'"):
        pair_up(root, prompts(root, ["x"], "txt"))


@given(st.lists(st.integers(0, 10**6), unique=True, max_size=8))
def test_natural_order_is_the_order_of_numbers(numbers):
    assert sorted((f"x{n}_y.png" for n in numbers), key=natural) == [f"x{n}_y.png" for n in sorted(numbers)]


@given(data=st.binary(max_size=200), kind=st.sampled_from(["csv", "tsv", "json", "jsonl", "parquet", "txt"]))
def test_any_bytes_as_prompts_end_in_pairs_or_in_one_line(tmp_path_factory, data, kind):
    root = tmp_path_factory.mktemp("fuzz")
    Image.new("RGB", (8, 8)).save(root / "a.png")
    (root / f"p.{kind}").write_bytes(data)
    try:
        assert pair_up(root, root / f"p.{kind}").pairs
    except DatasetError as error:
        assert str(error)


ROWS = [(f"{n}.png", f"a cube, number {n}") for n in range(1, 6)]
PEOPLES = {  # what people have -> its bytes, and options; {root} is the folder of pictures
    "semicolons.csv": "sep=;\nfile;prompt;weight\n" + "".join(f"{f};{p};0,5\n" for f, p in ROWS),
    "tabs.csv": "file\tprompt\n" + "".join(f"{f}\t{p}\n" for f, p in ROWS),
    "windows.csv": ("file;prompt\n" + "".join(f"{f};{p}\n" for f, p in ROWS)).encode("cp1252"),
    "working.csv": "file;prompt\n" + "".join(f"pictures/{f};{p}\n" for f, p in ROWS),
    "absolute.csv": "file;prompt\n" + "".join(f"{{root}}/{f};{p}\n" for f, p in ROWS),
    "map.json": json.dumps(dict(ROWS)),
    "list.json": json.dumps([p for _, p in ROWS]),
}


@pytest.mark.parametrize("name", PEOPLES)
def test_files_of_prompts_that_people_have_are_taken(folder, monkeypatch, name):
    root = folder(*(f for f, _ in ROWS))
    monkeypatch.chdir(root.parent)
    body = PEOPLES[name]
    (root.parent / name).write_bytes(body if isinstance(body, bytes) else body.replace("{root}", str(root)).encode())
    assert pairs(pair_up(Path("pictures"), Path(name))) == ROWS


@pytest.mark.parametrize(
    ("name", "body", "way_out"),
    [
        ("headless.csv", "".join(f'{f},"{p}"\n' for f, p in ROWS), "has no header; write one above: file,prompt"),
        ("three.txt", "a\nb\nc\n", "5 pictures and 3 prompts cannot be paired: give the prompts a column 'file'"),
        ("odd.csv", "img;description\n1.png;a\n", "(perhaps --prompt-column description)"),
        ("order.csv", "img;prompt\n" + "".join(f"{f};{p}\n" for f, p in ROWS[::-1]), "say so with --file-column img"),
    ],
)
def test_files_that_could_be_paired_wrongly_are_refused_with_the_way_out(folder, name, body, way_out):
    root = folder(*(f for f, _ in ROWS))
    (root.parent / name).write_text(body)
    with pytest.raises(DatasetError, match=re.escape(way_out)):
        pair_up(root, root.parent / name)


def test_unusual_columns_are_taken_by_option(folder):
    root = folder("1.png", "2.png")
    (root.parent / "p.csv").write_text("img,description\n2.png,two\n1.png,one\n")
    assert pairs(pair_up(root, root.parent / "p.csv", {FILE: "img", TEXT: "description"})) == [
        ("2.png", "two"),
        ("1.png", "one"),
    ]


def test_an_empty_prompt_among_good_ones_is_a_state_and_no_scorer_sees_it(folder, tmp_path):
    """Of a whole-pair metric and of a two-part one alike."""
    root = folder("1.png", "2.png", "3.png")
    table = prompts(
        root, [{"file": "1.png", "prompt": "one"}, {"file": "2.png", "prompt": " "}, {"file": "3.png", "prompt": None}]
    )
    rows = OwnImages(root, table)
    assert rows.notes == ["2 of 3 prompts are empty; their pictures end as 'invalid'"]
    seen = []

    class Heard(Probe):
        def score(self, images, texts):
            seen.extend(texts)
            return super().score(images, texts)

    score_rows(rows, [Heard(), Apart()], tmp_path / "run")
    found = [(r["status"], r["reason"]) for r in scored(tmp_path / "run")]
    assert found == [("ok", ""), *[("invalid", "empty prompt")] * 2] * 2 and seen == ["one"]


def test_links_inside_are_followed_and_what_is_passed_over_is_told(folder):
    root = folder("a/1.png", "b/2.jpg")
    (root / "linked").symlink_to(root / "a")
    (root / "a" / "loop").symlink_to(root)
    (root / "c.heic").write_bytes(b"x")
    (root / "gone.png").symlink_to(root / "nothing.png")
    (root / "folder.png").mkdir()
    (root / "._1.png").write_bytes(b"x")
    os.mkfifo(root / "pipe.png")
    below = pictures_below(root)
    assert list(below.pictures) == ["a/1.png", "b/2.jpg", "linked/1.png"]
    assert below.passed_over == ["c.heic", "gone.png", "pipe.png"]
    assert below.notes == ["3 file(s) that look like pictures cannot be read here: 'c.heic', 'gone.png', 'pipe.png'"]
    (root / "out").symlink_to(root.parent)
    with pytest.raises(DatasetError, match=r"links to outside of .*'out'"):
        pictures_below(root)


def test_composed_and_decomposed_names_are_the_same_file_and_other_columns_are_fields(folder):
    import unicodedata

    root = folder(unicodedata.normalize("NFD", "caf\u00e9.png"))
    name = unicodedata.normalize("NFC", "caf\u00e9.png")
    rows = OwnImages(root, prompts(root, [{"file": name, "prompt": "x", "group": "b"}])).rows()
    assert [row.fields["group"] for row in rows if row.images[0]] == ["b"]
