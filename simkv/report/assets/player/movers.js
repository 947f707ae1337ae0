/* Blocks between shelves: as far on as their bytes are, or for a moment where that is faster than can be seen. */

const MOST_MOVERS = 150;
const MOST_FLIGHTS = 60;
const FLIGHT_MS = 420;
const SEEN_S = 0.3;

class Movers {
  constructor(replay, shelves, stage) {
    this.replay = replay;
    this.shelves = shelves;
    this.stage = stage;
    this.node = svg("svg", { class: "movers", "aria-hidden": "true" });
    this.pool = [];
    this.origin = [];
  }

  /** Find out where the shelves' tiles lie on the stage. */
  measure() {
    const stage = this.stage.getBoundingClientRect();
    this.origin = this.shelves.map((shelf) => {
      const box = shelf.svg.getBoundingClientRect();
      return [box.left - stage.left, box.top - stage.top];
    });
    for (const [name, value] of [["width", stage.width], ["height", stage.height]]) this.node.setAttribute(name, String(value));
    this.node.setAttribute("viewBox", `0 0 ${stage.width} ${stage.height}`);
  }

  /** Draw what is under way; return how many blocks that is. */
  draw(state, time) {
    const wanted = this._underWay(state, time);
    while (this.pool.length < wanted.length) this.pool.push(this._mover());
    this.pool.forEach((mover, k) => {
      mover.group.setAttribute("visibility", wanted[k] ? "visible" : "hidden");
      if (wanted[k]) this._put(mover, wanted[k]);
    });
    return wanted.length;
  }

  /** Show for a moment what changed with events `before` to `done`; `seen(seconds)`: so long a transfer is drawn anyway. */
  fly(was, state, before, done, seen) {
    const { pool, what, first, end, transfer } = this.replay.events;
    let left = MOST_FLIGHTS;
    for (let index = before; index < done; index += 1) {
      for (let cell = first[index]; cell < end[index] && left > 0; cell += 1) {
        const at = pool[index] * this.replay.cells + cell;
        const there = was.status[at] === HERE, here = state.status[at] === HERE;
        if (what[index] === EVENT.gone && there && state.status[at] === ABSENT) {
          left -= this._vanish(was, state, pool[index], cell);
        } else if (what[index] === EVENT.here && here && !there) {
          const number = transfer[index];
          const over = number < 0 ? null : this.replay.data.transfers.end[number];
          if (over !== null && seen(over - this.replay.traffic.since(number))) continue;
          left -= this._arrive(was, state, pool[index], cell, number);
        }
      }
    }
  }

  land() {
    for (const one of this.node.querySelectorAll(".flight")) one.remove();
  }

  _underWay(state, time) {
    const found = [];
    const { cells } = this.replay;
    for (let at = 0; at < state.status.length && found.length < MOST_MOVERS; at += 1) {
      const share = state.status[at] === COMING ? this.replay.progress(state, at, time) : 0;
      if (share <= 0 || share >= 1) continue;
      const shelf = Math.floor(at / cells), cell = at % cells;
      const to = this._place(shelf, state.slot[at]), here = this.shelves[shelf].pool.tier;
      const tier = state.via[at] >= 0 ? this.replay.traffic.lane(state.via[at]).from : this._lies(state, here, cell);
      const up = tier < 0 || tier > here;
      const from = this._source(state, tier, cell) || [to[0], to[1] + (up ? 60 : -60)];
      found.push({ from, to, share, up, side: this.shelves[shelf].extent(cell), cell });
    }
    return found;
  }

  /** Another tier that a cell can be read in, or -1. */
  _lies(state, but, cell) {
    const found = this.shelves.find((shelf) => shelf.pool.tier !== but && state.status[shelf.number * this.replay.cells + cell] === HERE);
    return found ? found.pool.tier : NONE;
  }

  _place(shelf, slot) {
    const [x, y] = this.shelves[shelf].center(slot);
    return [this.origin[shelf][0] + x, this.origin[shelf][1] + y];
  }

