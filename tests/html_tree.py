"""HTML as a tree, read with the parser of the standard library, to check the content of a page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "img", "input", "hr"}


@dataclass
class Node:
    """An element with its tag, attributes and children."""

    tag: str
    attributes: dict[str, str]
    children: list[Node | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The text content, with normalised white space."""
        return " ".join(self.raw.split())

    @property
    def raw(self) -> str:
        """The text content, unchanged."""
        return "".join(child if isinstance(child, str) else child.raw for child in self.children)

    def walk(self) -> Iterator[Node]:
        """The element and all its descendants."""
        yield self
        for child in self.children:
            if isinstance(child, Node):
                yield from child.walk()

    def all(self, tag: str, **attributes: str) -> list[Node]:
        """All descendants with this tag and these attributes (``class_`` is one of the classes)."""
        class_name = attributes.pop("class_", None)
        return [
            node
            for node in self.walk()
            if node.tag == tag
            and (class_name is None or class_name in node.attributes.get("class", "").split())
            and all(node.attributes.get(name) == value for name, value in attributes.items())
        ]

    def one(self, tag: str, **attributes: str) -> Node:
        """The only match of ``all``."""
        (node,) = self.all(tag, **attributes)
        return node


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
    """Parse a document; unmatched tags raise an AssertionError."""
    builder = _Builder()
    builder.feed(text)
    builder.close()
    assert builder.open == [builder.root]
    return builder.root
