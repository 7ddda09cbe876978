"""The trainer's parts on their own: Sinkhorn's gradient, number formats, Muon, packing, the schedule."""

import dataclasses

import numpy as np
import pytest
import torch

from dsv4chat.assets.training.export import checkpoint_tensors, demo_config
from dsv4chat.assets.training.model import TrainableModel
from dsv4chat.assets.training.optimizer import Optimizer, balance, orthogonalise
from dsv4chat.assets.training.packing import Documents, build, pack, shuffled_rows
from dsv4chat.assets.training.rounding import cached_value, index_value, nvfp4
from dsv4chat.assets.training.schedule import Schedule, steps_in
from dsv4chat.assets.training.sinkhorn import sinkhorn
from dsv4chat.kernels.formats import NVFP4Weight
from dsv4chat.runtime.config import ModelConfig

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


def sinkhorn_float64(logits: torch.Tensor, rounds: int, eps: float) -> torch.Tensor:
    matrix = logits.view(-1, 4, 4).softmax(-1) + eps
    matrix = matrix / (matrix.sum(-2, keepdim=True) + eps)
    for _ in range(rounds - 1):
        matrix = matrix / (matrix.sum(-1, keepdim=True) + eps)
        matrix = matrix / (matrix.sum(-2, keepdim=True) + eps)
    return matrix.flatten(1)


def test_sinkhorn_and_its_gradient_equal_autograd_in_float64() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(50, 16, generator=generator) * 3
    weight = torch.randn(50, 16, generator=generator)
    ours = logits.clone().requires_grad_()
    result = sinkhorn(ours, 20, 1e-6)
    result.backward(weight)
    exact = logits.double().requires_grad_()
    expected = sinkhorn_float64(exact, 20, 1e-6)
    expected.backward(weight.double())
    assert (result - expected).abs().max() <= 1e-6
    assert (ours.grad - exact.grad).abs().max() <= 1e-6


def nearest_e2m1(value: np.ndarray) -> np.ndarray:
    """Nearest code in float64, ties to the even code."""
    distance = np.abs(np.abs(value)[..., None] - E2M1)
    order = np.array([0, 8, 1, 9, 2, 10, 3, 11]) * 1e-12  # even codes first
    return np.sign(value) * E2M1[np.argmin(distance + order, axis=-1)]


def test_fake_quantisation_gives_codes_times_scales_and_fits_bfloat16() -> None:
    weight = torch.randn(3, 32, 64, generator=torch.Generator().manual_seed(1)) * 0.05
    weight[0, :4, :16] = 0
    rounded = nvfp4(weight)
    assert torch.equal(rounded, rounded.bfloat16().float())
    blocks = weight.view(3, 32, 4, 16).double()
    largest = blocks.abs().amax(-1, keepdim=True)
    whole = 2.0 ** torch.ceil(torch.log2(largest.amax((1, 2), keepdim=True) / (6 * 448)))
    scale = (largest / 6 / whole).clamp(min=2.0**-9).float().to(torch.float8_e4m3fn).double() * whole
    expected = torch.from_numpy(nearest_e2m1((blocks / scale).numpy())) * scale
    assert torch.equal(rounded.double(), expected.reshape(weight.shape))


def test_cached_values_keep_the_rotary_channels_and_the_gradient() -> None:
    x = torch.randn(5, 64, generator=torch.Generator().manual_seed(2)).requires_grad_()
    rounded = cached_value(x, 16)
    rounded.sum().backward()
    assert torch.equal(rounded[:, 48:], x[:, 48:])
    assert torch.equal(x.grad, torch.ones_like(x))
    scale = 2.0 ** np.ceil(np.log2(x.detach()[:, :48].abs().amax(1).double().numpy() / 448))
    expected = torch.from_numpy(x.detach()[:, :48].double().numpy() / scale[:, None]).float()
    expected = expected.to(torch.float8_e4m3fn).double() * torch.from_numpy(scale)[:, None]
    assert torch.equal(rounded[:, :48].double(), expected)


def test_rotated_index_values_keep_products_to_four_bits() -> None:
    generator = torch.Generator().manual_seed(3)
    q, k = torch.randn(200, 32, generator=generator), torch.randn(200, 32, generator=generator)
    from dsv4chat.assets.training.rotary import hadamard

    rotation = hadamard(32)
    assert torch.allclose(rotation @ rotation.T, torch.eye(32), atol=1e-6)
    error = (index_value(q, rotation) * index_value(k, rotation)).sum(1) - (q * k).sum(1)
    assert error.square().mean().sqrt() < 0.25 * (q * k).sum(1).square().mean().sqrt()


def test_orthogonalised_matrices_have_singular_values_near_one() -> None:
    matrices = torch.randn(4, 24, 60, generator=torch.Generator().manual_seed(4)) * 1e-4
    values = torch.linalg.svdvals(orthogonalise(matrices))
    assert values.min() > 0.5
    assert values.max() < 1.3


