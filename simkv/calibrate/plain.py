"""Which models calibration computes, and their sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from simkv.errors import InputError, Problem
from simkv.model import ModelShape

_BEYOND: dict[str, Callable[[ModelShape], bool]] = {
    "experts": lambda shape: shape.moe is not None,
    "latent attention (MLA)": lambda shape: shape.mla,
    "attention windows": lambda shape: bool(shape.windowed_attention),
    "layers that keep a state": lambda shape: bool(shape.state),
    "several kinds of attention": lambda shape: len(shape.attention) != 1 or shape.attention[0].layers != shape.layers,
    "layers that share a cache": lambda shape: any(kind.shared_cache_layers for kind in shape.attention),
    "V heads of another width": lambda shape: any(kind.value_dim != kind.head_dim for kind in shape.attention),
    "gated attention": lambda shape: any(kind.output_gate for kind in shape.attention),
    "an attention indexer": lambda shape: any(kind.index_bytes for kind in shape.attention),
    "MLPs without a gate": lambda shape: shape.mlp_matrices != 3,
    "learned positions": lambda shape: shape.learned_positions > 0,
    "layers without an MLP": lambda shape: shape.mlp_layers != shape.layers,
    "weights outside its layers": lambda shape: shape.extra_params + shape.encoder_bytes_per_token > 0,
}
"""What a model may have that :class:`~simkv.calibrate.model.Decoder` doesn't compute."""


@dataclass(frozen=True)
class Sizes:
    """Of a plain dense decoder; counts of numbers."""

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    tied: bool

    @property
    def layer_params(self) -> int:
        """Weights of one layer, norms included."""
        attention = (2 * self.heads + 2 * self.kv_heads) * self.head_dim * self.hidden
        return attention + 3 * self.hidden * self.intermediate + 2 * self.hidden

    @property
    def head_params(self) -> int:
        """Weights of the embedding, the lm_head where it is another, and the last norm."""
        return self.vocab * self.hidden * (1 if self.tied else 2) + self.hidden


def plain_sizes(shape: ModelShape, layers: int | None = None) -> Sizes:
    """Return the sizes of ``shape``, with so many ``layers`` if given.

    Raises :class:`InputError` naming what it has that plain dense decoders don't.
    """
    beyond = [what for what, has in _BEYOND.items() if has(shape)]
    if not beyond and shape.attention[0].head_dim % 2:
        beyond = ["heads of odd width"]
    if beyond:
        what = f"calibration computes plain dense decoders, and this has {', '.join(beyond)}"
        raise InputError(Problem(what, "name another with --model", path="--model", value=shape.name))
    kind = shape.attention[0]
    return Sizes(
        name=shape.name,
        layers=shape.layers if layers is None else layers,
        hidden=shape.hidden,
        heads=kind.heads,
        kv_heads=kind.kv_heads,
        head_dim=kind.head_dim,
        intermediate=shape.intermediate,
        vocab=shape.vocab,
        tied=shape.tie_embeddings,
    )
