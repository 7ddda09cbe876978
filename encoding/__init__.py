"""Conversations to token ids, and completions back to messages.

Stands alone: imports no torch and nothing of the runtime. The tokenizer library is loaded on first use only.
"""

from dsv4chat.encoding.conversation import Conversation, Message, ToolCall
from dsv4chat.encoding.errors import EncodingError
from dsv4chat.encoding.events import (
    AnswerText,
    Event,
    ReasoningText,
    Stopped,
    ToolCallArgument,
    ToolCallEnd,
    ToolCallStart,
)
from dsv4chat.encoding.parser import CompletionParser
from dsv4chat.encoding.profile import Profile, ProfileChoice, detect_profile
from dsv4chat.encoding.render import render
from dsv4chat.encoding.request import conversation_from_request, tools_from_request
from dsv4chat.encoding.segments import Rendered, Segment
from dsv4chat.encoding.tokenizer import Encoded, StreamDecoder, Tokenizer

__all__ = [
    "AnswerText",
    "CompletionParser",
    "Conversation",
    "Encoded",
    "EncodingError",
    "Event",
    "Message",
    "Profile",
    "ProfileChoice",
    "ReasoningText",
    "Rendered",
    "Segment",
    "Stopped",
    "StreamDecoder",
    "Tokenizer",
    "ToolCall",
    "ToolCallArgument",
    "ToolCallEnd",
    "ToolCallStart",
    "conversation_from_request",
    "detect_profile",
    "render",
    "tools_from_request",
]
