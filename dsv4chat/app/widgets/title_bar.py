"""The first line: the program, the conversation, the model."""

from typing import ClassVar

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from dsv4chat.app.styles import beside
from dsv4chat.visible import visible


class TitleBar(Widget):
    """One line; the conversation's title gives way when there is little room."""

    DEFAULT_CSS = beside(__file__)
    COMPONENT_CLASSES: ClassVar[set[str]] = {"title-bar--name", "title-bar--title", "title-bar--model"}

    title: reactive[str] = reactive("")
    model: reactive[str] = reactive("")

    def render(self) -> Content:
        width = self.content_size.width
        name, model = Content("dsv4chat"), Content(visible(self.model))
        room = width - name.cell_length - (model.cell_length + 2 if self.model else 0) - 3
        parts = [name.stylize(self.get_visual_style("title-bar--name"))]
        if self.title and room >= 8:
            title = Content(f" · {visible(self.title)}").truncate(room + 3, ellipsis=True)
            parts.append(title.stylize(self.get_visual_style("title-bar--title")))
        used = sum(part.cell_length for part in parts)
        if self.model and used + model.cell_length + 1 <= width:
            parts.append(Content(" " * (width - used - model.cell_length)))
            parts.append(model.stylize(self.get_visual_style("title-bar--model")))
        return Content("").join(parts)
