"""The evaluate modules as a user has them: loaded from their folders, offline, combined, in batches, and by their pages."""

from __future__ import annotations

import doctest
import importlib.util
import json
import re
import runpy
from pathlib import Path
from types import ModuleType

import evaluate
import numpy as np
import pytest
import yaml

from protoscore.errors import ConfigError, ProtoscoreError
from protoscore.spaces import compute, render
from protoscore.uploads import MAX_BYTES, MAX_ROWS, Column, TableError, read_table, shown
from tests.conftest import ROOT

MODULES = sorted(path.parent for path in (ROOT / "evaluate_modules").glob("*/app.py"))
NAMES = [folder.name for folder in MODULES]
NAN = float("nan")


@pytest.fixture(autouse=True)
def at_root(monkeypatch):
    monkeypatch.chdir(ROOT)  # as the examples of the docs name the folders


def load(folder: Path, config: str | None = None):
    return evaluate.load(str(folder), config, keep_in_memory=True)


def module(folder: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(folder.name, folder / f"{folder.name}.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_there_are_six():
    assert set(NAMES) == {"bbq_bias", "diversity_test", "gmf1", "pairwise_accuracy", "selective_accuracy", "vendi_score"}


@pytest.mark.parametrize("folder", MODULES, ids=NAMES)
def test_space_is_complete_small_and_its_doctests_run(folder):
    result = doctest.testmod(module(folder))
    assert result.attempted >= 3 and result.failed == 0
    source = (folder / f"{folder.name}.py").read_text()
    assert len(source.splitlines()) <= 100
    assert not re.search(r"^import .*,", source, re.M), "evaluate reads one import a line"
    card = yaml.safe_load((folder / "README.md").read_text().split("---")[1])
    assert card["sdk"] == "gradio" and card["sdk_version"] == "6.31.0" and card["app_file"] == "app.py"
    assert "evaluate" in card["tags"] and card["license"] == "apache-2.0" and len(card["short_description"]) <= 60
    assert (folder / "requirements.txt").read_text().split() == ["protoscore", "gradio>=6.31"]


@pytest.mark.parametrize("folder", MODULES, ids=NAMES)
def test_readme_code_runs(folder, capsys):
    names: dict = {}
    for code in re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.S):
        exec(code, names)
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("folder", MODULES, ids=NAMES)
def test_hand_worked_cases_in_one_call_in_batches_and_one_by_one(folder):
    for case in runpy.run_path(str(folder / "tests.py"))["test_cases"]:
        case = dict(case)
        expected, config = case.pop("result"), case.pop("config", None)
        whole, batched, single = (load(folder, config) for _ in range(3))
        columns = {name: case.pop(name) for name in whole.features if name in case}
        results = [whole.compute(**columns, **case)]
        rows = len(next(iter(columns.values())))
        for start in range(0, rows, 2):
            batched.add_batch(**{name: column[start : start + 2] for name, column in columns.items()})
        if set(columns) <= {"predictions", "references"}:
            for prediction, reference in zip(columns["predictions"], columns["references"]):
                single.add(prediction=prediction, reference=reference)
            results.append(single.compute(**case))
        results.append(batched.compute(**case))
        for result in results:
            assert {name: result[name] for name in expected} == pytest.approx(expected, nan_ok=True)
        assert json.loads(json.dumps(results[0])) is not None


def test_combine():
    both = evaluate.combine([load(ROOT / "evaluate_modules" / name) for name in ("gmf1", "selective_accuracy")])
    both.add_batch(predictions=["a", "b"], references=["a", "a"], groups=["x", "y"])
    result = both.compute()
    assert result["gmf1"] == 0.5 and result["coverage"] == 1 and result["selective_accuracy_accuracy"] == 0.5
    prefixed = evaluate.combine([load(ROOT / "evaluate_modules" / "gmf1")], force_prefix=True)
    assert prefixed.compute(predictions=["a"], references=["a"], groups=["x"])["group_macro_f1_gmf1"] == 1


def score_table() -> dict[str, list]:
    """900 items, 300 a domain, of which as many are ordered right as a public study counts for CLIP on its own 900."""
    rng = np.random.default_rng(42)
    rows = []
    for domain, right in (("animal", 79), ("demography", 88), ("object", 93)):
        low = rng.random(300)
        gap = rng.random(300) + 0.01
        sign = np.where(np.arange(300) < right, 1, -1)
        sign[right : right + 5] = 0  # ties, which are failures
        rows += [(low[i] + (sign[i] * gap[i]), low[i], domain) for i in range(300)]
    rng.shuffle(rows)
    correct, adversarial, domains = zip(*rows)
    return {"score_correct": [float(v) for v in correct], "score_adv": [float(v) for v in adversarial], "groups": list(domains)}


def test_published_accuracies_by_domain():
    result = load(ROOT / "evaluate_modules" / "pairwise_accuracy").compute(**score_table())
    found = {domain: round(part["pairwise_accuracy"], 3) for domain, part in result["groups"].items()}
    assert found == {"animal": 0.263, "demography": 0.293, "object": 0.310}
    assert result["ties"] == 15 and result["pairwise_accuracy_n"] == 900
    low, high = result["groups"]["animal"]["pairwise_accuracy_interval"]
    assert low == pytest.approx(0.263 - 1.96 * (0.263 * 0.737 / 300) ** 0.5, abs=0.01) and low < 0.263 < high


def test_options_reach_the_statistics_and_mistakes_are_one_line():
    gmf1 = load(ROOT / "evaluate_modules" / "gmf1")
    rows = {"predictions": ["a", "unspecified"], "references": ["a", "a"], "groups": ["x", "x"]}
    assert gmf1.compute(**rows)["gmf1"] == pytest.approx(2 / 3)
    assert load(ROOT / "evaluate_modules" / "gmf1").compute(**rows, abstention="class")["gmf1"] == pytest.approx(1 / 3)
    assert load(ROOT / "evaluate_modules" / "gmf1").compute(**rows, min_size=3)["small_groups"] == ["x"]
    with pytest.raises(ConfigError, match="abstention is error, left_out or class"):
        load(ROOT / "evaluate_modules" / "gmf1").compute(**rows, abstention="no")
    with pytest.raises(ConfigError, match="not 'left'"):
        load(ROOT / "evaluate_modules" / "diversity_test").compute(votes=["left"], concepts=["apple"])


COLUMNS = [Column("score", "number", ""), Column("answer", "integer", "", False), Column("groups", "names", "", False)]


BAD_TABLES = {
    "empty": [b"", b"score\n"],
    "not UTF-8": [b"\xff\xfe1"],
    "NUL": [b"PK\x03\x04\x00"],
    "no column 'score'": [b"points\n1"],
    "line 2: 'score' is 'abc', not a number": [b"score\nabc"],
    "line 4 has 1 cells, the header has 2": [b"score,answer\n1,2\n\n3"],
    "occurs twice": [b"score,score\n1,2"],
    "not a finite number": [b"score\n1e999"],
    "not a whole number": [b"score,answer\n1,0.5"],
    "is not CSV": [b'score\n"1'],
    "501 characters": [b"score\n" + b"9" * 501],
    "MB": [b"score\n" + b"1" * MAX_BYTES],
    "more than 50,000 rows": [b"score\n" + b"1\n" * (MAX_ROWS + 1)],
    "columns": [b"a," * 5000 + b"score\n" + b"," * 5000 + b"1"],
    "201 different values": [b"score,groups\n" + b"".join(b"1,g%d\n" % i for i in range(201))],
}


@pytest.mark.parametrize(
    "said, data", [(said, data) for said, tables in BAD_TABLES.items() for data in tables], ids=lambda v: str(v)[:20]
)
def test_a_bad_table_gets_one_line(said, data):
    with pytest.raises(TableError, match=re.escape(said)) as error:
        read_table(data, COLUMNS)
    assert "\n" not in str(error.value) and len(str(error.value)) < 200


def test_tables_as_people_have_them():
    table = read_table("\ufeffgroups;score;note\nä; 1.5 ;x\n;nan;\n".encode(), COLUMNS)
    assert table == {"score": [1.5, None], "groups": ["ä", None]}
    assert read_table(b"score\tanswer\n1\t2.0\n", COLUMNS) == {"score": [1.0], "answer": [2]}
    vector = [Column("groups", "names", "", False), Column("embeddings", "vector", "")]
    assert read_table(b"e0,groups,e1\n1,a,2\n", vector) == {"groups": ["a"], "embeddings": [[1.0, 2.0]]}


@pytest.mark.parametrize("seed", range(40))
def test_fuzzed_tables_give_a_result_or_one_line(seed):
    rng = np.random.default_rng(seed)
    data = bytearray((ROOT / "evaluate_modules" / "pairwise_accuracy" / "example.csv").read_bytes())
    for place in rng.integers(0, len(data), 3):
        data[place] = rng.choice(list(b'\x00",;\n\t=-9e<\xff'))
    try:
        table = read_table(bytes(data), [Column("score_correct", "number", ""), Column("groups", "names", "")])
    except ProtoscoreError as error:
        assert "\n" not in str(error)
    else:
        assert len({len(column) for column in table.values()}) == 1


def test_what_is_shown_is_neither_html_nor_a_formula():
    for text in ("=1+1", "+1", "-1", "@x"):
        assert shown(text) == f"'{text}"
    group = "<img src=x onerror=alert(1)>"
    page = render({"x": 0.5, "x_interval": [0.4, 0.6], "x_n": 3, "x_left_out": 0, "worst": group,
                   "groups": {group: {"x": NAN, "x_interval": [NAN, NAN], "x_n": 0, "x_left_out": 1}}})  # fmt: skip
    assert "<img" not in page and "&lt;img" in page and "undefined" in page and "0.400 – 0.600" in page


@pytest.mark.parametrize("folder", MODULES, ids=NAMES)
def test_each_page_computes_its_example(folder, monkeypatch):
    pytest.importorskip("gradio")
    app = runpy.run_path(str(folder / "app.py"), run_name="app")
    assert type(app["page"]).__name__ == "Blocks" and app["page"].analytics_enabled is False
    tables = (
        [("CHOSEN", None, "example.csv"), ("JUDGED", "judged", "judged.csv")]
        if "JUDGED" in app
        else [("COLUMNS", None, "example.csv")]
    )
    for columns, config, example in tables:
        page = render(compute(folder, (folder / example).read_bytes(), app[columns], {}, config))
        assert page.count("<tr>") > 3 and "95 % interval" in page and "nan" not in page.casefold()


@pytest.mark.skipif(not Path("/usr/bin/chromium").exists(), reason="needs Chromium")
def test_a_newcomer_uses_a_page(tmp_path):
    pytest.importorskip("gradio")
    browser_api = pytest.importorskip("playwright.sync_api")
    from protoscore.spaces import launch

    app = runpy.run_path("evaluate_modules/pairwise_accuracy/app.py", run_name="app")
    _, url, _ = launch(app["page"], server_name="127.0.0.1", prevent_thread_lock=True, quiet=True)
    own = tmp_path / "own.csv"
    own.write_text("score_correct;score_adv;groups\n1;2;=cmd()\n3;1;<img src=x onerror=alert(1)>\n")
    alerts, hosts = [], set()
    try:
        with browser_api.sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
            page = browser.new_page()
            page.set_default_timeout(120_000)
            page.on("dialog", lambda dialog: (alerts.append(dialog.message), dialog.dismiss()))
            page.on("request", lambda request: hosts.add(request.url.split("/")[2].split(":")[0]))
            page.goto(url)
            page.get_by_role("button", name="Compute").click()
            page.get_by_text("paste a table or upload a CSV first").wait_for()
            page.get_by_role("button", name="Take the example").click()
            page.locator("#result table").first.wait_for()
            assert "Prototype" not in page.locator("#result").inner_text() and "Kappa" in page.locator("#result").inner_text()
            page.locator("textarea").first.fill("")
            page.locator("input[type=file]").set_input_files(own)
            page.get_by_text("own.csv").wait_for()
            page.get_by_role("button", name="Compute").click()
            page.get_by_text("'=cmd()").wait_for()
            assert "<img src=x" in page.locator("#result").inner_text() and not page.locator("#result img").count()
            browser.close()
    finally:
        app["page"].close()
    assert not alerts and hosts == {"127.0.0.1"}
