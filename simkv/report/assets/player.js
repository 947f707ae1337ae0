/* The block player: a recording's window played on shelves. Its parts, in player/, come before this. */

const TILES = [46, 38, 30, 24, 20, 17, 14, 12];
const MOST_ROWS = 7;
const REDUCED_MS = 250;
const MEASURED_MS = 500;

class Player {
  constructor(root, data) {
    this.replay = new Replay(data);
    this.root = root;
    this.time = 0;
    this.done = 0;
    this.state = null;
    this.playing = false;
    this.still = window.matchMedia("(prefers-reduced-motion: reduce)");
    const size = this.replay.size;
    this.sizes = size.length ? { least: Math.min(...size), most: Math.max(...size) } : { least: 1, most: 1 };
    const digits = clamp(Math.ceil(4 - Math.log10(Math.max(this.replay.duration, 1e-9))), 3, 7);
    this.clock = (time) => `${(data.window.begin_s + time).toFixed(digits)} s`;
    this.hovered = this.chosen = NONE;
    this.measured = 0;
    this._build();
    this._listen();
    this._layout();
    this.seek(0);
  }

  _build() {
    this.node = html("div", "player");
    this.node.setAttribute("role", "group");
    this.node.setAttribute("aria-label", "Block player");
    this.controls = new Controls(this.replay, this.clock, {
      toggle: () => this.toggle(), step: (by) => this.step(by), recolour: () => this.render(true),
      seek: (time) => { this.pause(); this.controls.aloud(false); this.seek(time); },
    });
    this._buildStage();
    this.story = new Story(this.replay, this.clock, () => {
      this.hovered = NONE;
      this.choose(NONE);
    });
    this.story.node.addEventListener("pointerleave", () => this.hover(NONE));
    const body = html("div", "player-body");
    body.append(this.stage, this.story.node);
    const { node, scrubber, status } = this.controls;
    this.node.append(this._intro(), node, scrubber, status, body, legend(this.replay, this.sizes));
    this.node.dataset.playing = "false";
    this.root.append(this.node);
  }

  _intro() {
    const { window: span, policy } = this.replay.data;
    const part = span.whole ? "the whole run" : `${duration(this.replay.duration)} of a run of ${duration(span.run_end_s)}`;
    const end = span.full ? ", until as many events were recorded as are kept" : "";
    const ways = [`eviction by ${policy.eviction}`, ...(policy.write ? [`writes: ${policy.write}`] : []), `prefetch: ${policy.prefetch}`];
    return html("p", "player-intro", `Every event of ${part}${end}. Policies: ${ways.join(", ").replaceAll("_", " ")}.`);
  }

  _buildStage() {
    const { pools } = this.replay.data;
    this.stage = html("div", "stage");
    this.gpus = new Gpus(this.replay);
    this.strips = new Strips(this.replay);
    this.shelves = pools.map((_, number) => new Shelf(this.replay, number, this));
    this.stage.append(this.gpus.node);
    const tiers = [...new Set(pools.map((pool) => pool.tier))].sort();
    tiers.forEach((tier, k) => {
      if (k > 0) this.stage.append(this.strips.between(tiers[k - 1], tier));
      const row = html("div", "tier");
      row.append(...this.shelves.filter((shelf) => shelf.pool.tier === tier).map((shelf) => shelf.node));
      this.stage.append(row);
    });
    this.movers = new Movers(this.replay, this.shelves, this.stage);
    this.stage.append(this.movers.node);
  }

  /* -- input */

  _listen() {
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
    const { target, key } = event;
    const tile = target.closest(".tile");
    if (tile && this._walk(tile, key)) {
      event.preventDefault();
      return;
    }
    const act = {
      " ": () => this.toggle(), ArrowRight: () => this.step(1), ArrowLeft: () => this.step(-1),
      Home: () => this.jump(0), End: () => this.jump(this.replay.duration),
    }[key];
    const another = target.tagName === "INPUT" && target !== this.controls.scrub;
    if (!act || another || (key === " " && target.tagName === "BUTTON")) return;
    event.preventDefault();
    act();
  }

