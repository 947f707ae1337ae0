/* Transfers: which cells they bring, how far they are, what the lanes do. */

class Traffic {
  constructor(data) {
    this.data = data;
    this.table = data.transfers;
    this.lanes = data.lanes;
    this.bits = this._slicesByTransfer();
    this.rate = this._rates();
    this.carried = this._carried();
  }

  _slicesByTransfer() {
    const { transfer, begin, end } = this.data.slices;
    const bits = this.table.lane.map(() => []);
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
    const { lane, bytes: size, end } = this.table;
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
    const { lane, bytes: size, end } = this.table;
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
  at(time) {
    const { lane, submitted, end } = this.table;
    const found = this.lanes.map(() => ({ serves: NONE, waiting: 0 }));
    for (let one = 0; one < lane.length; one += 1) {
      const from = submitted[one] === null ? 0 : submitted[one];
      if (from > time || (end[one] !== null && end[one] <= time)) continue;
      const serving = this.bits[one].some(([begin, until]) => begin <= time && time < until);
      if (serving) found[lane[one]].serves = one; else found[lane[one]].waiting += 1;
    }
    return found;
  }

  /** Which cells a transfer brings, as far as they are drawn: the first and the end of a run of one content. */
  _carried() {
    const cells = this.table.lane.map(() => null);
    const { label } = this.data.cells;
    const take = (number, first, end) => {
      if (number < 0) return;
      const known = cells[number];
      if (known === null) cells[number] = [first, end];
      else if (label[known[0]] === label[first]) cells[number] = [Math.min(known[0], first), Math.max(known[1], end)];
    };
    const { start, events } = this.data;
    start.transfer.forEach((number, row) => take(number, start.first[row], start.end[row]));
    events.transfer.forEach((number, row) => take(number, events.first[row], events.end[row]));
    return cells;
  }

  purpose(number) { return this.data.words.purposes[this.table.purpose[number]]; }

  fate(number) { return number < 0 ? "none" : this.data.words.fates[this.table.fate[number]]; }

  /** The lane of a transfer: from which tier to which it leads. */
  lane(number) { return this.lanes[this.table.lane[number]]; }

  isUp(number) { return number >= 0 && this.lane(number).to < this.lane(number).from; }

  /** When a transfer was submitted; one from before the window began counts from its beginning. */
  since(number) { return this.table.submitted[number] === null ? 0 : this.table.submitted[number]; }

  /** The tier that a transfer comes from, as people call it; empty where nobody knows. */
  from(number) {
    const tier = number < 0 ? NONE : this.lane(number).from;
    return tier < 0 ? "" : NAMES[this.data.words.tiers[tier]];
  }
}
