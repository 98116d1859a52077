"""The bytes of an ONNX graph, written directly: a file format of length-prefixed fields needs no package.

Only what a graph for inference takes: nodes, tensors, and the shapes of inputs and outputs. The numbers are
the field numbers of ``onnx.proto`` (https://onnx.ai/onnx/api/classes.html).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

MICROSOFT = "com.microsoft"
"""The operators that onnxruntime adds: whole attention, normalisation and activation in one step each."""

_IR_VERSION, _OPSET, _MICROSOFT_OPSET = 8, 17, 1
_ELEMENT = {np.dtype(np.float32): 1, np.dtype(np.int32): 6, np.dtype(np.int64): 7}
_EMBEDDED_BYTES = 1024

Attribute = float | int
Value = tuple[str, type[np.generic], Sequence[int | str]]
"""A name, the type of its elements, and its shape, where a string stands for any size."""


@dataclass(slots=True)
class Graph:
    """A graph under construction; large tensors stay outside and are handed to the engine as arrays."""

    nodes: list[bytes] = field(default_factory=list)
    tensors: dict[str, NDArray[Any]] = field(default_factory=dict)

    def tensor(self, name: str, array: NDArray[Any]) -> str:
        """A constant of the graph, under its name."""
        self.tensors[name] = np.ascontiguousarray(array)
        return name

    def node(
        self,
        operator: str,
        inputs: Iterable[str],
        output: str,
        *,
        domain: str = "",
        **attributes: Attribute,
    ) -> str:
        """One step; returns the name of its output."""
        fields = [_field(1, name) for name in inputs]
        fields += [_field(2, output), _field(3, output), _field(4, operator)]
        fields += [_field(5, _attribute(name, value)) for name, value in attributes.items()]
        self.nodes.append(b"".join([*fields, _field(7, domain)]))
        return output

    @property
    def outside(self) -> dict[str, NDArray[Any]]:
        """The tensors that the bytes only name."""
        return {name: array for name, array in self.tensors.items() if array.nbytes > _EMBEDDED_BYTES}

    def to_bytes(self, inputs: Sequence[Value], outputs: Sequence[Value]) -> bytes:
        """The model as onnxruntime reads it."""
        graph = [_field(1, node) for node in self.nodes]
        graph.append(_field(2, "graph"))
        graph += [_field(5, self._tensor_bytes(name)) for name in self.tensors]
        graph += [_field(11, _value(value)) for value in inputs]
        graph += [_field(12, _value(value)) for value in outputs]
        opsets = (("", _OPSET), (MICROSOFT, _MICROSOFT_OPSET))
        versions = [_field(8, _field(1, domain) + _number(2, opset)) for domain, opset in opsets]
        return b"".join([_number(1, _IR_VERSION), _field(7, b"".join(graph)), *versions])

    def _tensor_bytes(self, name: str) -> bytes:
        array = self.tensors[name]
        head = b"".join(_number(1, size) for size in array.shape)
        head += _number(2, _ELEMENT[array.dtype]) + _field(8, name)
        if name in self.outside:
            place = _field(1, "location") + _field(2, "outside")
            return head + _field(13, place) + _number(14, 1)
        return head + _field(9, array.tobytes())


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, float):
        return _field(1, name) + _varint(2 << 3 | 5) + struct.pack("<f", value) + _number(20, 1)
    return _field(1, name) + _number(3, value) + _number(20, 2)


def _value(value: Value) -> bytes:
    name, element, shape = value
    sizes = [_number(1, size) if isinstance(size, int) else _field(2, size) for size in shape]
    tensor = _number(1, _ELEMENT[np.dtype(element)]) + _field(2, b"".join(_field(1, size) for size in sizes))
    return _field(1, name) + _field(2, _field(1, tensor))


def _number(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _field(number: int, value: str | bytes) -> bytes:
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; negative numbers as 64-bit two's complement."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
