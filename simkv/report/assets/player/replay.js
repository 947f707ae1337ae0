/* The recording played: the state after any of its events, and what is computed at any time. */

/** The recording: its columns, what they mean together, and the state after any of its events. */
class Replay {
  constructor(data) {
    this.data = data;
    this.shelves = data.pools.length;
    const { label, first, end } = data.cells;
    this.cells = label.length;
    this.size = first.map((from, cell) => end[cell] - from);
    this.events = data.events;
    this.count = data.events.t.length;
    this.duration = Math.max(data.window.end_s - data.window.begin_s, this.count ? this.events.t[this.count - 1] : 0);
    this.traffic = new Traffic(data);
    this.names = new Names(this);
    this.moments = this._moments();
    this.arrival = this._arrivals();
    this.slots = this._slotsNeeded();
    this.snapshots = this._snapshots();
  }

  _begin(slots) {
    const state = new State(this.shelves, this.cells, slots);
    const { pool, first, end, transfer, last_s, uses } = this.data.start;
    for (let row = 0; row < pool.length; row += 1) {
      for (let cell = first[row]; cell < end[row]; cell += 1) {
        const at = pool[row] * this.cells + cell;
        if (state.status[at] === ABSENT) state.enter(pool[row], cell, this.size[cell]);
        state.status[at] = transfer[row] >= 0 ? COMING : HERE;
        state.via[at] = transfer[row];
        state.last[at] = last_s[row] === null ? -Infinity : last_s[row];
        state.uses[at] = uses[row];
      }
    }
    return state;
  }

  apply(state, index) {
    const { t, pool, what, first, end, transfer } = this.events;
    const shelf = pool[index];
    for (let cell = first[index]; cell < end[index]; cell += 1) {
      const at = shelf * this.cells + cell;
      const was = state.status[at];
      if (what[index] === EVENT.gone) {
        if (was !== ABSENT) state.leave(shelf, cell, this.size[cell]);
      } else if (what[index] === EVENT.used) {
        state.uses[at] += 1;
        state.last[at] = t[index];
      } else {
        if (was === ABSENT) {
          state.enter(shelf, cell, this.size[cell]);
          state.last[at] = t[index];
        }
        if (what[index] === EVENT.coming || was === ABSENT) state.via[at] = transfer[index];
        if (what[index] === EVENT.coming) {
          state.since[at] = t[index];
          state.until[at] = this.arrival[index];
        }
        state.status[at] = what[index] === EVENT.coming ? COMING : HERE;
      }
    }
  }

  /** Do the events from `index` on to `done`; places are given at the end of each moment. */
  _advance(state, index, done) {
    const { t } = this.events;
    for (; index < done; index += 1) {
      if (index > 0 && t[index] > t[index - 1]) state.settle();
      this.apply(state, index);
    }
  }

  /** How many places each shelf must have so that whatever lies there at once has one; all that fit, if few. */
  _slotsNeeded() {
    const state = this._begin(new Array(this.shelves).fill(this.cells));
    const need = new Array(this.shelves).fill(0);
    for (let index = 0; index <= this.count; index += 1) {
      if (index > 0) this._advance(state, index - 1, index);
      if (index < this.count && index > 0 && this.events.t[index] === this.events.t[index - 1]) continue;
      state.settle();
      state.taken.forEach((places, shelf) => {
        need[shelf] = Math.max(need[shelf], places.reduce((sum, one) => sum + one, 0));
      });
    }
    const single = this.size.every((size) => size === 1);
    return need.map((count, shelf) => {
      const { capacity_blocks: capacity, scale } = this.data.pools[shelf];
      return single && scale === 1 && capacity !== null && capacity <= 64 ? Math.max(count, capacity) : count;
    });
  }

  _snapshots() {
    const state = this._begin(this.slots);
    state.settle();
    const kept = [state.copy()];
    for (let index = 0; index < this.count; index += 1) {
      this._advance(state, index, index + 1);
      if ((index + 1) % SNAPSHOT_EVERY === 0) kept.push(state.copy());
    }
    return kept;
  }

  /** State after the first `done` events; `from`, a state after `since` of them, is gone on with where that is near. */
  after(done, from, since) {
    const nearest = Math.floor(done / SNAPSHOT_EVERY);
    let state = from, index = since;
    if (!from || since > done || done - since > SNAPSHOT_EVERY) {
      state = this.snapshots[nearest].copy();
      index = nearest * SNAPSHOT_EVERY;
    }
    this._advance(state, index, done);
    state.settle();
    return state;
  }

  /** When what an event lets come is there, by event; and of what is there, whether it came so. */
  _arrivals() {
    const { t, pool, what, first, end } = this.events;
    const next = new Map();
    const found = new Float64Array(this.count).fill(Infinity);
    this.awaited = new Uint8Array(this.count);
    for (let index = this.count - 1; index >= 0; index -= 1) {
      const base = pool[index] * this.cells;
      const there = what[index] === EVENT.coming ? next.get(base + first[index]) : undefined;
      if (there !== undefined) {
        found[index] = t[there];
        this.awaited[there] = 1;
      }
      for (let cell = first[index]; cell < end[index]; cell += 1) {
        if (what[index] === EVENT.here) next.set(base + cell, index);
        if (what[index] === EVENT.gone) next.delete(base + cell);
      }
    }
    return found;
  }

  /** Share of what comes to a place that is through: of its transfer, else of the time until it is there. */
  progress(state, at, time) {
    if (state.via[at] >= 0) return this.traffic.progress(state.via[at], time);
    const took = state.until[at] - state.since[at];
    return took > 0 && took < Infinity ? clamp((time - state.since[at]) / took, 0, 1) : 0;
  }

  eventsUpTo(time) { return countUpTo(this.events.t, time); }

  /** Blocks on `shelf` that aren't drawn, or that requests hold alone, at `time`. */
  level(table, shelf, time) {
    const columns = this.data[table];
    for (let row = countUpTo(columns.t, time) - 1; row >= 0; row -= 1) {
      if (columns.pool[row] === shelf) return columns.blocks[row];
    }
    return 0;
  }

  moves(table, shelf) {
    const columns = this.data[table];
    return columns.t.some((time, row) => columns.pool[row] === shelf && time > 0);
  }

  /** When something happens: events, transfers that begin and end. */
  _moments() {
    const times = [0, ...this.events.t, this.duration];
    for (const each of this.traffic.bits) for (const [begin] of each.slice(0, 1)) times.push(begin);
    for (const end of this.data.transfers.end) if (end !== null) times.push(end);
    const inside = times.filter((time) => time >= 0 && time <= this.duration).sort((one, other) => one - other);
    return inside.filter((time, k) => k === 0 || time > inside[k - 1]);
  }

  next(time) {
    return this.moments[Math.min(this.moments.length - 1, countUpTo(this.moments, time))];
  }

  previous(time) {
    let k = countUpTo(this.moments, time) - 1;
    while (k > 0 && this.moments[k] >= time) k -= 1;
    return this.moments[Math.max(0, k)];
  }

  /** What every replica computes at `time`: the row of its step, or -1. */
  stepsAt(time) {
    const { replica, begin, end } = this.data.steps;
    const found = new Map();
    for (let row = 0; row < replica.length; row += 1) {
      if (!found.has(replica[row])) found.set(replica[row], NONE);
      if (begin[row] <= time && (end[row] === null || time < end[row])) found.set(replica[row], row);
    }
    return [...found.entries()].sort((one, other) => one[0] - other[0]);
  }
}
