/* What happens when, over the slider. */

function timeline(replay) {
  const node = svg("svg", { class: "timeline", viewBox: `0 0 ${BINS} 40`, preserveAspectRatio: "none", role: "img" });
  node.setAttribute("aria-label", "When blocks come up, when they leave or go down, and when the GPUs compute");
  const ups = new Float64Array(BINS), downs = new Float64Array(BINS), busy = new Float64Array(BINS);
  const bin = (time) => clamp(Math.floor((time / replay.duration) * BINS), 0, BINS - 1);
  const { t, pool, what, first, end, transfer } = replay.events;
  for (let index = 0; index < t.length; index += 1) {
    let blocks = 0;
    for (let cell = first[index]; cell < end[index]; cell += 1) blocks += replay.size[cell];
    const up = transfer[index] >= 0 ? replay.traffic.isUp(transfer[index]) : replay.data.pools[pool[index]].tier === 0;
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
