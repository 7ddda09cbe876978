"""The decode step in static shapes against the model's exact path, both on the CPU."""

import pytest
import torch

from dsv4chat.runtime.cache import KVCache
from dsv4chat.runtime.checkpoint import Checkpoint
from dsv4chat.runtime.compare import TOLERANCE
from dsv4chat.runtime.gpu.decoding import Decoding
from dsv4chat.runtime.gpu.loading import PackedLoader
from dsv4chat.runtime.gpu.step import DecodeStep
from dsv4chat.runtime.model import Model
from dsv4chat.runtime.protocol import SamplingParams
from dsv4chat.runtime.random_weights import random_source
from tests.support.memory_source import CPU, feed, load, random_ids
from tests.support.random_models import random_model
from tests.support.saved_models import save

CONTEXT = 400


def stepped(
    model: Model, ids: torch.Tensor, prompt: int, kv_dtype: str = "float32", bucket: int = CONTEXT
) -> torch.Tensor:
    """Logits (n - prompt, vocab) of ids after the first `prompt`, fed one by one through the step."""
    cache = KVCache(model.config, kv_dtype, CONTEXT, CPU)
    model.forward(ids[:prompt], cache)
    decoding = Decoding(DecodeStep(model), cache)
    decoding.begin(ids[: prompt + 1].tolist(), SamplingParams(temperature=0, seed=0), ())
    decoding.hold(bucket)
    rows = []
    for token in ids[prompt:].tolist():
        decoding.state.token.fill_(token)
        rows.append(decoding.step.forward(cache, decoding.state, bucket)[0])
        decoding.state.position += 1
    return torch.cat(rows)


@pytest.mark.parametrize(("pattern", "window"), [("pro", 16), ("flash", 16), ("flash", 128)])
def test_logits_equal_those_of_the_model(pattern: str, window: int) -> None:
    theirs = random_model(pattern, window=window, seed=21)
    ids = random_ids(300, 160, 1)
    # Cuts before, at and behind the ends of blocks of both ratios.
    expected = feed(load(theirs), ids, [300])
    for prompt, end in ((1, 40), (126, 150), (254, 262), (255, 300)):
        logits = stepped(load(theirs), ids[:end], prompt)
        assert (logits - expected[prompt:end]).abs().max() <= TOLERANCE


@pytest.mark.parametrize("bucket", [200, 300, 333, CONTEXT])
def test_the_bucket_changes_nothing(bucket: int) -> None:
    theirs = random_model("pro", seed=22)
    ids = random_ids(200, 160, 2)
    expected = feed(load(theirs), ids, [200])
    assert (stepped(load(theirs), ids, 180, bucket=bucket) - expected[180:]).abs().max() <= TOLERANCE


def test_a_prefill_after_steps_sees_what_they_wrote() -> None:
    model = load(random_model("pro", seed=23))
    ids = random_ids(300, 160, 3)
    expected = feed(model, ids, [300])
    cache = KVCache(model.config, "float32", CONTEXT, CPU)
    model.forward(ids[:100], cache)
    decoding = Decoding(DecodeStep(model), cache)
    for first, last in ((100, 140), (180, 230)):
        decoding.begin(ids[: first + 1].tolist(), SamplingParams(temperature=0, seed=0), ())
        for position in range(first, last):
            assert cache.begin(1) == position
            decoding.state.token.fill_(int(ids[position]))
            decoding.launch(position)
            decoding.read()
            cache.commit(1)
        end = min(last + 40, 300)
        logits = model.forward(ids[last:end], cache, "all").logits
        assert (logits - expected[last:end]).abs().max() <= TOLERANCE


@pytest.mark.parametrize("kv_dtype", ["bfloat16", "fp8"])
def test_rounded_storage_gives_the_rounding_models_logits(kv_dtype: str) -> None:
    theirs = random_model("flash", seed=24)
    ids = random_ids(160, 160, 4)
    expected = feed(load(theirs), ids, [110, *[1] * 50], kv_dtype)[110:]
    logits = stepped(load(theirs), ids, 110, kv_dtype)
    # A value on the edge of a rounding may fall on either side, and turn a choice; seldom.
    error = (logits - expected).norm(dim=1) / expected.norm(dim=1)
    assert error.median() <= TOLERANCE
    assert (error > 1e-3).sum() <= 3


@pytest.mark.parametrize("mix", ["nvidia", "nvfp4"])
def test_weights_in_their_stored_formats_are_the_same_weights(mix: str) -> None:
    source = random_source("random:demo", CPU, 4, mix)
    plain = Model.load(source, CPU, torch.float32)
    packed = Model.load(source, CPU, torch.float32, loader=PackedLoader)
    assert packed.stored_bytes == plain.stored_bytes == source.bytes_total
    ids = random_ids(150, 8192, 5)
    expected = feed(plain, ids, [150])
    assert (feed(packed, ids, [130, 20]) - expected).abs().max() <= TOLERANCE
    assert (stepped(packed, ids, 125) - expected[125:]).abs().max() <= TOLERANCE


@pytest.mark.parametrize("fmt", ["bf16", "fp8", "mxfp4", "nvfp4", "nvfp4-full"])
def test_every_checkpoint_format_can_stay_as_it_is(tmp_path, fmt: str) -> None:
    save(random_model((128, 4), seed=25, hash_layers=1), tmp_path / "model", fmt=fmt)
    checkpoint = Checkpoint.open(tmp_path / "model")
    ids = random_ids(40, 160, 6)
    expected = feed(Model.load(checkpoint, CPU, torch.float32), ids, [40])
    packed = Model.load(checkpoint, CPU, torch.float32, loader=PackedLoader)
    assert (stepped(packed, ids, 30) - expected[30:]).abs().max() <= TOLERANCE


@pytest.mark.parametrize("wide", [False, True])
def test_mxfp4_becomes_nvfp4_where_that_loses_nothing(tmp_path, wide: bool) -> None:
    theirs = random_model((128, 4), seed=26, hash_layers=1)
    if wide:  # one expert whose blocks are further apart than NVFP4's scales reach
        theirs.model.layers[1].mlp.experts.down_proj.data[2, 3, :32] *= 2.0**-30
    save(theirs, tmp_path / "model", fmt="mxfp4")
    checkpoint = Checkpoint.open(tmp_path / "model")
    packed = Model.load(checkpoint, CPU, torch.float32, loader=PackedLoader)
    assert packed.layers[0].moe.weights.down.format == "NVFP4"
    assert packed.layers[1].moe.weights.down.format == ("MXFP4" if wide else "NVFP4")
    plain = Model.load(checkpoint, CPU, torch.float32)
    assert packed.parameters == plain.parameters
    assert packed.stored_bytes == plain.stored_bytes
    for ours, expected in zip(packed.layers, plain.layers, strict=True):
        for name in ("gate_up", "down"):
            values = getattr(ours.moe.weights, name).dense(torch.float32)
            assert torch.equal(values, getattr(expected.moe.weights, name))
