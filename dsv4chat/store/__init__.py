"""The history: conversations as trees of messages in one SQLite file, private, shared by running programs.

The app opens it as `BackgroundStore(folder)` and asks `await store.run(lambda history: history.METHOD(...))`
(waits) or `store.submit(...)` (does not); a command opens it as `open_history(folder).repository`. `history`
is a `Repository`. Numbers are the ids of rows. Every method is one transaction and raises
StoreError, a sentence for a person.

Conversations (conversations.py)
    create_conversation(settings) -> ConversationRecord      conversation(number) -> ConversationRecord
    latest_conversation() -> ConversationRecord | None       summaries(limit, offset, deleted=) -> [Summary]
    note_open(number | None), left_open() -> ConversationRecord | None       what to show at the next start
    update_settings(number, settings)        system, thinking, effort, sampling, tools: of this one only
    rename(number, title, by)                by: "person" (default; stays), "model", "text" (fallback)
    delete(number), restore(number), purge(number), purge_deleted(before)
Messages (messages.py)
    message(number), messages(numbers) -> MessageRecord
    path(leaf, last=None) -> [MessageRecord] whole, or the last so many; then path(page[0].parent, last=)
    path_ids(leaf) -> [number]               of the whole path, without reading texts
    add_message(conversation, parent, role, content, ...)    becomes the active leaf
    edit(message, content)                   a user message said differently: a new branch beside it
    siblings(message), branches(messages) -> {message: Branch(index, ids)} where there is more than one
    switch(message) -> leaf                  show the branch through it, down to where one was last
    activate(conversation, leaf), newest_leaf(message)
    delete_message(message) -> Deleted       with all below; restore_message(deleted) undoes it
Answers (answers.py)
    begin_answer(conversation, parent, generation, thinking=, effort=)   again: the parent of the old answer
    resume_answer(answer)                    continue a stopped one: its tokens stay
    save_progress(answer, content, reasoning, start, new, tool_calls), finish_answer(answer, state, ...)
    figures(answer, start=0, end=None) -> TokenFigures, logprobs(answer) -> [float]      for the inspector
    recover()                                answers of dead programs become "interrupted"; done on opening
Search (searching.py)
    search(asked, limit, before=None, conversation=None) -> [Found]      newest first; before: the next page
Tools (approvals.py)
    approvals(conversation) -> {tool: "always" | "never"}
    set_approval(tool, "always" | "never" | None, conversation=None)     everywhere, or in one conversation
    decide_call(message, position, "once" | "always" | "never")          kept as MessageRecord.approvals
Typing (prompts.py)
    prompts(limit, before=None, beginning="") -> [Prompt]    what was sent before, in all conversations
    save_draft(conversation | None, text), draft(conversation | None)    unsent text; None: a new conversation
Wholes (transfers.py; files of them: dsv4chat.exchange)
    whole(conversation) -> (ConversationRecord, [MessageRecord] of all branches), add_whole(...) -> number
"""

from dsv4chat.store.background import BackgroundStore
from dsv4chat.store.errors import (
    StoreBusy,
    StoreDamaged,
    StoreError,
    StoreMissing,
    StoreNewer,
    StoreUnwritable,
)
from dsv4chat.store.figures import TokenFigures
from dsv4chat.store.opening import open_history, open_in_memory
from dsv4chat.store.records import (
    Branch,
    ConversationRecord,
    ConversationSettings,
    ConversationSummary,
    Deleted,
    Found,
    GenerationRecord,
    MessageRecord,
    Prompt,
)
from dsv4chat.store.repository import Repository

__all__ = [
    "BackgroundStore",
    "Branch",
    "ConversationRecord",
    "ConversationSettings",
    "ConversationSummary",
    "Deleted",
    "Found",
    "GenerationRecord",
    "MessageRecord",
    "Prompt",
    "Repository",
    "StoreBusy",
    "StoreDamaged",
    "StoreError",
    "StoreMissing",
    "StoreNewer",
    "StoreUnwritable",
    "TokenFigures",
    "open_history",
    "open_in_memory",
]
