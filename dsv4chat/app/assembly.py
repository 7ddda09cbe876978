"""Puts the real parts together: settings, history, tokenizer, the engine's process."""

from functools import partial

from dsv4chat.app.engine_link import read_text_side
from dsv4chat.app.events import HistoryInMemory, Notice
from dsv4chat.app.options import ChatOptions
from dsv4chat.app.preference_effects import take_effect
from dsv4chat.app.preferences import Preferences
from dsv4chat.app.session import ChatSession
from dsv4chat.engine_process import EngineProcess
from dsv4chat.paths import data_folder, model_folder, no_data_notice, no_log_notice
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
    trouble = no_data_notice()
    thinking = settings.chat.thinking if options.thinking is None else options.thinking
    session = ChatSession(
        make_engine=EngineProcess,
        read_text=lambda: read_text_side(model_folder(options.model), options.profile),
        load=Load(
            model=options.model,
            device=options.device or settings.engine.device,
            dtype=options.dtype or settings.engine.dtype,
            kv_dtype=options.kv_dtype or settings.engine.kv_dtype,
            max_context=options.max_context or settings.engine.max_context,
        ),
        store=BackgroundStore(None if trouble else data_folder()),
        settings=ConversationSettings(
            system=settings.chat.system,
            thinking=thinking,
            effort=options.effort or settings.chat.effort,
        ),
        sampling=settings.sampling.params(),
        preferences=preferences,
    )
    preferences.changed.append(partial(take_effect, session))
    if trouble:
        session.events.append(HistoryInMemory(trouble))
    elif no_log := no_log_notice():
        session.events.append(Notice(no_log, "warning"))
    if loaded.notice:
        session.events.append(Notice(loaded.notice, "warning"))
    return session
