"""The steps of a turn after its prompt: choose a token, feed it, and so on, wherever the choice is made."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from dsv4chat.runtime.sampler import Sampled, sample

if TYPE_CHECKING:
    from dsv4chat.runtime.generation import TurnRequest
    from dsv4chat.runtime.session import Session


@dataclass(frozen=True, slots=True)
class Choice:
    """A chosen token. stops: it ends the turn, and is not fed. residual: |X| after each layer."""

    sampled: Sampled
    residual: list[float]
    stops: bool


class Steps(Protocol):
    """`start` once, then `next` and `keep` in turns."""

    def start(self) -> None:
        """Feed the prompt's last id."""

    def next(self) -> Choice:
        """The token after all that was fed. Raises SamplingError if there is none to choose."""

    def keep(self) -> None:
        """Feed the token of the last `next`, if that is not done already. Raises EngineError if another turn
        has begun.
        """


def steps_for(session: "Session", request: "TurnRequest", turn: int) -> Steps:
    """The steps of a turn that `session.prepare` has planned: the device's own where it has some."""
    if session.model.decode_step is not None:
        from dsv4chat.runtime.gpu.steps import DeviceSteps

        return DeviceSteps(session, request, turn, session.model.decode_step)
    return HostSteps(session, request, turn)


class HostSteps:
    """The model's forward pass and the sampler, one after the other."""

    def __init__(self, session: "Session", request: "TurnRequest", turn: int) -> None:
        self._session, self._request, self._turn = session, request, turn
        self._history = list(request.ids)
        self._step = 0

    def start(self) -> None:
        self._output = self._session.feed(self._history[-1:], self._turn)

    def next(self) -> Choice:
        request = self._request
        sampled = sample(
            self._output.logits[-1],
            self._history,
            request.params,
            self._step,
            vocab_limit=request.vocab_limit,
            alternatives=request.alternatives,
        )
        self._step += 1
        self._history.append(sampled.id)
        return Choice(sampled, self._output.residual.tolist(), sampled.id in request.stops)

    def keep(self) -> None:
        self._output = self._session.feed(self._history[-1:], self._turn)
