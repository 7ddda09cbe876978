"""The terminal interface. `run` opens it; nothing else is imported before it is called."""

import os

# Textual reads it as it is imported. A key's echo waits for the next frame: 4 ms at most, not 17.
os.environ.setdefault("TEXTUAL_FPS", "250")


def run(
    *,
    model: str = "demo",
    profile: str | None = None,
    device: str | None = None,
    dtype: str | None = None,
    kv_dtype: str | None = None,
    kernels: str | None = None,
    max_context: int | None = None,
    cache_memory: float | None = None,
    thinking: bool | None = None,
    effort: str | None = None,
) -> int:
    """Open the app and return its exit code when it is left.

    model: a folder or "demo". profile: "preview" or "current", None: what the model says. device, dtype,
    kv_dtype, kernels, max_context: as in `Engine.load`. cache_memory: GB for caches of conversations not in
    use. thinking, effort: of new conversations. What is None is decided by the settings file.
    """
    from dsv4chat.app import garbage

    garbage.put_off()
    from dsv4chat.app.options import ChatOptions
    from dsv4chat.app.start import open_app

    return open_app(
        ChatOptions(
            model, profile, device, dtype, kv_dtype, kernels, max_context, cache_memory, thinking, effort
        )
    )
