"""`dsv4chat bench`: how fast the program is on this machine."""

import click

from dsv4chat.cli.bench_decode import decode, kernels, load
from dsv4chat.cli.bench_screen import screen
from dsv4chat.cli.bench_store import store
from dsv4chat.cli.bench_turns import turns


@click.group()
def bench() -> None:
    """Measure the program on this machine."""


bench.add_command(decode)
bench.add_command(kernels)
bench.add_command(load)
bench.add_command(screen)
bench.add_command(store)
bench.add_command(turns)
