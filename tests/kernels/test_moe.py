"""Router and experts against float64 arithmetic, token by token and expert by expert."""

import torch

from dsv4chat.kernels.moe import experts, router_scores, routing_weights, swiglu


def test_scores_are_the_root_of_softplus_and_weights_sum_to_the_scaling() -> None:
    logits = torch.tensor([[-60.0, -2.0, 0.0, 3.0, 80.0]])
    exact = torch.log1p(logits.double().exp()).sqrt()
    torch.testing.assert_close(router_scores(logits).double(), exact, rtol=1e-6, atol=1e-9)
    scores = router_scores(torch.randn(7, 5))
    chosen = torch.tensor([[0, 3, 4]] * 7)
    weights = routing_weights(scores, chosen, 2.5)
    torch.testing.assert_close(weights.sum(1), torch.full((7,), 2.5))
    torch.testing.assert_close(weights[:, 0] / weights[:, 2], scores[:, 0] / scores[:, 4])


def test_activations_beyond_the_limit_are_clamped() -> None:
    gate = torch.tensor([-1000.0, -12.0, 3.0, 10.5, 1e4])
    up = torch.tensor([5.0, -11.0, 0.5, 1e4, -1e4])
    clamped_gate, clamped_up = gate.double().clamp(max=10), up.double().clamp(-10, 10)
    exact = clamped_gate / (1 + (-clamped_gate).exp()) * clamped_up
    torch.testing.assert_close(swiglu(gate, up, 10.0).double(), exact, rtol=1e-6, atol=1e-12)


def test_experts_are_summed_by_their_weights_for_any_number_of_tokens() -> None:
    generator = torch.Generator().manual_seed(0)
    gate_up = torch.randn(6, 16, 12, generator=generator) * 3
    down = torch.randn(6, 12, 8, generator=generator)
    for tokens in (1, 2, 9, 40):
        x = torch.randn(tokens, 12, generator=generator) * 3
        chosen = torch.stack([torch.randperm(6, generator=generator)[:3] for _ in range(tokens)])
        chosen[-1] = torch.tensor([2, 2, 5])  # a table may name an expert twice
        weights = torch.rand(tokens, 3, generator=generator)
        out = experts(x, chosen, weights, gate_up, down, 10.0)
        for token in range(tokens):
            exact = torch.zeros(12, dtype=torch.float64)
            for expert, weight in zip(chosen[token].tolist(), weights[token].tolist(), strict=True):
                both = gate_up[expert].double() @ x[token].double()
                gate, up = both[:8].clamp(max=10), both[8:].clamp(-10, 10)
                exact += down[expert].double() @ (gate / (1 + (-gate).exp()) * up * weight)
            torch.testing.assert_close(out[token].double(), exact, rtol=1e-4, atol=1e-3)
