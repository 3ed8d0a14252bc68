"""The client of a served ProtoScore, against a small server that speaks vLLM's pooling protocol and runs the tiny model.

The requests and answers are those of vLLM's ``/classify``, ``/tokenize``, ``/detokenize`` and ``/v1/models``; vLLM itself did
not run here.
"""

from __future__ import annotations

import base64
import io
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
import torch
from PIL import Image

from protoscore import backoff
from protoscore.catalog import load
from protoscore.errors import ConfigError, ImageError
from protoscore.modeling import served
from protoscore.modeling.protoscore import ProtoScore
from protoscore.modeling.served import ServedProtoScore, ServerError
from protoscore.schema import Status

KEY = "secret-" + "k" * 12
TEXTS = ["A bird in a meadow.", "Two <|image_pad|> stones <|im_end|>.", "stone " * 300, ""]


def picture(seed: int, width: int = 80, height: int = 64) -> Image.Image:
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8))


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer(200, {"object": "list", "data": [{"id": name} for name in self.server.models]})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.server.key and self.headers.get("Authorization") != f"Bearer {self.server.key}":
            return self.answer(401, {"error": "Unauthorized"})
        if self.server.faults:
            return self.answer(*self.server.faults.pop())
        if body["model"] not in self.server.models:
            return self.answer(404, {"error": {"message": f"The model `{body['model']}` does not exist.", "code": 404}})
        return self.answer(200, getattr(self, self.path.strip("/"))(body))

    def tokenize(self, body):
        tokens = self.server.protoscore.processor.tokenizer(body["prompt"], add_special_tokens=False)["input_ids"]
        return {"count": len(tokens), "max_model_len": 512, "tokens": tokens}

    def detokenize(self, body):
        return {"prompt": self.server.protoscore.processor.tokenizer.decode(body["tokens"])}

    def classify(self, body):
        """As vLLM renders a chat for a template that loops over parts: an image_url becomes a part of type image."""
        (turn,) = body["messages"]
        shown, text = turn["content"]
        image = Image.open(io.BytesIO(base64.b64decode(shown["image_url"]["url"].split(",")[1])))
        processor, model = self.server.protoscore.processor, self.server.protoscore.model
        prompt = processor.apply_chat_template([{"role": "user", "content": [{"type": "image"}, text]}], tokenize=False)
        with self.server.lock, torch.inference_mode():
            value = model(**processor(text=[prompt], images=[[image]], return_tensors="pt")).logits.item()
        if body.get("use_activation", True):
            value = 1 / (1 + np.exp(-value))
        return {
            "id": "classify-1",
            "object": "list",
            "model": body["model"],
            "data": [{"index": 0, "label": "score", "probs": [value], "num_classes": 1}],
        }

    def answer(self, status, body):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture(scope="module")
def local():
    return ProtoScore.from_pretrained()


@pytest.fixture
def server(local, monkeypatch):
    monkeypatch.setattr(backoff.time, "sleep", lambda _: None)
    monkeypatch.delenv(served.KEY_VARIABLE, raising=False)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.protoscore, server.lock, server.models, server.key, server.faults = local, threading.Lock(), ["tiny"], None, []
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    server.url = f"http://127.0.0.1:{server.server_port}"
    yield server
    server.shutdown()
    server.server_close()


def test_it_scores_as_the_local_model_does(server, local):
    """Also special tokens in a text, a text that is too long, modes and shapes of pictures."""
    images = [picture(1), picture(2, 90, 40).convert("CMYK"), picture(3), picture(4, 400, 2)]
    client = ProtoScore.connect(server.url + "/v1/")
    expected = [local.score([i], [t])[0] for i, t in zip(images, TEXTS)]
    np.testing.assert_allclose(client.score(images, TEXTS), expected, atol=1e-4)
    assert client.compare(TEXTS[0], images[0], images[2]) == pytest.approx(
        local.compare(TEXTS[0], images[0], images[2]), abs=1e-4
    )
    scorer = load("scorers", f"protoscore:{server.url}")
    found = scorer.score(images, TEXTS)
    np.testing.assert_allclose([score.value for score in found], expected, atol=1e-4)
    assert [score.truncated for score in found] == [False, False, True, False]
    assert scorer.revision == "served:tiny"


def test_failures_are_states_and_passing_ones_are_tried_again(server):
    client = ServedProtoScore(server.url, concurrency=1)
    server.faults = [(503, {"error": {"message": "busy"}}), (429, {}), (500, b"oops")]
    assert np.isfinite(client.score([picture(1)], TEXTS[:1])).all() and not server.faults
    server.faults = [(400, {"error": {"message": "prompt too long", "type": "BadRequestError", "code": 400}})]
    bad = Image.new("F", (4, 4))
    found = client.score_states([picture(1), bad, picture(2)], TEXTS[:2] + TEXTS[:1])
    assert [score.status for score in found] == [Status.ERROR, Status.INVALID, Status.OK]
    assert "400: prompt too long" in found[0].reason
    with pytest.raises(ImageError):
        client.score([bad], TEXTS[:1])


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>",
        b"[]",
        {"data": []},
        {"data": [{"probs": [0.1, 0.9]}]},
        {"data": [{"probs": [float("nan")]}]},
        {"data": [{"probs": ["x"]}]},
    ],
)
def test_what_is_no_score_is_refused(server, answer):
    client = ServedProtoScore(server.url)
    server.faults = [(200, answer)]
    with pytest.raises(ServerError) as caught:
        client.score([picture(1)], TEXTS[:1])
    assert "\n" not in str(caught.value)


def test_the_key_goes_to_the_server_and_nowhere_else(server, monkeypatch):
    server.key = KEY
    with pytest.raises(ServerError, match="401"):
        ServedProtoScore(server.url).score([picture(1)], TEXTS[:1])
    monkeypatch.setenv(served.KEY_VARIABLE, KEY)
    client = load("scorers", f"protoscore:{server.url}")
    assert client.score([picture(1)], TEXTS[:1])[0].status == Status.OK
    server.key = "another"
    assert KEY not in repr(client.score([picture(1)], TEXTS[:1])) + client.name + client.revision + repr(client.parameters)
    with pytest.raises(ConfigError, match=served.KEY_VARIABLE):
        ServedProtoScore("http://me:word@127.0.0.1:1")


def test_which_model_and_which_server(server):
    server.models = ["a", "b"]
    with pytest.raises(ServerError, match=r"2 models \(a, b\); name one"):
        ServedProtoScore(server.url)
    assert np.isfinite(ServedProtoScore(server.url, model="b").score([picture(1)], TEXTS[:1])).all()
    with pytest.raises(ServerError, match="does not exist"):
        ServedProtoScore(server.url, model="c").score([picture(1)], TEXTS[:1])
    with pytest.raises(ServerError, match="is the server up"):
        ServedProtoScore("http://127.0.0.1:9")
    with pytest.raises(ConfigError, match="not an address"):
        ServedProtoScore("localhost:8000")
