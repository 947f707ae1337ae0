"""What running sequences hold, in VRAM and below, as they are admitted, grow, write down and leave."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from simkv.kvcache.access import AccessPattern
from simkv.sim.active.config import ActiveConfig
from simkv.sim.active.earned import EarnedShare
from simkv.sim.active.homes import NOWHERE, SSD, Homes
from simkv.sim.active.pinned import PinnedShare
from simkv.sim.active.promises import Promises
from simkv.sim.active.reuse import SharedHomes
from simkv.sim.active.sequence import Sequence
from simkv.sim.active.share import ResidentShare, SharedBudget
from simkv.sim.active.traffic import Pieces, Traffic
from simkv.sim.active.watch import Watch
from simkv.sim.ledger import Ledger
from simkv.sim.live import Live
from simkv.sim.record.errand import SPILL, STORE, SWAP_OUT
from simkv.sim.tiers import ReplicaTiers


class ActiveStore:
    """The KV of one replica's running sequences."""

    def __init__(
        self, config: ActiveConfig, tiers: ReplicaTiers, share: ResidentShare, pattern: AccessPattern, traffic: Traffic,
        ledger: Ledger,
    ) -> None:  # fmt: skip
        self.config = config
        self.ledger = ledger
        self.tiers = tiers
        self.pool = tiers.vram
        self.share = share
        self.pattern = pattern
        self.traffic = traffic
        self.residency: PinnedShare | EarnedShare = PinnedShare(share, config.layers, self.keep)
        """Set to an earned share under sparse access."""
        self.watch: Watch | None = None
        """Who sees blocks move; None: nobody."""
        self.sequences: dict[Live, Sequence] = {}
        self.short_below = False
        """It was room below VRAM that the last one lacked that wasn't admitted."""
        self._area = 0
        """Blocks of the budget that all share, taken while anybody is here."""
        self.promises: Promises = tiers.host.promises
        self.parting = 0
        """Blocks promised to sequences that are over and that still write."""
        self.dram_number = tiers.dram_number

    # ---- coming and going

    def below(self, blocks: int) -> int:
        """Return the most blocks below VRAM that a sequence of ``blocks`` blocks needs."""
        if self.config.write == "never":
            return 0
        if self.config.sparse or self.config.write == "write_through" or not self.config.keeps_prompts:
            return blocks
        return blocks - self.share.resident(blocks)

    def fits_alone(self, tokens: int) -> bool:
        """Whether a sequence that grows to ``tokens`` tokens can ever be served."""
        blocks = self.share.total(tokens)
        area = self.share.budget_blocks if isinstance(self.share, SharedBudget) else 0
        room = self.share.taken(blocks) + area <= self.pool.capacity_blocks
        return room and self.below(blocks) <= self.promises.most(self.dram_number)

    def admit(self, live: Live) -> Sequence | None:
        """Take what ``live`` needs for its whole prompt; None, taking nothing, where it can't be had."""
        taken = self.share.taken(self.share.total(live.target))
        below = self.below(self.share.total(live.target if self.config.keeps_prompts else live.last_tokens))
        room = self._has_room(taken)
        self.short_below = room and not self.promises.give(self.dram_number, below)
        if not room or self.short_below:
            return None
        seq = Sequence(live, self._homes(live))
        seq.promised = below
        self.sequences[live] = seq
        self._take(seq, taken)
        return seq

    def _has_room(self, taken: int) -> bool:
        """Whether one more sequence, which takes ``taken`` blocks, fits into VRAM."""
        if isinstance(self.share, SharedBudget):
            if not self._area:
                taken += self.share.budget_blocks
            elif sum(seq.here for seq in self.sequences.values()) >= self.share.budget_blocks:
                return False
        return taken <= self.pool.available_blocks

    def _take(self, seq: Sequence, taken: int) -> None:
        seq.here, seq.taken = True, taken
        if isinstance(self.share, SharedBudget) and not self._area:
            self._area = self.share.budget_blocks
            taken += self._area
        self.pool.take(taken)

    def _homes(self, live: Live) -> Homes:
        blocks = self.share.total(live.last_tokens) + 1
        if not self.config.reuse:
            return Homes(self.tiers, blocks)
        return SharedHomes(self.tiers, blocks, live.request.spans, self.ledger, live.owner.retention)

    def find(self, seq: Sequence, limit: int) -> None:
        """Let ``seq`` begin with what DRAM has of its prompt: that streams while the rest is computed."""
        if not isinstance(seq.homes, SharedHomes):
            return
        live = seq.live
        found = seq.homes.find(limit)
        live.tokens = found * self.share.block_tokens
        seq.blocks = seq.written = seq.cold_dram = found
        seq.resident = 0
        if live.hit_vram < 0:
            live.hit_vram, live.hit_dram = 0, live.tokens

    def resume(self, seq: Sequence) -> bool:
        """Take VRAM again for a sequence whose KV stayed below; False where it can't be had."""
        blocks = self.share.total(seq.live.tokens + 1)
        taken, below = self.share.taken(blocks), max(0, self.below(blocks) - seq.promised)
        if not self._has_room(taken) or not self.promises.give(self.dram_number, below):
            return False
        seq.promised += below
        self._take(seq, taken)
        return True

    def grow(self, seq: Sequence, blocks: int, step: int) -> bool:
        """Let ``seq`` have ``blocks`` blocks; False, changing nothing, where room lacks."""
        more = self.share.taken(blocks) - seq.taken
        below = self.below(blocks) - seq.promised
        if more > self.pool.available_blocks or (below > 0 and not self.promises.give(self.dram_number, below)):
            return False
        if more > 0:
            self.pool.take(more)
            seq.taken += more
        seq.promised += max(0, below)
        seq.blocks = blocks
        self.residency.grow(seq, step)
        return True

    def give_vram(self, seq: Sequence) -> None:
        """Let go of all that ``seq`` has in VRAM."""
        self.residency.end(seq)
        self.pool.give(seq.taken)
        seq.here, seq.taken, seq.resident = False, 0, 0
        if self._area and not any(other.here for other in self.sequences.values()):
            self.pool.give(self._area)
            self._area = 0

    def leave(self, seq: Sequence) -> None:
        """``seq`` is over, or begins anew: nothing of it stays anywhere."""
        self.give_vram(seq)
        del self.sequences[seq.live]
        self.parting += seq.promised
        seq.homes.release(partial(self._parted, seq.promised))

    def _parted(self, promised: int) -> None:
        self.parting -= promised
        self.promises.take_back(self.dram_number, promised)

    @property
    def held_blocks(self) -> int:
        """Return the blocks of VRAM that are held."""
        return sum(seq.taken for seq in self.sequences.values()) + self._area

    # ---- writing down

    def write_new(self, seq: Sequence) -> None:
        """Write down the blocks of ``seq`` that the policy wants below by now and that aren't there."""
        if self.config.write == "never":
            return
        if self.config.write == "write_through":
            until = seq.live.tokens // self.share.block_tokens
        elif not self.config.sparse or not seq.decoding:
            until = seq.cold
        else:
            return
        if until > seq.written:
            blocks = np.arange(seq.written, until)
            if not self._share(seq, until):
                self.write_down(seq, blocks, len(blocks) * self.config.layers)
            seq.written = until
            if isinstance(self.residency, EarnedShare):
                self.residency.written(seq, blocks)

    def _share(self, seq: Sequence, until: int) -> bool:
        """Write new full blocks to where others can find them; False where that can't be."""
        if not isinstance(seq.homes, SharedHomes):
            return False
        shared = seq.homes.share(seq.written, until)
        if shared is None:
            return False
        added, transfer, written = shared
        pieces = Pieces(added * self.config.layers, 0, added)
        self.traffic.down(pieces, written, STORE, seq.live.request.id, transfer)
        return True

    def write_evicted(self, seq: Sequence, blocks: NDArray[np.int64], units: int) -> None:
        """Write down ``units`` evicted units, of ``blocks``."""
        assert isinstance(self.residency, EarnedShare)
        self.write_down(seq, blocks, units * self.config.layers // self.residency.groups, SPILL)

    def write_down(self, seq: Sequence, blocks: NDArray[np.int64], pieces: int, purpose: int = STORE) -> None:
        """Write ``pieces`` pieces of ``blocks`` to their homes, which they get where they have none."""
        homeless = blocks[seq.homes.at[blocks] == NOWHERE] if self.watch is not None else blocks
        settled = seq.homes.settle(blocks)
        assert settled is not None, "more was promised below VRAM than there is"
        places = seq.homes.at[blocks]
        on_ssd = int(np.count_nonzero(places == SSD))
        ssd = on_ssd * pieces // max(1, len(blocks))
        moved = Pieces(pieces - ssd, ssd, len(blocks) - on_ssd, on_ssd)
        written = self.watch.writing(seq, homeless) if self.watch is not None and len(moved) else None
        self.traffic.down(moved, written, purpose, seq.live.request.id)

    # ---- from prompt to decoding

    def computed(self, seq: Sequence) -> None:
        """Part of the prompt was computed: its newest share stays, what must be below is written down."""
        seq.blocks = self.share.total(seq.live.tokens)
        budget = isinstance(self.share, SharedBudget)
        self.keep(seq, seq.part if budget else self.share.resident(self.share.total(seq.live.target)))

    def keep(self, seq: Sequence, resident: int) -> None:
        """Keep the newest ``resident`` blocks of ``seq`` in VRAM; those before stream from below."""
        seq.resident = min(resident, seq.blocks)
        self.write_new(seq)
        seq.cold_dram, seq.cold_ssd = seq.homes.split(np.arange(seq.cold))

    def restore(self, seq: Sequence) -> None:
        """The prompt's KV is in a tier when the request arrives: its blocks have homes, and nothing was moved."""
        live, tier = seq.live, self.config.prefill
        live.tokens = live.target - 1
        seq.blocks = self.share.total(live.tokens)
        resident = self.share.resident(seq.blocks)
        if self.config.write == "never":
            tier = "vram"
        everywhere = tier != "vram" or self.below(seq.blocks) == seq.blocks
        seq.written = seq.blocks if everywhere else seq.blocks - resident
        settled = seq.homes.settle(np.arange(seq.written), lowest=tier == "ssd")
        assert settled is not None, "more was promised below VRAM than there is"
        seq.resident = resident if tier == "vram" else 0
        seq.written = min(seq.written, live.tokens // self.share.block_tokens)  # the last one, in part, goes on growing
        hits = {"vram": 0, "dram": 0, "ssd": 0} | {tier: min(live.tokens, live.request.prompt_tokens)}
        live.hit_vram, live.hit_dram, live.hit_ssd = hits.values()
        live.ceiling = max(live.ceiling, live.tokens)

    def to_load(self, seq: Sequence) -> Pieces:
        """Return what must come up before ``seq`` can decode: its pinned share, where that isn't there."""
        if self.config.sparse or seq.resident:
            return Pieces()
        blocks = np.arange(seq.blocks - self.share.resident(seq.blocks), seq.blocks)
        dram, ssd = seq.homes.split(blocks)
        layers = self.config.layers
        return Pieces(dram * layers, ssd * layers, min(dram, 1) * layers, min(ssd, 1) * layers)

    def begin_decoding(self, seq: Sequence, step: int) -> None:
        """``seq`` decodes from its next step on."""
        live = seq.live
        if seq.access is None and self.config.sparse:
            computed = live.request.prompt_tokens - (not self.config.keeps_prompts)
            seq.access = self.pattern.open(live.request.id, computed, live.request.output_tokens)
        seq.decoding = True
        self.residency.begin(seq, step)

    def swap_out(self, seq: Sequence) -> bool:
        """Write what lies only in VRAM below and let the VRAM go; False where there is no room for it."""
        more = seq.blocks - seq.promised
        if more > 0:
            if not self.promises.give(self.dram_number, more):
                return False
            seq.promised += more
        blocks = np.arange(seq.blocks)
        if isinstance(self.residency, EarnedShare):
            units, blocks = self.residency.unwritten(seq)
            pieces = units * self.config.layers // self.residency.groups
        else:
            blocks = blocks[seq.written :]
            pieces = len(blocks) * self.config.layers
        if len(blocks):
            self.write_down(seq, blocks, pieces, SWAP_OUT)
        seq.written = max(seq.written, seq.live.tokens // self.share.block_tokens)
        self.traffic.measured.swapped += 1
        self.give_vram(seq)
        return True
