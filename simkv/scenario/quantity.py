"""Quantities as pydantic field types: text with units in, SI out, and the unit kept for printing.

A field is declared ``capacity: Size``; :func:`quantity_of` finds what it measures again, so that
values can be written back with their units.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, get_args

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from simkv import units


@dataclass(frozen=True, slots=True)
class SI:
    """A value that is in SI already (from the catalogue, a preset or a computation), not text to parse."""

    value: float


@dataclass(frozen=True, slots=True)
class Quantity:
    """What a field measures, and the least and most that it may be (SI)."""

    dimension: units.DimensionName
    least: float = 0
    most: float | None = None
    words: tuple[str, ...] = ()
    """Texts that stand for themselves, such as ``auto``."""
    or_none: float = 0
    """The least that isn't zero."""

    def parse(self, value: object) -> float | str:
        """Return ``value`` in SI, or the word that it is; a ``PydanticCustomError`` carries the mend."""
        if isinstance(value, SI):
            return value.value
        if isinstance(value, str) and value in self.words:
            return str(value)
        try:
            number = units.parse(value, self.dimension)
        except units.QuantityError as error:
            also = "".join(f", or {word}" for word in self.words)
            context = {"reason": error.reason, "mend": error.mend + also}
            raise PydanticCustomError("quantity", "{reason}", context) from None
        self._limit(number)
        return number

    def _limit(self, number: float) -> None:
        if number < self.least:
            reason, mend = "too small", f"the least is {units.exact(self.least, self.dimension)}"
            if self.least <= 1e-9 and number == 0:
                reason, mend = "zero", "it must be above zero"
        elif self.most is not None and number > self.most:
            reason, mend = "too large", f"the most is {units.exact(self.most, self.dimension)}"
        elif 0 < number < self.or_none:
            reason, mend = "too small", f"the least is {units.exact(self.or_none, self.dimension)}, or 0 for none"
        else:
            return
        raise PydanticCustomError("quantity", "{reason}", {"reason": reason, "mend": mend})

    def text(self, value: float | str) -> str | float:
        """Return ``value`` as a scenario file holds it: text with its unit, or a bare number where that is right."""
        if isinstance(value, str):
            return value
        dim = units.DIMENSIONS[self.dimension]
        if dim.base:
            return units.exact(value, self.dimension)
        return int(value) if dim.integer else float(value)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.parse)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        dim = units.DIMENSIONS[self.dimension]
        described = f"{dim.noun}, for example {dim.example}"
        number = {"type": "integer" if dim.integer else "number", "minimum": self.least}
        names = "|".join(sorted({u for u in dim.units if u}))
        word = [{"enum": list(self.words)}] if self.words else []
        text = {"type": "string", "pattern": rf"^\s*([0-9][0-9_]*\.?[0-9]*([eE][+-]?[0-9]+)?|inf)\s*({names})\s*$"}
        arms = ([] if dim.base else [number]) + ([text] if names else []) + word
        return (arms[0] if len(arms) == 1 else {"anyOf": arms}) | {"description": described}


def quantity_of(field: FieldInfo) -> Quantity | None:
    """Return the :class:`Quantity` that ``field`` (or an arm of its union) is declared with, or None."""
    for note in field.metadata:
        if isinstance(note, Quantity):
            return note
    return _in_annotation(field.annotation)


def _in_annotation(annotation: Any) -> Quantity | None:
    for note in getattr(annotation, "__metadata__", ()):
        if isinstance(note, Quantity):
            return note
    for arm in get_args(annotation):
        if not isinstance(arm, str) and (found := _in_annotation(arm)) is not None:
            return found
    return None


_ABOVE_ZERO = 5e-324

Size = Annotated[float, Quantity("size")]
FiniteSizeAboveZero = Annotated[float, Quantity("size", least=1, most=1 << 40)]
Rate = Annotated[float, Quantity("rate", or_none=1)]
"""Slower transfers end when steps are too short for a clock to tell them apart."""
Time = Annotated[float, Quantity("time", most=1e10)]
TimeAboveZero = Annotated[float, Quantity("time", least=_ABOVE_ZERO, most=1e10)]
RequestRate = Annotated[float, Quantity("request_rate", least=1e-9)]
TokensAboveZero = Annotated[int, Quantity("tokens", least=1, most=16 << 20)]
"""Tokens of one prompt, output or document."""
PoolTokens = Annotated[int, Quantity("tokens", least=1)]
FractionAboveZero = Annotated[float, Quantity("fraction", least=_ABOVE_ZERO)]
Number = Annotated[float, Quantity("number")]
NumberAboveZero = Annotated[float, Quantity("number", least=_ABOVE_ZERO)]
Count = Annotated[int, Quantity("count", least=1, most=1_000_000_000)]
SmallCount = Annotated[int, Quantity("count", least=1, most=1_000_000)]
Priority = Annotated[int, Quantity("count", most=1000)]
