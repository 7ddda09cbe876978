"""What one decode step reads and leaves for the next, on the device, where no host has to wait for it.

A step feeds `token` at `position` and puts the token it chooses into `token`. It ends a turn by itself: when
it chooses a stop token, or finds logits it cannot choose from, `alive` becomes false and every later step
leaves the cache and this state as they are. So the host may launch a step before it has read the one before.
"""

from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from dsv4chat.kernels.cute.sampling import TurnState
from dsv4chat.runtime.gpu.draws import uniforms
from dsv4chat.runtime.protocol import SamplingParams

DRAWS = 1024  # random numbers held at a time


class StepState:
    """Tensors of one conversation's decoding; all (1,) unless said otherwise.

    token, position: int64. alive: bool. number: int64, of the turn's step, 0 for its first token.
    history: (context + 1,) int32, the ids by position. counts: (vocab,) int32, how often each id is among the
    last `window` ids, `token` included. draws: (DRAWS,) float64, of the steps from a multiple of DRAWS on.
    stops: (vocab,) bool. temperature, top_p, min_p, penalty: float64; top_k, window: int64.
    """

    def __init__(self, vocab_size: int, max_context: int, device: torch.device) -> None:
        def zeros(*shape: int, dtype: torch.dtype = torch.int64) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        self.device = device
        self.token, self.position, self.number = zeros(1), zeros(1), zeros(1)
        self.alive = zeros(1, dtype=torch.bool)
        self.history = zeros(max_context + 1, dtype=torch.int32)
        self.counts = zeros(vocab_size, dtype=torch.int32)
        self.stops = zeros(vocab_size, dtype=torch.bool)
        self.draws = zeros(DRAWS, dtype=torch.float64)
        self.top_k, self.window = zeros(1), zeros(1)
        self.temperature, self.top_p, self.min_p, self.penalty = (
            zeros(1, dtype=torch.float64) for _ in range(4)
        )
        self._seed, self._draws_from = 0, -1
        self.turn = TurnState(
            self.token,
            self.position,
            self.number,
            self.alive,
            self.history,
            self.counts,
            self.stops,
            self.window,
            self.penalty,
        )

    def begin(
        self, ids: Sequence[int], params: SamplingParams, stops: Collection[int], number: int = 0
    ) -> None:
        """A turn that is at `ids`, all but the last in the cache, and at its step `number`. params: with a
        seed.
        """
        position, vocab = len(ids) - 1, self.counts.shape[0]
        first = max(0, len(ids) - params.penalty_window)
        recent = torch.tensor(ids[first:], dtype=torch.int64, device=self.device)
        self.history[first : len(ids)] = recent.to(torch.int32)
        self.counts.zero_().index_add_(0, recent, torch.ones_like(recent, dtype=torch.int32))
        self.stops.zero_()
        inside = [token for token in stops if token < vocab]
        if inside:
            self.stops[torch.tensor(inside, device=self.device)] = True
        self.token.fill_(ids[-1])
        self.position.fill_(position)
        self.number.fill_(number)
        self.alive.fill_(True)
        self.temperature.fill_(params.temperature)
        self.top_p.fill_(params.top_p)
        self.min_p.fill_(params.min_p)
        self.penalty.fill_(params.repetition_penalty)
        self.top_k.fill_(min(params.top_k or vocab, vocab))
        self.window.fill_(params.penalty_window)
        self._seed = params.seed or 0
        self._draws_from = -1

    def refill(self, number: int) -> None:
        """Before step `number`: see to it that its random number is there."""
        first = number - number % DRAWS
        if first != self._draws_from:
            # Made on the host: the device's memory stays as it is.
            drawn = uniforms(self._seed, first, DRAWS, torch.device("cpu"))
            drawn = drawn.pin_memory() if self.device.type == "cuda" else drawn
            self.draws.copy_(drawn, non_blocking=True)
            self._draws_from = first

    def advance(self, chosen: Tensor, goes_on: Tensor) -> None:
        """The step's end. chosen: (1,) int64; goes_on: (1,) bool, whether it will be fed."""
        self.position += self.alive
        self.number += self.alive
        goes_on = goes_on & self.alive
        self.token.copy_(torch.where(goes_on, chosen, self.token))
        self.alive.copy_(goes_on)
        self._enter(goes_on.to(torch.int32))

    def _enter(self, one: Tensor) -> None:
        """The token that will be fed into the history and the counts; one: (1,) int32, 0 if there is none."""
        self.history.index_copy_(0, self.position, self.token.to(torch.int32))
        self.counts.index_add_(0, self.token, one)
        leaving = self.position - self.window
        left = self.history.index_select(0, leaving.clamp(min=0)).long()
        self.counts.index_add_(0, left, -one * (leaving >= 0))
