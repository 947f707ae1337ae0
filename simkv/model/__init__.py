"""Shapes of language models, of which ``formulas/`` makes bytes and FLOPs.

Read ``layers.py`` (kinds of layers) first, then ``shape.py`` (a model); ``dtypes.py`` names number formats.
``entry.py`` makes a shape of a catalogue's entry, ``config/`` of any Hugging Face ``config.json``.
"""

from simkv.model.dtypes import DTYPE_ALIASES, DTYPE_BITS, normalise_dtype, weight_bytes_per_param
from simkv.model.layers import AttentionLayers, Mla, Moe, StateLayers
from simkv.model.shape import ModelShape

__all__ = [
    "DTYPE_ALIASES",
    "DTYPE_BITS",
    "AttentionLayers",
    "Mla",
    "ModelShape",
    "Moe",
    "StateLayers",
    "normalise_dtype",
    "weight_bytes_per_param",
]
