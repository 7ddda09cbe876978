"""The decode step as a CUDA graph, on a GPU: against the CPU, without waits, without growth."""

import time

import pytest
import torch

from dsv4chat.assets import demo_path
from dsv4chat.kernels.cute.operations import operations
from dsv4chat.kernels.cute.sampling import Sampling
from dsv4chat.runtime.cache import KVCache
from dsv4chat.runtime.checkpoint import Checkpoint
from dsv4chat.runtime.engine import Engine
from dsv4chat.runtime.gpu import sampler
from dsv4chat.runtime.gpu.decoding import Decoding
from dsv4chat.runtime.gpu.loading import PackedLoader
from dsv4chat.runtime.gpu.record import Record, Records
from dsv4chat.runtime.gpu.state import StepState
from dsv4chat.runtime.gpu.step import DecodeStep
from dsv4chat.runtime.model import Model
from dsv4chat.runtime.opening import step_operations
from dsv4chat.runtime.protocol import SamplingParams
from dsv4chat.runtime.random_weights import random_source
from dsv4chat.runtime.sampler import sample
from tests.support.memory_source import random_ids

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    pytest.mark.timeout(900),
]

CPU = torch.device("cpu")
PROMPTS, TOKENS, LENGTH = 20, 256, 40


def step_on(device: torch.device, dtype: torch.dtype, kernels: str, source: object) -> DecodeStep:
    model = Model.load(source, device, dtype, loader=PackedLoader)  # type: ignore[arg-type]
    return DecodeStep(model, step_operations(kernels, device, dtype))


def greedy(decoding: Decoding, prompt: list[int], tokens: int) -> list[int]:
    """The ids the step chooses by itself after a prompt."""
    return [record.id for record in records(decoding, prompt, tokens)]


def records(decoding: Decoding, prompt: list[int], tokens: int) -> list[Record]:
    """What the step reports of them."""
    cache = decoding.cache
    cache.clear()
    decoding.step.model.forward(torch.tensor(prompt[:-1]), cache)
    decoding.begin(prompt, SamplingParams(temperature=0, seed=0), ())
    read = []
    for position in range(len(prompt) - 1, len(prompt) - 1 + tokens):
        cache.begin(1)
        decoding.launch(position)
        if decoding.pending > 1:
            read.append(decoding.read())
        cache.commit(1)
    read.append(decoding.read())
    return read


@pytest.mark.parametrize(
    ("dtype", "kernels"), [(torch.float32, "torch"), (torch.bfloat16, "torch"), (torch.bfloat16, "auto")]
)
def test_greedy_tokens_are_those_of_the_cpu(dtype: torch.dtype, kernels: str) -> None:
    """The CPU, in float32 over the same storage formats, is fed what the GPU chose: where it would have
    chosen another token, its own margin must be below the error of the logits, in at most 2 % of the steps.
    """
    source = Checkpoint.open(demo_path())
    step = step_on(torch.device("cuda"), dtype, kernels, source)
    reference = Model.load(source, CPU, torch.float32)
    differing, worst = [], 0.0
    error = _logits_error(step, reference, random_ids(LENGTH + 60, reference.config.vocab_size, 99))
    device = torch.device("cuda")
    decoding = Decoding(step, KVCache(step.model.config, "fp8", LENGTH + TOKENS, device))
    for number in range(PROMPTS):
        prompt = random_ids(LENGTH, reference.config.vocab_size, number).tolist()
        prompt[0] = 0
        ids = greedy(decoding, prompt, TOKENS)
        cache = KVCache(reference.config, "fp8", LENGTH + TOKENS, CPU)
        fed = torch.tensor([*prompt, *ids[:-1]])
        logits = reference.forward(fed, cache, "all").logits[LENGTH - 1 :]
        best = logits.argmax(1)
        for at in (best != torch.tensor(ids)).nonzero().flatten().tolist():
            margin = float(logits[at, best[at]] - logits[at, ids[at]])
            differing.append((number, at, margin))
            worst = max(worst, margin)
    steps = PROMPTS * TOKENS
    print(
        f"{dtype}, {step.operations.name}: error of the logits {error:.3g}; {len(differing)} of {steps} "
        f"tokens differ, largest margin {worst:.3g}"
    )
    assert worst <= 2 * error
    assert len(differing) <= 0.02 * steps


