"""One reader of tables: what people have is read as they mean it; what could be read in two ways is refused with its line."""

from __future__ import annotations

import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from protoscore.errors import DatasetError
from protoscore.sources.tables import read_table, text_of


def values(path):
    return [line.values for line in read_table(path)]


CATS = [{"file": "1.png", "prompt": "a cat"}, {"file": "2.png", "prompt": "a dog"}]
CUBE = "file;prompt\n1.png;ein W\u00fcrfel, rot\n".encode("cp1252")
ODD = "one\u2028two\u0085three\x0cfour"


@pytest.mark.parametrize(
    ("name", "data", "rows"),
    [
        ("comma.csv", b'file,prompt\n1.png,"a cube, red"\n', [{"file": "1.png", "prompt": "a cube, red"}]),
        ("semicolon.csv", CUBE, [{"file": "1.png", "prompt": "ein W\u00fcrfel, rot"}]),
        ("latin.csv", "prompt\ncaf\u00e9\x81\n".encode("latin-1"), [{"prompt": "caf\u00e9\x81"}]),
        ("quoted.csv", b'"a,b,c";prompt\n1;x\n', [{"a,b,c": "1", "prompt": "x"}]),
        ("tabs.csv", b"file\tprompt\n1.png\tred, left\n", [{"file": "1.png", "prompt": "red, left"}]),
        ("excel.csv", b"\xef\xbb\xbfsep=;\r\nfile;prompt\r\n1.png;red\r\n", [{"file": "1.png", "prompt": "red"}]),
        ("quotes.tsv", b'prompt\n"Fall is here" in leaves\n', [{"prompt": '"Fall is here" in leaves'}]),
        ("map.json", b'{"1.png": "a cat", "2.png": "a dog"}', CATS),
        ("list.json", b'["a cat", "a dog"]', [{"value": "a cat"}, {"value": "a dog"}]),
        ("lines.txt", f"{ODD}\nnext\n".encode(), [{"value": ODD}, {"value": "next"}]),
        ("lines.jsonl", '{"prompt": "a\u2028b"}\n\n{"prompt": "c"}'.encode(), [{"prompt": "a\u2028b"}, {"prompt": "c"}]),
    ],
)
def test_what_people_have_is_read_as_they_mean_it(tmp_path, name, data, rows):
    (tmp_path / name).write_bytes(data)
    assert values(tmp_path / name) == rows


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("more.csv", b"file,prompt\n1.png,a red cube, left of a ball\n", "line 2 has 3 cells, the header has 2"),
        ("twice.csv", b"file,prompt,prompt\n1.png,a,b\n", "names the column 'prompt' twice"),
        ("open.csv", b'file,prompt\n1.png,"a cube\n2.png,b\n', "line 2 is not CSV (a quote is not closed)"),
        ("later.csv", b'a,b\n"x\ny",z\n1,"2\n', "line 4 is not CSV (a quote is not closed)"),
        ("within.csv", b'file,prompt\n1.png,"Fall is here" in leaves\n', "line 2 is not CSV"),
        ("return.csv", b"prompt\na\rb\n", "line 2 is not CSV (a carriage return without a line feed)"),
        ("twice.json", b'{"1.png": "a cat", "1.png": "a dog"}', "names '1.png' twice"),
        ("half.tsv", b'file\tprompt\n1.png\t"Welcome sign\n2.png\tb\n', "line 2 has a half-quoted cell"),
        ("nan.json", b'[{"prompt": NaN}]', "NaN is not a value"),
        ("number.json", b'{"prompt": 3}', "the outermost value must be a list"),
        ("entry.json", b"[3]", "entry 1 must be an object"),
        ("broken.jsonl", b'{"prompt": "a"}\n{"prompt": \n', "line 2 is not JSON"),
        ("deep.json", b"[" * 100_000, "cannot be read as json"),
        ("damaged.parquet", b"PAR1 and then nothing", "cannot be read as parquet"),
        ("binary.csv", b"a\x00b\xff", "this is not text"),
        ("nothing.csv", b"file,prompt\n", "has no lines"),
        ("table.xlsx", b"PK", "give a file that ends in one of"),
    ],
)
def test_what_could_be_read_in_two_ways_is_refused_in_one_line(tmp_path, name, data, says):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DatasetError, match=re.escape(says)) as error:
        read_table(tmp_path / name)
    assert name in str(error.value) and "\n" not in str(error.value)


def test_a_folder_and_a_pipe_are_not_tables(tmp_path):
    import os

    (tmp_path / "x.csv").mkdir()
    os.mkfifo(tmp_path / "y.csv")
    for name in ("x.csv", "y.csv"):
        with pytest.raises(DatasetError, match="is not a file"):
            read_table(tmp_path / name)


@pytest.mark.parametrize(("value", "text"), [("0", "0"), (0, "0"), (7.0, "7"), (None, ""), (" a ", "a")])
def test_a_cell_is_the_text_that_it_shows(value, text):
    assert text_of(value, "id") == text


@pytest.mark.parametrize("value", [True, float("nan"), 0.5, ["a"], {"a": 1}, "a\ud83d", b"a"])
def test_what_is_not_text_is_never_written_as_if_it_were(value):
    with pytest.raises(DatasetError):
        text_of(value, "prompt")


@given(
    st.lists(
        st.tuples(st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=12), st.integers()), min_size=1
    )
)
def test_json_lines_and_parquet_say_the_same(tmp_path_factory, rows):
    root = tmp_path_factory.mktemp("same")
    records = [{"prompt": text, "n": n % 2**62} for text, n in rows]
    (root / "a.jsonl").write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records), encoding="utf-8")
    pq.write_table(pa.Table.from_pylist(records), root / "a.parquet")
    assert values(root / "a.jsonl") == values(root / "a.parquet") == records
