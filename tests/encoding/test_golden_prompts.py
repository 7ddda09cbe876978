"""Prompts against DeepSeek's own encoders (tests/data/prompts.json)."""

import json
from pathlib import Path
from typing import Any

import pytest

from dsv4chat.encoding import Profile, conversation_from_request, render

CASES = json.loads((Path(__file__).parents[1] / "data" / "prompts.json").read_text(encoding="utf-8"))["cases"]


@pytest.mark.parametrize("profile", list(Profile))
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_prompt_equals_deepseeks_encoder(case: dict[str, Any], profile: Profile) -> None:
    assert render(conversation_from_request(case["request"]), profile).text == case[profile]


def test_all_golden_prompts_are_here() -> None:
    assert len(CASES) == 80
