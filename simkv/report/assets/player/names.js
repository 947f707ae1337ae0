/* What cells, shelves and events are called. */

class Names {
  constructor(replay) {
    this.replay = replay;
    this.data = replay.data;
    this.traffic = replay.traffic;
  }

  /** A run of drawn cells that follow one another. */
  run(first, end, most = 60) {
    const { label, first: from, end: until } = this.data.cells;
    const low = from[first], high = until[end - 1] - 1;
    const blocks = low === high ? `block ${low}` : `blocks ${low}–${high}`;
    return `${shorten(this.data.labels[label[first]], most)} ${blocks}`;
  }

  /** A few letters for a tile: the block's number, or the initial and number of a longer run's content. */
  brief(cell) {
    if (this.replay.size[cell] === 1 && this.data.labels.length === 1) return String(this.data.cells.first[cell]);
    const found = /(\p{L})\p{L}*\s+(\d{1,4})\s*$/u.exec(this.data.labels[this.data.cells.label[cell]]);
    return found ? `${found[1].toLowerCase()}${found[2]}` : "";
  }

  tier(shelf) { return NAMES[this.data.words.tiers[this.data.pools[shelf].tier]]; }

  /** What happens at `time` itself, as short phrases. */
  phrases(time) {
    const { t, pool, what, first, end, transfer } = this.replay.events;
    const said = [];
    const done = this.replay.eventsUpTo(time);
    for (let index = done - 1; index >= 0 && t[index] === time; index -= 1) {
      const name = this.run(first[index], end[index]), tier = this.tier(pool[index]);
      const carrier = transfer[index];
      if (what[index] === EVENT.coming) {
        const verb = carrier >= 0 ? VERBS[this.traffic.purpose(carrier)] : "bringing";
        const from = this.traffic.from(carrier);
        said.push(`${verb} ${name}${from ? ` from ${from}` : ""} to ${tier}`);
      } else if (what[index] === EVENT.here) {
        said.push(`${name} ${this.came(index)} ${tier}`);
      } else if (what[index] === EVENT.used) {
        said.push(`${name} read in ${tier}`);
      } else {
        said.push(`${name} left ${tier}`);
      }
    }
    return said.reverse();
  }

  /** How blocks got where they are from event `index` on: brought by something that was told, or put there at once. */
  came(index) {
    if (this.replay.events.transfer[index] >= 0 || this.replay.awaited[index]) return "arrived in";
    return this.data.pools[this.replay.events.pool[index]].tier === 0 ? "is new in" : "written into";
  }

  /** What happens at `time`, else what is under way: some short phrases in one line. */
  line(time) {
    let said = this.phrases(time);
    if (!said.length) said = this.traffic.at(time).filter((lane) => lane.serves >= 0).map((lane) => this._underWay(lane.serves));
    const shown = said.slice(0, 3);
    if (said.length > 3) shown.push(`and ${said.length - 3} more`);
    return shown.join(" · ");
  }

  _underWay(number) {
    const cells = this.traffic.carried[number];
    const what = cells ? this.run(cells[0], cells[1], 40) : bytes(this.data.transfers.bytes[number]);
    return `${VERBS[this.traffic.purpose(number)]} ${what}`;
  }
}
