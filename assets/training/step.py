"""One training step, and its recording as a CUDA graph.

A step launches some four thousand small kernels; launched one by one they keep the processor busier than
the GPU. Recorded once for each phase, a step is one launch: batches and rates are copied into the tensors
it reads.
"""

from collections.abc import Callable
from dataclasses import fields

import torch
from torch import Tensor

from dsv4chat.assets.training.model import TrainableModel
from dsv4chat.assets.training.optimizer import Optimizer, balance
from dsv4chat.assets.training.packing import Batch


class Step:
    """`step(batch, rates, sparse=...)` updates the model. The sparse phase also rounds weights to NVFP4."""

    def __init__(
        self, model: TrainableModel, *, compile_with: Callable[[Callable], Callable] | None = None
    ) -> None:
        self.model = model
        self.optimizer = Optimizer(model, compile_with=compile_with)
        self._rates = torch.zeros(3, device=model.cos.device)
        self._batch: Batch | None = None
        self._recorded: dict[bool, tuple[torch.cuda.CUDAGraph, Tensor]] = {}

    def __call__(self, batch: Batch, rates: tuple[float, float, float], *, sparse: bool) -> Tensor:
        """Learn from one batch. rates: of matrices, of the rest, and the speed of the routers' balancing.

        Returns (3,) on the device, valid until the next step: loss, indexer loss, and the largest expert's
        load over the mean load. Nothing waits for the device.
        """
        self._rates.copy_(torch.tensor(rates), non_blocking=True)
        if sparse not in self._recorded:
            return self._run(batch, sparse)
        graph, result = self._recorded[sparse]
        for field in fields(Batch):
            getattr(self._batch, field.name).copy_(getattr(batch, field.name), non_blocking=True)
        graph.replay()
        return result

    def record(self, batch: Batch) -> dict[str, object]:
        """Record both phases after each has run a few times; the rates are zero meanwhile. If the device
        cannot, steps go on being launched one by one. Returns what to log.
        """
        self._rates.zero_()
        self._batch = Batch(*(getattr(batch, field.name).clone() for field in fields(Batch)))
        pool = torch.cuda.graph_pool_handle()
        recorded = {}
        try:
            for sparse in (False, True):
                torch.cuda.synchronize()
                torch.cuda.empty_cache()
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph, pool=pool, stream=torch.cuda.current_stream()):
                    result = self._run(self._batch, sparse)
                recorded[sparse] = (graph, result)
        except RuntimeError as error:
            recorded.clear()
            for tensor in (*self.model.parameters(), *self.optimizer.trained()):
                tensor.grad = None  # what an aborted recording left there was never computed
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
            return {"graphs": 0, "reason": str(error)[:300]}
        self._recorded = recorded
        return {"graphs": len(recorded), "gigabytes": torch.cuda.max_memory_reserved() / 1e9}

    def _run(self, batch: Batch, sparse: bool) -> Tensor:
        loss, hidden = self.model.loss(batch, sparse=sparse)
        (loss + hidden.index_loss).backward()
        self.optimizer.step(self._rates[0], self._rates[1], four_bit=sparse)
        load = hidden.load.detach()
        balance(self.model.gate_bias, load, self._rates[2], hash_layers=self.model.config.num_hash_layers)
        imbalance = (load.amax(1) / load.mean(1).clamp(min=1)).mean()
        return torch.stack((loss.detach(), hidden.index_loss.detach(), imbalance))
