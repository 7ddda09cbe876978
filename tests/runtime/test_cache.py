"""The cache: going back is exact, marks are small, rows grow in chunks, limits are told in a sentence."""

import random
from itertools import pairwise

import pytest
import torch

from dsv4chat.runtime.cache import CacheMark, KVCache
from dsv4chat.runtime.config import ModelConfig
from dsv4chat.runtime.errors import ContextOverflowError, EngineError
from dsv4chat.runtime.model import Model
from tests.support.memory_source import CPU, feed, load, random_ids
from tests.support.random_models import random_config, random_model

KV_DTYPES = ("float32", "bfloat16", "fp8")
V4_PRO = {
    "vocab_size": 129280,
    "hidden_size": 7168,
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "head_dim": 512,
    "qk_rope_head_dim": 64,
    "q_lora_rank": 1536,
    "o_groups": 16,
    "o_lora_rank": 1024,
    "n_routed_experts": 384,
    "num_experts_per_tok": 6,
    "moe_intermediate_size": 3072,
    "routed_scaling_factor": 2.5,
    "num_hash_layers": 3,
    "compress_ratios": [128, 128, *[4, 128] * 29, 4],
    "sliding_window": 128,
    "index_n_heads": 64,
    "index_head_dim": 128,
    "index_topk": 1024,
    "compress_rope_theta": 160000.0,
    "swiglu_limit": 10.0,
    "max_position_embeddings": 1048576,
    "model_type": "deepseek_v4",
}


@pytest.fixture(scope="module")
def models() -> dict[str, Model]:
    return {pattern: load(random_model(pattern, window=16, seed=8)) for pattern in ("pro", "flash")}


class Conversation:
    """A cache with the ids and chunks it was fed, and marks with what they were at."""

    def __init__(self, model: Model, kv_dtype: str, rng: random.Random) -> None:
        self.model, self.kv_dtype, self.rng = model, kv_dtype, rng
        self.cache = KVCache(model.config, kv_dtype, 4000, CPU)
        self.chunks: list[torch.Tensor] = []
        self.marks: list[tuple[CacheMark, int]] = []

    def extend(self) -> torch.Tensor:
        """Feed one random chunk; returns its logits."""
        length = self.rng.choice([1, 1, 1, 2, 3, 4, 5, 15, 16, 17, 40, 127, 128, 130])
        ids = torch.tensor([self.rng.randrange(self.model.config.vocab_size) for _ in range(length)])
        self.chunks.append(ids)
        return self.model.forward(ids, self.cache, "all").logits

    def mark(self) -> None:
        self.marks.append((self.cache.checkpoint(), len(self.chunks)))

    def go_back(self) -> None:
        """To a random mark, or to the start; marks of the abandoned part go."""
        if self.rng.random() < 0.15 or not self.marks:
            self.cache.clear()
            self.chunks, self.marks = [], []
            return
        mark, count = self.rng.choice(self.marks)
        self.cache.restore(mark)
        self.chunks = self.chunks[:count]
        self.marks = [(m, c) for m, c in self.marks if c <= count]

    def replay(self) -> torch.Tensor:
        """Logits of the last chunk when a fresh cache is fed the same ids in the same chunks."""
        cache = KVCache(self.model.config, self.kv_dtype, sum(map(len, self.chunks)), CPU)
        for ids in self.chunks:
            logits = self.model.forward(ids, cache, "all").logits
        return logits


def _wander(model: Model, kv_dtype: str, seed: int) -> int:
    """One random sequence of extend / go back / extend, compared bitwise; returns how often."""
    rng = random.Random(seed)
    conversation = Conversation(model, kv_dtype, rng)
    compared = 0
    for _ in range(rng.randint(1, 4)):
        for _ in range(rng.randint(1, 4)):
            conversation.extend()
            if rng.random() < 0.6:
                conversation.mark()
        conversation.go_back()
        for _ in range(rng.randint(1, 2)):
            logits = conversation.extend()
        assert torch.equal(logits, conversation.replay()), f"{kv_dtype}, sequence {seed}"
        compared += 1
    return compared


@pytest.mark.parametrize("kv_dtype", KV_DTYPES)
@pytest.mark.parametrize("pattern", ["pro", "flash"])
def test_going_back_equals_a_fresh_cache_bitwise(
    models: dict[str, Model], pattern: str, kv_dtype: str
) -> None:
    for seed in range(5):
        _wander(models[pattern], kv_dtype, seed)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_soak_three_hundred_random_sequences_of_going_back(models: dict[str, Model]) -> None:
    compared = 0
    for seed in range(300):
        pattern = ("pro", "flash")[seed % 2]
        compared += _wander(models[pattern], KV_DTYPES[seed % 3], 1000 + seed)
    print(f"300 sequences, {compared} returns, every logit bitwise equal")


