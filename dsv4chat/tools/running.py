"""Runs one tool so that it cannot hold up or hurt the program: in a thread, for a limited time and output."""

import asyncio
import contextlib
import inspect
import threading
from collections.abc import Callable
from typing import Any

from dsv4chat.tools.errors import ToolError
from dsv4chat.tools.tool import Tool, result_text


async def run_tool(tool: Tool, arguments: dict[str, Any], *, seconds: float, characters: int) -> str:
    """The tool's result as text of at most `characters` (longer: cut, and said so). ToolError for all else.

    A function that does not end in time is left alone in its thread, as Python cannot end it.
    """
    if inspect.iscoroutinefunction(tool.function):
        work = _as_text(tool, arguments)
    else:
        work = _in_thread(lambda: result_text(tool.function(**arguments)), name=tool.name)
    try:
        async with asyncio.timeout(seconds) as limit:
            text = await work
    except TimeoutError as error:
        if limit.expired():
            raise ToolError(f"the tool did not answer within {seconds:g} s") from None
        raise ToolError(f"TimeoutError: {error}") from error
    except ToolError:
        raise
    except Exception as error:  # a tool may raise anything, and the model is the one to know
        raise ToolError(f"{type(error).__name__}: {error}"[:characters]) from error
    if len(text) > characters:
        return f"{text[:characters]}\n[cut: the first {characters:,} of {len(text):,} characters]"
    return text


async def _as_text(tool: Tool, arguments: dict[str, Any]) -> str:
    return result_text(await tool.function(**arguments))


async def _in_thread(work: Callable[[], str], name: str) -> str:
    """`work` in a thread that does not hold up the end of the program, as those of an executor do."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[str] = loop.create_future()

    def deliver(result: str | None, error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(result or "")
        elif isinstance(error, Exception):
            done.set_exception(error)
        else:
            done.set_exception(ToolError(f"the tool ended with {type(error).__name__}"))

    def run() -> None:
        result, failure = None, None
        try:
            result = work()
        except BaseException as error:  # SystemExit too: it is the tool's end, not the program's
            failure = error
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(deliver, result, failure)

    threading.Thread(target=run, name=f"tool {name}", daemon=True).start()
    return await done
