"""Random weights of a published model's shapes and formats, made on the device that runs them.

    Engine.load("random:flash", layers=8, mix="nvidia")

Nothing is read or downloaded: a decode step reads the same bytes as with the real checkpoint, which is all
that its time depends on. Values keep the streams finite; the text is noise.

The mixes are those of the checkpoints: "nvidia" has its routed experts in NVFP4 and the attention's
projections and the shared expert in FP8 tiles; "nvfp4" has all of these in NVFP4. The rest is bfloat16, or
float32 where the checkpoints have it so.
"""

import math
import re
from collections.abc import Iterable

import torch
from torch import Tensor

from dsv4chat.kernels.formats import FP8Weight, NVFP4Weight, Weight
from dsv4chat.kernels.fp8 import tile_shape
from dsv4chat.runtime.config import ModelConfig
from dsv4chat.runtime.errors import EngineError
from dsv4chat.runtime.geometries import geometry
from dsv4chat.runtime.shapes import Shape, required_shapes

PREFIX = "random:"
MIXES = ("nvidia", "nvfp4")

_ROUTED = re.compile(r".*\.ffn\.experts\.\d+\.w[123]\.weight")
_QUANTISED = re.compile(
    r".*\.ffn\.shared_experts\.w[123]\.weight|.*\.attn\.(wq_a|wq_b|wkv|wo_a|wo_b|indexer\.wq_b)\.weight"
)
_FLOAT32 = re.compile(r".*(_fn|_base|_scale|attn_sink|\.ape|gate\.bias)")

# Root mean square of E2M1 values whose codes are all as likely.
_E2M1_RMS = math.sqrt(sum(v * v for v in (0, 0.5, 1, 1.5, 2, 3, 4, 6)) / 8)
_FP8_RMS = 64.0


class RandomSource:
    """A `WeightSource` whose tensors are made when they are read: the same name gives the same values."""

    def __init__(self, config: ModelConfig, mix: str, device: torch.device, seed: int = 0) -> None:
        """Raises EngineError for a mix other than "nvidia" and "nvfp4"."""
        if mix not in MIXES:
            raise EngineError(f"mix is {mix!r}; it must be {' or '.join(MIXES)}.")
        self.config = config
        self.mix = mix
        self.device = device
        self._generator = torch.Generator(device)
        self._seed = seed
        self._shapes = required_shapes(config)
        self._numbers = {name: number for number, name in enumerate(self._shapes)}
        self.bytes_total = sum(self.nbytes(name) for name in self._shapes)

    def names(self) -> Iterable[str]:
        return self._shapes

    def form(self, name: str) -> str:
        """ "NVFP4", "FP8", "bfloat16", "float32" or "table"."""
        if name.endswith("tid2eid"):
            return "table"
        if _ROUTED.fullmatch(name):
            return "NVFP4"
        if _QUANTISED.fullmatch(name):
            return "FP8" if self.mix == "nvidia" else "NVFP4"
        return "float32" if _FLOAT32.fullmatch(name) else "bfloat16"

    def nbytes(self, name: str) -> int:
        """Stored bytes of one weight."""
        shape, form = self._shapes[name], self.form(name)
        count = math.prod(shape)
        if form == "NVFP4":
            return count // 2 + count // 16 + 4
        if form == "FP8":
            return count + math.prod(tile_shape(torch.Size(shape)))
        return count * {"table": 8, "float32": 4, "bfloat16": 2}[form]

    def read(self, name: str) -> Weight:
        shape, form = self._shapes[name], self.form(name)
        self._generator.manual_seed((self._seed << 32) + self._numbers[name])
        if form == "table":
            return self._table(shape)
        if form == "NVFP4":
            return self._nvfp4(shape)
        if form == "FP8":
            return self._fp8(shape)
        return self._plain(name, shape).to(torch.float32 if form == "float32" else torch.bfloat16)

    def _normal(self, shape: Shape, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.randn(shape, generator=self._generator, device=self.device, dtype=dtype)

    def _table(self, shape: Shape) -> Tensor:
        """Distinct experts for each token id: a random first one, and the others spread evenly after it."""
        experts = self.config.num_experts
        draw = torch.randint(experts, (shape[0], 1), generator=self._generator, device=self.device)
        ranks = torch.arange(shape[1], device=self.device)
        return (draw + ranks * (experts // shape[1] or 1)) % experts

    def _nvfp4(self, shape: Shape) -> NVFP4Weight:
        rows, columns = shape
        codes = torch.empty(rows, columns // 2, dtype=torch.uint8, device=self.device)
        codes.random_(0, 256, generator=self._generator)
        # 1 to 2, so that every bit of a scale's mantissa is in use.
        scales = torch.rand(rows, columns // 16, generator=self._generator, device=self.device) + 1
        factor = torch.tensor(1 / (_E2M1_RMS * 1.5 * math.sqrt(columns)), device=self.device)
        return NVFP4Weight(codes, scales.to(torch.float8_e4m3fn), factor)

    def _fp8(self, shape: Shape) -> FP8Weight:
        codes = (self._normal(shape, torch.bfloat16) * _FP8_RMS).to(torch.float8_e4m3fn)
        exponent = round(-math.log2(_FP8_RMS * math.sqrt(shape[1])))
        tiles = tile_shape(torch.Size(shape))
        return FP8Weight(codes, torch.full(tiles, 127 + exponent, dtype=torch.uint8, device=self.device))

    def _plain(self, name: str, shape: Shape) -> Tensor:
        leaf = name.removesuffix(".weight").rsplit(".", 1)[-1]
        if leaf.endswith("norm"):
            return 1 + 0.1 * self._normal(shape)
        if leaf.endswith("_scale"):
            return torch.ones(shape, device=self.device)
        if len(shape) == 1 or leaf == "ape":
            return 0.3 * self._normal(shape)
        gain = 1.0 if leaf == "embed" else shape[-1] ** -0.5
        return gain * self._normal(shape)


def random_source(
    name: str, device: torch.device, layers: int | None = None, mix: str | None = None
) -> RandomSource:
    """Weights for "random:flash", "random:pro" or "random:demo". mix: "nvidia" (default) or "nvfp4".

    Raises EngineError for another name, number of layers or mix.
    """
    return RandomSource(geometry(name.removeprefix(PREFIX), layers), mix or "nvidia", device)
