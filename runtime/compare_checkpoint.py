"""The comparison with `transformers` as a command makes it: load on both sides, feed both, report."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from dsv4chat.runtime.cache import KVCache
from dsv4chat.runtime.checkpoint import Checkpoint
from dsv4chat.runtime.compare import Comparison, Turned, closest, compare, run_model, run_reference
from dsv4chat.runtime.config import ModelConfig
from dsv4chat.runtime.errors import EngineError
from dsv4chat.runtime.memory import memory_of, weights_as_tensors
from dsv4chat.runtime.model import Model
from dsv4chat.runtime.reference import Reference

SEED = 0


@dataclass(frozen=True)
class Report:
    """What was found.

    prefill: the ids fed in chunks, traced. decode: the largest difference of logits when the second half is
    fed token by token, as an answer is; decode_token: where; decode_turned: the close decision that
    explains it, if it is over the tolerance and there is one.
    """

    prefill: Comparison
    decode: float
    decode_token: int
    decode_turned: Turned | None
    tolerance: float

    @property
    def passed(self) -> bool:
        """Whether both ways are within the tolerance, or rounding explains where they are not."""
        decoded = self.decode <= self.tolerance or self.decode_turned is not None
        return self.prefill.passes(self.tolerance) and decoded

    def as_json(self) -> dict[str, Any]:
        """Plain data, with what `passed` and `first_over` say."""
        layers = [{**asdict(layer), "relative": layer.relative} for layer in self.prefill.layers]
        return {
            **asdict(self),
            "prefill": {**asdict(self.prefill), "layers": layers},
            "first_layer_over": self.prefill.first_over(self.tolerance),
            "passed": self.passed,
        }


def compare_checkpoint(
    checkpoint: Checkpoint,
    ids: Sequence[int] | None = None,
    *,
    length: int = 300,
    chunk: int | None = None,
    kv_dtype: str = "float32",
    tolerance: float,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Feed `ids`, or `length` random ones, to the runtime and to `transformers`, both in float32 on the CPU.

    chunk: feed the runtime in pieces of this size (default: all at once). kv_dtype other than float32 shows
    what the cache's rounding changes. progress: hears what is being done.

    Raises EngineError if there is not enough memory for both, or the ids do not fit the model.
    """
    say = progress or (lambda stage: None)
    _check_memory(checkpoint.config)
    given = torch.tensor(
        ids if ids is not None else _random_ids(checkpoint.config, length), dtype=torch.int64
    )
    say("loading the checkpoint")
    model = Model.load(checkpoint, torch.device("cpu"), torch.float32, None)
    n = given.shape[0]
    if n == 0:
        raise EngineError("There is nothing to feed; give at least one token id.")
    chunks = [min(chunk or n, n - start) for start in range(0, n, chunk or n)]
    say(f"feeding {n} tokens")
    ours = run_model(model, given, chunks, kv_dtype)
    decoded = _decode(model, given, kv_dtype)
    say("building the transformers model")
    reference = Reference(checkpoint)
    say(f"feeding transformers {n} tokens")
    theirs = run_reference(reference, given)
    prefill = compare(checkpoint.config, ours, theirs)
    difference = (decoded - theirs.logits).abs().amax(1)
    over = (~(difference <= tolerance)).nonzero().flatten().tolist()
    turned = closest(ours, theirs, over[0]) if over else None
    return Report(prefill, float(difference.max()), int(difference.argmax()), turned, tolerance)


def _decode(model: Model, ids: torch.Tensor, kv_dtype: str) -> torch.Tensor:
    """Logits (n, vocab) with the first half of the ids fed at once and the rest one by one."""
    n = ids.shape[0]
    cache = KVCache(model.config, kv_dtype, n, model.device)
    half = -(-n // 2)
    sizes = [half, *[1] * (n - half)]
    return torch.cat([model.forward(piece, cache, "all").logits for piece in torch.split(ids, sizes)])


def _random_ids(config: ModelConfig, length: int) -> list[int]:
    generator = torch.Generator().manual_seed(SEED)
    return torch.randint(0, config.vocab_size, (length,), generator=generator).tolist()


def _check_memory(config: ModelConfig) -> None:
    """Both sides hold every weight in float32."""
    needed = 2 * weights_as_tensors(config, torch.float32)
    there = memory_of(torch.device("cpu"))
    if there is not None and needed > 0.8 * there:
        raise EngineError(
            f"The comparison needs {needed / 1e9:.0f} GB for two float32 copies and this machine has "
            f"{there / 1e9:.0f} GB; compare a smaller model of the same architecture."
        )
