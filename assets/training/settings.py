"""What a training run is made of, and the two ways to start one: the full run and the smoke run."""

import argparse
from dataclasses import dataclass
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
DEMO = HERE.parent / "demo"


@dataclass(frozen=True)
class Settings:
    """One run. `seconds` bounds everything from the program's start to its end; `steps` instead plans by
    count.
    """

    corpus: Path
    tokenizer: Path
    out: Path
    device: torch.device
    rows: int
    row_length: int
    seconds: float | None
    steps: int | None
    compiled: bool
    seed: int
    reserve: float
    heldout: int
    turns: int
    slot: int
    profile: bool
    compile_cache: Path | None
    smoke: bool

    @property
    def compute(self) -> torch.dtype:
        """bf16 on a GPU, f32 elsewhere."""
        return torch.bfloat16 if self.device.type == "cuda" else torch.float32


def read_arguments(arguments: list[str] | None = None) -> Settings:
    """The command line of `python -m dsv4chat.assets.training.train`."""
    parser = argparse.ArgumentParser(
        prog="python -m dsv4chat.assets.training.train", description="Train the demo model."
    )
    parser.add_argument(
        "--smoke", action="store_true", help="20 small steps on a slice, to test the whole path"
    )
    parser.add_argument("--device", default="cuda", help="cuda (default) or cpu")
    parser.add_argument("--corpus", type=Path, help="compiled corpus folder")
    parser.add_argument("--tokenizer", type=Path, default=DEMO / "tokenizer.json")
    parser.add_argument("--out", type=Path, default=Path("demo-run"), help="folder for weights and log")
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--seconds", type=float, help="end within this wall-clock time, compiling included")
    length.add_argument("--steps", type=int, help="run this many steps")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, help="rows a step")
    parser.add_argument("--row-length", type=int, help="tokens a row")
    parser.add_argument("--reserve", type=float, default=45.0, help="seconds kept for saving and measuring")
    parser.add_argument("--profile", action="store_true", help="print the slowest GPU kernels of a step")
    parser.add_argument(
        "--compile-cache", type=Path, help="file of compiled kernels to start from, if it exists"
    )
    given = parser.parse_args(arguments)
    smoke = given.smoke
    steps = given.steps if given.steps or given.seconds else (20 if smoke else 4000)
    return Settings(
        corpus=given.corpus or (HERE / "smoke" if smoke else HERE / "data" / "compiled"),
        tokenizer=given.tokenizer,
        out=given.out,
        device=torch.device(given.device),
        rows=given.rows or (2 if smoke else 32),
        row_length=given.row_length or (256 if smoke else 2048),
        seconds=given.seconds,
        steps=None if given.seconds else steps,
        compiled=not smoke and given.device != "cpu",
        seed=given.seed,
        reserve=given.reserve,
        heldout=1 if smoke else 12,
        turns=2 if smoke else 256,
        slot=256 if smoke else 512,
        profile=given.profile,
        compile_cache=given.compile_cache,
        smoke=smoke,
    )
