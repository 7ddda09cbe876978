"""Random raw completions: thinking, answer and tool calls as a model writes them, and damaged ones."""

import json
import random
import re
from dataclasses import dataclass

from tests.support.random_chats import random_json

DSML, EOS = "｜DSML｜", "<｜end▁of▁sentence｜>"
FRAGMENTS = (
    *(
        "a",
        "Hello",
        " ",
        "  ",
        "\n",
        "\n\n",
        "\t",
        "\r\n",
        "<",
        "</",
        ">",
        "2>&1",
        "<b>",
        "</b>",
        "<think>",
        "&&",
    ),
    *(
        "</thin",
        "｜",
        "<｜",
        "｜DSML",
        "DSML｜",
        "<｜end▁of",
        "你好",
        "👍🏽",
        "👩‍👩‍👧",
        '"',
        "'",
        "\\",
        "\x1b]52;",
        "\u202e",
    ),
)
DAMAGE = (
    *("<think>", "</think>", DSML, f"<{DSML}", f"</{DSML}", f"<{DSML}tool_calls>", f"</{DSML}tool_calls>"),
    *(
        f"<{DSML}toolcalls>",
        f"<{DSML}invoke",
        f'<{DSML}invoke name="g">',
        f"</{DSML}invoke>",
        f"</{DSML}parameter>",
    ),
    *(f'<{DSML}parameter name="q" string="true">', f'<{DSML}parameter name="q">', f"<{DSML}foo>", 'name="'),
    *(EOS, "<｜User｜>", "string=", "\n"),
)

# After the beginning of a tag, DeepSeek's parser keeps a line break that it drops after other text.
_HALF_TAG_BEFORE_BREAK = re.compile(f"<[^\\s>]*\n+(</think>|\n*<{DSML})")


@dataclass(frozen=True)
class Completion:
    text: str
    thinking: bool
    comparable: bool  # DeepSeek's parser and ours are meant to agree (see test_random_completions.py)


def random_words(rng: random.Random, longest: int = 6) -> str:
    return "".join(rng.choices(FRAGMENTS, k=rng.randint(0, longest))).replace(DSML, "")


def random_call(rng: random.Random) -> str:
    parameters = []
    for name in rng.sample(["city", "days", "é", "a-b"], rng.randint(0, 3)):
        if rng.random() < 0.6:
            value, string = random_words(rng), "true"
        else:
            value, string = json.dumps(random_json(rng, 1), ensure_ascii=rng.random() < 0.5), "false"
        value = value.replace(DSML, "")  # values with DSML of their own are among the damaged completions
        parameters.append(f'<{DSML}parameter name="{name}" string="{string}">{value}</{DSML}parameter>\n')
    name = rng.choice(["f", "get_weather", "x-1"])
    return f'<{DSML}invoke name="{name}">\n{"".join(parameters)}</{DSML}invoke>\n'


def random_completion(rng: random.Random) -> Completion:
    """Half of them well formed, the other half with something inserted, cut out or cut off."""
    thinking = rng.random() < 0.7
    parts = []
    if thinking:
        parts.append(random_words(rng))
        if rng.random() < 0.85:
            parts.append("</think>")
            parts.append(random_words(rng))
    else:
        parts.append(random_words(rng))
    if rng.random() < 0.6:
        calls = "".join(random_call(rng) for _ in range(rng.randint(1, 3)))
        wrapper = "toolcalls" if rng.random() < 0.1 else "tool_calls"
        orphan = rng.random() < 0.1
        parts.append("\n\n" if rng.random() < 0.9 else rng.choice(["", "\n", " "]))
        parts.append(calls if orphan else f"<{DSML}{wrapper}>\n{calls}</{DSML}{wrapper}>")
        if rng.random() < 0.2:
            parts.append(rng.choice(["\n", "\n\n"]))
    text = "".join(parts)
    if rng.random() < 0.5:
        return Completion(text, thinking, not (_HALF_TAG_BEFORE_BREAK.search(text) or EOS in text))
    for _ in range(rng.randint(1, 3)):
        at = rng.randint(0, len(text))
        kind = rng.randrange(3)
        if kind == 0:
            text = text[:at] + rng.choice(DAMAGE) + text[at:]
        elif kind == 1:
            text = text[:at] + text[at + rng.randint(1, 20) :]
        else:
            text = text[: max(at, len(text) // 2)]
    return Completion(text, thinking, comparable=False)
