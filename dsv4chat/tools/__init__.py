"""Tools: Python functions the model may call. The calculator and the clock are built in.

A function becomes a tool by its name in the settings (`[tools] functions = ["weather.py:forecast"]`); its
schema comes from its signature and docstring. It returns text (or JSON data) and raises `ToolError`.
"""

from dsv4chat.tools.errors import ToolError, ToolUnusable
from dsv4chat.tools.tool import Tool, tool_from_function
from dsv4chat.tools.toolbox import Toolbox, builtin_tools, load_toolbox

__all__ = [
    "Tool",
    "ToolError",
    "ToolUnusable",
    "Toolbox",
    "builtin_tools",
    "load_toolbox",
    "tool_from_function",
]
