"""Train the demo model: `python -m dsv4chat.assets.training.train --seconds 570 --corpus DIR --out DIR`.

Writes into the output folder: `demo/` (the checkpoint: shards, index, config.json),
`matrices-*.safetensors` (bf16 values of what the checkpoint holds in 4 bits), `log.jsonl`, `samples.jsonl`.
Saves once where the sparse phase begins and once at the end, before anything is measured.
"""

import json
import time
from pathlib import Path

import torch
from safetensors.torch import save_file

from dsv4chat.assets.training import export, measure
from dsv4chat.assets.training.mixture import PADDING_ID, Texts, load_texts
from dsv4chat.assets.training.packing import build
from dsv4chat.assets.training.runlog import RunLog
from dsv4chat.assets.training.settings import Settings, read_arguments
from dsv4chat.assets.training.trainer import NO_RATES, Trainer
from dsv4chat.kernels.formats import to_tensor

MAX_POSITION = 4096
PART_BYTES = 16_500_000


def main(arguments: list[str] | None = None, started: float | None = None) -> None:
    """Run a training from the command line."""
    settings = read_arguments(arguments)
    log = RunLog(settings.out, time.monotonic() if started is None else started)
    prepare(settings)
    texts = load_texts(settings.corpus)
    describe = export.smoke_config if settings.smoke else export.demo_config
    config = describe(max_position=MAX_POSITION)
    log.write(
        "start",
        device=_device_name(settings.device),
        torch=torch.__version__,
        corpus_tokens=len(texts.pretraining.ids) + len(texts.conversations.ids),
    )
    trainer = Trainer(settings, export.read_config(config), texts, log)
    trainer.run(on_compiled=lambda: after_compiling(trainer), on_sparse=lambda: save(trainer, config))
    log.write("trained", steps=trainer.plan.done, tokens=trainer.tokens)
    save(trainer, config)
    log.write("saved", megabytes=sum(p.stat().st_size for p in (settings.out / "demo").iterdir()) / 1e6)
    measure_all(trainer)
    measure_turns(trainer, texts)
    if settings.smoke:
        run_checkpoint(trainer, texts)
    log.write("end")


def prepare(settings: Settings) -> None:
    """Settings of torch for the whole process, and compiled kernels of an earlier run."""
    torch.manual_seed(settings.seed)
    torch._dynamo.config.recompile_limit = 64  # functions are compiled once for each shape and kind of layer
    if settings.device.type == "cuda":
        torch.cuda.set_stream(torch.cuda.Stream())  # steps are recorded later, which the first stream forbids
        torch.set_float32_matmul_precision("high")
    elif settings.smoke:
        torch.set_num_threads(1)  # small matrices gain nothing from more, and tests run beside each other
    cache = settings.compile_cache
    if cache is not None and cache.exists():
        torch.compiler.load_cache_artifacts(cache.read_bytes())


def save(trainer: Trainer, config: dict[str, object]) -> None:
    """The checkpoint, and the bf16 values of its 4-bit matrices in parts of at most 16 MB."""
    out, masters = trainer.settings.out, trainer.step.optimizer.masters()
    export.export(out / "demo", config, trainer.model, masters)
    parts: list[dict[str, torch.Tensor]] = [{}]
    size = 0
    for name, value in masters.items():
        tensor = value.bfloat16().cpu().contiguous()
        if size + tensor.nbytes > PART_BYTES:
            parts.append({})
            size = 0
        parts[-1][name] = tensor
        size += tensor.nbytes
    for number, part in enumerate(parts, 1):
        save_file(part, out / f"matrices-{number}.safetensors")


def measure_all(trainer: Trainer) -> None:
    """Held-out loss with bf16 and NVFP4 weights, with every block and with the indexer's choice."""
    log = trainer.log
    values = {}
    for four_bit in (False, True):
        trainer.step.optimizer.write(four_bit=four_bit)
        for sparse in (False, True):
            name = f"{'nvfp4' if four_bit else 'bf16'}_{'sparse' if sparse else 'dense'}"
            values[name] = trainer.heldout_loss(sparse=sparse)
    log.write("held-out loss", **values)
    # The file itself, not what training believes it wrote: load the exported values and measure again.
    exported = export.checkpoint_tensors(trainer.model, trainer.step.optimizer.masters())
    plain = {
        name: to_tensor(weight, torch.float32) if weight.shape and "tid2eid" not in name else weight
        for name, weight in exported.items()
    }
    export.load_values(trainer.model, plain)
    log.write("held-out loss of the checkpoint", sparse=trainer.heldout_loss(sparse=True))


