"""What the commands of the chat screen do, apart from plain keys and those for whole conversations."""

from typing import TYPE_CHECKING

from textual.widgets import TextArea

from dsv4chat.app.commands import BY_NAME, Command, completions, parse
from dsv4chat.app.screens.conversation_commands import ConversationCommands
from dsv4chat.app.widgets.approval_bar import ApprovalBar
from dsv4chat.app.widgets.command_offers import CommandOffers
from dsv4chat.app.widgets.composer import Composer

if TYPE_CHECKING:
    from dsv4chat.app.message_actions import MessageActions
    from dsv4chat.store import MessageRecord


class ChatCommands(ConversationCommands):
    """`command_NAME(argument)` for commands with an argument, actions for the others."""

    message_actions: "MessageActions | None"

    async def carry_out(self, text: str) -> bool:
        """Do what a typed command says; False, and a sentence, if it is no good command."""
        name, argument = parse(text) or ("", "")
        command = BY_NAME.get(name)
        if command is None:
            self.say(f"There is no command /{name}. To send this as it is, begin with a space.", "warning")
            return False
        if command.needs_argument and not argument:
            self.say(f"/{name} needs {command.argument}: {command.words.lower()}.", "warning")
            return False
        if argument and not command.argument:
            self.say(f"/{name} takes nothing after it.", "warning")
            return False
        return await self.run_command(command, argument)

    async def run_command(self, command: Command, argument: str = "") -> bool:
        """Carry out a command of the table; False if the argument is none of its choices."""
        if command.choices and argument and argument not in command.choices:
            self.say(f"/{command.name} takes {', '.join(command.choices)}, not {argument!r}.", "warning")
            return False
        if command.argument:
            await getattr(self, f"command_{command.name}")(argument)
        else:
            await self.run_action(command.action)
        return True

    async def choose_command(self, command: Command) -> None:
        """Carry it out, or write its beginning into the input if it needs something after it."""
        if not command.needs_argument:
            await self.run_command(command)
            return
        composer = self.query_one(Composer)
        composer.set_text(f"/{command.name} ")
        composer.focus()

    # -- what widgets say ------------------------------------------------------------------------------

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        area = event.text_area
        if isinstance(area, Composer):
            if self.presenter is not None:
                self.presenter.garbage.busy()
            line = area.document.get_line(0) if area.document.line_count == 1 else ""
            themes = sorted(self.app.available_themes) if line.startswith("/theme ") else ()
            self.query_one(CommandOffers).show(completions(line, themes))

    async def on_command_offers_chosen(self, event: CommandOffers.Chosen) -> None:
        """What was taken goes into the input; Enter carries it out unless something has to follow it."""
        composer = self.query_one(Composer)
        command = BY_NAME[event.text[1:].partition(" ")[0]]
        complete = " " in event.text or not command.needs_argument
        if event.sent and complete:
            composer.clear()
            await self.carry_out(event.text)
        else:
            composer.set_text(event.text if " " in event.text or not command.argument else f"{event.text} ")
        if " " in event.text:
            self.query_one(CommandOffers).show(())

    def on_approval_bar_decided(self, event: ApprovalBar.Decided) -> None:
        if self.session is not None:
            self.session.tools.decide(event.answer)

    # -- messages --------------------------------------------------------------------------------------

    def action_edit_last(self) -> None:
        if self.message_actions is not None:
            self.message_actions.edit_last()

    def action_again(self) -> None:
        if self.session is not None:
            self.session.tree.regenerate()

    def action_resume(self) -> None:
        if self.session is not None:
            self.session.tree.resume()

    async def command_branch(self, argument: str) -> None:
        """Another branch at the last message that has any."""
        if self.session is None or self.message_actions is None:
            return
        at = next((one.id for one in reversed(self.session.path) if one.id in self.session.branches), None)
        if at is None:
            self.say("This conversation has no branches here; /edit and /again make one.")
        else:
            self.message_actions.switch(at, 1 if argument == "on" else -1)

    def action_copy_answer(self) -> None:
        answer = self._last_answer()
        if answer is None:
            self.say("There is no answer to copy yet.", "warning")
        else:
            self.copy_text(answer.content or answer.reasoning or "")

    def action_copy_code(self) -> None:
        from dsv4chat.app.code_blocks import code_blocks

        answer = self._last_answer()
        blocks = code_blocks(answer.content) if answer is not None else []
        if not blocks:
            self.say("The last answer has no code block.", "warning")
        elif len(blocks) == 1:
            self.copy_text(blocks[0].text)
        else:
            from dsv4chat.app.screens.code_screen import CodeScreen

            self.app.push_screen(CodeScreen(blocks), lambda text: self.copy_text(text) if text else None)

    def _last_answer(self) -> "MessageRecord | None":
        path = self.session.path if self.session is not None else []
        return next((record for record in reversed(path) if record.role == "assistant"), None)

    def action_editor(self) -> None:
        self.run_worker(self._edit_outside(), group="editor", exclusive=True)

    async def _edit_outside(self) -> None:
        from dsv4chat.app.external_editor import EditorError, edit

        composer = self.query_one(Composer)
        try:
            composer.set_text(await edit(self.app, composer.whole_text))
        except EditorError as error:
            self.say(str(error), "error")
        composer.focus()

    # -- the model -------------------------------------------------------------------------------------

    async def command_thinking(self, argument: str) -> None:
        if self.session is not None:
            settings = self.session.settings
            on = argument == "on" if argument else not settings.thinking
            self.session.set_mode(on, settings.effort)

    async def command_effort(self, argument: str) -> None:
        if not argument:
            await self.run_action("choose_effort")
        elif self.session is not None:
            self.session.set_mode(True, None if argument == "default" else argument)

    async def command_tools(self, argument: str) -> None:
        if self.session is not None:
            self.session.tools.switch(argument == "on" if argument else not self.session.tools.on)

    async def action_toggle_tools(self) -> None:
        await self.command_tools("")

    async def action_approvals(self) -> None:
        session = self.session
        if session is None:
            return
        from dsv4chat.app.screens.approvals_screen import ApprovalsScreen

        toolbox = await session.tools.toolbox()
        kept = await session.ask(lambda history: history.approvals()) or {}

        def keep(tool: str, decision: str | None) -> None:
            session.store.submit(lambda history: history.set_approval(tool, decision))

        self.app.push_screen(ApprovalsScreen(toolbox.definitions, kept, keep))

    def action_model(self) -> None:
        ready = self.session.link.ready if self.session is not None else None
        if ready is None:
            self.say("No model is loaded; /restart loads it.", "warning")
        else:
            self.say(
                f"{ready.path}: {ready.parameters:,} parameters, {ready.layers} layers, on {ready.device},"
                f" cache {ready.kv_dtype}, context {ready.max_context:,} tokens."
                " Another model: dsv4chat --model FOLDER."
            )

    # -- the screen ------------------------------------------------------------------------------------

    async def command_theme(self, argument: str) -> None:
        if not argument:
            self.app.action_change_theme()
        elif argument in self.app.available_themes:
            self.app.theme = argument
        else:
            self.say(f"There is no theme {argument}; /theme shows all.", "warning")

    def action_settings(self) -> None:
        if self.session is None:
            return
        from dsv4chat.app.screens.settings_screen import SettingsScreen
        from dsv4chat.sampling_defaults import named

        themes = sorted(self.app.available_themes)
        own = {f"sampling.{name}": value for name, value in named(self.session.model_sampling).items()}
        self.app.push_screen(SettingsScreen(self.session.preferences, {"appearance.theme": themes}, own))
