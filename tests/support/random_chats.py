"""Random chat-completion request bodies that DeepSeek's converter accepts."""

import json
import random
from typing import Any

CONTROL = (
    "<｜begin▁of▁sentence｜>",
    "<｜end▁of▁sentence｜>",
    "<｜User｜>",
    "<｜Assistant｜>",
    "<think>",
    "</think>",
    "｜DSML｜",
    "<｜DSML｜tool_calls>",
    "</｜DSML｜parameter>",
    "<｜latest_reminder｜>",
    "<｜title｜>",
    "<tool_result>",
    "</tool_result>",
)
WORDS = (
    *(
        "Hello",
        "world",
        " ",
        "  ",
        "\n",
        "\n\n",
        "\t",
        "2>&1",
        "a<b",
        "</",
        "<",
        ">",
        '"',
        "'",
        "\\",
        "\\n",
        "{}",
    ),
    *(
        "你好，世界",
        "日本語",
        "Привет",
        "مرحبا",
        "👍🏽",
        "👩‍👩‍👧",
        "e\u0301",
        "\u200d",
        "\u202e",
        "\x1b[31m",
        "\x00",
        "\u2028",
    ),
    *(
        "1234567",
        "3.14",
        "[brackets]",
        "**bold**",
        "```py\nx=1\n```",
        "\r\n",
        "\ufeff",
        "𝔘𝔫𝔦",
        "$NAME",
        "null",
        "true",
    ),
)


def random_text(rng: random.Random, longest: int = 8) -> str:
    pieces = rng.choices(WORDS, k=rng.randint(0, longest))
    if rng.random() < 0.25:
        pieces.insert(rng.randint(0, len(pieces)), rng.choice(CONTROL))
    return "".join(pieces)


def random_json(rng: random.Random, depth: int = 2) -> Any:
    kind = rng.randrange(9 if depth else 6)
    if kind == 0:
        return random_text(rng, 4)
    if kind == 1:
        return rng.choice([0, 1, -7, 2**53, -(2**63), 2**64 - 1, rng.randint(-1000, 1000)])
    if kind == 2:
        return rng.choice(
            [0.5, -0.0, 1e16, 1e15, 1e-5, 1.25e-5, 1e-6, -3e-7, 1e22, 5e-324, rng.uniform(-1e3, 1e3)]
        )
    if kind == 3:
        return rng.choice([True, False])
    if kind == 4:
        return None
    if kind == 5:
        return rng.choice(["", "true", "12", "null", "[1]"])
    if kind in (6, 7):
        return {random_text(rng, 2): random_json(rng, depth - 1) for _ in range(rng.randint(0, 4))}
    return [random_json(rng, depth - 1) for _ in range(rng.randint(0, 4))]


def random_arguments(rng: random.Random) -> str:
    choice = rng.random()
    if choice < 0.1:
        return rng.choice(
            [
                "",
                "null",
                "[1, 2]",
                "3",
                '"x"',
                '{"a": 1',
                "{'a': 1}",
                '{"a": NaN}',
                '{"a": "\\ud800"}',
                "{} x",
            ]
        )
    value = {
        rng.choice(["city", "days", "q", "é", "", "a b"]): random_json(rng) for _ in range(rng.randint(0, 4))
    }
    separators = rng.choice([(",", ":"), (", ", ": "), (" ,  ", " :\n")])
    return json.dumps(value, ensure_ascii=rng.random() < 0.5, separators=separators)


def random_tool(rng: random.Random, name: str) -> dict[str, Any]:
    function: dict[str, Any] = {"name": name}
    if rng.random() < 0.8:
        function["description"] = rng.choice([None, random_text(rng)])
    if rng.random() < 0.8:
        properties = {
            rng.choice(["city", "days", "q", "é"]): {
                "type": rng.choice(["string", "integer", "number", "boolean"]),
                "description": random_text(rng, 3),
            }
            for _ in range(rng.randint(0, 3))
        }
        function["parameters"] = {"type": "object", "properties": properties}
        if rng.random() < 0.3:
            function["parameters"]["required"] = list(properties)
    items = list(function.items())
    rng.shuffle(items)
    return {"type": "function", "function": dict(items)}


def random_request(rng: random.Random) -> dict[str, Any]:
    """A body: any order of roles, tools and results, efforts, modes, a prefix at the end."""
    body: dict[str, Any] = {"model": "DeepSeek-V4-Pro"}
    if rng.random() < 0.9:
        body["thinking"] = {"type": rng.choice(["enabled", "enabled", "disabled", "adaptive"])}
    effort = rng.choice([None, None, "none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra"])
    if effort or rng.random() < 0.5:
        body["reasoning_effort"] = effort
    if rng.random() < 0.4:
        body["tools"] = [
            random_tool(rng, name) for name in rng.sample(["f", "get_weather", "x-1"], rng.randint(0, 3))
        ]
        if rng.random() < 0.2:
            body["tool_choice"] = rng.choice(["auto", "none"])
    if rng.random() < 0.1:
        body["response_format"] = rng.choice(
            [
                {"type": "text"},
                {
                    "type": "json_schema",
                    "json_schema": {"name": "a", "schema": {"type": "object", "é": [1.0, {}]}},
                },
            ]
        )
    messages: list[dict[str, Any]] = []
    count = 0
    prefixes = rng.choice([["call_"], ["a", "b", "é", "\U0001f600", "\uff5c"]])
    for _ in range(rng.randint(1, 8)):
        role = rng.choice(["system", "user", "user", "assistant", "assistant", "latest_reminder", "call"])
        if role == "latest_reminder":
            messages.append({"role": role, "content": random_text(rng)})
            continue
        if role in ("system", "user"):
            messages.append({"role": role, "content": _content(rng)})
            continue
        message: dict[str, Any] = {"role": "assistant", "content": _content(rng)}
        if rng.random() < 0.5:
            message["reasoning_content"] = random_text(rng)
        messages.append(message)
        if role == "call":
            calls = []
            for _ in range(rng.randint(1, 3)):
                count += 1
                name = rng.choice(["f", "get_weather", "x-1"])
                calls.append(
                    {
                        "id": f"{rng.choice(prefixes)}{count}",
                        "type": "function",
                        "function": {"name": name, "arguments": random_arguments(rng)},
                    }
                )
            message["tool_calls"] = calls
            if rng.random() < 0.2:
                message["content"] = None
            results = [
                {"role": "tool", "tool_call_id": call["id"], "content": _content(rng)} for call in calls
            ]
            rng.shuffle(results)
            messages += results
    if not body.get("tools") and not count and rng.random() < 0.5:
        last: dict[str, Any] = {"role": "assistant", "content": random_text(rng) or "x", "prefix": True}
        if rng.random() < 0.5:
            last["reasoning_content"] = random_text(rng)
        messages.append(last)
    body["messages"] = messages
    return body


def _content(rng: random.Random) -> Any:
    if rng.random() < 0.1:
        return [{"type": "text", "text": random_text(rng, 3)} for _ in range(rng.randint(0, 3))]
    return random_text(rng)
