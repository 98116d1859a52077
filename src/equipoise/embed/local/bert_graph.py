"""A BERT encoder as an ONNX graph of fused steps, built from its weights alone.

Exporting takes torch and many seconds; the architecture is fixed, so the graph is written down here. Each
layer is six steps: attention, its projection, a normalised sum, two products around a GELU, another
normalised sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equipoise.embed.local.onnx_bytes import MICROSOFT, Graph
from equipoise.errors import InputError

Arrays = Mapping[str, NDArray[np.float32]]

IDS, LENGTHS, HIDDEN = "ids", "lengths", "hidden"
"""Inputs: token ids (texts, tokens) and how many of each row are real. Output: (texts, tokens, dims)."""


@dataclass(frozen=True, slots=True)
class BertShape:
    """The numbers of a BERT that its weights do not tell."""

    layers: int
    heads: int
    epsilon: float
    dims: int

    @classmethod
    def of(cls, config: Mapping[str, Any], subject: str) -> BertShape:
        """Read a ``config.json``; what this graph cannot express is refused."""
        kind, act = config.get("model_type"), config.get("hidden_act", "gelu")
        position = config.get("position_embedding_type", "absolute")
        if (kind, act, position) != ("bert", "gelu", "absolute"):
            raise InputError(
                f"{subject} is a {kind} model with {act} and {position} positions, not a plain BERT",
                hint=f"use st:{subject}, or export it to model.onnx",
            )
        return cls(
            int(config["num_hidden_layers"]),
            int(config["num_attention_heads"]),
            float(config.get("layer_norm_eps", 1e-12)),
            int(config["hidden_size"]),
        )


def bert_graph(weights: Arrays, shape: BertShape) -> Graph:
    """The graph from token ids to the vectors of the tokens."""
    graph = Graph()
    hidden = _embeddings(graph, weights, shape)
    for layer in range(shape.layers):
        last = layer == shape.layers - 1
        hidden = _layer(graph, weights, shape, layer, hidden, HIDDEN if last else f"hidden{layer}")
    return graph


def bert_bytes(graph: Graph, shape: BertShape) -> bytes:
    """The graph with its inputs and output declared."""
    return graph.to_bytes(
        [(IDS, np.int32, ("texts", "tokens")), (LENGTHS, np.int32, ("texts",))],
        [(HIDDEN, np.float32, ("texts", "tokens", shape.dims))],
    )


def _embeddings(graph: Graph, weights: Arrays, shape: BertShape) -> str:
    # Every token is of the first segment, so its vector is added to the positions once and for all.
    segment = weights["embeddings.token_type_embeddings.weight"][0]
    words = graph.tensor("words", weights["embeddings.word_embeddings.weight"])
    positions = graph.tensor("positions", weights["embeddings.position_embeddings.weight"] + segment)
    start = graph.tensor("start", np.zeros(1, dtype=np.int64))
    looked_up = graph.node("Gather", [words, IDS], "looked_up")
    tokens = graph.node("Shape", [IDS], "tokens", start=1, end=2)
    placed = graph.node("Slice", [positions, start, tokens], "placed")
    both = graph.node("Add", [looked_up, placed], "embedded")
    scale, shift = _norm(graph, weights, "embeddings.LayerNorm")
    return graph.node("LayerNormalization", [both, scale, shift], "normed", axis=-1, epsilon=shape.epsilon)


def _layer(graph: Graph, weights: Arrays, shape: BertShape, layer: int, hidden: str, output: str) -> str:
    at = f"encoder.layer.{layer}."
    parts = [at + f"attention.self.{part}" for part in ("query", "key", "value")]
    joint = graph.tensor(f"{at}qkv", np.concatenate([weights[f"{part}.weight"].T for part in parts], axis=1))
    shifts = graph.tensor(f"{at}qkv.bias", np.concatenate([weights[f"{part}.bias"] for part in parts]))
    attended = graph.node(
        "Attention",
        [hidden, joint, shifts, LENGTHS],
        f"{at}attended",
        domain=MICROSOFT,
        num_heads=shape.heads,
    )
    projected = _product(graph, weights, attended, f"{at}attention.output.dense")
    middle = _normed_sum(graph, weights, shape, projected, hidden, f"{at}attention.output", f"{at}middle")
    wide = _product(graph, weights, middle, f"{at}intermediate.dense")
    bias = graph.tensor(f"{at}wide.bias", weights[f"{at}intermediate.dense.bias"])
    active = graph.node("BiasGelu", [wide, bias], f"{at}active", domain=MICROSOFT)
    narrow = _product(graph, weights, active, f"{at}output.dense")
    return _normed_sum(graph, weights, shape, narrow, middle, f"{at}output", output)


def _product(graph: Graph, weights: Arrays, source: str, name: str) -> str:
    matrix = graph.tensor(f"{name}.matrix", weights[f"{name}.weight"].T)
    return graph.node("MatMul", [source, matrix], f"{name}.product")


def _normed_sum(
    graph: Graph, weights: Arrays, shape: BertShape, source: str, beside: str, name: str, output: str
) -> str:
    """The residual sum, with the bias of the product before it, normalised."""
    scale, shift = _norm(graph, weights, f"{name}.LayerNorm")
    bias = graph.tensor(f"{name}.bias", weights[f"{name}.dense.bias"])
    return graph.node(
        "SkipLayerNormalization",
        [source, beside, scale, shift, bias],
        output,
        domain=MICROSOFT,
        epsilon=shape.epsilon,
    )


def _norm(graph: Graph, weights: Arrays, name: str) -> tuple[str, str]:
    scale = graph.tensor(f"{name}.scale", weights[f"{name}.weight"])
    shift = graph.tensor(f"{name}.shift", weights[f"{name}.bias"])
    return scale, shift
