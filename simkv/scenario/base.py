"""What all sections of a scenario share: strictness, unions told apart by one key, file paths, faults."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

TAG = "#"
"""Starts the parts of a pydantic error location that name a union's arm and are no key of the file."""


class Section(BaseModel):
    """A mapping of a scenario file; unknown keys are errors, values don't change once read."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        known = {field.alias or name for name, field in cls.model_fields.items()}
        return {key: value for key, value in data.items() if not (value is None and key in known)}


def fault(reason: str, mend: str, key: str = "") -> PydanticCustomError:
    """Return an error for a validator to raise; ``key`` names the field of the section that it is about."""
    return PydanticCustomError("fault", "{reason}", {"reason": reason, "mend": mend, "key": key})


@dataclass(frozen=True, slots=True)
class Discriminated:
    """Marks a union of sections told apart by ``key``; ``scalar`` is the type of the arm that is no mapping."""

    key: str
    scalar: Any = None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        choices: dict[str, CoreSchema] = {}
        for arm in get_args(source):
            if isinstance(arm, type) and issubclass(arm, Section):
                (name,) = get_args(arm.model_fields[self.key].annotation)
                choices[TAG + name] = handler.generate_schema(arm)
        valid = [name[1:] for name in choices]
        if self.scalar is not None:
            choices[TAG] = handler.generate_schema(self.scalar)
        return core_schema.tagged_union_schema(
            choices,
            self._arm_of,
            custom_error_type="unknown_arm",
            custom_error_message="unknown arm",
            custom_error_context={"key": self.key, "valid": ", ".join(valid)},
        )

    def _arm_of(self, value: Any) -> str:
        if isinstance(value, dict):
            return f"{TAG}{value.get(self.key)}"
        if isinstance(value, Section):
            return f"{TAG}{getattr(value, self.key)}"
        return TAG


@dataclass(frozen=True, slots=True)
class Named:
    """Marks a union of one section and a name: a mapping is the section, anything else must be a name."""

    section: type[Section]
    name: Any

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        choices = {TAG + "section": handler.generate_schema(self.section), TAG: handler.generate_schema(self.name)}
        return core_schema.tagged_union_schema(choices, self._arm_of)

    def _arm_of(self, value: Any) -> str:
        return TAG + "section" if isinstance(value, dict | Section) else TAG


class SetText(str):
    """Text given on the command line, where paths are relative to the working directory."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class FileRef:
    """A file named in a scenario: as it was written, and where it is; equal where it is the same place."""

    given: str
    path: str

    def __str__(self) -> str:
        return self.given

    def __eq__(self, other: object) -> bool:
        """Whether both are the same place, however they were written."""
        return isinstance(other, FileRef) and os.path.abspath(self.path) == os.path.abspath(other.path)

    def __hash__(self) -> int:
        return hash(os.path.abspath(self.path))


def _file_ref(value: object, info: ValidationInfo) -> FileRef:
    if isinstance(value, FileRef):
        return value
    if not isinstance(value, str) or not value or "\0" in value or len(value) > 4096:
        raise fault("not a path", "write a file's name")
    folder = (info.context or {}).get("folder", "")
    return locate(value, folder)


def locate(text: str, folder: str) -> FileRef:
    """Return where ``text`` is: from the command line in the working directory, else ``folder``'s before that.

    The file need not exist; a missing one is taken to be in ``folder``.
    """
    expanded = os.path.expanduser(text)
    if isinstance(text, SetText) or os.path.isabs(expanded):
        return FileRef(str(text), expanded)
    beside = os.path.join(folder, expanded)
    return FileRef(text, expanded if not os.path.exists(beside) and os.path.exists(expanded) else beside)


class _IsFile:
    """Pydantic glue of :data:`FilePath`."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(_file_ref)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"type": "string", "description": "Path of a file, from the scenario's folder or the working directory"}


FilePath = Annotated[FileRef, _IsFile()]


def plain(value: Any, convert: Callable[[FileRef], Any] = lambda ref: ref.path) -> Any:
    """Return sections, lists and file references inside ``value`` as dicts, lists and texts; keys without value go."""
    if isinstance(value, Section):
        pairs = ((name, getattr(value, name)) for name in type(value).model_fields)
        return {name: plain(item, convert) for name, item in pairs if item is not None}
    if isinstance(value, dict):
        return {key: plain(item, convert) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [plain(item, convert) for item in value]
    return convert(value) if isinstance(value, FileRef) else value


def literal_values(annotation: Any) -> tuple[str, ...]:
    """Return the texts that an annotation allows, () where it isn't (a union with) a Literal."""
    if get_origin(annotation) is Literal:
        return tuple(str(v) for v in get_args(annotation))
    return tuple(v for arm in get_args(annotation) for v in literal_values(arm))
