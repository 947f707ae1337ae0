"""The shipped catalogue: models and machines by name.

Names are lower case with ``-`` for blanks; the Hugging Face basename of a model is an alias, and
case doesn't matter. Files are parsed on first use, so importing this package costs nothing.
"""

from __future__ import annotations

from simkv.catalog.hardware import list_hardware, load_hardware
from simkv.catalog.instances import list_instances, load_instance, load_machine
from simkv.catalog.models import list_models, load_model
from simkv.catalog.storage import list_components, list_drives, load_component, load_drive

__all__ = [
    "list_components",
    "list_drives",
    "list_hardware",
    "list_instances",
    "list_models",
    "load_component",
    "load_drive",
    "load_hardware",
    "load_instance",
    "load_machine",
    "load_model",
]
