"""The networks once more, in plain tensor operations on the stored weights, with preprocessing of its own.

Nothing here comes from the code under test or from a model library, save for ALIGN's EfficientNet and BERT bodies.
"""

from __future__ import annotations

import gzip
import html
import math
import unicodedata
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from safetensors.torch import load_file
from torch.nn import functional as F

CLIP_MEAN, CLIP_STD = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)


def linear(x, w, name):
    return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]


def norm(x, w, name, eps):
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.pow(2).mean(-1, keepdim=True) + eps).sqrt() * w[f"{name}.weight"] + w[f"{name}.bias"]


def attend(query, key, value, heads, mask=None):
    split = lambda x: x.unflatten(-1, (heads, -1)).transpose(0, 1)  # noqa: E731
    query, key, value = map(split, (query, key, value))
    weights = query @ key.transpose(1, 2) / query.shape[-1] ** 0.5
    if mask is not None:
        weights = weights.masked_fill(mask, -torch.inf)
    return (weights.softmax(-1) @ value).transpose(0, 1).flatten(1)


ACTIVATIONS = {
    "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
    "gelu": lambda x: 0.5 * x * (1 + torch.erf(x / 2**0.5)),
    "tanh": lambda x: 0.5 * x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3))),
}


def encoder(x, w, prefix, activation, eps, causal=False, heads=2, layers=2):
    """Pre-norm transformer layers over (tokens, width)."""
    mask = torch.ones(len(x), len(x)).triu(1).bool() if causal else None
    for n in range(layers):
        at = f"{prefix}.encoder.layers.{n}"
        h = norm(x, w, f"{at}.layer_norm1", eps)
        q, k, v = (linear(h, w, f"{at}.self_attn.{part}_proj") for part in "qkv")
        x = x + linear(attend(q, k, v, heads, mask), w, f"{at}.self_attn.out_proj")
        h = norm(x, w, f"{at}.layer_norm2", eps)
        x = x + linear(ACTIVATIONS[activation](linear(h, w, f"{at}.mlp.fc1")), w, f"{at}.mlp.fc2")
    return x


def patches(pixels, kernel, bias=None):
    """Non-overlapping patches through a kernel (width, 3, p, p), row by row."""
    p = kernel.shape[-1]
    cut = pixels.unfold(1, p, p).unfold(2, p, p).permute(1, 2, 0, 3, 4).flatten(2).flatten(0, 1)
    return cut @ kernel.flatten(1).T + (0 if bias is None else bias)


def pixels_of(image, mean, std):
    x = np.asarray(image.convert("RGB"), dtype=np.float64) / 255
    return torch.from_numpy(((x - mean) / std).transpose(2, 0, 1).copy()).float()


def shortest_side(image: Image.Image, size: int) -> Image.Image:
    """Shortest side to ``size``, bicubic, then the square in the middle."""
    image = image.convert("RGB")
    w, h = image.size
    w, h = (size, int(size * h / w)) if w <= h else (int(size * w / h), size)
    left, top = (w - size) // 2, (h - size) // 2
    return image.resize((w, h), Image.Resampling.BICUBIC).crop((left, top, left + size, top + size))


def clip_vectors(folder: Path | dict, image, ids, activation, size=32):
    """Vectors of a picture (its pixels) and of a text (its token ids, the closing one last)."""
    w = folder if isinstance(folder, dict) else load_file(folder / "model.safetensors")
    at = "vision_model.embeddings"
    x = torch.cat([w[f"{at}.class_embedding"][None], patches(image, w[f"{at}.patch_embedding.weight"])])
    x = norm(x + w[f"{at}.position_embedding.weight"], w, "vision_model.pre_layrnorm", 1e-5)
    x = norm(encoder(x, w, "vision_model", activation, 1e-5)[0], w, "vision_model.post_layernorm", 1e-5)
    at = "text_model.embeddings"
    y = w[f"{at}.token_embedding.weight"][ids] + w[f"{at}.position_embedding.weight"][: len(ids)]
    y = norm(encoder(y, w, "text_model", activation, 1e-5, causal=True)[-1], w, "text_model.final_layer_norm", 1e-5)
    return w["visual_projection.weight"] @ x, w["text_projection.weight"] @ y


BYTES = {b: chr(b) for b in [*range(33, 127), *range(161, 173), *range(174, 256)]}
BYTES |= {b: chr(256 + i) for i, b in enumerate(b for b in range(256) if b not in BYTES)}
WORDS = r"'s|'t|'re|'ve|'m|'ll|'d|\p{L}+|\p{N}|[^\s\p{L}\p{N}]+"


