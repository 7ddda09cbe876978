"""From the command line to the running app, as little as possible before the first paint."""

import sys
from typing import TYPE_CHECKING

from dsv4chat.app.app import ChatApp
from dsv4chat.app.options import ChatOptions
from dsv4chat.settings_file import peek_theme

if TYPE_CHECKING:
    from dsv4chat.app.session import ChatSession


def open_app(options: ChatOptions) -> int:
    """Run the app until it is left; its exit code."""
    # The screen is drawn on standard error, so that output can still be redirected.
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        print(
            'The chat needs a terminal. To ask one question without one: dsv4chat ask "..."',
            file=sys.stderr,
        )
        return 2

    def make_session() -> "ChatSession":
        from dsv4chat.app.assembly import build_session

        return build_session(options)

    app = ChatApp(make_session, peek_theme())
    app.run()
    return app.return_code or 0
