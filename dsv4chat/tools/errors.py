"""Errors of tools."""


class ToolError(Exception):
    """A tool cannot do what was asked; the model gets the text as the result, after "Error: "."""


class ToolUnusable(Exception):  # noqa: N818 - named by what happened
    """Something cannot be a tool: it is not there, or has no JSON schema. The text is for a person."""
