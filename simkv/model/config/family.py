"""What one class of models is: how its file is read, and what it takes where the file leaves a key out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from simkv.model.config.attention import GROUPED, Attention
from simkv.model.config.fields import MOST_LAYERS, Fields
from simkv.model.config.layout import Layout, full
from simkv.model.config.mlp import Width, width_of
from simkv.model.config.states import Mixer


@dataclass(frozen=True, slots=True)
class Extra:
    """Weights that only some classes have: passed by every token, or only held."""

    passed: int = 0
    held: int = 0
    encoder_bytes_per_token: int = 0


LIMITLESS = 1 << 20
"""Tokens taken as the longest sequence of a class that knows no limit."""

Extras = Callable[[Fields, list[str]], Extra]


def no_extra(fields: Fields, kinds: list[str]) -> Extra:
    """Nothing beside attention, states and MLPs."""
    return Extra()


def gated_mlp(fields: Fields) -> int:
    """Gate, up and down."""
    return 3


def plain_mlp(fields: Fields) -> int:
    """Up and down."""
    return 2


def layers_of(fields: Fields) -> int:
    """Return the number of layers."""
    return fields.count("num_hidden_layers", 1, MOST_LAYERS)


@dataclass(frozen=True, slots=True)
class Family:
    """How the files of one or more classes are read."""

    defaults: Mapping[str, int | bool] = field(default_factory=dict)
    """Of the class, where a file leaves a key out."""
    layout: Layout = full
    """Kinds of the layers of a file that doesn't list them."""
    attention: Attention = GROUPED
    mixer: Mixer | None = None
    width: Width = width_of
    matrices: Callable[[Fields], int] = gated_mlp
    """Of an MLP: 3 with a gate, 2 without."""
    layers: Callable[[Fields], int] = layers_of
    extras: Extras = no_extra
    learned: int | None = None
    """Rows of learned positions beyond the longest sequence; None: positions aren't learned."""
    mlp: bool = True
    """Whether layers have a dense MLP or experts at all."""
    longest: int = 0
    """Tokens of a sequence where the file doesn't say how many can be; 0: it must."""
    dense_beside_experts: bool = False
    """Whether layers with experts have a dense MLP too."""
    familiar: bool = True
    """False: nothing is known but the file, which must then say everything."""
