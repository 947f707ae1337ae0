/* Which cells lie where. */

const COPIED = ["status", "slot", "home", "last", "uses", "via", "since", "until", "units", "changed"];

/** State of all cells on all shelves; places are given when all events of a moment are through (`settle`). */
class State {
  constructor(shelves, cells, slots) {
    const size = shelves * cells;
    this.cells = cells;
    this.status = new Uint8Array(size);
    this.slot = new Int16Array(size).fill(NONE);
    this.home = new Int16Array(size).fill(NONE);
    this.last = new Float64Array(size).fill(-Infinity);
    this.uses = new Int32Array(size);
    this.via = new Int32Array(size).fill(NONE);
    this.since = new Float64Array(size);
    this.until = new Float64Array(size).fill(Infinity);
    this.units = new Float64Array(shelves);
    this.taken = slots.map((count) => new Uint8Array(count));
    this.changed = [];
  }

  copy() {
    const other = Object.create(State.prototype);
    other.cells = this.cells;
    for (const name of COPIED) other[name] = this[name].slice();
    other.taken = this.taken.map((each) => each.slice());
    return other;
  }

  enter(shelf, cell, size) {
    const at = shelf * this.cells + cell;
    this.uses[at] = 0;
    this.units[shelf] += size;
    this.changed.push(at);
  }

  leave(shelf, cell, size) {
    const at = shelf * this.cells + cell;
    this.status[at] = ABSENT;
    this.via[at] = NONE;
    this.uses[at] = 0;
    this.last[at] = -Infinity;
    this.units[shelf] -= size;
    this.changed.push(at);
  }

  /** Take places from what is gone, then give the first free ones to what came; `home` remembers them. */
  settle() {
    for (const at of this.changed) {
      if (this.status[at] !== ABSENT || this.slot[at] < 0) continue;
      this.taken[Math.floor(at / this.cells)][this.slot[at]] = 0;
      this.slot[at] = NONE;
    }
    for (const at of this.changed) {
      if (this.status[at] === ABSENT || this.slot[at] >= 0) continue;
      const places = this.taken[Math.floor(at / this.cells)];
      this.slot[at] = this.home[at] = places.indexOf(0);
      if (this.slot[at] >= 0) places[this.slot[at]] = 1;
    }
    this.changed = [];
  }
}
