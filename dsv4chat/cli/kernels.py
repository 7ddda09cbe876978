"""`dsv4chat kernels`: build, list and check the GPU kernels."""

import json
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from dsv4chat.kernels.cute.machine import Machine

_EPILOG = """\b
Exit codes:
  0  done
  1  it cannot be done here; the reason is on standard error
  2  wrong usage
"""


@click.group()
def kernels() -> None:
    """Build, list and check the GPU kernels.

    They are built once into the cache, on any machine with nvidia-cutlass-dsl, with or without a GPU, and
    loaded from there.
    """


@kernels.command(epilog=_EPILOG)
@click.option(
    "--arch",
    "architectures",
    multiple=True,
    metavar="ARCH",
    help="sm_90a (Hopper) or sm_100a (Blackwell); may be given twice. By default the GPU's here, else both.",
)
def build(architectures: tuple[str, ...]) -> None:
    """Compile every kernel into the cache."""
    from dsv4chat.kernels.cute import builder

    for architecture in architectures or _architectures_here():
        try:
            done = builder.build(architecture, _progress)
        except builder.BuildError as error:
            _stop(str(error))
        click.echo(f"{len(done.kernels())} kernels for {architecture}: {done.folder}")


@kernels.command(name="list", epilog=_EPILOG)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def list_(as_json: bool) -> None:
    """List the kernels and what they are built for."""
    from dsv4chat.kernels.cute import catalogue, store

    builds = store.builds()
    if as_json:
        click.echo(
            json.dumps(
                {
                    "kernels": catalogue.names(),
                    "builds": [
                        {
                            "architecture": one.architecture,
                            "dsl": one.dsl_version,
                            "folder": str(one.folder),
                            "kernels": one.kernels(),
                        }
                        for one in builds
                    ],
                }
            )
        )
        return
    click.echo(f"cache: {store.folder()}")
    if not builds:
        click.echo("No kernels are built; `dsv4chat kernels build` does it.")
    for one in builds:
        state = "complete" if one.complete() else "incomplete: build it again"
        click.echo(f"{one.architecture}  CuTe DSL {one.dsl_version}  {len(one.kernels())} kernels, {state}")
    for name in catalogue.names():
        click.echo(f"  {name:24} {' '.join(one.architecture for one in builds if name in one.kernels())}")


@kernels.command(epilog=_EPILOG)
@click.option("--quick", is_flag=True, help="Fewer shapes, no timing.")
@click.option("--rows", type=click.IntRange(1, 8), default=1, show_default=True, help="Rows in the timing.")
@click.option("--geometry", type=click.Choice(["flash", "pro", "both"]), default="both", show_default=True)
@click.option("--time-only", is_flag=True, help="Skip the comparison.")
@click.option("--no-programmatic", is_flag=True, help="Launch without programmatic dependent launch.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def check(
    quick: bool, rows: int, geometry: str, time_only: bool, no_programmatic: bool, as_json: bool
) -> None:
    """Compare the kernels with float64 on the GPU here, then time them against the memory's bandwidth."""
    import torch

    from dsv4chat.kernels.cute import check as checks
    from dsv4chat.kernels.cute.operations import KernelError, operations

    if not torch.cuda.is_available():
        _stop("There is no CUDA device here; build and list work without one.")
    try:
        machine = operations("cute", torch.device("cuda", 0), _say, programmatic=not no_programmatic).machine
    except KernelError as error:
        _stop(str(error))
    assert machine is not None
    results = [] if time_only else list(checks.check(machine, quick))
    wrong = [one for one in results if not one.right]
    report: dict[str, Any] = {
        "device": torch.cuda.get_device_name(0),
        "checked": len(results),
        "wrong": [vars(one) for one in wrong],
    }
    if not as_json:
        _print_checks(results)
    if not quick:
        report["timing"] = _time(machine, rows, geometry, as_json)
    if as_json:
        click.echo(json.dumps(report))
    sys.exit(1 if wrong else 0)


def _print_checks(results: list[Any]) -> None:
    worst: dict[str, Any] = {}
    for one in results:
        if one.kernel not in worst or not one.error <= worst[one.kernel].error:
            worst[one.kernel] = one
    counts = {name: sum(one.kernel == name for one in results) for name in worst}
    for name, one in sorted(worst.items()):
        verdict = "right" if all(r.right for r in results if r.kernel == name) else "WRONG"
        click.echo(f"{name:24} {counts[name]:3} checks  {verdict}  worst {one.error:.1e}  ({one.what})")
    for one in results:
        if not one.right:
            click.echo(f"WRONG {one.kernel} {one.what}: {one.error:.2e}, allowed {one.bound:.0e}")


def _time(machine: "Machine", rows: int, geometry: str, quiet: bool) -> dict[str, Any]:
    from dsv4chat.kernels.cute import measuring, timing

    best = measuring.bandwidth(machine.device)
    if not quiet:
        click.echo(f"\nread bandwidth {best / 1e12:.2f} TB/s; {rows} row(s)")
    table = []
    for sizes in (measuring.FLASH, measuring.PRO):
        if geometry not in ("both", sizes.name):
            continue
        for one in timing.timings(machine, sizes, rows):
            table.append(vars(one))
            if not quiet:
                click.echo(
                    f"{one.model:6} {one.what:36} {one.kernel:20} {one.bytes / 1e6:7.1f} MB "
                    f"{one.seconds * 1e6:7.2f} us {one.rate / 1e12:5.2f} TB/s {one.rate / best:4.0%}"
                )
    return {"bandwidth": best, "operations": table}


def _architectures_here() -> tuple[str, ...]:
    """The GPU's here, else all."""
    from dsv4chat.kernels.cute.catalogue import ARCHITECTURES
    from dsv4chat.kernels.cute.operations import here

    found = here()
    return (found,) if found is not None else ARCHITECTURES


def _progress(done: int, total: int, name: str) -> None:
    _say(f"Kernel {done} of {total}: {name}")


def _say(sentence: str) -> None:
    click.echo(sentence, err=True)


def _stop(sentence: str) -> None:
    click.echo(f"dsv4chat kernels: {sentence}", err=True)
    sys.exit(1)
