"""What chat servers answer beside an answer: failures inside a 200, odd counts, other parameters, packed bodies, proxies."""

from __future__ import annotations

import asyncio
import gzip
import json
import shutil
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from protoscore.asking.protocol import load_protocol
from protoscore.asking.reply import parse
from protoscore.errors import ConfigError
from protoscore.schema import Status
from protoscore.vlms import Reply, Request
from protoscore.vlms._wire import LONGEST_BODY
from protoscore.vlms.chat import create

ALIGNMENT = load_protocol("fairjudge/alignment")
QUESTION = Request(ALIGNMENT.render({"text": "A bird."}), (), ALIGNMENT.schema())
OK = '{"score": 3}'


def completion(content: str | None = OK, finish: str = "stop", usage: object = None, **message: object) -> dict:
    said = {"role": "assistant", "content": content, **message}
    body = {"id": "1", "created": 1, "model": "m", "choices": [{"index": 0, "finish_reason": finish, "message": said}]}
    return body if usage is None else body | {"usage": usage}


class Canned(BaseHTTPRequestHandler):
    """Answers what ``answer(body) -> (status, headers, bytes or JSON)`` says, and remembers what it was sent."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.seen.append({"path": self.path, **body})
        status, headers, said = self.server.answer(body)
        data = said if isinstance(said, bytes) else json.dumps(said).encode()
        self.send_response(status)
        for name, value in {"content-length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def serve(monkeypatch):
    """``serve(answer, context)``: a server; its ``url`` and ``seen``."""
    monkeypatch.delenv("PROTOSCORE_API_KEY", raising=False)
    started = []

    def start(answer, context=None):
        server = ThreadingHTTPServer(("127.0.0.1", 0), Canned)
        server.answer, server.seen = answer, []
        if context:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        server.url = f"http{'s' if context else ''}://127.0.0.1:{server.server_address[1]}/v1"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        started.append(server)
        return server

    yield start
    for server in started:
        server.shutdown()


def ask(judge, times: int = 1) -> list[Reply]:
    async def all_of_them():
        replies = [(await judge.reply([QUESTION]))[0] for _ in range(times)]
        await judge.close()
        return replies

    return asyncio.run(all_of_them())


@pytest.mark.parametrize(
    ("status", "body", "failure"),
    [
        (200, completion(finish="error"), "transient"), (200, {"detail": "overloaded"}, "transient"),
        (200, completion(""), "transient"), (200, completion(None), "transient"), (200, {"choices": []}, "transient"),
        (200, {"error": {"code": "502", "message": "bad gateway"}}, "transient"), (200, {"error": {"code": 400}}, "permanent"),
        (200, {"error": "overloaded"}, "transient"), (200, {"error": {"code": "429"}}, "transient"),
        (200, [1], "transient"), (200, b"<html>", "transient"), (503, {"error": {}}, "transient"),
        (429, {"error": {}}, "transient"),
        (429, {"error": {"code": "insufficient_quota", "message": "You exceeded your current quota"}}, "fatal"),
        (401, {"error": {"message": "bad key"}}, "fatal"), (400, {"error": {"message": "picture too large"}}, "permanent"),
    ],
)  # fmt: skip
def test_an_upstream_failure_is_no_reply(serve, status, body, failure):
    (reply,) = ask(create(f"m@{serve(lambda _: (status, {}, body)).url}"))
    assert reply.failure == failure and reply.reason and "\n" not in reply.reason and not reply.text


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 5, "completion_tokens": "5"}, (5, 5)),
        ({"prompt_tokens": None, "completion_tokens": "many"}, (None, None)),
        ({"prompt_tokens": -5, "completion_tokens": 10**30}, (None, None)),
        ({"prompt_tokens": True, "completion_tokens": 7.0}, (None, 7)),
        ({"prompt_tokens": [1], "completion_tokens": {}}, (None, None)), ("none", (None, None)), ({}, (None, None)),
    ],
)  # fmt: skip
def test_usage_that_is_no_count_is_unknown(serve, usage, tokens):
    (reply,) = ask(create(f"m@{serve(lambda _: (200, {}, completion(usage=usage))).url}", price_in=1, price_out=1))
    assert (reply.text, reply.tokens_in, reply.tokens_out, reply.failure) == (OK, *tokens, "")
    assert (reply.cost is None) == (None in tokens)


def test_what_is_no_answer_is_kept_as_it_came(serve):
    call = {"id": "c", "type": "function", "function": {"name": "grade", "arguments": OK}}
    for body, kept in (
        (completion(None, "tool_calls", tool_calls=[call]), "grade"), (completion(None, reasoning_content=f"Maybe {OK}"),
        "Maybe"),
        (completion("", "stop", reasoning="Hm."), "Hm."), (completion(None, "length", reasoning="Hm"), "Hm"),
    ):  # fmt: skip
        (reply,) = ask(create(f"m@{serve(lambda _, body=body: (200, {}, body)).url}"))
        assert kept in reply.text and not reply.failure
        assert parse(ALIGNMENT, reply.text, reply.finish_reason).state == Status.INVALID
    (reply,) = ask(create(f"m@{serve(lambda _: (200, {}, completion(None, refusal='No.'))).url}"))
    assert parse(ALIGNMENT, reply.text, reply.finish_reason).state == Status.REFUSED


def test_what_a_server_does_not_take_is_left_out(serve):
    def picky(body):
        for name, said in (
            ("response_format", "json_schema is not supported"), ("temperature",
            "'temperature' does not support 0 with this model"),
            ("max_tokens", "'max_tokens' is not supported; use 'max_completion_tokens' instead"),
        ):  # fmt: skip
            if name in body:
                return 400, {}, {"error": {"message": f"Unsupported value: {said}"}}
        return 200, {}, completion()

    server = serve(picky)
    replies = ask(create(f"m@{server.url}", max_tokens=99), 5)
    assert [reply.failure for reply in replies] == ["transient"] * 3 + ["", ""]
    assert server.seen[-1]["max_completion_tokens"] == 99 and "temperature" not in server.seen[-1]


@pytest.mark.parametrize("model", ["@cf/meta/x", "name@20240620", "org/model", "a@b@c"])
def test_a_models_name_may_hold_an_at_sign(serve, model):
    server = serve(lambda _: (200, {}, completion()))
    judge = create(f"{model}@{server.url}")
    assert judge.name == f"chat:{model}" and ask(judge)[0].text == OK and server.seen[0]["model"] == model


def test_packed_bodies_are_read_and_bounded_after_unpacking(serve):
    small, bomb = (gzip.compress(json.dumps(completion(text)).encode()) for text in (OK, "x" * 50_000_000))
    (reply,) = ask(create(f"m@{serve(lambda _: (200, {'content-encoding': 'gzip'}, small)).url}"))
    assert reply.text == OK
    (reply,) = ask(create(f"m@{serve(lambda _: (200, {'content-encoding': 'gzip'}, bomb)).url}"))
    assert reply.finish_reason == "too_long" and len(bomb) < 100_000 and len(reply.text) <= LONGEST_BODY
    assert parse(ALIGNMENT, reply.text, reply.finish_reason).state == Status.INVALID
    (reply,) = ask(create(f"m@{serve(lambda _: (200, {'content-encoding': 'br'}, small)).url}"))
    assert reply.failure == "fatal" and "br" in reply.reason


def test_the_proxy_of_the_environment_is_used(serve, monkeypatch):
    proxy = serve(lambda _: (200, {}, completion()))
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
    assert ask(create("m@http://judge.invalid/v1"))[0].text == OK
    assert proxy.seen[0]["path"].startswith("http://judge.invalid/v1")


def test_a_certificate_that_cannot_be_trusted_is_named_and_not_tried_again(serve, tmp_path):
    if not shutil.which("openssl"):
        pytest.skip("needs openssl to make a certificate")
    files = ["-keyout", str(tmp_path / "key"), "-out", str(tmp_path / "cert")]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", *files]
    subprocess.run(made, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert", tmp_path / "key")
    (reply,) = ask(create(f"m@{serve(lambda _: (200, {}, completion()), context).url}"))
    assert reply.failure == "fatal" and "certificate" in reply.reason and not reply.sent


def test_a_refused_connection_is_fatal_at_first_and_passing_later(serve):
    (reply,) = ask(create("m@http://127.0.0.1:9/v1"))
    assert reply.failure == "fatal" and "http://127.0.0.1:9/v1" in reply.reason and not reply.sent
    server = serve(lambda _: (200, {"connection": "close"}, completion()))
    judge = create(f"m@{server.url}")
    assert ask(judge)[0].text == OK
    server.shutdown()
    server.server_close()
    (reply,) = ask(judge)
    assert reply.failure == "transient" and not reply.sent


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"price_in": "0,4"}, "price_in=0,4"), ({"price_out": float("nan")}, "price_out"), ({"price_in": -1}, "price_in"),
        ({"temperature": "warm"}, "temperature"), ({"concurrency": 0}, "concurrency"), ({"max_tokens": 2.5}, "max_tokens"),
        ({"timeout": True}, "timeout"),
    ],
)  # fmt: skip
def test_an_option_that_is_no_number_is_refused_before_the_first_call(options, said):
    with pytest.raises(ConfigError, match=said):
        create("m@http://127.0.0.1:9/v1", **options)


def test_a_key_with_a_line_end_is_named(monkeypatch):
    monkeypatch.setenv("PROTOSCORE_API_KEY", "sk-secret-key\n")
    with pytest.raises(ConfigError, match="PROTOSCORE_API_KEY") as caught:
        create("m@http://127.0.0.1:9/v1")
    assert "sk-secret" not in str(caught.value)
