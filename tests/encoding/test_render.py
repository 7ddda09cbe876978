"""What DeepSeek's package does not render: task tokens, finished conversations; and what is refused."""

import pytest

from dsv4chat.encoding import Conversation, EncodingError, Message, Profile, ToolCall, render

BOS, EOS = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"
QUESTION = Message("user", "q")
ANSWER = Message("assistant", "a", reasoning="r")


def text(
    *messages: Message,
    task: str | None = None,
    thinking: bool = True,
    open_turn: bool = True,
    tools: bool = False,
) -> str:
    conversation = Conversation(messages, ({"name": "f"},) if tools else (), thinking, "low")
    rendered = render(conversation, Profile.CURRENT, task=task, open_turn=open_turn).text
    assert rendered.startswith(BOS)
    return rendered.removeprefix(BOS).split("invoke tool calls.\n")[-1]


@pytest.mark.parametrize("task", ["query", "authority", "domain", "read_url"])
def test_a_question_task_stands_straight_after_the_user_text(task: str) -> None:
    assert text(QUESTION, task=task) == f"<｜User｜>q<｜{task}｜>"
    assert text(Message("user", "q", task=task)) == f"<｜User｜>q<｜{task}｜>"


def test_the_action_task_stands_after_the_opened_turn() -> None:
    assert text(QUESTION, task="action") == "<｜User｜>q<｜Assistant｜><think><｜action｜>"
    assert text(QUESTION, task="action", thinking=False) == "<｜User｜>q<｜Assistant｜></think><｜action｜>"


def test_a_title_is_appended_to_the_finished_turn() -> None:
    """Byte for byte what was fed and sampled, so that the cache is only appended to."""
    before = text(QUESTION) + "r</think>a" + EOS
    assert text(QUESTION, ANSWER, task="title") == before + "<｜title｜>"
    assert (
        text(QUESTION, ANSWER, task="title", thinking=False)
        == f"<｜User｜>q<｜Assistant｜></think>a{EOS}<｜title｜>"
    )


def test_the_answer_to_a_task_follows_its_token_without_an_opener() -> None:
    messages = (Message("user", "q", task="query"), Message("assistant", "weather"), Message("user", "n"))
    assert text(*messages) == f"<｜User｜>q<｜query｜>weather{EOS}<｜User｜>n<｜Assistant｜><think>"
    titled = (QUESTION, Message("assistant", "a", task="title"), Message("assistant", "T"))
    assert text(*titled, open_turn=False) == f"<｜User｜>q<｜Assistant｜></think>a{EOS}<｜title｜>T{EOS}"


def test_a_reminder_stands_before_its_user_message() -> None:
    messages = (QUESTION, Message("assistant", "a"), Message("latest_reminder", "now"), Message("user", "n"))
    expected = (
        f"<｜User｜>q<｜Assistant｜></think>a{EOS}<｜latest_reminder｜>now<｜User｜>n<｜Assistant｜><think>"
    )
    assert text(*messages) == expected


def test_a_finished_conversation_stands_as_it_was_said() -> None:
    assert text(QUESTION, ANSWER, open_turn=False) == f"<｜User｜>q<｜Assistant｜><think>r</think>a{EOS}"
    assert text(QUESTION, open_turn=False) == "<｜User｜>q"


def test_reasoning_is_kept_where_tools_are_defined_and_dropped_elsewhere() -> None:
    following = (QUESTION, ANSWER, Message("user", "n"))
    assert text(*following) == f"<｜User｜>q<｜Assistant｜></think>a{EOS}<｜User｜>n<｜Assistant｜><think>"
    with_tools = f"<｜User｜>q<｜Assistant｜><think>r</think>a{EOS}<｜User｜>n<｜Assistant｜><think>"
    assert text(*following, tools=True) == with_tools


def test_an_invalid_call_is_rendered_again_and_its_error_is_the_result() -> None:
    call = ToolCall("1", "f", '{"a": "[1,"}', valid=False, error="not JSON")
    rendered = text(
        QUESTION, Message("assistant", "", tool_calls=(call,)), Message("tool", "not JSON", tool_call_id="1")
    )
    assert '<｜DSML｜parameter name="a" string="true">[1,</｜DSML｜parameter>' in rendered
    assert rendered.endswith("<tool_result>not JSON</tool_result><｜Assistant｜><think>")


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        ((Message("robot", "x"),), "role must be one of"),
        ((Message("assistant", "x", prefix=True), QUESTION), "prefix"),
        ((Message("user", "x", prefix=True),), "prefix"),
        ((Message("user", "x", task="poem"),), "task must be one of"),
    ],
)
def test_a_conversation_that_cannot_be_rendered_is_refused(messages: tuple[Message, ...], says: str) -> None:
    with pytest.raises(EncodingError, match=says):
        render(Conversation(messages), Profile.PREVIEW)


def test_unknown_effort_task_and_tools_are_refused() -> None:
    with pytest.raises(EncodingError, match="effort must be"):
        render(Conversation((QUESTION,), effort="medium"), Profile.PREVIEW)
    with pytest.raises(EncodingError, match="task must be"):
        render(Conversation((QUESTION,)), Profile.PREVIEW, task="poem")
    with pytest.raises(EncodingError, match="needs a name"):
        render(Conversation((QUESTION,), tools=({},)), Profile.PREVIEW)
    with pytest.raises(EncodingError, match="cannot be written as JSON"):
        render(Conversation((QUESTION,), tools=({"name": "f", "parameters": {"a": {1}}},)), Profile.PREVIEW)
