"""DeepSeek-V4: embedding, layers of hyper-connected attention and experts, and the head.

    X = embedding copied to s streams
    each layer: x, post, comb = enter(X); X = expand(X, post, comb, attention(RMSNorm(x)));
                the same with the MoE
    logits = lm_head(RMSNorm(hc_head(X)))

`Model.forward` feeds any number of tokens at once; how the input is split does not change what is computed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from dsv4chat.kernels import hyper_connections as mhc
from dsv4chat.kernels.norms import rms_norm
from dsv4chat.runtime.block import Block
from dsv4chat.runtime.cache import KVCache
from dsv4chat.runtime.config import ModelConfig
from dsv4chat.runtime.decode import Decoder
from dsv4chat.runtime.errors import EngineError
from dsv4chat.runtime.hyper_connections import HyperConnection
from dsv4chat.runtime.loading import Loader, WeightSource, load_connection
from dsv4chat.runtime.memory import check_weights_fit, weights_as_tensors
from dsv4chat.runtime.step import Frequencies, Step
from dsv4chat.runtime.trace import LayerTrace, Trace

if TYPE_CHECKING:
    from dsv4chat.runtime.gpu.step import DecodeStep


@dataclass(frozen=True)
class Output:
    """logits: (n or 1, vocab) float32; residual: (layers,) float32, |X| of the last token a layer."""

    logits: Tensor
    residual: Tensor


class Model:
    """The weights of a model on one device, and its forward pass."""

    def __init__(self, loader: Loader) -> None:
        self.config: ModelConfig = loader.config
        self.packed = loader.packed
        self.decode_step: DecodeStep | None = None  # where tokens are chosen on the device
        self.device = loader.device
        self.dtype = loader.dtype
        self.frequencies = Frequencies.of(self.config, loader.device)
        self.embedding = loader.tensor("embed.weight", loader.dtype)
        self.layers = [Block(loader, layer) for layer in range(self.config.num_layers)]
        self.head_connection: HyperConnection = load_connection(loader, "hc_head")
        self.norm = loader.tensor("norm.weight", torch.float32)
        self.lm_head = loader.head("head.weight")
        self.parameters = loader.parameters
        self.stored_bytes = loader.bytes_done

    @cached_property
    def decoder(self) -> Decoder | None:
        """The step for one token where there is a special one: on the CPU with float32 weights."""
        plain = self.device.type == "cpu" and self.dtype == torch.float32 and not self.packed
        return Decoder(self) if plain else None

    @classmethod
    def load(
        cls,
        checkpoint: WeightSource,
        device: torch.device,
        dtype: torch.dtype,
        progress: Callable[[int, int, int, int], None] | None = None,
        loader: type[Loader] = Loader,
    ) -> "Model":
        """Read all weights of `checkpoint` onto `device`, matrices as `dtype` (float32 or bfloat16).

        loader: `gpu.loading.PackedLoader` leaves quantised matrices as they are stored.

        What needs float32 (compressors, router, hyper-connections, norms, lm_head) is float32 always. The
        drafting layer is not read. progress(bytes_done, bytes_total, tensors_done, tensors_total) is
        called after each tensor. Raises CheckpointError for what is missing or damaged, EngineError when
        the device's memory cannot hold the weights.
        """
        if dtype not in (torch.float32, torch.bfloat16):
            raise EngineError(f"Weights can be float32 or bfloat16, not {dtype}; choose one of the two.")
        check_weights_fit(
            checkpoint.bytes_total if loader.packed else weights_as_tensors(checkpoint.config, dtype), device
        )
        with torch.inference_mode():
            reading = loader(checkpoint, device, dtype, progress)
            model = cls(reading)
            reading.finish()
            return model

    @torch.inference_mode()
    def forward(
        self,
        ids: Tensor,
        cache: KVCache,
        logits: Literal["all", "last"] = "last",
        trace: Trace | None = None,
    ) -> Output:
        """Feed `ids` (n,) int64 after what the cache holds; logits of every token or of the last only.

        `trace` receives what each layer did; a traced token never takes the CPU's special step.

        Raises EngineError for no ids or an id outside the vocabulary and ContextOverflowError when the
        cache has no room; the cache is unchanged then.
        """
        ids = self._checked(ids)
        n = ids.shape[0]
        position = cache.begin(n)
        if n == 1 and trace is None and self.decoder is not None:
            row, largest_x = self.decoder.step(int(ids), cache)
            cache.commit(n)
            return Output(row, largest_x)
        step = Step(self.config, position, ids, self.frequencies)
        streams = self.embedding[ids][:, None, :].expand(-1, self.config.hc_mult, -1)
        largest = []
        for block, layer_cache in zip(self.layers, cache.layers, strict=True):
            layer_trace = LayerTrace()
            streams = block.forward(streams, layer_cache, step, None if trace is None else layer_trace)
            if trace is not None:
                trace.append(layer_trace)
            largest.append(streams[-1].abs().amax())
        cache.commit(n)
        if logits == "last":
            streams = streams[-1:]
        return Output(self.head(streams), torch.stack(largest).float())

    def head(self, streams: Tensor) -> Tensor:
        """Logits (n, vocab) float32 of the streams (n, s, hidden) after the last layer."""
        (logits,) = self.lm_head(self.merged(streams))
        return logits

    def merged(self, streams: Tensor) -> Tensor:
        """What the logits are made of: the streams (n, s, hidden) merged and normalised, (n, hidden)."""
        config, head = self.config, self.head_connection
        y = mhc.head(streams, head.fn, head.scale, head.base, config.norm_eps, config.hc_eps)
        return rms_norm(y, self.norm, config.norm_eps)

    def _checked(self, ids: Tensor) -> Tensor:
        if ids.dim() != 1 or ids.shape[0] == 0:
            raise EngineError("The model needs at least one token id, as a flat list.")
        lowest, highest = int(ids.min()), int(ids.max())
        if lowest < 0 or highest >= self.config.vocab_size:
            wrong = lowest if lowest < 0 else highest
            raise EngineError(
                f"Token id {wrong} is outside the model's vocabulary of {self.config.vocab_size}; "
                "use the tokenizer that belongs to the model."
            )
        return ids.to(self.device, torch.int64)
