"""What the commands for whole conversations do: find, name, export, delete, bring back."""

from contextlib import suppress
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING

from dsv4chat.app.screens.chat_keys import ChatKeys

if TYPE_CHECKING:
    from dsv4chat.store import Found, Repository


class ConversationCommands(ChatKeys):
    """`command_NAME(argument)` for commands with an argument, actions for the others."""

    _deleted_conversations: tuple[int, ...] = ()  # since the app was opened, the last one last

    def say(self, sentence: str, severity: str = "information") -> None:
        """Show a sentence."""
        raise NotImplementedError

    async def command_find(self, argument: str) -> None:
        session = self.session
        if session is None:
            return
        from dsv4chat.app.screens.search_screen import PAGE, SearchScreen

        async def search(words: str, before: int | None) -> "list[Found]":
            return await session.ask(lambda history: history.search(words, PAGE, before=before)) or []

        def chosen(found: "Found | None") -> None:
            if found is not None:
                session.open_conversation(found.conversation, found.message)

        self.app.push_screen(SearchScreen(search, argument), chosen)

    async def action_find(self) -> None:
        await self.command_find("")

    async def command_rename(self, argument: str) -> None:
        if self.session is None or self.session.record is None:
            self.say("A conversation has no title before its first message.", "warning")
        else:
            self.session.rename(argument)

    async def command_system(self, argument: str) -> None:
        if not argument:
            await self.run_action("this_conversation")
        elif self.session is not None:
            self.session.set_settings(replace(self.session.settings, system=argument))
            self.say("The system prompt of this conversation is set.")

    async def command_export(self, argument: str) -> None:
        session = self.session
        if session is None or session.record is None:
            self.say("There is nothing to export yet.", "warning")
            return
        from dsv4chat.app.exporting import export_conversation
        from dsv4chat.exchange import ExchangeError

        number = session.record.id
        try:
            path = await session.ask(lambda history: export_conversation(history, number, argument))
        except FileExistsError as error:
            self.say(f"{error.filename} is there already; choose another name.", "error")
        except ExchangeError as error:
            self.say(str(error), "error")
        except OSError as error:
            self.say(f"The conversation cannot be written: {error.strerror or error}.", "error")
        else:
            if path is not None and path.stem == PurePath(argument).name:
                self.say(f"Written to {path}: without an ending it is Markdown, .json gives JSON.")
            elif path is not None:
                self.say(f"Written to {path}.")

    async def command_forget(self, argument: str) -> None:
        from dsv4chat.app.forgetting import forget

        if argument and (not argument.isdecimal() or len(argument) > 9):
            shown = argument if len(argument) <= 40 else f"{argument[:40]}…"
            self.say(f"/forget takes a number of turns, not {shown!r}.", "warning")
        elif self.session is not None:
            self.say(forget(self.session, int(argument) if argument else None))

    async def action_caches(self) -> None:
        session = self.session
        if session is None:
            return
        from dsv4chat.app.screens.caches_screen import CachesScreen
        from dsv4chat.store import StoreMissing

        caches = session.warm.latest

        def read(history: "Repository") -> dict[int, str]:
            titles = {}
            for number in (int(cache.conversation) for cache in caches if cache.conversation.isdecimal()):
                with suppress(StoreMissing):
                    titles[number] = history.conversation(number).title
            return titles

        self.app.push_screen(CachesScreen(caches, await session.ask(read) or {}, session.link.saves))

    async def action_delete_conversation(self) -> None:
        session = self.session
        if session is None or session.record is None:
            self.say("This conversation is empty.", "warning")
            return
        number = session.record.id

        def delete(history: "Repository") -> bool:
            history.delete(number)
            return True

        session.new_conversation()
        if not await session.ask(delete):
            session.open_conversation(number)
            return
        session.warm.deleted(number)
        self._deleted_conversations += (number,)
        self.say("The conversation is deleted; /undo brings it back.")

    async def action_undo(self) -> None:
        """What was deleted last in the open conversation, then the conversations that were deleted."""
        session = self.session
        if session is None:
            return
        if session.tree.can_undo or not self._deleted_conversations:
            session.tree.undo()
            return
        if not session.tree.idle():
            return
        *others, number = self._deleted_conversations
        self._deleted_conversations = tuple(others)

        def restore(history: "Repository") -> bool:
            history.restore(number)
            return True

        if not await session.ask(restore):
            self._deleted_conversations += (number,)
            return
        session.warm.restored()
        session.open_conversation(number)
