"""Conversations to prompts: the order of control tokens and text, for both profiles.

BOS [effort prefix] [system text, tools] turn turn ...
turn = <｜User｜>text  or  <｜Assistant｜><think>reasoning</think>answer EOS
"""

import re
from collections.abc import Sequence
from typing import Literal

from dsv4chat.encoding import template
from dsv4chat.encoding.conversation import EFFORTS, ROLES, Conversation, Message
from dsv4chat.encoding.dsml import write_calls
from dsv4chat.encoding.errors import EncodingError
from dsv4chat.encoding.jsontext import dump_json
from dsv4chat.encoding.profile import Profile, effort_prefix
from dsv4chat.encoding.segments import Rendered, Segment, SegmentList

_CONTROL_IN_TEMPLATE = re.compile(
    f"({'|'.join(map(re.escape, (template.THINK_START, template.THINK_END, template.DSML)))})"
)


def render(
    conversation: Conversation, profile: Profile, *, task: str | None = None, open_turn: bool = True
) -> Rendered:
    """The prompt of `conversation`.

    It ends ready for the model to speak: with an opened assistant turn, with the message to be continued
    (`prefix`), or with the token of `task`. `open_turn=False` leaves a finished conversation as it stands.
    Reasoning of earlier turns is dropped, unless tools are defined; that of a last, finished turn which
    nothing follows but a task is kept. EncodingError for an unknown role, effort or task and for a misplaced
    prefix.
    """
    _check(conversation, task)
    turns = _turns([message for message in conversation.messages if message.role != "system"])
    last = turns[-1][-1] if turns else Message("user")
    task = task or last.task
    opening = open_turn and task is None and not last.prefix

    out = SegmentList()
    out.control(template.BOS)
    out.text(effort_prefix(profile, conversation.thinking, conversation.effort))
    _write_system(out, conversation)
    _write_turns(out, conversation, turns, finished=not opening)
    if task is not None:
        _write_task(out, task, conversation.thinking)
    elif opening:
        _open_assistant(out, conversation.thinking)
    out.mark()
    return out.finish()


def _check(conversation: Conversation, task: str | None) -> None:
    if conversation.effort is not None and conversation.effort not in EFFORTS:
        raise EncodingError(f"The effort must be {', '.join(EFFORTS)} or none, not {conversation.effort!r}.")
    messages = [message for message in conversation.messages if message.role != "system"]
    for message in messages:
        if message.role not in ROLES:
            raise EncodingError(f"A message's role must be one of {', '.join(ROLES)}, not {message.role!r}.")
        if message.prefix and (message is not messages[-1] or message.role != "assistant"):
            raise EncodingError("Only an assistant message at the end can be a prefix to continue.")
    for name in (task, *(message.task for message in messages)):
        if name is not None and name not in template.TASKS:
            raise EncodingError(f"The task must be one of {', '.join(template.TASKS)}, not {name!r}.")


def _write_system(out: SegmentList, conversation: Conversation) -> None:
    """System messages first, wherever they stand; the tools and the wanted answer format belong to them."""
    out.text("\n\n".join(m.content for m in conversation.messages if m.role == "system" and m.content))
    if conversation.tools:
        out.text("\n\n")
        for piece in _CONTROL_IN_TEMPLATE.split(template.TOOLS_HEAD):
            if _CONTROL_IN_TEMPLATE.fullmatch(piece):
                out.control(piece)
            else:
                out.text(piece)
        out.text("\n".join(map(tool_line, conversation.tools)))
        out.text(template.TOOLS_TAIL)
    wanted = conversation.response_format
    if wanted is not None:
        out.text("\n\n")
        if wanted["type"] == "json_schema":
            out.text(template.JSON_SCHEMA + dump_json(wanted["schema"]))
        else:
            out.text(template.JSON_OBJECT)
    out.mark()


