"""Sentences that tell the model why a call of its own could not be accepted."""

NOT_CLOSED = "A parameter or the call was not closed; close each before what follows it."
_ENDINGS = {
    "length": "The call was cut off by the length limit; make it shorter, or do it in several calls.",
    "stopped": "The call was cut off because the user stopped the answer.",
}
_CUT_OFF = "The answer ended before the call was complete; send the whole call again."


def cut_off(reason: str) -> str:
    """Why a call is incomplete, from the reason for which the completion ended."""
    return _ENDINGS.get(reason, _CUT_OFF)
