"""People's votes: what is shown to them, what is refused, and what is made of what they say."""

from __future__ import annotations

import csv
import math

import numpy as np
import pytest
from PIL import Image

from protoscore.benchmarks.diversity import Diversity
from protoscore.benchmarks.diversity.people import beside_people
from protoscore.benchmarks.diversity.set_scores import Drawing, score_sets
from protoscore.benchmarks.diversity.template import Template, write_tasks
from protoscore.benchmarks.diversity.votes import read_votes
from protoscore.errors import ConfigError, DatasetError
from protoscore.generators.scene import SceneGenerator
from protoscore.images import make_pictures
from protoscore.stats.agreement import krippendorff_alpha
from tests.diversity.test_comparison import PAIRS, drawn, measured

TASKS = ["task,pair,left,right,number,size,expected"]


def sheet(path, lines, header="task,annotator,choice,count_left,count_right"):
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


@pytest.fixture
def asked(tmp_path):
    """Twelve tasks on twelve concepts, sides alternating, and one with a known answer."""
    rows = [f"t{n},p{n},{'a' if n % 2 else 'b'},{'b' if n % 2 else 'a'},0,8," for n in range(12)] + ["g,golden,x,y,0,8,left"]
    path = tmp_path / "tasks.csv"
    path.write_text("\n".join(TASKS + rows) + "\n")
    return path


@pytest.fixture
def sets():
    values = np.concatenate([drawn(["red"], 96)])
    return score_sets(
        [measured("a", 8, drawn(["red", "green", "blue", "black"], 96)), measured("b", 8, values)], PAIRS, Drawing(8, 1)
    )


def test_votes_are_read_in_terms_of_models_and_not_of_sides(tmp_path, asked, sets):
    lines = []
    for who in ("ann", "ben", "cem"):
        for n in range(12):
            side = "left" if n % 2 else "right"  # where model a stands
            choice = {0: "equal", 1: "unable"}.get(n, side) if who != "cem" or n > 3 else side
            lines.append(f"t{n},{who},{choice},{4 if side == 'left' else 1},{1 if side == 'left' else 4}")
    lines += ["g,ann,left,8,1", "g,ben,equal,,", "g,cem,unable,,"]
    found = beside_people(read_votes([sheet(tmp_path / "v.csv", lines)], asked), sets, [p.group for p in PAIRS])
    outcome = found.comparison.outcomes["a", "b"]
    # the first concept is equal by two of three; the second is told by one person only; all others are a's
    assert outcome.tolist() == [0.0, 1.0] + [1.0] * 10
    test = found.comparison.tests["a", "b"].test
    assert (test.wins, test.losses, test.ties) == (11, 0, 1) and found.comparison.models == ["a", "b"]
    assert (found.votes, found.annotators, found.unable, found.equal, found.no_mode) == (39, 3, 2, 1, 0)
    assert (found.golden.value, found.golden.n) == (pytest.approx(1 / 3), 3)
    rater = found.autoraters["judged_count"]  # a has more values in every set
    assert rater.accuracy.value == 1 and rater.accuracy.n == 11 and rater.accuracy_clear.value == 1
    codes = {"left": 1, "equal": 0, "right": -1, "unable": np.nan}
    table = [[codes[line.split(",")[2]] for line in lines[:36] if line.split(",")[1] == who] for who in ("ann", "ben", "cem")]
    by_task = [[None if code != code else code for code in row] for row in zip(*table, strict=True)]
    assert found.alpha.value == pytest.approx(krippendorff_alpha(np.array(by_task, object), "ordinal").value)


def test_one_rater_and_nobody_who_can_tell(tmp_path, asked, sets):
    groups = [p.group for p in PAIRS]
    alone = beside_people(read_votes([sheet(tmp_path / "a.csv", ["t2,ann,left,3,1"])], asked), sets, groups)
    assert math.isnan(alone.alpha.value) and alone.comparison.tests["a", "b"].test.losses == 1
    unable = beside_people(
        read_votes([sheet(tmp_path / "u.csv", [f"t{n},ann,unable,," for n in range(12)])], asked), sets, groups
    )
    test = unable.comparison.tests["a", "b"].test
    assert (test.wins, test.losses, test.ties, test.p) == (0, 0, 0, 1.0) and unable.unable == 12
    assert math.isnan(unable.autoraters["judged_count"].accuracy.value)