@pytest.mark.parametrize("kv_dtype", KV_DTYPES)
def test_every_position_can_be_returned_to(models: dict[str, Model], kv_dtype: str) -> None:
    """Marks at and around block and window ends: extend past them, return, extend otherwise."""
    model = models["pro"]
    ids, other = random_ids(300, 160, 1), random_ids(12, 160, 2)
    for position in (*range(1, 10), 15, 16, 17, 127, 128, 129, 130, 255, 256, 257):
        cache = KVCache(model.config, kv_dtype, 320, CPU)
        model.forward(ids[:position], cache)
        mark = cache.checkpoint()
        assert mark.position == cache.position == position
        model.forward(ids[position:], cache)
        cache.restore(mark)
        fresh = KVCache(model.config, kv_dtype, 320, CPU)
        model.forward(ids[:position], fresh)
        for chunk in (other[:1], other[1:]):
            again, new = model.forward(chunk, cache, "all"), model.forward(chunk, fresh, "all")
            assert torch.equal(again.logits, new.logits)
            assert torch.equal(again.residual, new.residual)


def test_a_mark_is_small_and_knows_its_size() -> None:
    config = ModelConfig.from_dict(V4_PRO)
    cache = KVCache(config, "fp8", 4096, CPU)
    csa, hca = 30, 31
    sizes = {}
    for position in (128, 128 * 5 + 127):
        cache._position = position
        mark = cache.checkpoint()
        assert mark.nbytes == sum(tensor.numel() * tensor.element_size() for tensor in mark.tensors)
        sizes[position] = mark.nbytes
    rings = 61 * 128 * 584
    # A CSA block before: 4 rows of kv and gate, for attention (512) and for the indexer (128).
    previous = csa * 2 * 4 * (512 + 128) * 4
    assert sizes[128] == rings + previous
    open_rows = csa * 2 * 3 * (1024 + 256) * 4 + hca * 2 * 127 * 512 * 4
    assert sizes[128 * 5 + 127] == rings + previous + open_rows


def test_rows_that_grow_with_context_are_stored_packed() -> None:
    """V4-Pro: 584 bytes a compressed row and 68 a key, that is about 5 MB for 1,000 tokens."""
    config = ModelConfig.from_dict(V4_PRO)
    cache = KVCache(config, "fp8", 1 << 20, CPU)
    per_thousand = 0.0
    for layer in cache.layers:
        assert layer.blocks is not None
        per_thousand += layer.blocks.stored.shape[1] / layer.ratio * 1000
        if layer.keys is not None:
            per_thousand += layer.keys.stored.shape[1] / layer.ratio * 1000
    assert 4.5e6 < per_thousand < 5.5e6


def test_buffers_grow_in_chunks_and_stop_at_the_context(models: dict[str, Model]) -> None:
    model = models["pro"]
    cache = KVCache(model.config, "fp8", 1000, CPU)
    ids = random_ids(1000, 160, 3)
    sizes, buffers = [], []
    for position in range(0, 1000, 10):
        model.forward(ids[position : position + 10], cache)
        rows = cache.layers[2].blocks
        assert rows is not None
        sizes.append(cache.nbytes)
        buffers.append(rows.stored.shape[0])
    assert buffers[-1] == 250
    assert len(set(buffers)) <= 4
    assert sizes == sorted(sizes)
    assert len(set(sizes)) <= 8


