"""When Python looks for garbage in cycles: not while the screen has something better to do.

A look through everything takes 30 ms and more, in which no key is answered. What is there when the model is
ready, a tokenizer's large tables among it, lives as long as the program and is never looked at again; what
came since is looked at between answers.
"""

import gc

_NEVER = 1_000_000_000
_USUAL = gc.get_threshold()


def leave_what_is_there() -> None:
    """Everything there is now will stay."""
    gc.freeze()


def postpone() -> None:
    """An answer is being written: no look at what is old."""
    gc.set_threshold(_USUAL[0], _USUAL[1], _NEVER)


def resume() -> None:
    """Nothing is being written."""
    gc.set_threshold(*_USUAL)
