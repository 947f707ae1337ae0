/* Which cells lie where. */

/** State of all cells on all shelves, and how rows of the recording change it. */
class State {
  constructor(shelves, cells, slots) {
    const size = shelves * cells;
    this.cells = cells;
    this.status = new Uint8Array(size);
    this.slot = new Int16Array(size).fill(NONE);
    this.last = new Float64Array(size).fill(-Infinity);
    this.uses = new Int32Array(size);
    this.via = new Int32Array(size).fill(NONE);
    this.taken = slots.map((count) => new Uint8Array(count));
    this.units = new Float64Array(shelves);
  }

  copy() {
    const other = Object.create(State.prototype);
    other.cells = this.cells;
    for (const name of ["status", "slot", "last", "uses", "via", "units"]) other[name] = this[name].slice();
    other.taken = this.taken.map((each) => each.slice());
    return other;
  }

  enter(shelf, cell, size) {
    const at = shelf * this.cells + cell;
    const slot = this.taken[shelf].indexOf(0);
    if (slot >= 0) this.taken[shelf][slot] = 1;
    this.slot[at] = slot;
    this.uses[at] = 0;
    this.units[shelf] += size;
  }

  leave(shelf, cell, size) {
    const at = shelf * this.cells + cell;
    if (this.slot[at] >= 0) this.taken[shelf][this.slot[at]] = 0;
    this.slot[at] = NONE;
    this.status[at] = ABSENT;
    this.via[at] = NONE;
    this.uses[at] = 0;
    this.last[at] = -Infinity;
    this.units[shelf] -= size;
  }
}
