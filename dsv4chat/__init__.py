"""dsv4chat: an interactive terminal chat for DeepSeek-V4 with its own embedded runtime."""

__version__ = "0.1.0"
