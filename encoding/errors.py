"""The one exception of the encoder."""


class EncodingError(Exception):
    """A conversation, tokenizer or file that cannot be used; `str(error)` is a sentence for a person."""
