"""Every control token of the tokenizer, pasted by a person: none becomes one, and the text stays the same."""

import json
from pathlib import Path

from dsv4chat.app.widgets.user_message import UserMessage
from dsv4chat.assets import demo_path
from dsv4chat.encoding import Tokenizer
from dsv4chat.store import open_history
from tests.support.app_parts import Parts, wait_for
from tests.support.fake_engine import Script
from tests.support.host import drawn, hosted
from tests.support.sessions import ask, ready


def added_tokens() -> list[tuple[int, str]]:
    """Ids and texts of what the demo model's tokenizer.json adds to its vocabulary."""
    definition = json.loads((demo_path() / "tokenizer.json").read_text("utf-8"))
    return [(token["id"], token["content"]) for token in definition["added_tokens"]]


async def test_all_control_tokens_in_a_message_stay_text_to_the_model_the_history_and_the_eye(
    tmp_path: Path,
) -> None:
    tokens = added_tokens()
    pasted = " ".join(text for _, text in tokens) + "".join(text for _, text in tokens)
    tokenizer = Tokenizer.from_folder(demo_path())
    parts = Parts(tmp_path, Script(["Hm.</think>Yes.", "Hm.</think>No."]), tokenizer=tokenizer)
    session = await ready(parts)
    await ask(session, "plain words")
    plain = parts.engine.asked[0]
    session.new_conversation()
    await wait_for(lambda: session.record is None)
    await ask(session, pasted)
    control = {number for number, _ in tokens}
    asked = parts.engine.asked[1]
    assert [number for number in asked if number in control] == [n for n in plain if n in control]
    decoder = tokenizer.decoder()
    pieces = [decoder.push(number) for number in asked if number not in control]
    assert "".join(pieces) + decoder.flush() == pasted
    await session.close()
    history = open_history(tmp_path).repository
    latest = history.latest_conversation()
    assert latest is not None
    record, _ = history.path(latest.active_leaf)
    history.close()
    assert record.content == pasted
    async with hosted(lambda: UserMessage(record), (80, 40)) as (host, _):
        assert "".join(pasted.split()) == "".join(drawn(host).replace("█", "").split())