def tiny_config() -> ModelConfig:
    small = {
        "vocab_size": 64,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "compress_ratios": [128, 4],
        "num_hash_layers": 1,
        "num_attention_heads": 2,
        "head_dim": 32,
        "qk_rope_head_dim": 8,
        "q_lora_rank": 16,
        "o_groups": 2,
        "o_lora_rank": 16,
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 16,
        "index_n_heads": 2,
        "index_head_dim": 16,
    }
    return ModelConfig.from_dict(demo_config(max_position=512) | small)


def test_a_step_moves_every_weight_and_exports_what_the_model_then_uses() -> None:
    model = TrainableModel(tiny_config(), row_length=256)
    before = {name: p.detach().clone() for name, p in model.named_parameters() if p.requires_grad}
    numbers = np.random.default_rng(0).integers(0, 64, 400)
    batch = build(Documents(numbers, np.array([0, 180, 400])), [[0], [1]], 256, padding=2)
    optimizer = Optimizer(model)
    loss, hidden = model.loss(batch, sparse=True)
    (loss + hidden.index_loss).backward()
    optimizer.step(torch.tensor(4e-3), torch.tensor(3e-3), four_bit=True)
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            assert not torch.equal(parameter, before[name]), name
    exported = checkpoint_tensors(model, optimizer.masters())
    assert isinstance(exported["layers.1.attn.wq_b.weight"], NVFP4Weight)
    assert torch.equal(exported["layers.1.attn.wq_b.weight"].dequantize(), model.layers[1]["wq_b"].detach())
    expert = exported["layers.0.ffn.experts.3.w2.weight"].dequantize()
    assert torch.equal(expert, model.layers[0]["w2"].detach()[3])
    shared = exported["layers.0.ffn.shared_experts.w3.weight"].dequantize()
    assert torch.equal(shared, model.layers[0]["w13"].detach()[1, -1])


def test_balancing_raises_the_bias_of_idle_experts_and_leaves_hash_layers_alone() -> None:
    bias = torch.zeros(2, 4)
    load = torch.tensor([[9.0, 1, 1, 1], [9.0, 1, 1, 1]])
    balance(bias, load, torch.tensor(1e-3), hash_layers=1)
    assert torch.equal(bias[0], torch.zeros(4))
    assert torch.allclose(bias[1], torch.tensor([-1e-3, 1e-3, 1e-3, 1e-3]))


def test_packing_places_every_document_once_at_a_multiple_of_four() -> None:
    generator = np.random.default_rng(1)
    sizes = generator.integers(1, 300, 200)
    text = Documents(
        generator.integers(0, 50, sizes.sum()), np.cumsum([0, *sizes]), np.ones(sizes.sum(), int)
    )
    rows = pack(text.lengths(), generator.permutation(200), 512)
    assert sorted(document for row in rows for document in row) == list(range(200))
    batch = build(text, rows, 512, padding=63)
    assert (batch.start % 4 == 0).all()
    assert batch.weights.sum() == sizes.sum() - 200
    for row, documents in enumerate(rows):
        at = 0
        for document in documents:
            size = int(sizes[document])
            ids = text.ids[text.offsets[document] : text.offsets[document + 1]]
            assert batch.ids[row, at : at + size].tolist() == ids.tolist()
            assert batch.targets[row, at : at + size - 1].tolist() == ids[1:].tolist()
            assert (batch.start[row, at : at + size] == at).all()
            at += -(-size // 4) * 4


def test_a_mask_says_which_targets_count() -> None:
    text = Documents(np.arange(10, 16), np.array([0, 6]), np.array([0, 0, 1, 1, 0, 1]))
    batch = build(text, [[0]], 128, padding=2)
    assert batch.weights[0, :6].tolist() == [0, 1, 1, 0, 1, 0]
    batch = build(dataclasses.replace(text, rest=0.25), [[0]], 128, padding=2)
    assert batch.weights[0, :7].tolist() == [0.25, 1, 1, 0.25, 1, 0, 0]


def test_rows_of_a_pass_are_shuffled_anew() -> None:
    text = Documents(np.arange(4000) % 50, np.arange(0, 4001, 100))
    stream = shuffled_rows(text, 512, np.random.default_rng(2))
    first, second = ([document for _ in range(8) for document in next(stream)] for _ in range(2))
    assert sorted(first) == sorted(second) == list(range(40))
    assert first != second


@pytest.mark.parametrize(("progress", "factor"), [(0.0, 0.0), (0.01, 0.5), (0.3, 1.0), (1.0, 0.02)])
def test_rates_rise_stay_and_fall(progress: float, factor: float) -> None:
    assert Schedule().factor(progress) == pytest.approx(factor)


def test_a_planned_run_fits_its_time() -> None:
    schedule = Schedule()
    steps = steps_in(100.0, 0.08, 0.1, schedule)
    assert 99 < steps * (0.8 * 0.08 + 0.2 * 0.1) <= 100