def tool_line(tool: dict[str, object]) -> str:
    """One tool as the prompt shows it: name, description, parameters, in this order and nothing else."""
    function = tool.get("function", tool)
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise EncodingError("A tool needs a name, and may have a description and parameters.")
    line = {
        "name": function["name"],
        "description": function.get("description") or "",
        "parameters": function.get("parameters") or {},
    }
    try:
        return dump_json(line)
    except (ValueError, TypeError) as error:
        raise EncodingError(f"The tool {function['name']} cannot be written as JSON: {error}.") from None


def _write_turns(
    out: SegmentList, conversation: Conversation, turns: Sequence[Sequence[Message]], *, finished: bool
) -> None:
    call_order: dict[str, int] = {}
    before: Sequence[Message] = ()
    for i, turn in enumerate(turns):
        role, last = turn[0].role, i + 1 == len(turns)
        if role == "user":
            if before and before[0].role == "tool":
                out.text("\n\n")
            else:
                out.control(template.USER)
            out.text("\n\n".join(message.content for message in turn if message.content))
        elif role == "tool":
            out.control(template.USER)
            in_order = sorted(turn, key=lambda m: call_order.get(m.tool_call_id or "", len(call_order)))
            out.text(
                "\n\n".join(
                    template.TOOL_RESULT_START + m.content + template.TOOL_RESULT_END for m in in_order
                )
            )
        elif role == "latest_reminder":
            out.control(template.LATEST_REMINDER)
            out.text(turn[0].content)
        else:
            keep = bool(conversation.tools) or (last and finished)
            if before and before[-1].task is not None:
                _write_answer(out, turn[0], reasoning=False)
            else:
                _write_assistant(out, turn[0], thinking=conversation.thinking, keep=keep)
            call_order = {call.id: i for i, call in enumerate(turn[0].tool_calls)}
        if (
            not last
            and turn[-1].task is not None
            and turns[i + 1][0].role in ("assistant", "latest_reminder")
        ):
            _write_task(out, turn[-1].task, conversation.thinking)
        out.mark()
        before = turn


def _turns(messages: Sequence[Message]) -> list[list[Message]]:
    """Consecutive user messages and consecutive tool results are one turn each."""
    turns: list[list[Message]] = []
    for message in messages:
        if turns and message.role == turns[-1][0].role and message.role in ("user", "tool"):
            turns[-1].append(message)
        else:
            turns.append([message])
    return turns


def _write_assistant(out: SegmentList, message: Message, *, thinking: bool, keep: bool) -> None:
    out.control(template.ASSISTANT)
    out.mark()
    keep = (keep or message.prefix) and thinking
    out.control(template.THINK_START if keep else template.THINK_END)
    if keep and message.reasoning is None and (message.content or message.tool_calls or not message.prefix):
        out.control(template.THINK_END)
        keep = False
    _write_answer(out, message, reasoning=keep)


def _write_answer(out: SegmentList, message: Message, *, reasoning: bool) -> None:
    """What follows the opened turn, from the sampled ids if there are any."""
    fresh = SegmentList()
    if reasoning:
        fresh.text(message.reasoning or "")
        if message.content or message.tool_calls or not message.prefix:
            fresh.control(template.THINK_END)
    fresh.text(message.content)
    if message.tool_calls:
        write_calls(fresh, message.tool_calls)
    if not message.ids:
        out.extend(fresh)
    else:
        instead = fresh.finish()
        how: Literal["none", "open", "closed", "dropped"] = "none"
        if message.reasoning is not None:
            how = "dropped" if not reasoning else "open" if message.prefix or message.tool_calls else "closed"
        out.kept(Segment("ids", instead.text, message.ids, how, instead.segments))
    if not message.prefix:
        out.control(template.EOS)


def _write_task(out: SegmentList, task: str, thinking: bool) -> None:
    if task == "action":
        _open_assistant(out, thinking)
    out.control(template.TASKS[task])


def _open_assistant(out: SegmentList, thinking: bool) -> None:
    out.control(template.ASSISTANT)
    out.mark()
    out.control(template.THINK_START if thinking else template.THINK_END)
