"""Conversations as files: JSON without loss, Markdown to read, OpenAI-style `messages` to bring in."""

from dsv4chat.exchange.conversation import ExchangeError, WholeConversation
from dsv4chat.exchange.reading import read_conversations
from dsv4chat.exchange.whole_file import whole_file
from dsv4chat.exchange.writing import write_json, write_markdown

__all__ = [
    "ExchangeError",
    "WholeConversation",
    "read_conversations",
    "whole_file",
    "write_json",
    "write_markdown",
]
