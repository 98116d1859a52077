"""HTML as a tree, read by the parser of the standard library: a second opinion on what a page says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "img", "input", "hr"}


@dataclass
class Node:
    """An element: its tag, its attributes, and what it holds."""

    tag: str
    attributes: dict[str, str]
    children: list[Node | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Everything it says, white space as single blanks."""
        return " ".join(self.raw.split())

    @property
    def raw(self) -> str:
        """Everything it says, as it stands."""
        return "".join(each if isinstance(each, str) else each.raw for each in self.children)

    def walk(self) -> Iterator[Node]:
        """The element and all inside it."""
        yield self
        for each in self.children:
            if isinstance(each, Node):
                yield from each.walk()

    def all(self, tag: str, **attributes: str) -> list[Node]:
        """All elements inside with this tag and these attributes (``class_`` is one of its classes)."""
        kind = attributes.pop("class_", None)
        return [
            node
            for node in self.walk()
            if node.tag == tag
            and (kind is None or kind in node.attributes.get("class", "").split())
            and all(node.attributes.get(name) == value for name, value in attributes.items())
        ]

    def one(self, tag: str, **attributes: str) -> Node:
        """The only one of them."""
        (found,) = self.all(tag, **attributes)
        return found


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open[-1].children.append(Node(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def tree(text: str) -> Node:
    """The document; tags that do not match fail."""
    builder = _Builder()
    builder.feed(text)
    builder.close()
    assert builder.open == [builder.root]
    return builder.root