def _logits_error(step: DecodeStep, reference: Model, ids: torch.Tensor) -> float:
    """The largest difference of a logit over some steps, both fed the same; and a table of the streams'."""
    model = step.model
    caches = [KVCache(m.config, "fp8", ids.shape[0], m.device) for m in (model, reference)]
    for m, cache in zip((model, reference), caches, strict=True):
        m.forward(ids[:LENGTH], cache)
    decoding = Decoding(step, caches[0])
    decoding.begin(ids[: LENGTH + 1].tolist(), SamplingParams(temperature=0, seed=0), ())
    decoding.hold(ids.shape[0])
    worst = 0.0
    relative = torch.zeros(model.config.num_layers)
    for token in ids[LENGTH:].tolist():
        decoding.state.token.fill_(token)
        logits, residual = step.forward(caches[0], decoding.state, ids.shape[0])
        decoding.state.position += 1
        expected = reference.forward(torch.tensor([token]), caches[1])
        worst = max(worst, float((logits.cpu() - expected.logits).abs().max()))
        relative = torch.maximum(relative, (residual.cpu() / expected.residual - 1).abs())
    print("relative error of |X| by layer:", " ".join(f"{value:.1e}" for value in relative.tolist()))
    return worst


def test_kernels_that_begin_early_give_what_they_give_one_after_the_other() -> None:
    """V4-Flash's sizes, for which every operation has a kernel; five layers, of each kind one at least, and
    more blocks than are chosen.
    """
    device = torch.device("cuda")
    source = random_source("random:flash", device, 5)
    model = Model.load(source, device, torch.bfloat16, loader=PackedLoader)
    prompt = random_ids(4 * model.config.index_topk + 600, model.config.vocab_size, 7).tolist()
    runs = []
    for programmatic in (True, False):
        step = DecodeStep(model, operations("cute", device, programmatic=programmatic))
        runs.append(records(Decoding(step, KVCache(model.config, "fp8", 4096, device)), prompt, 12))
    for early, late in zip(*runs, strict=True):
        assert early.id == late.id
        assert early.logprob == late.logprob
        assert early.residual == late.residual


def test_a_step_waits_for_nothing_and_keeps_nothing() -> None:
    device = torch.device("cuda")
    step = step_on(device, torch.bfloat16, "auto", random_source("random:demo", device))
    cache = KVCache(step.model.config, "fp8", 4096, device)
    decoding = Decoding(step, cache)
    decoding.begin([1], SamplingParams(temperature=0.8, top_p=0.9, seed=3), ())
    for position in range(8):
        decoding.launch(position)
        decoding.read()
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    torch.cuda.set_sync_debug_mode("error")
    started = time.perf_counter()
    try:
        for position in range(8, 2008):
            decoding.launch(position)
            if decoding.pending > 1:
                decoding.read()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    torch.cuda.synchronize()
    print(f"2,000 steps of the demo geometry in {time.perf_counter() - started:.2f} s")
    assert (torch.cuda.memory_allocated(), torch.cuda.memory_reserved()) == before
    assert int(decoding.state.position) == 2008


@pytest.mark.parametrize("kind", ["greedy", "draw", "cut"])
def test_the_graph_gives_the_tokens_of_the_step_without_one(kind: str) -> None:
    """On the GPU the engine decodes by graphs; without a step of its own it feeds and samples one by one."""
    params = {
        "greedy": SamplingParams(temperature=0, seed=1, max_tokens=120, ignore_eos=True),
        "draw": SamplingParams(temperature=0.7, seed=2, max_tokens=120, ignore_eos=True),
        "cut": SamplingParams(
            temperature=1.0, top_k=30, top_p=0.9, min_p=0.01, repetition_penalty=1.1,
            seed=3, max_tokens=120, ignore_eos=True,
        ),
    }[kind]  # fmt: skip
    engine = Engine.load("demo", device="cuda", dtype="float32", kernels="torch")
    ids = random_ids(60, engine.config.vocab_size, 5).tolist()
    graphs = [token.id for token in engine.generate(ids, params, conversation="a")]
    assert len(graphs) == 120
    engine.model.decode_step = None
    plain = [token.id for token in engine.generate(ids, params, conversation="b")]
    same = sum(a == b for a, b in zip(graphs, plain, strict=True))
    print(f"{kind}: the first {same} of 120 tokens are the same")
    assert graphs[:20] == plain[:20]


