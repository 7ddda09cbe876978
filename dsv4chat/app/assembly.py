"""Puts the real parts together: settings, history, tokenizer, the engine's process."""

from functools import partial

from dsv4chat.app.engine_link import read_text_side
from dsv4chat.app.events import HistoryInMemory, Notice
from dsv4chat.app.options import ChatOptions
from dsv4chat.app.preference_effects import take_effect
from dsv4chat.app.preferences import Preferences
from dsv4chat.app.session import ChatSession
from dsv4chat.engine_process import EngineProcess
from dsv4chat.paths import (
    data_folder,
    model_folder,
    no_cache_notice,
    no_data_notice,
    no_log_notice,
    saved_caches,
)
from dsv4chat.runtime.protocol import Load
from dsv4chat.settings import load_settings
from dsv4chat.settings_file import settings_path
from dsv4chat.store import BackgroundStore, ConversationSettings


def build_session(options: ChatOptions) -> ChatSession:
    """A session of the real engine and history. Slow (imports); to be called in a thread."""
    loaded = load_settings()
    settings = loaded.settings
    try:
        preferences = Preferences(settings, settings_path())
    except OSError:
        preferences = Preferences(settings)
    engine = settings.engine
    trouble, no_cache = no_data_notice(), no_cache_notice()
    thinking = settings.chat.thinking if options.thinking is None else options.thinking
    session = ChatSession(
        make_engine=EngineProcess,
        read_text=lambda: read_text_side(model_folder(options.model), options.profile),
        load=Load(
            model=options.model,
            device=options.device or engine.device,
            dtype=options.dtype or engine.dtype,
            kv_dtype=options.kv_dtype or engine.kv_dtype,
            kernels=options.kernels or engine.kernels,
            max_context=options.max_context or engine.max_context,
            cache_memory=_bytes(
                engine.cache_memory if options.cache_memory is None else options.cache_memory
            ),
            cache_disk=_bytes(engine.cache_disk),
            # Without a history the numbers of conversations begin anew each time.
            cache_folder=None if trouble or no_cache or not engine.cache_disk else str(saved_caches()),
        ),
        store=BackgroundStore(None if trouble else data_folder()),
        settings=ConversationSettings(
            system=settings.chat.system,
            thinking=thinking,
            effort=options.effort or settings.chat.effort,
            tools=[dict(one) for one in preferences.toolbox().definitions] if settings.tools.enabled else [],
        ),
        preferences=preferences,
    )
    preferences.changed.append(partial(take_effect, session))
    if trouble:
        session.events.append(HistoryInMemory(trouble))
    elif no_cache:
        session.events.append(Notice(no_cache, "warning"))
    elif no_log := no_log_notice():
        session.events.append(Notice(no_log, "warning"))
    if loaded.notice:
        session.events.append(Notice(loaded.notice, "warning"))
    return session


def _bytes(gigabytes: float) -> int:
    return min(int(gigabytes * 1e9), 2**62)
