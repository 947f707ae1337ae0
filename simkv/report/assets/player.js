(() => {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const ABSENT = 0, COMING = 1, HERE = 2;
  const EVENT = { coming: 1, here: 2, used: 3, gone: 4 };
  const NONE = -1;
  const SNAPSHOT_EVERY = 200;
  const TILES = [46, 38, 30, 24, 20, 17, 14, 12];
  const MOST_ROWS = 7;
  const MOST_MOVERS = 150;
  const MOST_FLIGHTS = 60;
  const FLIGHT_MS = 420;
  const SEEN_S = 0.3;
  const BINS = 150;
  const NAMES = { vram: "VRAM", dram: "DRAM", ssd: "SSD" };
  const VERBS = {
    load: "loading", promote: "promoting", prefetch: "prefetching", store: "storing", spill: "writing down",
    cascade: "passing down", swap_out: "swapping out", swap_in: "swapping in", stream: "streaming", other: "moving",
  };
  const NOUNS = {
    load: "load", promote: "promotion", prefetch: "prefetch", store: "store", spill: "write-down",
    cascade: "write-down", swap_out: "swap-out", swap_in: "swap-in", stream: "stream", other: "transfer",
  };
  const MARKS = { useful: "✓", late: "!", wasted: "✕", open: "?" };
  const FATE_WORDS = {
    useful: "✓ useful: it was there in time", late: "! late: somebody waited for it",
    wasted: "✕ wasted: nobody read it", open: "? not known at the window's end",
  };

  /* ---------- small helpers ---------- */

  function html(tag, className, text) {
    const node = document.createElement(tag);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    return node;
  }

  function svg(tag, attributes) {
    const node = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, String(value));
    return node;
  }

  function setText(node, text) {
    if (node.textContent !== text) node.textContent = text;
  }

  /** How many of the rising `values` are at most `limit`. */
  function countUpTo(values, limit) {
    let low = 0, high = values.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (values[middle] <= limit) low = middle + 1; else high = middle;
    }
    return low;
  }

  const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
  const whole = (value) => Math.round(value).toLocaleString("en");
  const plural = (count, word) => `${whole(count)} ${word}${count === 1 ? "" : "s"}`;

  function bytes(value) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let k = 0;
    while (value >= 1024 && k < units.length - 1) { value /= 1024; k += 1; }
    return `${value >= 100 || k === 0 ? Math.round(value) : value.toPrecision(3)} ${units[k]}`;
  }

  function duration(seconds) {
    const size = Math.abs(seconds);
    if (size >= 100) return `${whole(seconds)} s`;
    if (size >= 1 || size === 0) return `${Number(seconds.toPrecision(3))} s`;
    if (size >= 1e-3) return `${Number((seconds * 1e3).toPrecision(3))} ms`;
    return `${Number((seconds * 1e6).toPrecision(3))} µs`;
  }

  function shorten(text, most) {
    const letters = Array.from(text);
    return letters.length <= most ? text : `${letters.slice(0, most - 1).join("")}…`;
  }

  /* ---------- what is where, at any time ---------- */

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

  /** The recording: its columns, what they mean together, and the state after any of its events. */
  class Replay {
    constructor(data) {
      this.data = data;
      this.duration = data.window.end_s - data.window.begin_s;
      this.shelves = data.pools.length;
      const { label, first, end } = data.cells;
      this.cells = label.length;
      this.size = first.map((from, cell) => end[cell] - from);
      this.events = data.events;
      this.count = data.events.t.length;
      this.lanes = data.lanes;
      this.bits = this._slicesByTransfer();
      this.rate = this._rates();
      this.carried = this._carried();
      this.moments = this._moments();
      this.slots = this._slotsNeeded();
      this.snapshots = this._snapshots();
    }

    /* -- state */

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
          state.status[at] = what[index] === EVENT.coming ? COMING : HERE;
        }
      }
    }

    /** How many places each shelf must have so that whatever lies there at once has one; all that fit, if few. */
    _slotsNeeded() {
      const most = new Array(this.shelves).fill(this.cells);
      const state = this._begin(most);
      const held = () => state.taken.map((each) => each.reduce((sum, one) => sum + one, 0));
      let need = held();
      for (let index = 0; index < this.count; index += 1) {
        this.apply(state, index);
        const shelf = this.events.pool[index];
        let now = 0;
        for (let cell = 0; cell < this.cells; cell += 1) now += state.status[shelf * this.cells + cell] !== ABSENT ? 1 : 0;
        need[shelf] = Math.max(need[shelf], now);
      }
      const single = this.size.every((size) => size === 1);
      return need.map((count, shelf) => {
        const { capacity_blocks: capacity, scale } = this.data.pools[shelf];
        return single && scale === 1 && capacity !== null && capacity <= 64 ? Math.max(count, capacity) : count;
      });
    }

    _snapshots() {
      const state = this._begin(this.slots);
      const kept = [state.copy()];
      for (let index = 0; index < this.count; index += 1) {
        this.apply(state, index);
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
      for (; index < done; index += 1) this.apply(state, index);
      return state;
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

    /* -- transfers */

    _slicesByTransfer() {
      const { transfer, begin, end } = this.data.slices;
      const bits = this.data.transfers.lane.map(() => []);
      transfer.forEach((number, row) => bits[number].push([begin[row], end[row]]));
      for (const each of bits) each.sort((one, other) => one[0] - other[0]);
      return bits;
    }

    served(number, time) {
      let sum = 0;
      for (const [begin, end] of this.bits[number]) sum += clamp(time, begin, end) - begin;
      return sum;
    }

    /** Usual bytes a second of each lane, of the transfers that ended in the window. */
    _rates() {
      const { lane, bytes: size, end } = this.data.transfers;
      return this.lanes.map((_, number) => {
        const rates = [];
        for (let one = 0; one < lane.length; one += 1) {
          const took = end[one] === null ? 0 : this.served(one, Infinity);
          if (lane[one] === number && took > 0) rates.push(size[one] / took);
        }
        rates.sort((one, other) => one - other);
        return rates.length ? rates[rates.length >> 1] : 0;
      });
    }

    /** Share of a transfer that is through at `time`, 0 to 1. */
    progress(number, time) {
      const { lane, bytes: size, end } = this.data.transfers;
      const done = this.served(number, time);
      let total = this.served(number, Infinity);
      if (end[number] === null) {
        const rate = this.rate[lane[number]];
        total = Math.max(total * 1.02, rate > 0 ? size[number] / rate : total * 1.5);
      } else if (time >= end[number]) {
        return 1;
      }
      return total > 0 ? clamp(done / total, 0, 1) : 0;
    }

    /** Of each lane: the transfer that it serves at `time`, and how many wait for it. */
    lanesAt(time) {
      const { lane, submitted, end } = this.data.transfers;
      const found = this.lanes.map(() => ({ serves: NONE, waiting: 0 }));
      for (let one = 0; one < lane.length; one += 1) {
        const from = submitted[one] === null ? 0 : submitted[one];
        if (from > time || (end[one] !== null && end[one] <= time)) continue;
        const serving = this.bits[one].some(([begin, until]) => begin <= time && time < until);
        if (serving) found[lane[one]].serves = one; else found[lane[one]].waiting += 1;
      }
      return found;
    }

    /** Which cells a transfer brings, as far as they are drawn: the first and the end of a run. */
    _carried() {
      const cells = this.data.transfers.lane.map(() => null);
      const take = (number, first, end) => {
        if (number >= 0 && cells[number] === null) cells[number] = [first, end];
      };
      const { start, events } = this.data;
      start.transfer.forEach((number, row) => take(number, start.first[row], start.end[row]));
      events.transfer.forEach((number, row) => take(number, events.first[row], events.end[row]));
      return cells;
    }

    /* -- time */

    /** When something happens: events, transfers that begin and end. */
    _moments() {
      const times = [0, ...this.events.t, this.duration];
      for (const each of this.bits) for (const [begin] of each.slice(0, 1)) times.push(begin);
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

    /* -- words */

    name(first, end, most = 60) {
      const { label, first: from, end: until } = this.data.cells;
      const low = from[first], high = until[end - 1] - 1;
      const blocks = low === high ? `block ${low}` : `blocks ${low}–${high}`;
      return `${shorten(this.data.labels[label[first]], most)} ${blocks}`;
    }

    /** A few letters for a tile: the block's number, or the initial and number of a longer run's content. */
    brief(cell) {
      if (this.size[cell] === 1 && this.data.labels.length === 1) return String(this.data.cells.first[cell]);
      const found = /(\p{L})\p{L}*\s+(\d{1,4})\s*$/u.exec(this.data.labels[this.data.cells.label[cell]]);
      return found ? `${found[1].toLowerCase()}${found[2]}` : "";
    }

    tier(shelf) { return NAMES[this.data.words.tiers[this.data.pools[shelf].tier]]; }

    purpose(number) { return this.data.words.purposes[this.data.transfers.purpose[number]]; }

    fate(number) { return number < 0 ? "none" : this.data.words.fates[this.data.transfers.fate[number]]; }

    from(number) {
      const tier = number < 0 ? NONE : this.lanes[this.data.transfers.lane[number]].from;
      return tier < 0 ? "" : NAMES[this.data.words.tiers[tier]];
    }

    /** What happens at `time` itself, as short phrases. */
    phrases(time) {
      const { t, pool, what, first, end, transfer } = this.events;
      const said = [];
      const done = this.eventsUpTo(time);
      for (let index = done - 1; index >= 0 && t[index] === time; index -= 1) {
        const name = this.name(first[index], end[index]), tier = this.tier(pool[index]);
        const carrier = transfer[index];
        if (what[index] === EVENT.coming) {
          const verb = carrier >= 0 ? VERBS[this.purpose(carrier)] : "making room for";
          const from = this.from(carrier);
          said.push(`${verb} ${name}${from ? ` from ${from}` : ""} to ${tier}`);
        } else if (what[index] === EVENT.here) {
          said.push(carrier >= 0 ? `${name} arrived in ${tier}` : `${name} computed into ${tier}`);
        } else if (what[index] === EVENT.used) {
          said.push(`${name} read in ${tier}`);
        } else {
          said.push(`${name} left ${tier}`);
        }
      }
      return said.reverse();
    }
  }

  /* ---------- heat ---------- */

  /** Score of each cell that can be read on a shelf: λ·recency + (1−λ)·frequency, by rank among the shelf's blocks. */
  function scores(replay, state, shelf, lam) {
    const base = shelf * replay.cells;
    const here = [];
    let total = 0;
    for (let cell = 0; cell < replay.cells; cell += 1) {
      if (state.status[base + cell] === HERE) { here.push(cell); total += replay.size[cell]; }
    }
    const recency = ranks(here, (cell) => state.last[base + cell], replay.size, total);
    const frequency = ranks(here, (cell) => state.uses[base + cell], replay.size, total);
    const found = new Map();
    for (const cell of here) {
      const parts = [recency.get(cell), frequency.get(cell)];
      found.set(cell, { score: lam * parts[0] + (1 - lam) * parts[1], recency: parts[0], frequency: parts[1] });
    }
    return found;
  }

  /** Share of the other blocks with a smaller key, by cell. */
  function ranks(cells, key, size, total) {
    const order = cells.slice().sort((one, other) => (key(one) < key(other) ? -1 : key(one) > key(other) ? 1 : 0));
    const found = new Map();
    let below = 0;
    for (let k = 0; k < order.length;) {
      let until = k, same = 0;
      while (until < order.length && key(order[until]) === key(order[k])) { same += size[order[until]]; until += 1; }
      for (; k < until; k += 1) {
        const others = total - size[order[k]];
        found.set(order[k], others > 0 ? below / others : 1);
      }
      below += same;
    }
    return found;
  }

  /* ---------- one shelf ---------- */

  class Shelf {
    constructor(replay, number, player) {
      this.replay = replay;
      this.number = number;
      this.player = player;
      const pool = replay.data.pools[number];
      this.pool = pool;
      this.node = html("div", "shelf");
      this.node.setAttribute("role", "group");
      this.node.setAttribute("aria-label", `${pool.name} shelf`);
      this.node.dataset.tier = replay.data.words.tiers[pool.tier];
      this.node.dataset.pool = String(number);
      const head = html("div", "shelf-head");
      head.append(html("strong", "shelf-name", pool.name));
      this.figures = html("span", "shelf-figures");
      head.append(this.figures);
      this.fill = html("div", "fill");
      this.fill.setAttribute("aria-hidden", "true");
      this.parts = {};
      for (const part of ["drawn", "others", "private"]) {
        this.parts[part] = html("span", `fill-${part}`);
        this.fill.append(this.parts[part]);
      }
      this.small = html("div", "shelf-small");
      this.svg = svg("svg", { class: "tiles", role: "group", "aria-label": `Blocks in ${pool.name}` });
      this.tiles = [];
      for (let slot = 0; slot < replay.slots[number]; slot += 1) this.tiles.push(this._tile(slot));
      this.node.append(head, this.fill, this.svg, this.small);
      this.most = pool.capacity_blocks === null ? NONE : pool.capacity_blocks;
      this.seen = 1;
    }

    _tile(slot) {
      const group = svg("g", { class: "tile empty", tabindex: "-1", "data-slot": slot });
      const tile = {
        group, cell: NONE, key: "",
        space: svg("rect", { class: "space" }), body: svg("rect", { class: "body" }),
        edge: svg("rect", { class: "edge" }), mark: svg("text", { class: "mark" }), brief: svg("text", { class: "brief" }),
      };
      group.append(tile.space, tile.body, tile.edge, tile.brief, tile.mark);
      group.addEventListener("pointerenter", () => this.player.hover(tile.cell));
      group.addEventListener("pointerleave", () => this.player.hover(NONE));
      group.addEventListener("focus", () => this.player.choose(tile.cell, true));
      group.addEventListener("click", () => this.player.choose(tile.cell, false));
      this.svg.append(group);
      return tile;
    }

    layout(width, side) {
      const columns = Math.max(1, Math.floor(width / side));
      const rows = Math.max(1, Math.ceil(this.tiles.length / columns));
      this.side = side;
      this.columns = columns;
      this.svg.setAttribute("width", String(width));
      this.svg.setAttribute("height", String(rows * side));
      this.svg.setAttribute("viewBox", `0 0 ${width} ${rows * side}`);
      const gap = side > 20 ? 2 : 1;
      this.tiles.forEach((tile, slot) => {
        tile.x = (slot % columns) * side;
        tile.y = Math.floor(slot / columns) * side;
        tile.group.setAttribute("transform", `translate(${tile.x} ${tile.y})`);
        const inner = side - 2 * gap;
        for (const [name, value] of [["x", gap], ["y", gap], ["width", inner], ["height", inner], ["rx", side / 9]]) {
          tile.space.setAttribute(name, String(value));
        }
        tile.key = "";
      });
    }

    /** Where a place is, from the top left of the shelf's tiles. */
    center(slot) {
      const tile = this.tiles[slot];
      return tile ? [tile.x + this.side / 2, tile.y + this.side / 2] : [this.side / 2, this.side / 2];
    }

    /** Side of a cell's square: larger for more blocks, the smallest half as large as the largest. */
    extent(cell) {
      const gap = this.side > 20 ? 2 : 1;
      const { least, most } = this.player.sizes;
      const share = most > least ? Math.log(this.replay.size[cell] / least) / Math.log(most / least) : 1;
      return (this.side - 2 * gap) * (0.5 + 0.5 * share);
    }

    draw(state, heat, time) {
      const base = this.number * this.replay.cells;
      const bySlot = new Int16Array(this.tiles.length).fill(NONE);
      for (let cell = 0; cell < this.replay.cells; cell += 1) {
        if (state.status[base + cell] !== ABSENT && state.slot[base + cell] >= 0) bySlot[state.slot[base + cell]] = cell;
      }
      for (let slot = 0; slot < this.tiles.length; slot += 1) this._drawTile(this.tiles[slot], bySlot[slot], state, heat, time);
      this._figures(state, time);
    }

    _drawTile(tile, cell, state, heat, time) {
      const at = this.number * this.replay.cells + cell;
      const status = cell < 0 ? ABSENT : state.status[at];
      const via = cell < 0 ? NONE : state.via[at];
      const through = status === COMING ? (via >= 0 ? this.replay.progress(via, time) : 0) : 1;
      const warm = status === HERE ? Math.round(100 * heat.get(cell).score) : 100;
      const fresh = status !== ABSENT && via >= 0 && this.replay.purpose(via) === "prefetch" && state.uses[at] === 0;
      const fate = fresh ? this.replay.fate(via) : "none";
      const key = `${cell}/${status}/${Math.round(through * 100)}/${warm}/${fate}`;
      if (tile.key === key) return;
      tile.key = key;
      tile.cell = cell;
      const kind = ["empty", "coming", "here"][status];
      tile.group.setAttribute("class", `tile ${kind}${fate !== "none" ? " ahead" : ""}`);
      if (cell < 0) {
        tile.group.removeAttribute("data-cell");
        tile.group.removeAttribute("role");
        tile.group.removeAttribute("aria-label");
        tile.mark.textContent = tile.brief.textContent = "";
        return;
      }
      tile.group.dataset.cell = String(cell);
      tile.group.setAttribute("role", "button");
      const words = [this.replay.name(cell, cell + 1, 200), status === COMING ? "coming to" : "in", this.pool.name];
      tile.group.setAttribute("aria-label", words.join(" "));
      tile.group.style.setProperty("--warmth", `${Math.min(100, 2 * warm)}%`);
      tile.group.style.setProperty("--heat", `${Math.max(0, 2 * warm - 100)}%`);
      tile.group.dataset.heat = String(warm);
      const side = this.extent(cell), from = (this.side - side) / 2, high = side * through;
      this._rect(tile.edge, from, from, side, side, side / 8);
      this._rect(tile.body, from, from + side - high, side, high, Math.min(side / 8, high / 2));
      tile.mark.textContent = MARKS[fate] || "";
      tile.mark.setAttribute("x", String(this.side - 2));
      tile.mark.setAttribute("y", String(Math.max(9, this.side * 0.32)));
      tile.mark.setAttribute("font-size", String(clamp(this.side * 0.42, 9, 14)));
      tile.brief.textContent = side >= 22 ? this.replay.brief(cell) : "";
      tile.brief.setAttribute("x", String(this.side / 2));
      tile.brief.setAttribute("y", String(this.side / 2));
      tile.brief.setAttribute("font-size", String(clamp(side * 0.36, 9, 15)));
      tile.brief.setAttribute("class", `brief${warm > 35 ? " on-hot" : ""}`);
    }

    _rect(node, x, y, width, height, round) {
      const values = { x, y, width: Math.max(0, width), height: Math.max(0, height), rx: Math.max(0, round) };
      for (const [name, value] of Object.entries(values)) node.setAttribute(name, value.toFixed(1));
    }

    _figures(state, time) {
      const { scale, block_bytes: size, capacity_blocks: capacity } = this.pool;
      const drawn = state.units[this.number] / scale;
      const others = this.replay.level("hidden", this.number, time);
      const alone = this.replay.level("private", this.number, time);
      const used = drawn + others + alone;
      this.used = used;
      Object.assign(this.node.dataset, { blocks: used, drawn, hidden: others, private: alone });
      const room = capacity === null ? "" : ` of ${whole(capacity)}`;
      setText(this.figures, `${whole(used)}${room} blocks used (${bytes(used * size)}${capacity === null ? "" : ` of ${bytes(capacity * size)}`})`);
      const still = this.replay.moves("hidden", this.number) ? "more blocks not drawn" : "more blocks that don't move";
      const notes = [];
      if (others) notes.push(`and ${whole(others)} ${still}`);
      if (alone) notes.push(`${whole(alone)} held by running requests alone`);
      setText(this.small, notes.join(" · "));
      this.small.hidden = notes.length === 0;
      this.seen = Math.max(this.seen, used);
      const all = capacity === null ? this.seen : capacity || 1;
      for (const [part, blocks] of [["drawn", drawn], ["others", others], ["private", alone]]) {
        this.parts[part].style.width = `${clamp((100 * blocks) / all, 0, 100).toFixed(2)}%`;
      }
    }
  }

  /* ---------- links and GPUs ---------- */

  class Strips {
    constructor(replay) {
      this.replay = replay;
      this.ways = [];
    }

    /** A strip for what is carried from one tier to another; null where nothing leads there. */
    way(from, to, name) {
      const lanes = this.replay.lanes.map((lane, number) => [lane, number])
        .filter(([lane]) => lane.from === from && lane.to === to).map(([, number]) => number);
      if (!lanes.length) return null;
      const up = to < from;
      const node = html("div", `strip ${up ? "up" : "down"}`);
      node.dataset.way = name;
      const title = html("span", "strip-name", `${up ? "↑" : "↓"} ${name}`);
      const bar = html("span", "strip-bar");
      const done = html("span", "strip-done");
      bar.append(done);
      bar.setAttribute("aria-hidden", "true");
      const text = html("span", "strip-text");
      node.append(title, bar, text);
      this.ways.push({ node, lanes, done, text });
      return node;
    }

    draw(time) {
      const lanes = this.replay.lanesAt(time);
      for (const way of this.ways) {
        const busy = way.lanes.filter((lane) => lanes[lane].serves >= 0);
        const waiting = way.lanes.reduce((sum, lane) => sum + lanes[lane].waiting, 0);
        const serves = busy.length ? lanes[busy[0]].serves : NONE;
        way.node.dataset.busy = String(busy.length);
        way.node.dataset.waiting = String(waiting);
        way.node.classList.toggle("busy", serves >= 0);
        way.done.style.width = serves >= 0 ? `${(100 * this.replay.progress(serves, time)).toFixed(1)}%` : "0";
        setText(way.text, this._text(serves, way.lanes.length, busy.length, waiting));
      }
    }

    _text(serves, lanes, busy, waiting) {
      const queue = waiting ? ` · ${whole(waiting)} waiting` : "";
      if (serves < 0) return waiting ? `${whole(waiting)} waiting` : "idle";
      const { bytes: size, request } = this.replay.data.transfers;
      const cells = this.replay.carried[serves];
      const what = cells ? this.replay.name(cells[0], cells[1], 28) : request[serves] >= 0 ? `for request ${request[serves]}` : "";
      const fate = MARKS[this.replay.fate(serves)];
      const links = lanes > 1 ? `${busy} of ${lanes} busy · ` : "";
      return `${links}${NOUNS[this.replay.purpose(serves)]}${fate ? ` ${fate}` : ""} ${what} (${bytes(size[serves])})${queue}`;
    }
  }

  class Gpus {
    constructor(replay) {
      this.replay = replay;
      this.node = html("div", "gpus");
      this.rows = new Map();
      const several = replay.stepsAt(0).length > 1;
      for (const [replica] of replay.stepsAt(0)) {
        const node = html("div", "gpu");
        const lamp = html("span", "lamp");
        lamp.setAttribute("aria-hidden", "true");
        const text = html("span", "gpu-text");
        node.append(lamp, html("strong", "", several ? `GPU ${replica}` : "GPU"), text);
        this.rows.set(replica, { node, text });
        this.node.append(node);
      }
    }

    draw(time) {
      const steps = this.replay.data.steps;
      for (const [replica, row] of this.replay.stepsAt(time)) {
        const { node, text } = this.rows.get(replica);
        node.dataset.state = row < 0 ? "idle" : steps.wait_s[row] > 0 ? "waits" : "computes";
        setText(text, row < 0 ? "idle: nothing to compute, or waiting for blocks" : this._text(steps, row));
      }
    }

    _text(steps, row) {
      const parts = [];
      if (steps.decodes[row]) parts.push(`decodes ${plural(steps.decodes[row], "sequence")}`);
      if (steps.prefill[row]) parts.push(`prefills ${plural(steps.prefill[row], "token")}`);
      if (!parts.length) parts.push("computes");
      if (steps.end[row] === null) return `${parts.join(", ")} (not over at the window's end)`;
      const took = duration(steps.end[row] - steps.begin[row]);
      parts.push(steps.count[row] > 1 ? `${whole(steps.count[row])} steps in ${took}` : `one step of ${took}`);
      if (steps.wait_s[row] > 0) parts.push(`${duration(steps.wait_s[row])} of it waiting for blocks`);
      return parts.join(" · ");
    }
  }

  /* ---------- the story of a block ---------- */

  class Story {
    constructor(replay, clock) {
      this.replay = replay;
      this.clock = clock;
      this.node = html("aside", "story");
      this.node.setAttribute("aria-label", "Story of a block");
      this.title = html("strong", "story-title");
      this.state = html("p", "story-state");
      this.list = html("ol", "story-list");
      this.node.append(this.title, this.state, this.list);
      this.cell = NONE;
      this.show(NONE);
    }

    show(cell) {
      this.cell = cell;
      this.list.replaceChildren();
      this.lines = [];
      this.node.dataset.cell = String(cell);
      if (cell < 0) {
        setText(this.title, "A block's story");
        setText(this.state, "Point at a block, tap it or move to it with Tab and the arrow keys: here stands what happens to it.");
        return;
      }
      const { label, first, end } = this.replay.data.cells;
      const pool = this.replay.data.pools[0];
      const blocks = this.replay.size[cell], tokens = (pool.block_tokens / pool.scale) * blocks;
      const size = bytes((pool.block_bytes / pool.scale) * blocks);
      const which = blocks === 1 ? `block ${first[cell]}` : `blocks ${first[cell]}–${end[cell] - 1}`;
      setText(this.title, `${this.replay.data.labels[label[cell]]}, ${which}`);
      this.about = `${plural(blocks, "block")}, ${plural(tokens, "token")}, ${size}`;
      for (const line of this._tell(cell)) {
        const node = html("li");
        node.append(html("span", "story-time", line.time < 0 ? "before" : this.clock(line.time)), html("span", "", line.text));
        this.list.append(node);
        this.lines.push([line.time, node]);
      }
    }

    /** Mark what is still to come, and say where the block is now. */
    draw(time, state, heats, lam) {
      if (this.cell < 0) return;
      for (const [when, node] of this.lines) node.classList.toggle("ahead", when > time);
      const where = [];
      for (let shelf = 0; shelf < this.replay.shelves; shelf += 1) {
        const at = shelf * this.replay.cells + this.cell;
        const name = this.replay.data.pools[shelf].name;
        if (state.status[at] === COMING) where.push(`on its way to ${name}`);
        if (state.status[at] !== HERE) continue;
        const heat = heats[shelf].get(this.cell);
        const parts = `λ ${lam.toFixed(2)} × recency ${heat.recency.toFixed(2)} + ${(1 - lam).toFixed(2)} × frequency ${heat.frequency.toFixed(2)}`;
        where.push(`in ${name}, score ${heat.score.toFixed(2)} = ${parts}`);
      }
      setText(this.state, `${this.about}. Now ${where.length ? where.join("; ") : "in no tier"}.`);
    }

    _tell(cell) {
      const { t, pool, what, first, end, transfer } = this.replay.events;
      const lines = [];
      const held = new Map();
      const { start } = this.replay.data;
      for (let row = 0; row < start.pool.length; row += 1) {
        if (cell < start.first[row] || cell >= start.end[row]) continue;
        const uses = start.uses[row] ? `, used ${plural(start.uses[row], "time")} before` : "";
        const last = start.last_s[row] === null ? "" : `, last ${duration(-start.last_s[row])} earlier`;
        const way = start.transfer[row] >= 0 ? "on its way to" : "in";
        lines.push({ time: -1, text: `${way} ${this.replay.data.pools[start.pool[row]].name} as the window begins${uses}${last}` });
        held.set(start.pool[row], true);
      }
      let uses = null;
      for (let index = 0; index < t.length; index += 1) {
        if (cell < first[index] || cell >= end[index]) continue;
        const shelf = pool[index], name = this.replay.data.pools[shelf].name;
        if (what[index] === EVENT.used) {
          if (uses && uses.shelf === shelf) {
            uses.count += 1;
            uses.line.text = `used ${plural(uses.count, "time")} in ${name}, the last at ${this.clock(t[index])}`;
          } else {
            uses = { shelf, count: 1, line: { time: t[index], text: `used in ${name}` } };
            lines.push(uses.line);
          }
          continue;
        }
        uses = null;
        const text = this._line(what[index], transfer[index], name, held.has(shelf), t[index], held.get(shelf));
        if (text) lines.push({ time: t[index], text });
        held.set(shelf, what[index] !== EVENT.gone);
      }
      return lines;
    }

    _line(what, carrier, name, before, time, there) {
      if (what === EVENT.gone) return `left ${name}`;
      if (what === EVENT.here && there) return null;
      const again = before ? " again" : "";
      if (carrier < 0) return what === EVENT.coming ? `room taken in ${name}${again}` : `computed into ${name}${again}`;
      const { submitted, end, request } = this.replay.data.transfers;
      const whom = request[carrier] >= 0 ? ` for request ${request[carrier]}` : "";
      const from = this.replay.from(carrier);
      const noun = NOUNS[this.replay.purpose(carrier)];
      const fate = this.replay.fate(carrier);
      const judged = fate === "none" ? "" : ` · ${FATE_WORDS[fate]}`;
      const begun = submitted[carrier] === null ? time : submitted[carrier];
      if (end[carrier] === null) return `${noun}${again}${from ? ` from ${from}` : ""} to ${name}${whom}, not over at the window's end${judged}`;
      const took = duration(end[carrier] - begun);
      const waited = end[carrier] - begun - this.replay.served(carrier, Infinity);
      const queued = waited > 1e-9 + 0.01 * (end[carrier] - begun) ? `, ${duration(waited)} of it waiting for the link` : "";
      return `${noun}${again}${from ? ` from ${from}` : ""} to ${name}${whom} in ${took}${queued}${judged}`;
    }
  }

  /* ---------- the timeline over the slider ---------- */

  function timeline(replay) {
    const node = svg("svg", { class: "timeline", viewBox: `0 0 ${BINS} 40`, preserveAspectRatio: "none", role: "img" });
    node.setAttribute("aria-label", "When blocks come up, when they leave or go down, and when the GPUs compute");
    const ups = new Float64Array(BINS), downs = new Float64Array(BINS), busy = new Float64Array(BINS);
    const bin = (time) => clamp(Math.floor((time / replay.duration) * BINS), 0, BINS - 1);
    const { t, pool, what, first, end, transfer } = replay.events;
    for (let index = 0; index < t.length; index += 1) {
      let blocks = 0;
      for (let cell = first[index]; cell < end[index]; cell += 1) blocks += replay.size[cell];
      const carrier = transfer[index];
      const up = carrier >= 0 && replay.lanes[replay.data.transfers.lane[carrier]].to < replay.lanes[replay.data.transfers.lane[carrier]].from;
      if (what[index] === EVENT.coming && up) ups[bin(t[index])] += blocks;
      if (what[index] === EVENT.gone && replay.data.pools[pool[index]].tier === 0) downs[bin(t[index])] += blocks;
    }
    const width = replay.duration / BINS;
    const replicas = Math.max(1, replay.stepsAt(0).length);
    const { begin, end: over } = replay.data.steps;
    for (let row = 0; row < begin.length; row += 1) {
      const from = Math.max(0, begin[row]), until = over[row] === null ? replay.duration : over[row];
      for (let k = bin(from); k <= bin(until) && width > 0; k += 1) {
        busy[k] += Math.max(0, Math.min(until, (k + 1) * width) - Math.max(from, k * width)) / width / replicas;
      }
    }
    const most = Math.max(1, ...ups, ...downs);
    const bar = (k, y, height, name, opacity) => {
      if (height <= 0) return;
      node.append(svg("rect", { class: name, x: k + 0.1, y: y.toFixed(2), width: 0.8, height: height.toFixed(2), ...(opacity ? { "fill-opacity": opacity.toFixed(2) } : {}) }));
    };
    for (let k = 0; k < BINS; k += 1) {
      const up = ups[k] ? 1 + 15 * Math.sqrt(ups[k] / most) : 0, down = downs[k] ? 1 + 15 * Math.sqrt(downs[k] / most) : 0;
      bar(k, 17 - up, up, "ups", 0);
      bar(k, 17, down, "downs", 0);
      bar(k, 35, busy[k] > 0.01 ? 5 : 0, "gpu-busy", clamp(busy[k], 0.08, 1));
    }
    const head = svg("line", { class: "playhead", x1: 0, x2: 0, y1: 0, y2: 40 });
    node.append(head);
    return { node, head };
  }

  /* ---------- the player ---------- */

  class Player {
    constructor(root, data) {
      this.replay = new Replay(data);
      this.root = root;
      this.time = 0;
      this.done = NONE;
      this.state = null;
      this.playing = false;
      this.lam = data.policy.lambda;
      this.still = window.matchMedia("(prefers-reduced-motion: reduce)");
      const size = this.replay.size;
      this.sizes = size.length ? { least: Math.min(...size), most: Math.max(...size) } : { least: 1, most: 1 };
      this.digits = clamp(Math.ceil(3 - Math.log10(Math.max(this.replay.duration, 1e-9) / 10)), 3, 7);
      this.clock = (time) => `${(data.window.begin_s + time).toFixed(this.digits)} s`;
      this.hovered = this.chosen = NONE;
      this._build();
      this._listen();
      this._layout();
      this.seek(0);
      this._state();
    }

    /* -- building */

    _build() {
      const { data } = this.replay;
      this.node = html("div", "player");
      this.node.setAttribute("role", "group");
      this.node.setAttribute("aria-label", "Block player");
      this.node.append(this._intro(), this._controls(), this._scrubber());
      this.status = html("p", "status");
      this.status.setAttribute("aria-live", "off");
      this.stage = html("div", "stage");
      this.gpus = new Gpus(this.replay);
      this.stage.append(this.gpus.node);
      this.shelves = data.pools.map((_, number) => new Shelf(this.replay, number, this));
      this.strips = new Strips(this.replay);
      const tiers = [...new Set(data.pools.map((pool) => pool.tier))].sort();
      tiers.forEach((tier, k) => {
        if (k > 0) this.stage.append(this._between(tiers[k - 1], tier));
        const row = html("div", "tier");
        row.append(...this.shelves.filter((shelf) => shelf.pool.tier === tier).map((shelf) => shelf.node));
        this.stage.append(row);
      });
      this.overlay = svg("svg", { class: "movers", "aria-hidden": "true" });
      this.stage.append(this.overlay);
      this.movers = [];
      this.story = new Story(this.replay, this.clock);
      const body = html("div", "player-body");
      body.append(this.stage, this.story.node);
      this.node.append(this.status, body, this._legend());
      this.root.append(this.node);
    }

    _intro() {
      const { window: span, policy } = this.replay.data;
      const part = span.whole ? "the whole run" : `${duration(this.replay.duration)} of a run of ${duration(span.run_end_s)}`;
      const end = span.full ? ", until as many events were recorded as are kept" : "";
      const ways = [`eviction ${policy.eviction}`];
      if (policy.write) ways.push(`write ${policy.write}`);
      ways.push(`prefetch ${policy.prefetch}`);
      return html("p", "player-intro", `Every event of ${part}${end}. Policies: ${ways.join(", ")}.`);
    }

    _button(name, label, act) {
      const button = html("button", `control ${name}`, label);
      button.type = "button";
      button.addEventListener("click", act);
      return button;
    }

    _range(name, label, min, max, step, value) {
      const wrap = html("label", `slider ${name}`);
      const text = html("span", "slider-text", label);
      const input = html("input");
      Object.assign(input, { type: "range", min, max, step, value });
      input.className = `${name}-input`;
      wrap.append(text, input);
      return { wrap, text, input };
    }

    _controls() {
      const bar = html("div", "controls");
      this.play = this._button("play", "▶ Play", () => this.toggle());
      const back = this._button("back", "◀ Step", () => this.step(-1));
      const on = this._button("forward", "Step ▶", () => this.step(1));
      back.setAttribute("aria-label", "Step back to the event before");
      on.setAttribute("aria-label", "Step to the next event");
      const buttons = html("div", "buttons");
      buttons.append(this.play, back, on);
      this.speeds = this._speeds();
      const preset = this._preset();
      this.speed = this._range("speed", "", 0, this.speeds.length - 1, 1, preset);
      this.heat = this._range("lambda", "", 0, 1, 0.05, this.lam);
      this.heat.input.value = String(this.lam);
      bar.append(buttons, this.speed.wrap, this.heat.wrap);
      return bar;
    }

    /** Times simulated time runs as fast as the clock: 1, 2, 5, 10 and so on. */
    _speeds() {
      const wanted = this.replay.duration / 30 || 1;
      const low = Math.min(-1, Math.floor(Math.log10(wanted)) - 1), high = Math.max(3, Math.ceil(Math.log10(wanted)) + 1);
      const found = [];
      for (let power = low; power <= high; power += 1) for (const one of [1, 2, 5]) found.push(one * 10 ** power);
      return found.slice(0, -2);
    }

    _preset() {
      const wanted = this.replay.duration / 30 || 1;
      const far = this.speeds.map((speed) => Math.abs(Math.log(speed / wanted)));
      return far.indexOf(Math.min(...far));
    }

    get factor() { return this.speeds[Number(this.speed.input.value)]; }

    _scrubber() {
      const box = html("div", "scrubber");
      this.timeline = timeline(this.replay);
      this.scrub = html("input", "scrub");
      Object.assign(this.scrub, { type: "range", min: 0, max: 1, step: "any", value: 0 });
      this.scrub.setAttribute("aria-label", "Time");
      const ends = html("div", "scrub-ends");
      this.now = html("span", "now");
      ends.append(html("span", "", this.clock(0)), this.now, html("span", "", this.clock(this.replay.duration)));
      box.append(this.timeline.node, this.scrub, ends);
      return box;
    }

    _between(upper, lower) {
      const row = html("div", "between");
      const link = upper === 0;
      const down = this.strips.way(upper, lower, link ? "Offload: D2H link" : "SSD write");
      const up = this.strips.way(lower, upper, link ? "Prefetch and load: H2D link" : "SSD read");
      for (const node of [down, up]) if (node) row.append(node);
      return row;
    }

    _legend() {
      const box = html("div", "legend");
      box.setAttribute("aria-label", "Legend");
      const item = (sample, text) => {
        const node = html("span", "legend-item");
        sample.classList.add("sample");
        sample.setAttribute("aria-hidden", "true");
        node.append(sample, html("span", "", text));
        box.append(node);
      };
      item(html("span", "sample-heat"), "cold, next to leave → hot: score by λ, ranked among the blocks drawn in that tier");
      item(html("span", "sample-coming"), "coming: room is taken, it fills as bytes arrive");
      if (this.sizes.most > this.sizes.least) item(html("span", "sample-size"), `size: ${whole(this.sizes.least)} to ${whole(this.sizes.most)} blocks that move together (log scale)`);
      item(html("span", "sample-up", "▲"), "on its way up");
      item(html("span", "sample-down", "▼"), "on its way down");
      for (const fate of ["useful", "late", "wasted", "open"]) {
        if (this.replay.data.transfers.fate.includes(this.replay.data.words.fates.indexOf(fate))) {
          item(html("span", "sample-mark", MARKS[fate]), `prefetch ${FATE_WORDS[fate].slice(2)}`);
        }
      }
      item(html("span", "sample-others"), "in the bar: blocks not drawn");
      item(html("span", "sample-private"), "in the bar: held by running requests alone");
      item(html("span", "sample-density"), "above the slider: blocks that come up (upwards), that leave VRAM (downwards), GPU at work (below)");
      box.append(html("span", "legend-keys", "Keys: space plays and pauses, ← → step, Home and End; on a block the arrows go from block to block."));
      return box;
    }

    /* -- input */

    _listen() {
      this.scrub.addEventListener("input", () => {
        this.pause();
        this._aloud(false);
        this.seek(Number(this.scrub.value) * this.replay.duration);
      });
      this.heat.input.addEventListener("input", () => { this.lam = Number(this.heat.input.value); this._state(); });
      this.speed.input.addEventListener("input", () => this._state());
      this.node.addEventListener("keydown", (event) => this._key(event));
      let width = 0;
      new ResizeObserver(() => {
        const now = Math.round(this.stage.clientWidth);
        if (now === width || !now) return;
        width = now;
        this._layout();
        this.render(true);
      }).observe(this.stage);
    }

    _key(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const target = event.target;
      const tile = target.closest(".tile");
      const slider = target.tagName === "INPUT" && target !== this.scrub;
      const act = {
        " ": () => this.toggle(), ArrowRight: () => this.step(1), ArrowLeft: () => this.step(-1),
        Home: () => this.jump(0), End: () => this.jump(this.replay.duration),
      }[event.key];
      if (tile && this._walk(tile, event.key)) { event.preventDefault(); return; }
      if (!act || slider || (event.key === " " && target.tagName === "BUTTON")) return;
      event.preventDefault();
      act();
    }

    /** Go from block to block; true where `key` is of that. */
    _walk(tile, key) {
      const shelf = this.shelves[Number(tile.closest(".shelf").dataset.pool)];
      const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: shelf.columns, ArrowUp: -shelf.columns }[key];
      if (key === "Enter") { this.choose(Number(tile.dataset.cell), false); return true; }
      if (key === "Escape") { this.choose(NONE, false); tile.blur(); return true; }
      if (!by) return false;
      const all = this.shelves.flatMap((each) => each.tiles);
      let at = all.findIndex((each) => each.group === tile) + by;
      while (at >= 0 && at < all.length && all[at].cell < 0) at += Math.sign(by);
      if (all[at]) all[at].group.focus();
      return true;
    }

    toggle() { if (this.playing) this.pause(); else this.start(); }

    start() {
      if (this.time >= this.replay.duration) this.seek(0);
      this.playing = true;
      this._aloud(false);
      this._state();
      let before = null, shown = 0;
      const frame = (now) => {
        if (!this.playing) return;
        const passed = before === null ? 0 : Math.min(0.25, (now - before) / 1000);
        before = now;
        this.time = Math.min(this.replay.duration, this.time + passed * this.factor);
        if (!this.still.matches || now - shown > 250) { this.render(false); shown = now; }
        if (this.time >= this.replay.duration) { this.pause(); return; }
        requestAnimationFrame(frame);
      };
      requestAnimationFrame(frame);
    }

    pause() {
      if (!this.playing) return;
      this.playing = false;
      this._state();
    }

    step(by) {
      this.pause();
      this._aloud(true);
      this.time = by > 0 ? this.replay.next(this.time) : this.replay.previous(this.time);
      this.render(false);
    }

    jump(time) {
      this.pause();
      this._aloud(true);
      this.seek(time);
    }

    /** Whether who listens is told what happens now. */
    _aloud(yes) { this.status.setAttribute("aria-live", yes ? "polite" : "off"); }

    seek(time) {
      this.time = clamp(time, 0, this.replay.duration);
      for (const one of this.overlay.querySelectorAll(".flight")) one.remove();
      this.render(true);
    }

    hover(cell) { this.hovered = cell; this._story(); }

    choose(cell, focused) {
      this.chosen = !focused && cell === this.chosen ? this.chosen : cell;
      this._story();
    }

    _story() {
      const cell = this.hovered >= 0 ? this.hovered : this.chosen;
      if (cell !== this.story.cell) this.story.show(cell);
      this.story.draw(this.time, this.state, this.heats, this.lam);
      for (const shelf of this.shelves) {
        for (const tile of shelf.tiles) {
          const same = cell >= 0 && tile.cell >= 0 && this._label(tile.cell) === this._label(cell);
          tile.group.classList.toggle("same", same);
          tile.group.classList.toggle("this", cell >= 0 && tile.cell === cell);
        }
      }
    }

    _label(cell) { return this.replay.data.cells.label[cell]; }

    /** What the controls show. */
    _state() {
      setText(this.play, this.playing ? "❚❚ Pause" : "▶ Play");
      this.play.setAttribute("aria-pressed", String(this.playing));
      this.node.dataset.playing = String(this.playing);
      const factor = Number(this.factor.toPrecision(3));
      setText(this.speed.text, `Speed ${factor.toLocaleString("en", { maximumFractionDigits: 9 })}× (all in ${duration(this.replay.duration / this.factor)})`);
      this.speed.input.setAttribute("aria-valuetext", `${factor} times`);
      const { policy } = this.replay.data;
      const own = policy.orders ? `run: ${policy.eviction}, λ = ${policy.lambda}` : `run: ${policy.eviction}, which has no λ`;
      setText(this.heat.text, `Heat λ = ${this.lam.toFixed(2)} (${own})`);
      this.render(true);
    }

    /* -- drawing */

    _layout() {
      const width = this.shelves.map((shelf) => Math.max(120, Math.floor(shelf.svg.parentNode.clientWidth - 20)));
      const fits = (side) => this.shelves.every((shelf, k) => Math.ceil(shelf.tiles.length / Math.floor(width[k] / side)) <= MOST_ROWS);
      const few = this.shelves.every((shelf) => shelf.tiles.length <= 24);
      const side = TILES.slice(few ? 0 : 1).find(fits) || TILES[TILES.length - 1];
      this.shelves.forEach((shelf, k) => shelf.layout(width[k], side));
      this.side = side;
      this.origin = null;
    }

    /** Where the shelves' tiles lie on the stage; measured when it may have changed. */
    _origins() {
      const stage = this.stage.getBoundingClientRect();
      this.origin = this.shelves.map((shelf) => {
        const box = shelf.svg.getBoundingClientRect();
        return [box.left - stage.left, box.top - stage.top];
      });
      for (const [name, value] of [["width", stage.width], ["height", stage.height]]) this.overlay.setAttribute(name, String(value));
      this.overlay.setAttribute("viewBox", `0 0 ${stage.width} ${stage.height}`);
    }

    _place(shelf, slot) {
      const [x, y] = this.shelves[shelf].center(slot);
      return [this.origin[shelf][0] + x, this.origin[shelf][1] + y];
    }

    render(anew) {
      const done = this.replay.eventsUpTo(this.time);
      const before = this.done;
      const small = !anew && before >= 0 && done > before && done - before <= SNAPSHOT_EVERY;
      const was = small && !this.still.matches ? this.state.copy() : null;
      const changed = anew || done !== before;
      if (changed) {
        this.state = this.replay.after(done, this.state, before < 0 ? Infinity : before);
        this.done = done;
        this.heats = this.shelves.map((_, shelf) => scores(this.replay, this.state, shelf, this.lam));
      }
      this.shelves.forEach((shelf, k) => shelf.draw(this.state, this.heats[k], this.time));
      this.strips.draw(this.time);
      this.gpus.draw(this.time);
      if (changed) this._origins();
      this._drawMovers();
      if (was) this._fly(was, before, done);
      this._drawTime();
      if (changed) { this._rove(); this._story(); }
    }

    _drawTime() {
      const share = this.replay.duration > 0 ? this.time / this.replay.duration : 0;
      if (document.activeElement !== this.scrub || this.playing || Math.abs(Number(this.scrub.value) - share) > 1e-12) this.scrub.value = String(share);
      this.scrub.setAttribute("aria-valuetext", this.clock(this.time));
      for (const end of ["x1", "x2"]) this.timeline.head.setAttribute(end, String(share * BINS));
      setText(this.now, `t = ${this.clock(this.time)}`);
      const held = {};
      for (const shelf of this.shelves) held[shelf.node.dataset.tier] = (held[shelf.node.dataset.tier] || 0) + shelf.used;
      Object.assign(this.node.dataset, { time: (this.replay.data.window.begin_s + this.time).toFixed(9), events: this.done, ...held });
      setText(this.status, this._words());
    }

    /** What happens now: the events of this very moment, else what is under way. */
    _words() {
      let said = this.replay.phrases(this.time);
      if (!said.length) {
        said = this.replay.lanesAt(this.time).filter((lane) => lane.serves >= 0).map((lane) => {
          const cells = this.replay.carried[lane.serves];
          return `${VERBS[this.replay.purpose(lane.serves)]} ${cells ? this.replay.name(cells[0], cells[1], 40) : bytes(this.replay.data.transfers.bytes[lane.serves])}`;
        });
      }
      const shown = said.slice(0, 3);
      if (said.length > 3) shown.push(`and ${said.length - 3} more`);
      return [`t = ${this.clock(this.time)}`, ...shown].join(" · ");
    }

    /** One tile can be reached by Tab: the chosen one, else the first. */
    _rove() {
      let first = null;
      for (const shelf of this.shelves) {
        for (const tile of shelf.tiles) {
          if (tile.cell < 0) { tile.group.setAttribute("tabindex", "-1"); continue; }
          const here = first === null;
          if (here) first = tile;
          tile.group.setAttribute("tabindex", here ? "0" : "-1");
        }
      }
    }

    /** Blocks between shelves, as far on as their bytes are. */
    _drawMovers() {
      const wanted = this.still.matches ? [] : this._underWay();
      while (this.movers.length < wanted.length) this.movers.push(this._mover());
      this.movers.forEach((mover, k) => {
        const one = wanted[k];
        mover.group.setAttribute("visibility", one ? "visible" : "hidden");
        if (one) this._putMover(mover, one);
      });
      this.node.dataset.movers = String(wanted.length);
    }

    _mover() {
      const mover = {
        group: svg("g", { class: "mover" }), trail: svg("line", { class: "trail" }), body: svg("rect"),
        arrow: svg("text", { "text-anchor": "middle" }),
      };
      mover.group.append(mover.trail, mover.body, mover.arrow);
      this.overlay.append(mover.group);
      return mover;
    }

    _putMover(mover, { from, to, share, side, up }) {
      const eased = share * share * (3 - 2 * share);
      const x = from[0] + (to[0] - from[0]) * eased, y = from[1] + (to[1] - from[1]) * eased;
      mover.group.setAttribute("class", `mover ${up ? "up" : "down"}`);
      mover.group.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
      mover.trail.setAttribute("x2", (from[0] - x).toFixed(1));
      mover.trail.setAttribute("y2", (from[1] - y).toFixed(1));
      const size = clamp(side, 11, 40);
      const values = { x: -size / 2, y: -size / 2, width: size, height: size, rx: size / 6 };
      for (const [name, value] of Object.entries(values)) mover.body.setAttribute(name, value.toFixed(1));
      setText(mover.arrow, up ? "▲" : "▼");
      mover.arrow.setAttribute("font-size", (size * 0.6).toFixed(1));
      mover.arrow.setAttribute("y", (size * 0.21).toFixed(1));
    }

    _underWay() {
      const found = [];
      const { cells } = this.replay;
      for (let shelf = 0; shelf < this.shelves.length && found.length < MOST_MOVERS; shelf += 1) {
        for (let cell = 0; cell < cells && found.length < MOST_MOVERS; cell += 1) {
          const at = shelf * cells + cell, via = this.state.via[at];
          if (this.state.status[at] !== COMING || via < 0) continue;
          const share = this.replay.progress(via, this.time);
          if (share <= 0 || share >= 1) continue;
          const to = this._place(shelf, this.state.slot[at]);
          const lane = this.replay.lanes[this.replay.data.transfers.lane[via]];
          const up = lane.to < lane.from;
          const from = this._source(this.state, lane.from, cell) || [to[0], to[1] + (up ? 60 : -60)];
          found.push({ from, to, share, up, side: this.shelves[shelf].extent(cell) });
        }
      }
      return found;
    }

    /** Where a cell lies in a tier, or null. */
    _source(state, tier, cell) {
      for (let shelf = 0; shelf < this.shelves.length; shelf += 1) {
        const at = shelf * this.replay.cells + cell;
        if (this.shelves[shelf].pool.tier === tier && state.status[at] === HERE) return this._place(shelf, state.slot[at]);
      }
      return null;
    }

    /** Show for a moment what went from shelf to shelf faster than can be seen, and what is gone. */
    _fly(was, before, done) {
      const { pool, what, first, end, transfer } = this.replay.events;
      let left = MOST_FLIGHTS;
      for (let index = before; index < done; index += 1) {
        const act = { [EVENT.here]: this._arrive, [EVENT.gone]: this._vanish }[what[index]];
        if (!act) continue;
        for (let cell = first[index]; cell < end[index] && left > 0; cell += 1) {
          if (act.call(this, was, pool[index], cell, transfer[index])) left -= 1;
        }
      }
    }

    _arrive(was, shelf, cell, carrier) {
      const at = shelf * this.replay.cells + cell;
      if (carrier < 0 || was.status[at] === HERE || this.state.status[at] !== HERE) return false;
      const { submitted, end, lane: lanes } = this.replay.data.transfers;
      if (this.playing && (end[carrier] - (submitted[carrier] || 0)) / this.factor > SEEN_S) return false;
      const lane = this.replay.lanes[lanes[carrier]];
      const from = this._source(was, lane.from, cell);
      if (from) this._flight(from, this._place(shelf, this.state.slot[at]), lane.to < lane.from, this.shelves[shelf].extent(cell));
      return from !== null;
    }

    _vanish(was, shelf, cell) {
      const at = shelf * this.replay.cells + cell;
      if (was.status[at] !== HERE || this.state.status[at] !== ABSENT) return false;
      this._fade(this._place(shelf, was.slot[at]), this.shelves[shelf].extent(cell));
      return true;
    }

    _flight(from, to, up, side) {
      const mover = this._mover();
      this._putMover(mover, { from, to: from, share: 0, side, up });
      mover.group.classList.add("flight");
      const put = ([x, y]) => ({ transform: `translate(${x}px, ${y}px)` });
      mover.group.animate([put(from), put(to)], { duration: FLIGHT_MS, easing: "ease-in-out" }).onfinish = () => mover.group.remove();
    }

    _fade([x, y], side) {
      const ghost = svg("rect", { class: "flight ghost", x: x - side / 2, y: y - side / 2, width: side, height: side, rx: side / 8 });
      this.overlay.append(ghost);
      ghost.animate([{ opacity: 0.9, transform: "translateY(0)" }, { opacity: 0, transform: `translateY(${side}px)` }], { duration: FLIGHT_MS, easing: "ease-in" })
        .onfinish = () => ghost.remove();
    }
  }

  /* ---------- beginning ---------- */

  function begin() {
    for (const root of document.querySelectorAll('div.widget[data-kind="player"]')) {
      const source = root.querySelector('script[type="application/json"]');
      if (!source || root.dataset.ready) continue;
      root.dataset.ready = "true";
      new Player(root, JSON.parse(source.textContent));
    }
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin); else begin();
})();