  /** Go from block to block; true where `key` is of that. */
  _walk(tile, key) {
    const shelf = this.shelves[Number(tile.closest(".shelf").dataset.pool)];
    if (key === "Enter") this.choose(Number(tile.dataset.cell));
    if (key === "Escape") { this.choose(NONE); tile.blur(); }
    const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: shelf.columns, ArrowUp: -shelf.columns }[key];
    if (!by) return key === "Enter" || key === "Escape";
    const all = this.shelves.flatMap((each) => each.tiles);
    let at = all.findIndex((each) => each.group === tile) + by;
    while (all[at] && all[at].cell < 0) at += Math.sign(by);
    if (all[at]) all[at].group.focus();
    return true;
  }

  hover(cell) {
    this.hovered = cell;
    this._tell();
  }

  /** The pointer left a tile for `where`: the story, if it opened over the tile, is read on until it is left, too. */
  left(where) {
    if (!this.story.node.contains(where)) this.hover(NONE);
  }

  choose(cell) {
    this.chosen = cell;
    this._tell();
  }

  /* -- time */

  toggle() { if (this.playing) this.pause(); else this.start(); }

  start() {
    if (this.time >= this.replay.duration) this.seek(0);
    this.controls.aloud(false);
    this._play(true);
    let before = null, shown = 0;
    const frame = (now) => {
      if (!this.playing) return;
      const passed = before === null ? 0 : Math.min(0.25, (now - before) / 1000);
      before = now;
      this.time = Math.min(this.replay.duration, this.time + passed * this.controls.factor);
      const over = this.time >= this.replay.duration;
      if (over || !this.still.matches || now - shown > REDUCED_MS) {
        this.render(false);
        shown = now;
      }
      if (over) this.pause(); else requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  pause() { if (this.playing) this._play(false); }

  _play(yes) {
    this.playing = yes;
    this.controls.playing(yes);
    this.node.dataset.playing = String(yes);
  }

  step(by) {
    this.pause();
    this.controls.aloud(true);
    this.time = by > 0 ? this.replay.next(this.time) : this.replay.previous(this.time);
    this.render(false);
  }

  jump(time) {
    this.pause();
    this.controls.aloud(true);
    this.seek(time);
  }

  seek(time) {
    this.time = clamp(time, 0, this.replay.duration);
    this.movers.land();
    this.render(true);
  }

  /* -- drawing */

  /** Tiles as large as leaves no shelf with too many rows. */
  _layout() {
    const width = this.shelves.map((shelf) => shelf.room());
    const rows = (shelf, k, side) => Math.ceil(shelf.tiles.length / Math.max(1, Math.floor(width[k] / side)));
    const fits = (side) => this.shelves.every((shelf, k) => rows(shelf, k, side) <= MOST_ROWS);
    const side = TILES.find(fits) || TILES[TILES.length - 1];
    this.shelves.forEach((shelf, k) => shelf.layout(width[k], side));
  }

  /** Show what is so at the player's time; `anew`: whatever was shown before. */
  render(anew) {
    const before = this.done, done = this.replay.eventsUpTo(this.time);
    const near = !anew && done > before && done - before <= SNAPSHOT_EVERY && !this.still.matches;
    const was = near ? this.state.copy() : null;
    const changed = anew || done !== before;
    if (changed) {
      this.state = this.replay.after(done, this.state, before);
      this.done = done;
      this.heats = this.shelves.map((_, shelf) => scores(this.replay, this.state, shelf, this.controls.lam));
    }
    this.shelves.forEach((shelf, k) => shelf.draw(this.state, this.heats[k], this.time, changed));
    this.strips.draw(this.time);
    this.gpus.draw(this.time);
    this.controls.draw(this.time);
    if (changed) {
      this._rove();
      this._tell();
    }
    this._drawMovers(anew, changed, was, before, done);
    this._say();
  }

  _drawMovers(anew, changed, was, before, done) {
    const now = performance.now();
    if (anew || (changed && (!this.playing || now - this.measured > MEASURED_MS))) {
      this.movers.measure();
      this.measured = now;
    }
    const seen = (seconds) => this.playing && seconds / this.controls.factor > SEEN_S;
    if (was) this.movers.fly(was, this.state, before, done, seen);
    this.node.dataset.movers = String(this.still.matches ? 0 : this.movers.draw(this.state, this.time));
  }

  /** Write on the player's element what is so, for programs. */
  _say() {
    const held = {};
    for (const shelf of this.shelves) {
      const { tier } = shelf.node.dataset;
      held[tier] = (held[tier] || 0) + shelf.used;
    }
    const time = (this.replay.data.window.begin_s + this.time).toFixed(9);
    Object.assign(this.node.dataset, { time, events: this.done, ...held });
  }

  /** Tell the story of the block that is pointed at, else of the one that was chosen; and mark it on all shelves. */
  _tell() {
    const cell = this.hovered >= 0 ? this.hovered : this.chosen;
    if (cell !== this.story.cell) this.story.show(cell);
    this.story.draw(this.time, this.state, this.heats, this.controls.lam);
    for (const shelf of this.shelves) shelf.point(cell);
  }

  /** Exactly one tile can be reached by Tab. */
  _rove() {
    const full = this.shelves.flatMap((shelf) => shelf.tiles.filter((tile) => tile.cell >= 0));
    const one = full.find((tile) => tile.group === document.activeElement) || full[0];
    for (const shelf of this.shelves) {
      for (const tile of shelf.tiles) tile.group.setAttribute("tabindex", tile === one ? "0" : "-1");
    }
  }
}

function begin() {
  for (const root of document.querySelectorAll('div.widget[data-kind="player"]')) {
    const source = root.querySelector('script[type="application/json"]');
    if (!source || root.dataset.ready) continue;
    root.dataset.ready = "true";
    new Player(root, JSON.parse(source.textContent));
  }
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin); else begin();
