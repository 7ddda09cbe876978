"""Tool calls as a model writes them."""


def call(name: str, **arguments: str) -> str:
    """A block with one call of text arguments, to stand at the end of an answer."""
    lines = [
        f'<｜DSML｜parameter name="{key}" string="true">{value}</｜DSML｜parameter>'
        for key, value in arguments.items()
    ]
    body = "\n".join([f'<｜DSML｜invoke name="{name}">', *lines, "</｜DSML｜invoke>"])
    return f"\n\n<｜DSML｜tool_calls>\n{body}\n</｜DSML｜tool_calls>"


SUM = "I compute.</think>" + call("calculator", expression="17 * 24")
