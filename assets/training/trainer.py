"""The training loop: warm-up and timing, then steps until the plan or the clock says stop."""

import time
from collections.abc import Callable, Iterator

import torch

from dsv4chat.assets.training.measure import loss_on
from dsv4chat.assets.training.mixture import Mixture, Texts, heldout_batches, stream
from dsv4chat.assets.training.model import TrainableModel
from dsv4chat.assets.training.packing import Batch
from dsv4chat.assets.training.runlog import RunLog
from dsv4chat.assets.training.schedule import Plan, Schedule, steps_in
from dsv4chat.assets.training.settings import Settings
from dsv4chat.assets.training.step import Step
from dsv4chat.runtime.config import ModelConfig

TIMED_STEPS = 12
LOG_EVERY = 50
NO_RATES = (0.0, 0.0, 0.0)


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
        self.step = Step(self.model, compile_with=compile_with)
        self.mixture = Mixture(texts, rows=settings.rows, row_length=settings.row_length, seed=settings.seed)
        self.mixture.share.value = self.schedule.pretraining_share(0.0)
        self._batches: Iterator[Batch] = stream(self.mixture, settings.device)
        self.heldout = heldout_batches(
            texts.heldout, rows=settings.rows, row_length=settings.row_length, limit=settings.heldout
        )
        self.plan = Plan(settings.steps or 0)
        self.tokens = 0
        self.waited = 0.0

    def next_batch(self) -> Batch:
        """The next training batch; the time spent waiting for it is counted."""
        begun = time.monotonic()
        batch = next(self._batches)
        self.waited += time.monotonic() - begun
        return batch

    def warm_up(self) -> tuple[float, float]:
        """Compile and record everything and time a step of both phases, in seconds. The weights do not
        change: the learning rates are zero. (The optimiser's averages see a few gradients.)
        """
        for sparse in (False, True):
            for _ in range(3):
                self.step(self.next_batch(), NO_RATES, sparse=sparse)
            self._synchronise()
            self.log.write("compiled", sparse=sparse)
        self.step.optimizer.write(four_bit=False)
        first = [self.heldout_loss(sparse=sparse, limit=1) for sparse in (False, True)]
        self.log.write("untrained", dense=first[0], sparse=first[1])
        if self.settings.device.type == "cuda":
            self.log.write("recorded", **self.step.record(self.next_batch()))
        return self._timed(sparse=False), self._timed(sparse=True)

    def run(self, *, on_compiled: Callable[[], None], on_sparse: Callable[[], None]) -> None:
        """Train to the end of the plan. `on_compiled` is called once everything has run, `on_sparse` where
        the sparse phase begins.
        """
        settings, schedule, plan = self.settings, self.schedule, self.plan
        if settings.seconds is not None:
            dense, sparse = self.warm_up()
            on_compiled()
            plan.steps = steps_in(self._left(), dense, sparse, schedule)
            per_step = settings.rows * settings.row_length
            self.log.write(
                "plan",
                steps=plan.steps,
                dense_tokens_per_second=per_step / dense,
                sparse_tokens_per_second=per_step / sparse,
            )
        self.step.optimizer.write(four_bit=False)
        begun, reported, waiting, self.waited = time.monotonic(), 0, True, 0.0
        total = torch.zeros(3, device=settings.device)
        while plan.done < plan.steps:
            progress = plan.progress
            sparse = progress >= schedule.sparse_from
            if sparse and waiting:
                waiting = False
                on_sparse()
                self._replan()
                progress = plan.progress
            batch = self.next_batch()
            self.mixture.share.value = schedule.pretraining_share(progress)
            total += self.step(batch, schedule.rates(progress), sparse=sparse)
            plan.done += 1
            self.tokens += batch.ids.numel()
            if plan.done % LOG_EVERY == 0 or plan.done == plan.steps:
                loss, index_loss, imbalance = (total / (plan.done - reported)).tolist()
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
                    waited=self.waited,
                )
                if settings.seconds is not None and self._left() < -5:
                    self.log.write("out of time", step=plan.done, planned=plan.steps)
                    break
            if plan.done in {plan.steps * k // 8 for k in range(1, 8)}:
                self.log.write("held out", step=plan.done, loss=self.heldout_loss(sparse=sparse, limit=2))

    def heldout_loss(self, *, sparse: bool, limit: int | None = None) -> float:
        """Loss over the targets of held-out conversations."""
        return loss_on(self.model, self.heldout[:limit], sparse=sparse)

    def _timed(self, *, sparse: bool) -> float:
        """Seconds a step takes, waiting for data included."""
        self._synchronise()
        begun = time.monotonic()
        for _ in range(TIMED_STEPS):
            self.step(self.next_batch(), NO_RATES, sparse=sparse)
        self._synchronise()
        return (time.monotonic() - begun) / TIMED_STEPS

    def _replan(self) -> None:
        """Shorten or lengthen the rest of a run by the clock, from what a sparse step costs now."""
        if self.settings.seconds is None or not self.plan.done:
            return
        seconds = self._timed(sparse=True)
        planned = self.plan.steps - self.plan.done
        rest = min(max(int(self._left() / seconds), 1), int(planned * 1.2))
        self.log.write("replan", planned=planned, now=rest)
        self.plan.steps = self.plan.done + rest

    def _left(self) -> float:
        """Seconds left for training."""
        settings = self.settings
        return (settings.seconds or 0.0) - settings.reserve - self.log.elapsed()

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
