"""Sentences for errors that are none of our own: out of memory, and what nobody foresaw."""

OUT_OF_MEMORY = (
    "There is not enough memory for this; close other programs, or choose a smaller --max-context or model."
)


def unexpected(error: Exception) -> str:
    """A sentence for an error nobody foresaw; its traceback is in the log."""
    name = type(error).__name__
    if name == "OutOfMemoryError" or "not enough memory" in str(error):
        return OUT_OF_MEMORY
    text = " ".join(str(error).split())[:300]
    return f"The engine met an error it did not expect ({name}: {text}); its log has the details."
