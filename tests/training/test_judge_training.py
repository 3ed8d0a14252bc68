"""The recipes of scene-judge-tiny run: sight, then judge, two steps each, as its makers run them; and their parts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from protoscore.asking.protocol import load_protocol
from protoscore.vlms.local import TINY, create, read_taught
from tests.training.support import script
from training.embedded.tasks import TASKS, TRAINING_ONLY

pytest.importorskip("trl")
STEPS = ["--max_steps", "2", "--per_device_train_batch_size", "4", "--dataloader_num_workers", "0", "--save_strategy", "no"]
SIGHT = ["--pictures", "8", "--texts", "1500"]


def train(name: str, *options: str, after: list[str] | None = None) -> int:
    """The script in this process: importing its libraries anew would cost more than the training."""
    return script(f"training.embedded.{name}", *options, *STEPS, *(after or []))


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A judge that sees a little, and one that was asked a little from it."""
    folder = tmp_path_factory.mktemp("judge")
    assert train("train_scene_sight", "--recipe", "scene_sight", *SIGHT, "--output_dir", str(folder / "sight")) == 0
    judge = ["--recipe", "scene_judge", "--start", str(folder / "sight"), "--questions", "64", "--reading_steps", "1"]
    assert train("train_scene_judge", *judge, "--output_dir", str(folder / "judge")) == 0
    return folder


def test_both_halves_load_as_a_judge(trained):
    for half in ("sight", "judge"):
        assert type(create(str(trained / half), max_tokens=4).model).__name__ == "Qwen3VLForConditionalGeneration"


def test_a_judge_is_taught_more_from_where_it_stands_and_says_what_it_was_taught(trained, tmp_path):
    more = ["--recipe", "scene_judge_more", "--start", str(trained / "judge"), "--questions", "64"]
    assert train("train_scene_judge", *more, "--output_dir", str(tmp_path)) == 0
    before, after = create(str(trained / "judge"), max_tokens=4), create(str(tmp_path), max_tokens=4)
    assert after.tokenizer.get_vocab() == before.tokenizer.get_vocab() and after.revision != before.revision
    assert after.taught == {task: load_protocol(task).version for task in TASKS}
    assert create(str(trained / "sight")).taught is None  # any other model may be asked anything
    assert [read_taught(folder)["questions"] for folder in (trained / "judge", tmp_path)] == [2 * 4, 2 * 4 + 2 * 4]


