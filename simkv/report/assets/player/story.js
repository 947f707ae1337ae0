/* The story of a block. */

class Story {
  /** `close()` is called when nobody wants to read it any more. */
  constructor(replay, clock, close) {
    this.replay = replay;
    this.clock = clock;
    this.node = html("aside", "story");
    this.node.setAttribute("aria-label", "Story of a block");
    this.title = html("strong", "story-title");
    this.state = html("p", "story-state");
    this.list = html("ol", "story-list");
    const shut = html("button", "story-close", "✕");
    shut.type = "button";
    shut.setAttribute("aria-label", "Close the story");
    shut.addEventListener("click", close);
    this.node.append(shut, this.title, this.state, this.list);
    this.cell = NONE;
    this.show(NONE);
  }

  show(cell) {
    this.cell = cell;
    this.list.replaceChildren();
    this.lines = [];
    this.last = NONE;
    this.node.dataset.cell = String(cell);
    if (cell < 0) {
      setText(this.title, "A block's story");
      setText(this.state, "Point at a block, tap it, or go there by Tab and arrow keys: here stands what happens to it.");
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
    this._follow(this.lines.filter(([when]) => when <= time).length - 1);
    const where = [];
    for (let shelf = 0; shelf < this.replay.shelves; shelf += 1) {
      const at = shelf * this.replay.cells + this.cell;
      const name = this.replay.data.pools[shelf].name;
      if (state.status[at] === COMING) where.push(`on its way to ${name}`);
      if (state.status[at] !== HERE) continue;
      const heat = heats[shelf].get(this.cell);
      const [recency, frequency] = [heat.recency, heat.frequency].map((part) => part.toFixed(2));
      const parts = `${lam.toFixed(2)} × recency ${recency} + ${(1 - lam).toFixed(2)} × frequency ${frequency}`;
      where.push(`in ${name}, score ${heat.score.toFixed(2)} = ${parts}`);
    }
    setText(this.state, `${this.about}. Now ${where.length ? where.join("; ") : "in no tier"}.`);
  }

  /** Keep the last line that is not ahead in sight. */
  _follow(last) {
    if (last === this.last) return;
    this.last = last;
    const { offsetTop, offsetHeight } = last < 0 ? this.list : this.lines[last][1];
    this.list.scrollTop = offsetTop + offsetHeight - this.list.offsetTop - this.list.clientHeight;
  }

  _tell(cell) {
    const { t, pool, what, first, end } = this.replay.events;
    const lines = [];
    const held = new Map();
    const { start } = this.replay.data;
    for (let row = 0; row < start.pool.length; row += 1) {
      if (cell < start.first[row] || cell >= start.end[row]) continue;
      const uses = start.uses[row] ? `, used ${plural(start.uses[row], "time")} before` : "";
      const last = start.last_s[row] === null ? "" : `, last ${duration(-start.last_s[row])} earlier`;
      const way = start.transfer[row] >= 0 ? "on its way to" : "in";
      const { name } = this.replay.data.pools[start.pool[row]];
      lines.push({ time: -1, text: `${way} ${name} as the window begins${uses}${last}` });
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
      const text = this._line(index, name, held.has(shelf) ? " again" : "", held.get(shelf));
      if (text) lines.push({ time: t[index], text });
      held.set(shelf, what[index] !== EVENT.gone);
    }
    return lines;
  }

  _line(index, name, again, there) {
    const { t, what, transfer } = this.replay.events;
    const carrier = transfer[index];
    if (what[index] === EVENT.gone) return `left ${name}`;
    if (what[index] === EVENT.here && there) return null;
    if (carrier >= 0) return this._carried(carrier, name, again);
    if (what[index] === EVENT.here) return `${this.replay.names.came(index)} ${name}${again}`;
    const took = this.replay.arrival[index] - t[index];
    return `comes to ${name}${again}${took < Infinity ? ` in ${duration(took)}` : ""}`;
  }

  /** What a transfer did for a block. */
  _carried(number, name, again) {
    const { traffic } = this.replay;
    const { submitted, end, request } = traffic.table;
    const whom = request[number] >= 0 ? ` for request ${request[number]}` : "";
    const from = traffic.from(number), fate = traffic.fate(number);
    const judged = fate === "none" ? "" : ` · ${MARKS[fate]} ${FATE_WORDS[fate]}`;
    const way = `${NOUNS[traffic.purpose(number)]}${again}${from ? ` from ${from}` : ""} to ${name}${whom}`;
    if (end[number] === null) return `${way}, not over at the window's end${judged}`;
    const took = end[number] - traffic.since(number);
    const waited = submitted[number] >= 0 ? took - traffic.served(number, Infinity) : 0;
    const queued = waited > 0.01 * took ? `, ${duration(waited)} of it waiting for the link` : "";
    return `${way} in ${duration(took)}${queued}${judged}`;
  }
}
