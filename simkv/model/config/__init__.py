"""Any model by its Hugging Face ``config.json``: sized as engines size it, or refused with the reason.

``assemble.py`` goes from file to shape. ``source.py`` reads the file, ``fields.py`` its values;
``decoders.py`` and ``hybrids.py`` say how each class is read and ``classes.py`` what it takes where a file is
silent; they are made of ``layout`` (kinds of layers), ``attention`` and ``mixed``, ``states``, ``mlp``, ``extras``
and ``weights``. ``refused.py`` says what isn't read, and why.
"""

from __future__ import annotations

import os

from simkv.model.config.assemble import shape_of_config
from simkv.model.config.fields import printable
from simkv.model.config.source import FILE_NAME, read_source
from simkv.model.shape import ModelShape

__all__ = ["read_config", "shape_of_config"]

QUANTISATION_FILE = "hf_quant_config.json"
"""Where NVIDIA's Model Optimizer says how weights are quantised, beside a config.json that doesn't."""


def read_config(path: str) -> ModelShape:
    """Return the shape of the model whose config.json, or the folder that holds it, is at ``path``.

    Raises :class:`InputError` with file, line, key and mend where it can't be read or sized.
    """
    values, source = read_source(path)
    beside = os.path.join(os.path.dirname(source.file), QUANTISATION_FILE)
    if "quantization_config" not in values and os.path.isfile(beside):
        values["quantization_config"] = read_source(beside)[0]
    return shape_of_config(values, printable(_name_of(source.file)), source)


def _name_of(file: str) -> str:
    """Return a name for the model: the file's, or its folder's where the file is called config.json."""
    stem, _ = os.path.splitext(os.path.basename(file))
    if os.path.basename(file) != FILE_NAME:
        return stem or file
    return os.path.basename(os.path.dirname(os.path.abspath(file))) or stem
