"""The shipped catalogue: models and machines by name.

Names are lower case with ``-`` for blanks; the Hugging Face basename of a model is an alias, and
case doesn't matter. Files are parsed on first use, so importing this package costs nothing.
"""

from __future__ import annotations

from simkv.catalog.hardware import list_hardware, load_hardware
from simkv.catalog.models import list_models, load_model

__all__ = ["list_hardware", "list_models", "load_hardware", "load_model"]
