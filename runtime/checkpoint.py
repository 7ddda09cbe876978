"""A model's weights on disk, read one by one under native names, whatever spelling and format they come in.

Quantised matrices stay so where the model multiplies by them as such: experts, attention projections, the
indexer's queries, the drafter's projections. Any other that is stored quantised (head, router, compressors,
the indexer's weights) is given in bfloat16.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import torch

from dsv4chat.kernels.formats import Weight
from dsv4chat.runtime.config import ModelConfig
from dsv4chat.runtime.errors import CheckpointError
from dsv4chat.runtime.names import FusedExperts, Named, parse_name
from dsv4chat.runtime.shapes import drafter_shapes, required_shapes
from dsv4chat.runtime.shards import Entry, find_entries
from dsv4chat.runtime.stored import Form, StoredWeight

# bytes done, bytes in all, tensors done, tensors in all
Progress = Callable[[int, int, int, int], None]

_KEPT_QUANTISED = re.compile(
    r".*\.ffn\.(experts\.\d+|shared_experts)\.w[123]\.weight"
    r"|.*\.attn\.(wq_a|wq_b|wkv|wo_a|wo_b|indexer\.wq_b)\.weight"
    r"|mtp\.\d+\.[eh]_proj\.weight"
)


class Checkpoint:
    """An opened, checked checkpoint. Nothing but headers is read until `read` or `stream`.

    config: the model's configuration.
    has_drafter: every tensor of the drafting layers the configuration describes is there.
    unused: stored names that belong to no weight in `names()`, such as another drafter's.
    """

    def __init__(self, folder: Path, config: ModelConfig, entries: dict[str, Entry]) -> None:
        self.folder = folder
        self.config = config
        self._required = required_shapes(config)
        self._drafter = drafter_shapes(config)
        parts, self.unused = _sort_out(entries, config, {**self._required, **self._drafter})
        self.has_drafter = bool(self._drafter) and all(name in parts for name in self._drafter)
        if not self.has_drafter:
            left = [parts.pop(name) for name in self._drafter if name in parts]
            self.unused += [entry.name for part in left for entry in part.entries]
        self.unused.sort()
        missing = [name for name in self._required if name not in parts]
        if missing:
            raise CheckpointError(_missing(folder, missing, self.unused))
        self._stored = parts

    @classmethod
    def open(cls, folder: str | Path) -> "Checkpoint":
        """Open a model folder and check that it is whole.

        Raises ConfigError or CheckpointError with a sentence that names the file or tensor and what to do.
        """
        folder = Path(folder)
        checkpoint = cls(folder, ModelConfig.from_folder(folder), find_entries(folder))
        checkpoint.verify()
        return checkpoint

    def names(self) -> list[str]:
        """Native names of all weights that can be read, in the order in which the model uses them."""
        return [*self._required, *(self._drafter if self.has_drafter else ())]

    def form(self, name: str) -> Form:
        """How a weight is stored: "plain", "NVFP4", "MXFP4", "FP8", or "table" (integers)."""
        return self._find(name).form()

    def nbytes(self, name: str) -> int:
        """Stored bytes of a weight, scales included."""
        return self._find(name).nbytes

    @property
    def bytes_total(self) -> int:
        """Stored bytes of all `names()`."""
        return sum(self._stored[name].nbytes for name in self.names())

    def verify(self) -> None:
        """Check format and shape of every tensor, from the headers alone. Raises CheckpointError."""
        shapes = {**self._required, **self._drafter}
        for name in self.names():
            self._stored[name].check(shapes[name])

    def read(self, name: str) -> Weight:
        """One weight by its native name. Raises CheckpointError.

        Plain tensors and the parts of quantised ones are views of the mapped file: convert or copy what is
        to be kept, and never write to them. Tables of expert numbers come as int64, checked to be in range.
        """
        stored = self._find(name)
        weight = stored.read()
        if isinstance(weight, torch.Tensor):
            if stored.form() == "table":
                self._check_table(name, weight)
            return weight
        return weight if _KEPT_QUANTISED.fullmatch(name) else weight.dequantize(torch.bfloat16)

    def stream(
        self, names: Iterable[str] | None = None, progress: Progress | None = None
    ) -> Iterator[tuple[str, Weight]]:
        """Weights one after the other, in the order of the files; `progress` hears of each once used."""
        places = {name: self._find(name).value for name in (self.names() if names is None else names)}
        order = sorted(places, key=lambda name: (places[name].shard.path.name, places[name].begin))
        total = sum(self._stored[name].nbytes for name in order)
        done = 0
        if progress is not None:
            progress(0, total, 0, len(order))
        for number, name in enumerate(order, start=1):
            yield name, self.read(name)
            done += self._stored[name].nbytes
            if progress is not None:
                progress(done, total, number, len(order))

    def _find(self, name: str) -> StoredWeight:
        stored = self._stored.get(name)
        if stored is None:
            raise CheckpointError(f"{self.folder} has no tensor {name}.")
        return stored

    def _check_table(self, name: str, table: torch.Tensor) -> None:
        experts = self.config.num_experts
        if not 0 <= int(table.min()) <= int(table.max()) < experts:
            raise CheckpointError(
                f"{name} names experts that do not exist (there are {experts}); "
                "the file is damaged, download it again."
            )


def _sort_out(
    entries: dict[str, Entry], config: ModelConfig, known: dict[str, tuple[int, ...]]
) -> tuple[dict[str, StoredWeight], list[str]]:
    """Stored tensors to the weights they are parts of, and the names of those that are part of none."""
    weights: dict[str, StoredWeight] = {}
    scales: list[tuple[Named, Entry]] = []
    unused: list[str] = []
    for entry in entries.values():
        meaning = parse_name(entry.name)
        if isinstance(meaning, FusedExperts) and f"{meaning.layer}.ffn.experts.0.w1.weight" in known:
            for name, rows in _fused_rows(meaning, entry, config):
                _add(weights, name, StoredWeight(entry, fused=rows))
        elif meaning is None or isinstance(meaning, FusedExperts) or meaning.name not in known:
            unused.append(entry.name)
        elif meaning.part == "value":
            _add(weights, meaning.name, StoredWeight(entry))
        elif meaning.part != "ignored":
            scales.append((meaning, entry))
    for meaning, entry in scales:
        if meaning.name in weights:
            weights[meaning.name].add_scale(meaning.part, entry)
        else:
            unused.append(entry.name)
    return weights, unused


def _fused_rows(
    fused: FusedExperts, entry: Entry, config: ModelConfig
) -> Iterator[tuple[str, tuple[int, int, int]]]:
    """Each expert matrix in a fused tensor: native name, and (expert, first row, last row + 1)."""
    experts, inner, hidden = config.num_experts, config.moe_inner_size, config.hidden_size
    if fused.kind == "gate_up":
        wanted, rows = (experts, 2 * inner, hidden), {"w1": (0, inner), "w3": (inner, 2 * inner)}
    else:
        wanted, rows = (experts, hidden, inner), {"w2": (0, hidden)}
    StoredWeight(entry).check(wanted)
    for expert in range(experts):
        for matrix, (start, stop) in rows.items():
            yield f"{fused.layer}.ffn.experts.{expert}.{matrix}.weight", (expert, start, stop)


def _missing(folder: Path, missing: list[str], unused: list[str]) -> str:
    more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
    for other in unused:
        # The same matrix under an ending that is not known (`.weight_packed`, ...) is no damage but a format.
        meaning = parse_name(other.rpartition(".")[0] + ".weight")
        if parse_name(other) is None and isinstance(meaning, Named) and meaning.name == missing[0]:
            return (
                f"{folder} lacks the tensor {missing[0]}{more} but has {other}, a quantisation this runtime "
                "does not know; use a checkpoint in NVFP4, MXFP4, FP8 (128 x 128 tiles), bf16, f16 or f32."
            )
    return (
        f"{folder} lacks the tensor {missing[0]}{more}; "
        "download the model again, with the config.json that belongs to it."
    )


def _add(weights: dict[str, StoredWeight], name: str, weight: StoredWeight) -> None:
    if name in weights:
        raise CheckpointError(
            f"{weight.value.name} and {weights[name].value.name} are the same tensor in two spellings; "
            "remove the one that is not meant."
        )
    weights[name] = weight
