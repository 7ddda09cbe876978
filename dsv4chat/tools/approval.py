"""Whether a tool may run: what the person has decided for good, else the person's answer to a question."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Literal

from dsv4chat.encoding import ToolCall

Policy = Literal["ask", "always", "never"]
Answer = Literal["once", "no", "always", "never"]


class Approvals:
    """Callable: may this call run? What has no policy is asked for.

    ask: puts the question to the person. keep: takes a new policy to wherever it is to be remembered.
    """

    def __init__(
        self,
        policies: Mapping[str, Policy],
        ask: Callable[[ToolCall], Awaitable[Answer]],
        keep: Callable[[str, Policy], None] = lambda name, policy: None,
    ) -> None:
        self.policies: dict[str, Policy] = dict(policies)
        self._ask = ask
        self._keep = keep

    async def __call__(self, call: ToolCall) -> bool:
        policy = self.policies.get(call.name, "ask")
        if policy == "ask":
            answer = await self._ask(call)
            if answer == "always" or answer == "never":
                self.policies[call.name] = answer
                self._keep(call.name, answer)
            return answer in ("once", "always")
        return policy == "always"
