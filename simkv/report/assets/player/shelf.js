/* One shelf: the memory of one tier as tiles, and how full it is. */

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
    this.bySlot = new Int16Array(this.tiles.length).fill(NONE);
    this.seen = 1;
  }

  _tile(slot) {
    const group = svg("g", { class: "tile", "data-state": "empty", tabindex: "-1", "data-slot": slot });
    const tile = {
      group, cell: NONE, key: "",
      space: svg("rect", { class: "space" }), body: svg("rect", { class: "body" }),
      edge: svg("rect", { class: "edge" }), mark: svg("text", { class: "mark" }), brief: svg("text", { class: "brief" }),
    };
    group.append(tile.space, tile.body, tile.edge, tile.brief, tile.mark);
    group.addEventListener("pointerenter", () => this.player.hover(tile.cell));
    group.addEventListener("pointerleave", (event) => this.player.left(event.relatedTarget));
    group.addEventListener("focus", () => this.player.choose(tile.cell));
    group.addEventListener("click", () => this.player.choose(tile.cell));
    this.svg.append(group);
    return tile;
  }

  /** How wide the tiles may be. */
  room() { return Math.max(120, Math.floor(this.node.clientWidth - 20)); }

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

  /** Mark a cell, and more faintly what is of the same content. */
  point(cell) {
    const { label } = this.replay.data.cells;
    for (const tile of this.tiles) {
      const both = cell >= 0 && tile.cell >= 0;
      tile.group.classList.toggle("same", both && label[tile.cell] === label[cell]);
      tile.group.classList.toggle("this", both && tile.cell === cell);
    }
  }

  /** Show the shelf at `time`; `changed`: since it was drawn last more changed than how far things are on their way. */
  draw(state, heat, time, changed) {
    const base = this.number * this.replay.cells;
    if (changed) {
      this.bySlot.fill(NONE);
      for (let cell = 0; cell < this.replay.cells; cell += 1) {
        if (state.status[base + cell] !== ABSENT && state.slot[base + cell] >= 0) this.bySlot[state.slot[base + cell]] = cell;
      }
    }
    this.tiles.forEach((tile, slot) => {
      const cell = this.bySlot[slot];
      if (changed || (cell >= 0 && state.status[base + cell] === COMING)) this._drawTile(tile, cell, state, heat, time);
    });
    this._figures(state, time);
  }

  _drawTile(tile, cell, state, heat, time) {
    const at = this.number * this.replay.cells + cell;
    const status = cell < 0 ? ABSENT : state.status[at];
    const via = cell < 0 ? NONE : state.via[at];
    const through = status === COMING ? this.replay.progress(state, at, time) : 1;
    const warm = status === HERE ? Math.round(100 * heat.get(cell).score) : 100;
    const fresh = status !== ABSENT && via >= 0 && this.replay.traffic.purpose(via) === "prefetch" && state.uses[at] === 0;
    const fate = fresh ? this.replay.traffic.fate(via) : "none";
    const key = `${cell}/${status}/${Math.round(through * 100)}/${warm}/${fate}`;
    if (tile.key === key) return;
    tile.key = key;
    tile.cell = cell;
    tile.group.dataset.state = ["empty", "coming", "here"][status];
    tile.group.classList.toggle("ahead", fate !== "none");
    if (cell < 0) {
      tile.group.removeAttribute("data-cell");
      tile.group.removeAttribute("role");
      tile.group.removeAttribute("aria-label");
      tile.mark.textContent = tile.brief.textContent = "";
      return;
    }
    tile.group.dataset.cell = String(cell);
    tile.group.setAttribute("role", "button");
    const words = [this.replay.names.run(cell, cell + 1, 200), status === COMING ? "coming to" : "in", this.pool.name];
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
    tile.brief.textContent = side >= 22 ? this.replay.names.brief(cell) : "";
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
    const of = (text) => (capacity === null ? "" : ` of ${text}`);
    const weight = `${bytes(used * size)}${of(bytes(capacity * size))}`;
    setText(this.figures, `${whole(used)}${of(whole(capacity))} blocks used (${weight})`);
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