def measure_turns(trainer: Trainer, texts: Texts) -> None:
    """Answer held-out turns greedily; the share answered exactly, and all answers in samples.jsonl."""
    settings, model = trainer.settings, trainer.model
    longest = settings.slot
    turns = measure.last_turns(texts.heldout, longest=longest, longest_answer=min(160, longest // 2))
    turns = turns[: settings.turns]
    size = settings.rows * settings.row_length // longest
    answers: list[list[int]] = []
    for i in range(0, len(turns), size):
        answers += measure.answer(
            model,
            [turn.prompt for turn in turns[i : i + size]],
            rows=settings.rows,
            row_length=settings.row_length,
            slot=longest,
            new_tokens=160 if settings.device.type == "cuda" else 4,
            stop_id=model.config.eos_id,
        )
    decode = _decoder(settings.tokenizer)
    exact = 0
    with (settings.out / "samples.jsonl").open("w", encoding="utf-8") as file:
        for turn, given in zip(turns, answers, strict=True):
            exact += given == turn.expected
            line = {
                "document": turn.document,
                "prompt": decode(turn.prompt[-120:]),
                "expected": decode(turn.expected),
                "given": decode(given),
                "exact": given == turn.expected,
            }
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    ended = sum(bool(given) and given[-1] == model.config.eos_id for given in answers)
    trainer.log.write("turns", asked=len(turns), exact=exact, ended=ended)


def run_checkpoint(trainer: Trainer, texts: Texts) -> None:
    """Load the checkpoint with the runtime, compare it with the trained model, and generate a few tokens."""
    from dsv4chat.runtime import Engine, SamplingParams

    model, settings = trainer.model, trainer.settings
    engine = Engine.load(settings.out / "demo", device="cpu", dtype="float32", kv_dtype="float32")
    model.rounded = False  # without the caches' rounding, which tips over at different last bits
    batch = build(texts.heldout, [[0]], settings.row_length, padding=PADDING_ID)
    size = int(texts.heldout.lengths()[0])
    with torch.no_grad():
        ours = model.logits(model.hidden(batch.to(settings.device), sparse=True).x)[0, :size]
    difference = (ours.cpu() - engine.logits(batch.ids[0, :size].tolist())).abs().max()
    tokens = list(engine.generate(batch.ids[0, :8].tolist(), SamplingParams(max_tokens=8, ignore_eos=True)))
    trainer.log.write("runtime", logit_difference=float(difference), generated=len(tokens))


def after_compiling(trainer: Trainer) -> None:
    """Keep what was compiled, and look at where a step's time goes if asked to."""
    settings = trainer.settings
    if settings.compile_cache is not None and not settings.compile_cache.exists():
        save_compile_cache(settings.compile_cache)
    if settings.profile:
        profile(trainer)
    trainer.log.write("ready")


def profile(trainer: Trainer) -> None:
    """Print the slowest GPU kernels of one compiled step of each phase."""
    for sparse in (False, True):
        batch = trainer.next_batch()
        for _ in range(3):
            trainer.step(batch, NO_RATES, sparse=sparse)
        with torch.profiler.profile() as recorded:
            trainer.step(batch, NO_RATES, sparse=sparse)
            torch.cuda.synchronize()
        table = recorded.key_averages().table(
            sort_by="self_device_time_total", row_limit=45, max_name_column_width=90
        )
        name = "profile-sparse.txt" if sparse else "profile-dense.txt"
        (trainer.settings.out / name).write_text(table, encoding="utf-8")


def save_compile_cache(path: Path) -> None:
    """Write torch's compiled artifacts to one file."""
    artifacts = torch.compiler.save_cache_artifacts()
    if artifacts is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(artifacts[0])


def _decoder(path: Path):
    """ids -> text with the tokenizer file, or their numbers where there is none."""
    if not path.exists():
        return lambda ids: " ".join(map(str, ids))
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(path))
    return lambda ids: tokenizer.decode(ids, skip_special_tokens=False)


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


if __name__ == "__main__":
    main(started=time.monotonic())
