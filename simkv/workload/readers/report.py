"""What a reader noticed: rows kept, rows dropped and why, irregularities that it put up with."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Note:
    """One kind of irregularity: what it is, how often it came, where first."""

    code: str
    what: str
    dropped: bool
    first_line: int
    """0: not in lines; ``place`` tells."""
    place: str
    """Where it came first, in words."""
    count: int = 0

    def __str__(self) -> str:
        fate = "dropped" if self.dropped else "kept"
        noun = "row" if self.first_line else "entry"
        nouns = noun if self.count == 1 else "rows" if self.first_line else "entries"
        return f"{self.count:,} {nouns} {fate}: {self.what} (first {self.place})"


@dataclass(slots=True)
class ReadReport:
    """Collects while a file is read; complete once the reader has come to the end."""

    format: str = ""
    time_key: str = ""
    """The field that holds the arrival."""
    clock: bool = False
    """Times are those of a clock, whatever they are: to be counted from the first arrival."""
    window_s: float | None = None
    """How far arrivals may step back; None: as far as in other formats."""
    line: int = 0
    """The line read last."""
    kept: int = 0
    block_tokens: int | None = None
    """Size of the hashed blocks of the format; None: it has none."""
    notes: dict[str, Note] = field(default_factory=dict)

    def note(self, code: str, what: str, line: int, *, dropped: bool = False, place: str = "") -> None:
        """Count one row with the irregularity ``code``; ``what`` says it in words.

        In files that don't go by lines ``line`` is 0 and ``place`` says where it is.
        """
        entry = self.notes.get(code)
        if entry is None:
            entry = self.notes[code] = Note(code, what, dropped, line, place or f"on line {line}")
        entry.count += 1

    @property
    def dropped(self) -> int:
        """How many rows were left out."""
        return sum(n.count for n in self.notes.values() if n.dropped)

    def sentences(self) -> list[str]:
        """Return each irregularity as a sentence, in order of first appearance."""
        return [str(n) for n in self.notes.values()]

    def content_name(self, stream: int, start: int) -> str:
        """Return what people call a shared stream from token ``start`` on; empty where the format has no name for it.

        In formats of hashed blocks it is the number of the first block's hash.
        """
        if not self.block_tokens:
            return ""
        name = f"hash {start // self.block_tokens}"
        return f"{name} of stream {stream}" if stream else name