@cache
def vocabulary(merges: tuple[tuple[str, str], ...]) -> tuple[dict, dict]:
    """Ranks of pairs and ids of pieces."""
    symbols = list(BYTES.values())
    pieces = [*symbols, *(s + "</w>" for s in symbols), *map("".join, merges)]
    return {pair: i for i, pair in enumerate(merges)}, {piece: i for i, piece in enumerate(pieces)}


def byte_pairs(words: list[str], merges: tuple[tuple[str, str], ...]) -> list[int]:
    """Token ids of words in CLIP's scheme: the pair of lowest rank is joined first."""
    rank, vocab = vocabulary(merges)
    ids = []
    for word in words:
        parts = [BYTES[b] for b in word.encode()]
        parts[-1] += "</w>"
        while len(parts) > 1:
            i, pair = min(enumerate(pairwise(parts)), key=lambda each: rank.get(each[1], len(rank)))
            if pair not in rank:
                break
            parts[i : i + 2] = ["".join(pair)]
        ids += [vocab[part] for part in parts]
    return ids


def clip_ids(text: str, limit: int = 77) -> list[int]:
    """Of the tiny CLIP: its five merges, a text cut before the closing token."""
    import regex

    merges = (("t", "h"), ("th", "e</w>"), ("d", "o"), ("do", "g</w>"), ("i", "n</w>"))
    words = regex.findall(WORDS, unicodedata.normalize("NFC", text).lower())
    first = 2 * len(BYTES) + len(merges)
    return [first, *byte_pairs(words, merges)[: limit - 2], first + 1]


@cache
def hps_weights(path: Path) -> dict:
    """The authors' key names, told in the other ones."""
    w = torch.load(path, weights_only=True)["state_dict"]
    out = {
        "vision_model.embeddings.class_embedding": w["visual.class_embedding"],
        "vision_model.embeddings.patch_embedding.weight": w["visual.conv1.weight"],
        "vision_model.embeddings.position_embedding.weight": w["visual.positional_embedding"],
        "visual_projection.weight": w["visual.proj"].T,
        "text_model.embeddings.token_embedding.weight": w["token_embedding.weight"],
        "text_model.embeddings.position_embedding.weight": w["positional_embedding"],
        "text_projection.weight": w["text_projection"].T,
    }
    names = {
        "visual.ln_pre": "vision_model.pre_layrnorm",
        "visual.ln_post": "vision_model.post_layernorm",
        "ln_final": "text_model.final_layer_norm",
    }
    for tower, to in (("visual.transformer", "vision_model"), ("transformer", "text_model")):
        for n in range(2):
            a, b = f"{tower}.resblocks.{n}", f"{to}.encoder.layers.{n}"
            names |= {f"{a}.ln_1": f"{b}.layer_norm1", f"{a}.ln_2": f"{b}.layer_norm2", f"{a}.mlp.c_fc": f"{b}.mlp.fc1"}
            names |= {f"{a}.mlp.c_proj": f"{b}.mlp.fc2", f"{a}.attn.out_proj": f"{b}.self_attn.out_proj"}
            for kind in ("weight", "bias"):
                for part, value in zip("qkv", w[f"{a}.attn.in_proj_{kind}"].chunk(3)):
                    out[f"{b}.self_attn.{part}_proj.{kind}"] = value
    return out | {f"{b}.{kind}": w[f"{a}.{kind}"] for a, b in names.items() for kind in ("weight", "bias")}


def hps_pixels(image, size=32, antialias=True):
    """Longest side to ``size``, as a tensor; black around; then normalised."""
    x = torch.from_numpy(np.asarray(image.convert("RGB"), dtype=np.float32) / 255).permute(2, 0, 1)
    h, w = (max(1, round(side * size / max(x.shape[1:]))) for side in x.shape[1:])
    if max(x.shape[1:]) != size:
        x = F.interpolate(x[None], (h, w), mode="bicubic", antialias=antialias)[0]
    canvas = torch.zeros(3, size, size)
    top, left = (size - h) // 2, (size - w) // 2
    canvas[:, top : top + h, left : left + w] = x
    return (canvas - torch.tensor(CLIP_MEAN)[:, None, None]) / torch.tensor(CLIP_STD)[:, None, None]


@cache
def open_clip_merges() -> tuple[tuple[str, str], ...]:
    """From OpenCLIP's vocabulary file, read here."""
    import open_clip

    packed = (Path(open_clip.__file__).parent / "bpe_simple_vocab_16e6.txt.gz").read_bytes()
    return tuple(tuple(line.split()) for line in gzip.decompress(packed).decode().split("\n")[1 : 49152 - 256 - 2 + 1])


