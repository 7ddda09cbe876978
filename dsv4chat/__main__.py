"""The program's entry: `dsv4chat` and `python -m dsv4chat`. Ctrl+C while it still starts ends it quietly."""

import sys

INTERRUPTED = 130


def main() -> None:
    """Run the command line; Ctrl+C that no command took for itself ends with exit code 130."""
    try:
        import click

        from dsv4chat.cli import main as command

        try:
            code = command.main(standalone_mode=False)
        except click.ClickException as error:
            error.show()
            sys.exit(error.exit_code)
        except click.Abort:
            sys.exit(INTERRUPTED)
        sys.exit(code if isinstance(code, int) else 0)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