def test_new_words_start_as_the_mean_of_what_they_were_spelled_by():
    """And nothing else of a judge changes: the likelihoods of all older tokens keep their order and distances."""
    torch = pytest.importorskip("torch")
    from tokenizers import AddedToken
    from transformers import AutoTokenizer

    from training.embedded.judge_model import widen

    judge = create(max_tokens=4)
    before = AutoTokenizer.from_pretrained(TINY)
    ids = judge.processor.tokenizer("A dog in a green meadow.", return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        old = judge.model(input_ids=ids).logits
    judge.processor.tokenizer.add_tokens([AddedToken(", green dog", normalized=False)])
    widen(judge.model, before, judge.processor, {", green dog": "green dog"})
    (new,) = set(judge.processor.tokenizer.get_vocab()) - set(before.get_vocab())
    table, spelled = judge.model.get_input_embeddings().weight, before(" green dog")["input_ids"]
    assert len(spelled) == 2
    assert torch.equal(table[judge.processor.tokenizer.convert_tokens_to_ids(new)], table[spelled].mean(0))
    with torch.inference_mode():
        logits = judge.model(input_ids=ids).logits
    assert torch.allclose(logits[..., : old.shape[-1]], old, atol=1e-5) and logits.shape[-1] == old.shape[-1] + 1


def test_one_token_holds_a_sentence_of_a_prompt_a_label_or_an_answer(trained):
    tokenizer = create(str(trained / "judge"), max_tokens=4).processor.tokenizer
    for text in (
        '{"score": 3}',
        '{"value": "red"}',
        '", "count": 8}',
        '"unspecified"',
        "Answer with one JSON object and nothing else, like this:\n",
        "Description: ",
    ):
        assert len(tokenizer.tokenize(text)) == 1, text
    assert len(tokenizer.tokenize("A dog in a green meadow.")) == 7


def test_a_start_that_is_not_there_is_one_line(tmp_path, capsys):
    options = ["--recipe", "scene_judge", "--start", str(tmp_path / "nowhere"), "--output_dir", str(tmp_path / "out")]
    assert train("train_scene_judge", *options) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("training.embedded.train_scene_judge: ")
    assert not (tmp_path / "out").exists()


def test_muon_turns_a_matrix_by_its_polar_factor_and_leaves_the_rest_to_adamw():
    """Five Newton-Schulz rounds against the singular value decomposition; vectors against torch's AdamW."""
    torch = pytest.importorskip("torch")
    from training.embedded.muon import Muon, orthogonal

    generator = torch.Generator().manual_seed(0)
    for shape in ((128, 384), (384, 128)):
        matrix = torch.randn(*shape, generator=generator)
        u, _, v = torch.linalg.svd(matrix, full_matrices=False)
        found = orthogonal(matrix)
        assert float(torch.linalg.svdvals(found).min()) > 0.6 and float(torch.linalg.svdvals(found).max()) < 1.3
        assert float((found * (u @ v)).sum() / found.norm() / (u @ v).norm()) > 0.97
    model = torch.nn.Linear(16, 8)
    alone = torch.nn.Parameter(model.bias.detach().clone())
    optimizer = Muon(model, 0.1, 0.01, lambda name, weight: weight.ndim == 2, weight_decay=0.1)
    plain = torch.optim.AdamW([alone], lr=0.01, betas=(0.95, 0.98), weight_decay=0.1)
    before = model.weight.detach().clone()
    for _ in range(3):
        pixels = torch.randn(32, 16, generator=generator)
        optimizer.zero_grad()
        (model(pixels) ** 2).mean().backward()
        alone.grad = model.bias.grad.clone()
        optimizer.step()
        plain.step()
    assert torch.allclose(model.bias, alone) and not torch.allclose(model.weight, before)


def test_sight_goes_on_where_a_checkpoint_ends(tmp_path):
    """Two steps, and one step resumed for the second: the same weights, bit for bit but for the order of sums."""
    pytest.importorskip("torch")
    from safetensors.torch import load_file

    command = ["train_scene_sight", "--recipe", "scene_sight", *SIGHT, "--output_dir"]
    saving = ["--save_strategy", "steps", "--save_steps", "1"]
    assert train(*command, str(tmp_path / "run"), after=saving) == 0
    checkpoint = str(tmp_path / "run" / "checkpoint-1")
    assert train(*command, str(tmp_path / "more"), "--resume_from_checkpoint", checkpoint) == 0
    whole, resumed = (load_file(tmp_path / name / "model.safetensors") for name in ("run", "more"))
    assert max(float((whole[key] - resumed[key]).abs().max()) for key in whole) <= 1e-6


def test_what_is_shown_is_where_it_is():
    """Boxes become places, by hand; and in drawings, a thing's colour is inside its box."""
    from protoscore.scenes.sprites import PALETTE
    from training.embedded import train_scene_sight as sight
    from training.embedded.sights import NamedBox
    from training.embedded.sights import sight as look

    places = lambda *box: sight.places(NamedBox("", box), 3)  # noqa: E731
    assert places(0, 0, 1, 1) == list(range(9)) and places(0.4, 0.4, 0.6, 0.6) == [4]
    assert places(0.5, 0.9, 1.4, 1.2) == [7, 8] and places(0.6, 0.9, 1.0, 1.0) == [8]
    assert places(0, 0, 0.5, 1) == [0, 1, 3, 4, 6, 7]
    coloured = 0
    for seed in range(220):
        image, shown = look(seed)
        for thing in shown:
            if thing.words.strip() in set(PALETTE) - {"black"}:  # every outline is black
                coloured += 1
                inside = image.crop([round(edge * image.width) for edge in thing.box])
                paint = np.array([int(PALETTE[thing.words.strip()][0][i : i + 2], 16) for i in (1, 3, 5)])
                assert np.abs(np.asarray(inside, dtype=int) - paint).max(-1).min() < 24, (seed, thing)
    assert coloured >= 10


def test_a_matrix_product_embeds_patches_as_the_convolution_does(trained):
    torch = pytest.importorskip("torch")
    from transformers import Qwen3VLForConditionalGeneration

    from protoscore.modeling.patches import embed_patches_by_product

    model = Qwen3VLForConditionalGeneration.from_pretrained(trained / "sight", dtype="float32")
    patches, whole = torch.randn(36, 1536), torch.randn(2, 3, 4, 32, 32)
    names, embed = set(model.state_dict()), model.model.visual.patch_embed
    before, convolved = embed(patches), embed.proj(whole)
    embed_patches_by_product(model)
    product = embed(patches)
    assert torch.allclose(product, before, atol=1e-4) and not torch.equal(product, before), "it is another sum order"
    assert torch.equal(embed.proj(whole), convolved) and set(model.state_dict()) == names


def test_long_questions_come_in_batches_of_their_own_and_no_task_is_left_out():
    from training.embedded.train_scene_judge import JudgeArguments, _task

    tasks, batch = [*TASKS.values(), *TRAINING_ONLY.values()], 32
    dealt = [[_task(JudgeArguments(), n * batch + i, batch, tasks) for i in range(batch)] for n in range(300)]
    long = {task.name for task in tasks if task.pictures > 1}
    for names in dealt:
        assert len(set(names)) == 1 or not long & set(names)
        assert names[0::2] == names[1::2]  # neighbours may share their text
    found, total = Counter(name for names in dealt for name in names), sum(task.share for task in tasks)
    for task in tasks:
        assert abs(found[task.name] / 9600 - task.share / total) < 0.06, task.name
