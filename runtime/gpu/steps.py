"""The steps of a turn on the device: each feeds the token of the one before and chooses the next by itself.

The host launches a step before it reads the record of the one before, so the device does not wait for it. A
step launched after the turn's last token changes nothing, and one whose token was handed out has fed it.

A live cache has one `Decoding`. A turn that begins on it while another is unfinished hands that one the
record it has not read yet; if it goes on later, it takes up from there.
"""

from typing import TYPE_CHECKING

from dsv4chat.runtime.gpu import sampler
from dsv4chat.runtime.gpu.decoding import Decoding
from dsv4chat.runtime.gpu.record import Record
from dsv4chat.runtime.gpu.step import DecodeStep
from dsv4chat.runtime.sampler import Sampled, unsuitable
from dsv4chat.runtime.steps import Choice

if TYPE_CHECKING:
    from dsv4chat.runtime.generation import TurnRequest
    from dsv4chat.runtime.session import Session

_UNSUITABLE = {
    sampler.NOT_A_NUMBER: "not a number",
    sampler.INFINITE: "infinite",
    sampler.NOTHING: "all -inf",
}


class DeviceSteps:
    """See `steps.Steps`."""

    def __init__(self, session: "Session", request: "TurnRequest", turn: int, step: DecodeStep) -> None:
        self._session, self._request, self._turn = session, request, turn
        self._history = list(request.ids)
        live = session.live
        if live.decoding is None:
            live.decoding = Decoding(step, live.cache)
        self._decoding: Decoding = live.decoding
        self._record: Record | None = None
        self._number = 0

    def start(self) -> None:
        self._session.ready(self._turn)
        self._begin()

    def next(self) -> Choice:
        decoding = self._decoding
        self._session.ready(self._turn)
        self._number += 1
        if decoding.user is self:
            self._launch()
            record = decoding.read()
            goes_on = record.outcome == sampler.CHOSEN
            self._fed([record.id] if goes_on else [])
            self._history.append(record.id)
        else:
            assert self._record is not None
            record = self._record
            self._history.append(record.id)
            if record.outcome == sampler.CHOSEN:
                self._begin()
        if record.outcome in _UNSUITABLE:
            raise unsuitable(_UNSUITABLE[record.outcome])
        alternatives = record.alternatives[: self._request.alternatives]
        sampled = Sampled(record.id, record.logprob, alternatives)
        return Choice(sampled, record.residual, record.outcome == sampler.STOPPED)

    def keep(self) -> None:
        pass  # the step launched by `next` has fed it

    def hand_over(self, record: Record) -> None:
        """Another turn begins; this is the choice that was not read."""
        self._record = record

    def _begin(self) -> None:
        """Take the decoding over and feed the history's last id; the next token is that of step `_number`."""
        request = self._request
        self._decoding.begin(
            self._history, request.params, request.stops, request.vocab_limit, self, self._number
        )
        self._launch()
        self._fed(self._history[-1:])

    def _launch(self) -> None:
        live = self._session.live
        live.whole = False
        self._decoding.launch(live.cache.begin(1))

    def _fed(self, ids: list[int]) -> None:
        """The step that was launched has fed these; none: it came after the end and changed nothing."""
        live = self._session.live
        live.cache.commit(len(ids))
        live.whole = True
        if ids:
            self._session.note(ids)