def test_the_kernels_end_a_step_as_the_host_would() -> None:
    """Same logits, same token, log-probability and alternatives; the counts follow the history."""
    device, vocab = torch.device("cuda"), 129280
    sampling = step_operations("cute", device, torch.bfloat16).sampling(vocab)
    assert sampling is not None
    records = Records(3, device)
    residual = torch.tensor([1.5, 2.5, 3.5], device=device)
    generator = torch.Generator().manual_seed(1)
    for seed in range(60):
        logits = torch.randn(vocab, generator=generator) * (1 + seed % 5)
        if seed % 3 == 0:
            logits = logits.round()  # ties, and both zeros
        if seed % 4 == 0:
            logits[torch.randint(vocab, (vocab // 2,), generator=generator)] = -torch.inf
        ids = torch.randint(vocab, (30,), generator=generator).tolist()
        ids += logits.topk(3).indices.tolist()
        params = SamplingParams(
            temperature=0 if seed % 2 else 0.8,
            top_k=(0, 0, 40)[seed % 3],
            repetition_penalty=(1, 1.3, 0.7)[seed % 3],
            penalty_window=(0, 5, 256)[seed // 3 % 3],
            seed=seed,
        )
        state = StepState(vocab, 64, device)
        expected = sample(logits, ids, params, seed, alternatives=8)
        stops = {expected.id} if seed % 7 == 0 else {0}
        state.begin(ids, params, stops, seed)
        state.refill(seed)
        row, kind = logits.to(device), sampler.kind_of(params)
        given = None if kind == "greedy" else sampler.token_of(row, state, kind)
        sampling(row, given, residual, state.turn, records.host)
        torch.cuda.synchronize()
        record = records.read(seed)
        assert record.id == expected.id, (seed, params)
        stopped = expected.id in stops
        assert record.outcome == (sampler.STOPPED if stopped else sampler.CHOSEN)
        assert record.logprob == pytest.approx(expected.logprob, abs=2e-5)
        assert [token for token, _ in record.alternatives] == [token for token, _ in expected.alternatives]
        assert record.residual == [1.5, 2.5, 3.5]
        assert int(state.position) == len(ids)
        assert bool(state.alive) is not stopped
        if not stopped:
            assert int(state.token) == expected.id
            window = [*ids, expected.id][max(0, len(ids) + 1 - params.penalty_window) :]
            counts = torch.bincount(torch.tensor(window, dtype=torch.int64), minlength=vocab)
            assert torch.equal(state.counts.cpu().long(), counts)
    for bad, outcome in ((torch.nan, sampler.NOT_A_NUMBER), (torch.inf, sampler.INFINITE)):
        row = torch.zeros(vocab, device=device)
        row[77777] = bad
        assert _outcome_of(row, sampling, records) == outcome
    assert _outcome_of(torch.full((vocab,), -torch.inf, device=device), sampling, records) == sampler.NOTHING


def _outcome_of(row: torch.Tensor, sampling: Sampling, records: Records) -> int:
    state = StepState(row.shape[0], 64, row.device)
    state.begin([1], SamplingParams(temperature=0, seed=0), ())
    sampling(row, None, torch.zeros(3, device=row.device), state.turn, records.host)
    torch.cuda.synchronize()
    assert not bool(state.alive)
    return records.read(0).outcome


def test_going_back_and_a_growing_context_are_exact() -> None:
    engine = Engine.load("demo", device="cuda", dtype="float32", kernels="torch", max_context=10000)
    params = SamplingParams(temperature=0, seed=1, max_tokens=24, ignore_eos=True)
    ids = random_ids(4080, engine.config.vocab_size, 6).tolist()
    first = [token.id for token in engine.generate(ids, params)]
    longer = [*ids, *first, *random_ids(300, engine.config.vocab_size, 7).tolist()]
    list(engine.generate(longer, params))
    assert engine.last_turn.reused == len(ids) + len(first)
    again = [token.id for token in engine.generate(ids, params)]
    assert engine.last_turn.reused == len(ids) - 1
    assert again == first