  /** Where a cell lies in a tier, or lay there last; null where it never did. */
  _source(state, tier, cell) {
    let found = null;
    for (let shelf = 0; shelf < this.shelves.length; shelf += 1) {
      if (this.shelves[shelf].pool.tier !== tier) continue;
      const at = shelf * this.replay.cells + cell;
      if (state.status[at] === HERE && state.slot[at] >= 0) return this._place(shelf, state.slot[at]);
      if (state.home[at] >= 0) found = this._place(shelf, state.home[at]);
    }
    return found;
  }

  /** The tier that a cell was moved from with these events, or -1. */
  _left(was, state, cell) {
    for (let shelf = 0; shelf < this.shelves.length; shelf += 1) {
      const at = shelf * this.replay.cells + cell;
      if (was.status[at] === HERE && state.status[at] === ABSENT) return this.shelves[shelf].pool.tier;
    }
    return NONE;
  }

  _mover() {
    const mover = {
      group: svg("g", { class: "mover" }), trail: svg("line", { class: "trail" }), body: svg("rect"),
      arrow: svg("text", { "text-anchor": "middle" }),
    };
    mover.group.append(mover.trail, mover.body, mover.arrow);
    this.node.append(mover.group);
    return mover;
  }

  _put(mover, { from, to, share, side, up, cell }) {
    const eased = share * share * (3 - 2 * share);
    const x = from[0] + (to[0] - from[0]) * eased, y = from[1] + (to[1] - from[1]) * eased;
    mover.group.setAttribute("class", `mover ${up ? "up" : "down"}`);
    mover.group.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
    mover.trail.setAttribute("x2", (from[0] - x).toFixed(1));
    mover.trail.setAttribute("y2", (from[1] - y).toFixed(1));
    const size = clamp(side, 11, 40);
    const values = { x: -size / 2, y: -size / 2, width: size, height: size, rx: size / 6 };
    for (const [name, value] of Object.entries(values)) mover.body.setAttribute(name, value.toFixed(1));
    const brief = size >= 26 ? this.replay.names.brief(cell) : "";
    setText(mover.arrow, `${up ? "▲" : "▼"}${brief}`);
    mover.arrow.setAttribute("font-size", (size * (brief ? 0.36 : 0.6)).toFixed(1));
    mover.arrow.setAttribute("y", (size * (brief ? 0.13 : 0.21)).toFixed(1));
  }

  _arrive(was, state, shelf, cell, number) {
    const tier = number >= 0 ? this.replay.traffic.lane(number).from : this._left(was, state, cell);
    const from = tier < 0 ? null : this._source(was, tier, cell);
    if (!from) return 0;
    const to = this._place(shelf, state.slot[shelf * this.replay.cells + cell]);
    const mover = this._mover();
    const up = this.shelves[shelf].pool.tier < tier;
    this._put(mover, { from, to: from, share: 0, side: this.shelves[shelf].extent(cell), up, cell });
    mover.group.classList.add("flight");
    const put = ([x, y]) => ({ transform: `translate(${x}px, ${y}px)` });
    const flight = mover.group.animate([put(from), put(to)], { duration: FLIGHT_MS, easing: "ease-in-out" });
    flight.onfinish = () => mover.group.remove();
    return 1;
  }

  /** A block that went nowhere else sinks and fades. */
  _vanish(was, state, shelf, cell) {
    for (let other = 0; other < this.shelves.length; other += 1) {
      const at = other * this.replay.cells + cell;
      if (other !== shelf && was.status[at] === ABSENT && state.status[at] !== ABSENT) return 0;
    }
    const [x, y] = this._place(shelf, was.slot[shelf * this.replay.cells + cell]);
    const side = this.shelves[shelf].extent(cell);
    const box = { x: x - side / 2, y: y - side / 2, width: side, height: side, rx: side / 8 };
    const ghost = svg("rect", { class: "flight ghost", ...box });
    this.node.append(ghost);
    const way = [{ opacity: 0.9, transform: "translateY(0)" }, { opacity: 0, transform: `translateY(${side}px)` }];
    ghost.animate(way, { duration: FLIGHT_MS, easing: "ease-in" }).onfinish = () => ghost.remove();
    return 1;
  }
}
