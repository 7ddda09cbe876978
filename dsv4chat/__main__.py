"""`python -m dsv4chat`."""

from dsv4chat.cli import main

if __name__ == "__main__":
    main()