def test_long_contexts_are_unpacked_as_they_are_read(
    models: dict[str, Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows beyond the part kept as float32 give the same values."""
    ids = random_ids(300, 160, 4)
    chunks = [200, *[1] * 50, 50]
    expected = {kv: feed(models["pro"], ids, chunks, kv) for kv in ("bfloat16", "fp8")}
    monkeypatch.setattr("dsv4chat.runtime.layer_cache.UNPACKED_BYTES", 4 * 32 * 10)
    for kv_dtype, logits in expected.items():
        assert torch.equal(feed(models["pro"], ids, chunks, kv_dtype), logits)


def test_the_context_ends_exactly_where_it_was_set(models: dict[str, Model]) -> None:
    model = models["flash"]
    ids = random_ids(41, 160, 5)
    for tail in (1, 3):
        cache = KVCache(model.config, "fp8", 40, CPU)
        model.forward(ids[: 40 - tail], cache)
        model.forward(ids[40 - tail : 40], cache)
        with pytest.raises(ContextOverflowError, match="40 tokens are in the context"):
            model.forward(ids[40:], cache)
        assert cache.position == 40
    cache = KVCache(model.config, "fp8", 40, CPU)
    with pytest.raises(ContextOverflowError, match="shorten"):
        model.forward(ids, cache)
    # Nothing was lost: what fits goes on as if nothing had been tried.
    assert torch.equal(model.forward(ids[:40], cache, "all").logits, feed(model, ids[:40], [40], "fp8"))


@pytest.mark.parametrize("kv_dtype", KV_DTYPES)
@pytest.mark.parametrize("pattern", ["pro", "flash"])
def test_rows_taken_out_and_put_into_another_cache_go_on_bitwise(
    models: dict[str, Model], pattern: str, kv_dtype: str
) -> None:
    """In pieces cut anywhere, block ends or not; the cache they come from has gone on differently."""
    model = models[pattern]
    ids, other = random_ids(420, 160, 6), random_ids(50, 160, 7)
    for cuts in ([0, 300], [0, 1, 130, 131, 300], [0, 127, 128, 256, 300], [0, 3, 300]):
        cache = KVCache(model.config, kv_dtype, 500, CPU)
        model.forward(ids[:300], cache)
        mark = cache.checkpoint()
        pieces = [cache.take_rows(a, b) for a, b in pairwise(cuts)]
        expected = [model.forward(ids[300:301], cache).logits, model.forward(ids[301:], cache, "all").logits]
        other_cache = KVCache(model.config, kv_dtype, 500, CPU)
        model.forward(other, other_cache)
        for piece in pieces:
            assert piece.nbytes == cache.row_bytes(piece.start, piece.end)
            other_cache.put_rows(piece)
        other_cache.restore(mark)
        assert torch.equal(model.forward(ids[300:301], other_cache).logits, expected[0])
        assert torch.equal(model.forward(ids[301:], other_cache, "all").logits, expected[1])


def test_a_part_of_rows_is_what_a_cache_gives_for_it(models: dict[str, Model]) -> None:
    cache = KVCache(models["pro"].config, "fp8", 500, CPU)
    models["pro"].forward(random_ids(300, 160, 8), cache)
    rows = cache.take_rows(3, 290)
    for start, end in ((3, 290), (3, 4), (127, 129), (128, 256), (5, 5)):
        part, expected = rows.part(start, end), cache.take_rows(start, end)
        assert len(part.tensors) == len(expected.tensors) == len(part.ratios)
        assert all(torch.equal(a, b) for a, b in zip(part.tensors, expected.tensors, strict=True))


def test_state_of_another_size_is_refused(models: dict[str, Model]) -> None:
    model = models["pro"]
    cache, smaller = KVCache(model.config, "fp8", 100, CPU), KVCache(model.config, "fp8", 30, CPU)
    plain = KVCache(model.config, "float32", 100, CPU)
    model.forward(random_ids(60, 160, 6), cache)
    expected = model.forward(random_ids(9, 160, 7), plain, "all").logits
    with pytest.raises(EngineError, match="cannot hold the 60"):
        smaller.restore(cache.checkpoint())
    for give in (lambda: plain.restore(cache.checkpoint()), lambda: plain.put_rows(cache.take_rows(0, 60))):
        with pytest.raises(EngineError, match="other sizes"):
            give()
    assert plain.position == 9
    plain.clear()
    assert torch.equal(model.forward(random_ids(9, 160, 7), plain, "all").logits, expected)


def test_a_step_that_broke_off_leaves_a_cache_that_must_go_back(
    models: dict[str, Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = models["pro"]
    ids = random_ids(60, 160, 7)
    expected = feed(model, ids[:40], [20, 20], "fp8")[20:]
    for size in (1, 20):
        cache = KVCache(model.config, "fp8", 100, CPU)
        model.forward(ids[:20], cache)
        mark = cache.checkpoint()
        with monkeypatch.context() as patch:
            for owner in (model.layers[3].moe, model.decoder.layers[3].moe):
                patch.setattr(owner, "forward", _interrupt)
            with pytest.raises(KeyboardInterrupt):
                model.forward(ids[40 : 40 + size], cache)
        with pytest.raises(EngineError, match="interrupted"):
            model.forward(ids[:1], cache)
        with pytest.raises(EngineError, match="interrupted"):
            cache.checkpoint()
        cache.restore(mark)
        assert torch.equal(model.forward(ids[20:40], cache, "all").logits, expected)


def _interrupt(*arguments: object) -> None:
    raise KeyboardInterrupt


def test_unknown_formats_and_sizes_are_refused() -> None:
    config = ModelConfig.from_dict(random_config("pro").to_dict())
    with pytest.raises(EngineError, match="float32, bfloat16, fp8"):
        KVCache(config, "int4", 10, CPU)
    with pytest.raises(EngineError, match="at least 1 token"):
        KVCache(config, "fp8", 0, CPU)
    odd = ModelConfig.from_dict(random_config("pro", index_head_dim=48).to_dict())
    with pytest.raises(EngineError, match="power of two"):
        KVCache(odd, "fp8", 10, CPU)
    KVCache(odd, "bfloat16", 10, CPU)
