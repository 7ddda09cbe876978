"""The real tokenizer, read once."""

import pytest
import tokenizers

from dsv4chat.encoding import Tokenizer
from tests.support.deepseek import REAL_TOKENIZER


@pytest.fixture(scope="session")
def real() -> Tokenizer:
    return Tokenizer.from_folder(REAL_TOKENIZER)


@pytest.fixture(scope="session")
def full() -> tokenizers.Tokenizer:
    """The library's own reading of tokenizer.json, which matches added tokens in text."""
    return tokenizers.Tokenizer.from_file(str(REAL_TOKENIZER / "tokenizer.json"))
