/* Links and GPUs: what they do at this moment. */

class Strips {
  constructor(replay) {
    this.replay = replay;
    this.ways = [];
  }

  /** What carries blocks between two tiers, down beside up. */
  between(upper, lower) {
    const row = html("div", "between");
    const link = upper === 0;
    const down = this._way(upper, lower, link ? "Offload: D2H link" : "SSD write");
    const up = this._way(lower, upper, link ? "Prefetch and load: H2D link" : "SSD read");
    for (const node of [down, up]) if (node) row.append(node);
    return row;
  }

  /** A strip for what is carried from one tier to another; null where nothing leads there. */
  _way(from, to, name) {
    const lanes = this.replay.traffic.lanes.map((lane, number) => [lane, number])
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
    const lanes = this.replay.traffic.at(time);
    for (const way of this.ways) {
      const busy = way.lanes.filter((lane) => lanes[lane].serves >= 0);
      const waiting = way.lanes.reduce((sum, lane) => sum + lanes[lane].waiting, 0);
      const serves = busy.length ? lanes[busy[0]].serves : NONE;
      way.node.dataset.busy = String(busy.length);
      way.node.dataset.waiting = String(waiting);
      way.node.classList.toggle("busy", serves >= 0);
      way.done.style.width = serves >= 0 ? `${(100 * this.replay.traffic.progress(serves, time)).toFixed(1)}%` : "0";
      setText(way.text, this._text(serves, way.lanes.length, busy.length, waiting));
    }
  }

  _text(serves, lanes, busy, waiting) {
    const queue = waiting ? ` · ${whole(waiting)} waiting` : "";
    if (serves < 0) return waiting ? `${whole(waiting)} waiting` : "idle";
    const { traffic } = this.replay;
    const mark = MARKS[traffic.fate(serves)];
    const links = lanes > 1 ? `${busy} of ${lanes} busy · ` : "";
    const noun = `${NOUNS[traffic.purpose(serves)]}${mark ? ` ${mark}` : ""}`;
    return `${links}${noun} ${this._what(serves)} (${bytes(traffic.table.bytes[serves])})${queue}`;
  }

  _what(number) {
    const cells = this.replay.traffic.carried[number];
    if (cells) return this.replay.names.run(cells[0], cells[1], 28);
    const request = this.replay.data.transfers.request[number];
    return request >= 0 ? `for request ${request}` : "";
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