def test_what_cannot_be_a_vote_is_refused_in_one_line(tmp_path, asked):
    for lines, words in [
        (["t99,ann,left,1,1"], "unknown tasks: 't99'"), (["t1,ann,up,1,1"], "line 2: the choice 'up' is none"),
        (["t1,ann,left,9,1"], "a count of 9 does not fit a set of 8"), (["t1,ann,left,many,1"], "'many' is not a number"),
        (["t1,ann,left,1,1", "t1,ann,right,1,1"], "answered twice by one annotator: 'ann on t1'"),
    ]:  # fmt: skip
        with pytest.raises(DatasetError, match=words) as caught:
            read_votes([sheet(tmp_path / "v.csv", lines)], asked)
        assert "\n" not in str(caught.value)
    with pytest.raises(DatasetError, match="no column 'choice'"):
        read_votes([sheet(tmp_path / "v.csv", ["t1,left"], "task,answer")], asked)
    one_sided = [f"t{n},ann,left,1,1" for n in range(12)] + [f"t{n},ben,{'left' if n else 'right'},1,1" for n in range(12)]
    assert read_votes([sheet(tmp_path / "v.csv", one_sided)], asked).one_sided == ["ann"]


def test_tasks_say_nothing_of_the_models_and_golden_ones_are_among_them(tmp_path):
    wanted = list(Diversity(source="golden-scenes").pictures())
    assert len(wanted) == 240 and {one.fields["expected"] for one in wanted} == {"1", "8"}
    gold = tmp_path / "gold"
    make_pictures(wanted[:48], SceneGenerator(48), gold, {"benchmark": "diversity"})
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    lines = ["file_name,id"]
    for n in range(96):
        Image.new("RGB", (20, 20), (n, 0, 0)).save(pictures / f"secret-model-{n}.png", pnginfo=None)
        lines.append(f"secret-model-{n}.png,{n}")
    (pictures / "metadata.csv").write_text("\n".join(lines) + "\n")
    models = [measured("secret-a", 8), measured("secret-b", 8)]
    found = score_sets(models, PAIRS, Drawing(8, 1))
    sources = dict.fromkeys(found.models, str(pictures))
    out = tmp_path / "out"
    assert write_tasks(found, models, sources, out, Template(limit=9, golden=str(gold))) == 9 + 4
    key = list(csv.DictReader((out / "tasks.csv").open()))
    sides = [row["left"] for row in key if not row["expected"]]
    assert {"secret-a", "secret-b"} == set(sides) and sorted(row["expected"] for row in key)[9:11] == ["equal", "equal"]
    page = (out / "page" / "index.html").read_text()
    assert "secret" not in page and "golden" not in page and not list((out / "page").rglob("*secret*"))
    first = key[0]["task"]
    shown = sorted((out / "page" / "pictures" / first).iterdir())
    assert len(shown) == 16 and all(not Image.open(path).info for path in shown)
    plain = next(row for row in key if not row["expected"])
    place = {pair.id: n for n, pair in enumerate(PAIRS)}[plain["pair"]]
    for side in ("left", "right"):  # each side shows the very pictures of its set
        m = found.models.index(plain[side])
        reds = {Image.open(p).getpixel((0, 0))[0] for p in (out / "page" / "pictures" / plain["task"]).glob(f"{side}-*")}
        assert reds == set(found.members[m, place, 0].tolist())
    with pytest.raises(ConfigError, match="holds tasks already"):
        write_tasks(found, models, sources, out, Template(limit=9))
    other = tmp_path / "again"
    write_tasks(found, models, sources, other, Template(limit=9, golden=str(gold)))
    assert (other / "tasks.csv").read_bytes() == (out / "tasks.csv").read_bytes()
