"""``replay``: what a log says was read, and what it says was prefetched."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from simkv.errors import InputError, Problem
from simkv.kvcache.access.base import Units
from simkv.kvcache.access.units import Numbering
from simkv.workload.accesslog import AccessLog, SequenceLog


class ReplayPattern:
    """Reads the logged blocks, of all layer groups alike."""

    sparse = True
    approximate = True

    def __init__(self, log: AccessLog, numbering: Numbering) -> None:
        self.log = log
        self._numbering = numbering
        self.groups = numbering.groups

    def open(self, request_id: int, prompt_tokens: int, output_tokens: int) -> ReplayAccess:
        """Return the reads of a request.

        Raises InputError where the log lacks the request, has steps that it doesn't come to, or blocks
        that it doesn't have yet; a request of one token needs no log.
        """
        self._numbering.check(request_id, prompt_tokens + output_tokens)
        logged = self.log.sequences.get(request_id, SequenceLog())
        if not len(logged.steps) and output_tokens > 1:
            what = f"has no request of that number, which decodes {output_tokens:,} tokens"
            raise self._problem(what, "log every request, from 0 in order of arrival", None, "sequence", request_id)
        self._check_steps(logged, output_tokens)
        blocks = self._numbering.blocks_of(prompt_tokens + 1 + logged.steps.astype(np.int64))
        self._check_blocks(logged, blocks)
        return ReplayAccess(logged, self.groups)

    def most_units(self, tokens: int) -> int:
        """Return the units of the step that reads most in the log, or of ``tokens`` tokens."""
        return min(self.log.most_blocks, self._numbering.blocks(tokens)) * self.groups

    def _check_steps(self, logged: SequenceLog, output_tokens: int) -> None:
        row = int(np.searchsorted(logged.steps, output_tokens))
        if row < len(logged.steps):
            what = f"is past the last step of a request of {output_tokens:,} output tokens (the first step is 0)"
            mend = "leave the row out, or give the request its whole output"
            raise self._problem(what, mend, int(logged.lines[row]), "step", int(logged.steps[row]))

    def _check_blocks(self, logged: SequenceLog, blocks: NDArray[np.int64]) -> None:
        for key, ids, ends in logged.lists():
            at = np.flatnonzero(ids >= np.repeat(blocks, np.diff(ends, prepend=0)))
            if len(at):
                row = int(np.searchsorted(ends, at[0], side="right"))
                what = f"is past the {int(blocks[row]):,} blocks of {self._numbering.block_tokens} tokens at step"
                mend = "number blocks from 0 a sequence, of the size that is simulated"
                found = int(ids[at[0]])
                raise self._problem(f"{what} {int(logged.steps[row])}", mend, int(logged.lines[row]), key, found)

    def _problem(self, what: str, mend: str, line: int | None, key: str, value: int) -> InputError:
        return InputError(Problem(what, mend, file=str(self.log.path), line=line, path=key, value=str(value)))


class ReplayAccess:
    """The reads of one sequence."""

    def __init__(self, logged: SequenceLog, groups: int) -> None:
        self._logged = logged
        self._groups = groups

    def reads(self, step: int) -> Units:
        """Return the units logged for ``step`` in the order of the log, none where it isn't named."""
        return self._units(self._logged.reads(step))

    def prefetches(self, step: int) -> Units:
        """Return the units that the log says were prefetched in ``step``, in its order."""
        return self._units(self._logged.prefetches(step))

    def _units(self, blocks: Units) -> Units:
        if self._groups == 1:
            return blocks
        units: Units = np.add.outer(blocks * np.int32(self._groups), np.arange(self._groups, dtype=np.int32))
        return units.ravel()