@cache
def hps_ids(text: str) -> list[int]:
    """Of OpenCLIP. A special token that is spelled out is broken up."""
    import ftfy
    import regex

    text = " ".join(html.unescape(html.unescape(ftfy.fix_text(text))).split()).lower()
    text = text.replace("<start_of_text>", "< start_of_text>").replace("<end_of_text>", "< end_of_text>")
    return [49406, *byte_pairs(regex.findall(WORDS, text), open_clip_merges())[:75], 49407]


def bert_ids(text: str, vocab: dict[str, int], limit: int = 64) -> list[int]:
    """WordPiece: the longest known piece first, and one [UNK] for a word that cannot be made of pieces."""
    import regex

    text = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c) != "Mn")
    ids = []
    for word in regex.findall(r"[\p{P}\p{S}]|\p{Han}|[^\s\p{P}\p{S}\p{Han}]+", text):
        pieces, rest = [], word
        while rest:
            n = next((n for n in range(len(rest), 0, -1) if ("##" * bool(pieces) + rest[:n]) in vocab), 0)
            if not n:
                pieces = ["[UNK]"]
                break
            pieces, rest = [*pieces, "##" * bool(pieces) + rest[:n]], rest[n:]
        ids += [vocab[piece] for piece in pieces]
    return [vocab["[CLS]"], *ids[: limit - 2], vocab["[SEP]"]]


def siglip_ids(text: str, vocab: dict[str, int], limit: int = 64) -> list[int]:
    """One token a character, bytes for those that are unknown; always 64, padded behind the closing token."""
    ids = []
    for letter in text.lower().replace(" ", "▁"):
        ids += [vocab[letter]] if letter in vocab else [vocab[f"<0x{byte:02X}>"] for byte in letter.encode()]
    return [*ids[: limit - 1], vocab["<eos>"], *[vocab["<pad>"]] * limit][:limit]


def naflex_grid(image: Image.Image, patch: int = 8, most: int = 16) -> tuple[int, int]:
    """Rows and columns of patches: the finest common scale at which they are not more than ``most``."""
    scales = np.geomspace(100, 1e-3, 20_000)
    grids = (tuple(max(1, math.ceil(side * scale / patch)) for side in (image.height, image.width)) for scale in scales)
    return next(grid for grid in grids if grid[0] * grid[1] <= most)


def siglip_vectors(folder: Path, pixels, ids):
    """SigLIP: attention pooling over the patches; the text is read off at its last position, padding included.

    NaFlex: patches of any grid, with the grid of positions scaled to it.
    """
    w = load_file(folder / "model.safetensors")
    at, eps = "vision_model.embeddings", 1e-6
    kernel, places = w[f"{at}.patch_embedding.weight"], w[f"{at}.position_embedding.weight"]
    if kernel.ndim == 2:  # NaFlex keeps it flat, with the colours innermost
        kernel = kernel.view(-1, 8, 8, 3).permute(0, 3, 1, 2)
        grid = [side // 8 for side in pixels.shape[1:]]
        square = places.T.view(1, -1, 4, 4)
        places = F.interpolate(square, grid, mode="bilinear", antialias=True)[0].flatten(1).T
    x = patches(pixels, kernel, w[f"{at}.patch_embedding.bias"]) + places
    x = norm(encoder(x, w, "vision_model", "tanh", eps), w, "vision_model.post_layernorm", eps)
    at = "vision_model.head"
    parts = zip(w[f"{at}.attention.in_proj_weight"].chunk(3), w[f"{at}.attention.in_proj_bias"].chunk(3))
    q, k, v = (tokens @ weight.T + b for (weight, b), tokens in zip(parts, (w[f"{at}.probe"][0], x, x)))
    x = linear(attend(q, k, v, 2), w, f"{at}.attention.out_proj")
    h = norm(x, w, f"{at}.layernorm", eps)
    x = (x + linear(ACTIVATIONS["tanh"](linear(h, w, f"{at}.mlp.fc1")), w, f"{at}.mlp.fc2"))[0]
    at = "text_model.embeddings"
    y = w[f"{at}.token_embedding.weight"][ids] + w[f"{at}.position_embedding.weight"]
    y = norm(encoder(y, w, "text_model", "tanh", eps), w, "text_model.final_layer_norm", eps)[-1]
    return x, linear(y, w, "text_model.head")


def cosine(a, b) -> float:
    a, b = a.double(), b.double()
    return float((a @ b) / (a @ a).sqrt() / (b @ b).sqrt())
