"""docs/images/cache.svg: the tree of a real conversation and its checkpoints: `make screenshots`.

The demo model answers; what is drawn is what the session holds afterwards, nothing is made up.
"""

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from dsv4chat.encoding import Conversation, Message, Profile, Tokenizer, render
from dsv4chat.runtime.branches import Branch
from dsv4chat.runtime.engine import Engine
from dsv4chat.runtime.protocol import SamplingParams

PICTURE = Path(__file__).parent / "images" / "cache.svg"
LEFT, TOP, ROW, BAR, SCALE = 20, 88, 62, 22, 1.5
COLOURS = {"system": "#8a63d2", "user": "#3b82c4", "assistant": "#2f9e68"}
PLACES = {"live": "in the live cache", "memory": "in memory", "disk": "on disk"}
DOCUMENT = "The harbour opens at six and closes at nine. " * 26


@dataclass(frozen=True)
class Drawn:
    """A branch and the row it stands in; place: live, memory or disk."""

    branch: Branch
    row: int
    place: str


def main() -> None:
    """Have the conversation and draw it."""
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine.load("demo", device="cpu", cache_folder=folder)
        have(engine)
        PICTURE.parent.mkdir(exist_ok=True)
        PICTURE.write_text(draw(engine), encoding="utf-8")
    print(PICTURE)


def have(engine: Engine) -> None:
    """A long question, a second one, the same edited, another answer to that; one chat with a system text."""
    first = ask(engine, Conversation((Message("user", DOCUMENT + "When does it open?"),), thinking=False))
    ask(engine, say(first, "What is the capital of France, and in which part of the country does it lie?"))
    edited = say(first, "What is the capital of Norway? Please tell me about its harbour and its ships, too.")
    ask(engine, edited)
    third = say(ask(engine, edited, seed=2), "Thank you. And what is the capital of Japan, by the way?")
    system = Message("system", "You are a guide to harbours. Answer briefly and in plain words.")
    ask(engine, replace(first, messages=(system, Message("user", "When does the harbour open?"))))
    ask(engine, third)
    conversations = engine.conversations
    conversations.budget = engine.session().nbytes - 1  # what was used longest ago goes to disk
    conversations.settle()


def say(conversation: Conversation, text: str) -> Conversation:
    """The conversation with one more question."""
    return replace(conversation, messages=(*conversation.messages, Message("user", text)))


def ask(engine: Engine, conversation: Conversation, seed: int = 1) -> Conversation:
    """One turn; the conversation with its answer."""
    prompt = engine.require_tokenizer().encode(render(conversation, Profile.PREVIEW))
    params = SamplingParams(temperature=1.0, seed=seed, max_tokens=60)
    tokens = list(engine.generate(prompt.ids, params, boundaries=prompt.boundaries))
    answer = Message("assistant", "".join(token.text for token in tokens), ids=tuple(t.id for t in tokens))
    return replace(conversation, messages=(*conversation.messages, answer))


def draw(engine: Engine) -> str:
    """The SVG of the conversation's tree, as long as its longest version."""
    drawn = arrange(engine)
    tokenizer = engine.require_tokenizer()
    width = max(LEFT + SCALE * max(one.branch.end for one in drawn) + 190, 760)
    height = TOP + ROW * (1 + max(one.row for one in drawn)) + 6
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'font-family="sans-serif" font-size="13" fill="#333">',
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#fff"/>',
        '<text x="20" y="26" font-size="16">One conversation: what was fed, and where to go back to</text>',
    ]
    parts += legend()
    for one in drawn:
        parts += bar(one, drawn, tokenizer)
    return "\n".join([*parts, "</svg>", ""])


def arrange(engine: Engine) -> list[Drawn]:
    """Each branch in a row: a branch's first child goes on in its row, every other one has its own."""
    session = engine.session()
    drawn: list[Drawn] = []
    rows = 0
    waiting = [(branch, -1) for branch in reversed(session.root.children)]
    while waiting:
        branch, row = waiting.pop()
        if row < 0:
            row, rows = rows, rows + 1
        live = branch in engine.conversations.live.path
        drawn.append(Drawn(branch, row, "live" if live else "memory" if branch.rows is not None else "disk"))
        waiting += [(child, -1) for child in reversed(branch.children[1:])]
        waiting += [(child, row) for child in branch.children[:1]]
    return drawn


def legend() -> list[str]:
    """What the colours and signs mean."""
    parts, x = [], LEFT
    for role, colour in COLOURS.items():
        parts.append(f'<rect x="{x}" y="42" width="14" height="14" rx="2" fill="{colour}"/>')
        parts.append(f'<text x="{x + 20}" y="54">{role}</text>')
        x += 30 + 9 * len(role)
    for sign, text in (
        (tick(x + 6, 49, True), "after a message or an opener"),
        (tick(0, 0, False), "every 256 ids"),
    ):
        sign = tick(x + 6, 49, "every" not in text)
        parts.append(sign + f'<text x="{x + 18}" y="54">checkpoint {text}</text>')
        x += 300
    return parts


def bar(one: Drawn, drawn: list[Drawn], tokenizer: Tokenizer) -> list[str]:
    """One branch: its ids by who said them, its checkpoints, where it is kept, the line from its parent."""
    branch, y = one.branch, TOP + ROW * one.row
    opacity = {"live": 1.0, "memory": 0.55, "disk": 0.3}[one.place]
    parts = []
    parent = next((other for other in drawn if other.branch is branch.parent), None)
    if parent is not None and parent.row != one.row:
        x, above = LEFT + SCALE * branch.start, TOP + ROW * parent.row + BAR
        parts.append(f'<path d="M{x:.1f} {above} V{y}" stroke="#888" stroke-width="1.5" fill="none"/>')
    for role, start, end in stretches(branch, tokenizer):
        x, width = LEFT + SCALE * start, SCALE * (end - start)
        parts.append(
            f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" fill="{COLOURS[role]}" '
            f'fill-opacity="{opacity}"/>'
        )
    for mark in branch.marks:
        parts.append(tick(LEFT + SCALE * mark.position, y + BAR + 8, mark.boundary))
    if not branch.children:
        x = LEFT + SCALE * branch.end + 12
        parts.append(f'<text x="{x:.1f}" y="{y + 16}">{branch.end} ids, {PLACES[one.place]}</text>')
    return parts


def stretches(branch: Branch, tokenizer: Tokenizer) -> list[tuple[str, int, int]]:
    """Who said what: (role, start, end) along a branch."""
    ids = [token for part in branch.path() for token in part.ids]
    role, roles = "system", []
    for token in ids:
        role = {tokenizer.user_id: "user", tokenizer.assistant_id: "assistant"}.get(token, role)
        roles.append(role)
    found: list[tuple[str, int, int]] = []
    for position in range(branch.start, branch.end):
        if found and found[-1][0] == roles[position]:
            found[-1] = (found[-1][0], found[-1][1], position + 1)
        else:
            found.append((roles[position], position, position + 1))
    return found


def tick(x: float, y: float, boundary: bool) -> str:
    """A checkpoint: a filled triangle at a boundary, an open one elsewhere."""
    fill = "#d9480f" if boundary else "none"
    return f'<path d="M{x:.1f} {y - 6} l5 10 h-10 z" fill="{fill}" stroke="#d9480f" stroke-width="1.2"/>'


if __name__ == "__main__":
    main()
