"""Conversations to token ids, and completions back to messages. Stands alone: imports no torch, no runtime."""
