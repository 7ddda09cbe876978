"""The training loop: warm-up and timing, then steps until the plan or the clock says stop."""

import time
from collections.abc import Callable, Iterator

import torch

from dsv4chat.assets.training.measure import loss_on
from dsv4chat.assets.training.mixture import Mixture, Texts, heldout_batches, stream
from dsv4chat.assets.training.model import TrainableModel
from dsv4chat.assets.training.optimizer import Optimizer, balance
from dsv4chat.assets.training.packing import Batch
from dsv4chat.assets.training.runlog import RunLog
from dsv4chat.assets.training.schedule import Plan, Schedule, steps_in
from dsv4chat.assets.training.settings import Settings
from dsv4chat.runtime.config import ModelConfig

TIMED_STEPS = 8
LOG_EVERY = 50


class Trainer:
    """Owns the model, its optimiser and the stream of batches of one run."""

    def __init__(self, settings: Settings, config: ModelConfig, texts: Texts, log: RunLog) -> None:
        self.settings, self.log, self.schedule = settings, log, Schedule()
        compile_with = _compiler(settings)
        self.model = TrainableModel(
            config,
            row_length=settings.row_length,
            seed=settings.seed,
            compute=settings.compute,
            rounded=True,
            compile_with=compile_with,
        ).to(settings.device)
        self.optimizer = Optimizer(self.model, compile_with=compile_with)
        self.mixture = Mixture(texts, rows=settings.rows, row_length=settings.row_length, seed=settings.seed)
        self.mixture.share.value = self.schedule.pretraining_share(0.0)
        self.batches: Iterator[Batch] = stream(self.mixture, settings.device)
        self.heldout = heldout_batches(
            texts.heldout, rows=settings.rows, row_length=settings.row_length, limit=settings.heldout
        )
        self.plan = Plan(settings.steps or 0)
        self.tokens = 0

    def warm_up(self) -> tuple[float, float]:
        """Compile everything and time a step of both phases, in seconds. The weights do not change: the
        learning rates are zero. (The optimiser's averages see a few gradients, as they would in a warm-up.)
        """
        times = []
        for sparse in (False, True):
            self._step(next(self.batches), sparse=sparse, four_bit=sparse, factor=0.0)
            self._synchronise()
            self.log.write("compiled", sparse=sparse)
            batches = [next(self.batches) for _ in range(2)]
            self._step(batches[0], sparse=sparse, four_bit=sparse, factor=0.0)
            self._synchronise()
            begun = time.monotonic()
            for i in range(TIMED_STEPS):
                self._step(batches[i % 2], sparse=sparse, four_bit=sparse, factor=0.0)
            self._synchronise()
            times.append((time.monotonic() - begun) / TIMED_STEPS)
        self.optimizer.write(four_bit=False)
        first = [self.heldout_loss(sparse=sparse, limit=1) for sparse in (False, True)]
        self.log.write("untrained", dense=first[0], sparse=first[1])
        return times[0], times[1]

    def run(self, *, on_compiled: Callable[[], None], on_sparse: Callable[[], None]) -> None:
        """Train to the end of the plan. `on_compiled` is called once everything has run, `on_sparse` where
        the sparse phase begins.
        """
        settings, schedule, plan = self.settings, self.schedule, self.plan
        if settings.seconds is not None:
            dense, sparse = self.warm_up()
            on_compiled()
            left = settings.seconds - settings.reserve - self.log.elapsed()
            plan.steps = steps_in(left, dense, sparse, schedule)
            per_step = settings.rows * settings.row_length
            self.log.write(
                "plan",
                steps=plan.steps,
                dense_tokens_per_second=per_step / dense,
                sparse_tokens_per_second=per_step / sparse,
            )
        begun, reported, waiting = time.monotonic(), 0, True
        total = torch.zeros(3, device=settings.device)
        while plan.done < plan.steps:
            progress = plan.progress
            sparse = progress >= schedule.sparse_from
            if sparse and waiting:
                waiting = False
                on_sparse()
                self._replan()
            batch = next(self.batches)
            self.mixture.share.value = schedule.pretraining_share(progress)
            total += self._step(
                batch,
                sparse=sparse,
                four_bit=progress >= schedule.four_bit_from,
                factor=schedule.factor(progress),
            )
            plan.done += 1
            if plan.done % LOG_EVERY == 0 or plan.done == plan.steps:
                count = plan.done - reported
                loss, index_loss, imbalance = (total / count).tolist()
                total.zero_()
                reported = plan.done
                self.log.write(
                    "step",
                    step=plan.done,
                    loss=loss,
                    index_loss=index_loss,
                    imbalance=imbalance,
                    factor=schedule.factor(progress),
                    tokens=self.tokens,
                    tokens_per_second=self.tokens / (time.monotonic() - begun),
                )
                if self._late():
                    self.log.write("out of time", step=plan.done, planned=plan.steps)
                    break
            if plan.done in {plan.steps * k // 8 for k in range(1, 8)}:
                self.log.write("held out", step=plan.done, loss=self.heldout_loss(sparse=sparse, limit=2))

    def heldout_loss(self, *, sparse: bool, limit: int | None = None) -> float:
        """Loss over the targets of held-out conversations."""
        return loss_on(self.model, self.heldout[:limit], sparse=sparse)

    def _step(self, batch: Batch, *, sparse: bool, four_bit: bool, factor: float) -> torch.Tensor:
        """One update. Returns loss, indexer loss and the largest expert's load over the mean, (3,)."""
        loss, hidden = self.model.loss(batch, sparse=sparse)
        (loss + hidden.index_loss).backward()
        schedule = self.schedule
        self.optimizer.step(schedule.matrix_rate * factor, schedule.other_rate * factor, four_bit=four_bit)
        load = hidden.load.detach()
        if factor > 0 and self.plan.progress < schedule.balance_until:
            balance(self.model.gate_bias, load, hash_layers=self.model.config.num_hash_layers)
        if factor > 0:
            self.tokens += batch.ids.numel()
        imbalance = (load.amax(1) / load.mean(1).clamp(min=1)).mean()
        return torch.stack((loss.detach(), hidden.index_loss.detach(), imbalance))

    def _replan(self) -> None:
        """Shorten or lengthen the rest of a run by the clock, from what steps have cost so far."""
        if self.settings.seconds is None or not self.plan.done:
            return
        self._synchronise()
        # Only the last fifth is left: shift its end, and the schedule stretches with it by a little.
        left = self.settings.seconds - self.settings.reserve - self.log.elapsed()
        batch = next(self.batches)
        begun = time.monotonic()
        for _ in range(4):
            self._step(batch, sparse=True, four_bit=True, factor=0.0)
        self._synchronise()
        rest = max(int(left / ((time.monotonic() - begun) / 4)) - 4, 1)
        planned = self.plan.steps - self.plan.done
        rest = min(max(rest, planned // 2), int(planned * 1.1))
        self.log.write("replan", planned=planned, now=rest)
        self.plan.steps = self.plan.done + rest

    def _late(self) -> bool:
        settings = self.settings
        return settings.seconds is not None and self.log.elapsed() > settings.seconds - settings.reserve + 5

    def _synchronise(self) -> None:
        if self.settings.device.type == "cuda":
            torch.cuda.synchronize()


def _compiler(settings: Settings) -> Callable[[Callable], Callable] | None:
    """torch.compile for each function, or None to run eagerly."""
    if not settings.compiled:
        return None

    def compile_with(function: Callable) -> Callable:
        return torch.compile(function, dynamic=False, fullgraph=True)

    return compile_with
