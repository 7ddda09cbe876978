"""What the keys of the chat screen do, apart from those of single messages."""

from typing import TYPE_CHECKING

from dsv4chat.app.keys import bindings, usable
from dsv4chat.app.screens.sized_screen import SizedScreen
from dsv4chat.app.widgets.approval_bar import ApprovalBar
from dsv4chat.app.widgets.composer import Composer
from dsv4chat.app.widgets.transcript import Transcript
from dsv4chat.app.widgets.waiting_messages import WaitingMessages

if TYPE_CHECKING:
    from textual.binding import Binding

    from dsv4chat.app.presenter import ChatPresenter
    from dsv4chat.app.screens.conversation_screen import ConversationForm
    from dsv4chat.app.session import ChatSession
    from dsv4chat.store import MessageRecord


class ChatKeys(SizedScreen):
    """Actions that are bound to keys in `ChatScreen`; each may come before there is a session."""

    session: "ChatSession | None"
    presenter: "ChatPresenter | None"

    def copy_text(self, text: str) -> None:
        """Copy and tell what happened."""
        raise NotImplementedError

    def refresh_figures(self, force: bool = False) -> None:
        """Draw the panels of numbers again."""
        raise NotImplementedError

    # -- the answer ------------------------------------------------------------------------------------

    def action_stop(self) -> None:
        """Stop the answer; what waits to be sent comes back into the input."""
        composer = self.query_one(Composer)
        waiting = self.query_one(WaitingMessages).take_all()
        if waiting:
            composer.set_text(f"{waiting}\n\n{composer.text}" if composer.text else waiting)
        if self.session is not None:
            self.session.stop()

    def action_leave(self) -> None:
        """Back to the input; a message that is being edited stays as it was."""
        composer = self.query_one(Composer)
        if composer.has_focus:
            composer.end_edit()
        composer.focus()

    async def action_interrupt(self) -> None:
        """Copies what is selected, else stops the answer, else clears the input, else asks about quitting."""
        composer = self.query_one(Composer)
        selected = composer.selected_text if composer.has_focus else ""
        selected = selected or self.get_selected_text() or ""
        if selected:
            self.clear_selection()
            self.copy_text(selected)
        elif self.session is not None and self.session.busy:
            self.action_stop()
        elif composer.editing is not None:
            composer.end_edit()
        elif composer.text:
            composer.clear()
        else:
            self.action_ask_to_quit()

    def action_ask_to_quit(self) -> None:
        from dsv4chat.app.screens.quit_screen import QuitScreen

        self.app.push_screen(QuitScreen(), lambda wanted: self.app.exit() if wanted else None)

    # -- mode ------------------------------------------------------------------------------------------

    def action_toggle_thinking(self) -> None:
        if self.session is not None:
            settings = self.session.settings
            self.session.set_mode(not settings.thinking, settings.effort)

    def action_choose_effort(self) -> None:
        if self.session is None:
            return
        from dsv4chat.app.screens.effort_screen import EffortScreen

        session = self.session

        def chosen(effort: str | None) -> None:
            if effort is not None:
                session.set_mode(True, effort or None)

        self.app.push_screen(EffortScreen(session.settings.effort), chosen)

    def look_inside(self, record: "MessageRecord") -> None:
        """Open the inspector on an answer's tokens."""
        if self.session is not None:
            self.run_worker(self._look_inside(self.session, record), exclusive=True, group="look")

    async def _look_inside(self, session: "ChatSession", record: "MessageRecord") -> None:
        from dsv4chat.app.looking import cells_of
        from dsv4chat.app.screens.inspector_screen import InspectorScreen

        cells = await cells_of(session, record)
        if isinstance(cells, str):
            self.notify(cells, severity="warning", markup=False)
        else:
            self.app.push_screen(InspectorScreen(cells))

    def action_unfold(self) -> None:
        transcript = self.query_one(Transcript)
        transcript.set_unfolded(not transcript.unfolded)

    # -- conversations ---------------------------------------------------------------------------------

    def action_new_conversation(self) -> None:
        if self.session is not None:
            self.session.new_conversation()
            self.query_one(Composer).focus()

    async def action_conversations(self) -> None:
        if self.session is None:
            return
        from dsv4chat.app.screens.conversations_screen import PAGE, ConversationsScreen

        session = self.session
        current = session.record.id if session.record else None

        def chosen(conversation: int | None) -> None:
            if conversation is not None and conversation != current:
                session.open_conversation(conversation)

        first = await session.summaries(PAGE)
        self.app.push_screen(ConversationsScreen(first, session.summaries, current), chosen)

    def action_this_conversation(self) -> None:
        if self.session is None:
            return
        import msgspec

        from dsv4chat.app.screens.conversation_screen import ConversationScreen

        session = self.session

        def filled(form: "ConversationForm | None") -> None:
            if form is not None:
                session.set_settings(form.settings)
                if form.title != session.title:
                    session.rename(form.title)

        usual = msgspec.to_builtins(session.sampling)
        self.app.push_screen(ConversationScreen(session.title, session.settings, usual), filled)

    # -- screen ----------------------------------------------------------------------------------------

    def action_toggle_panels(self) -> None:
        """Show or hide the panels; without room beside the conversation: one line, below it, none."""
        if self.has_class("-wide"):
            self.toggle_class("-no-panels")
        elif self.has_class("-below"):
            self.remove_class("-below").add_class("-no-panels")
        elif self.has_class("-no-panels"):
            self.remove_class("-no-panels")
        elif self.has_class("-low") or self.has_class("-tall"):
            self.add_class("-below")
        else:
            self.notify("The panels need a window of 20 rows.", markup=False)
        self.refresh_figures(force=True)

    def on_resize(self) -> None:
        """What was put below the conversation has room beside it in a wide window, and none in a flat one."""
        if self.size.width >= 100 or self.size.height < 20:
            self.remove_class("-below")

    def action_help(self) -> None:
        from dsv4chat.app.screens.help_screen import HelpScreen

        own = self.all_bindings()
        changed = usable(self.session.preferences.settings.keys) if self.session is not None else {}
        self.app.push_screen(HelpScreen(own, changed, tuple(bindings(Transcript))))

    def all_bindings(self) -> "dict[str, Binding]":
        """All key bindings that have a name."""
        return bindings(type(self), Transcript, ApprovalBar.Choices, type(self.app))

    def action_page(self, direction: int) -> None:
        transcript = self.query_one(Transcript)
        if direction < 0:
            transcript.scroll_page_up(animate=False)
        else:
            transcript.scroll_page_down(animate=False)

    async def action_beginning(self) -> None:
        await self.query_one(Transcript).to_beginning()

    def action_end(self) -> None:
        self.query_one(Transcript).to_end()

    # -- engine ----------------------------------------------------------------------------------------

    def action_log(self) -> None:
        from dsv4chat.app.screens.log_screen import LogScreen

        engine = self.session.link.engine if self.session is not None else None
        down = self.presenter.last_down if self.presenter is not None else None
        path = engine.log_path if engine is not None else down.log if down is not None else None
        if path is not None:
            self.app.push_screen(LogScreen(path))

    def action_restart_engine(self) -> None:
        if self.session is not None:
            self.session.start_engine()
