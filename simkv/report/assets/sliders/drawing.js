/* Drawing: ticks, lines, points and a marker as SVG. */

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 400, HEIGHT = 250, LEFT = 58, RIGHT = 14, TOP = 12, BOTTOM = 42;

const percentTick = (value) => `${Number((100 * value).toPrecision(4))} %`;
const plainTick = (value) => String(Number(value.toPrecision(6)));

const element = (name, attributes = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
};

const shape = (name, attributes, text) => {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
};

const niceTicks = (low, high, wanted, onlyWhole) => {
  const rough = (high - low) / wanted, power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 2.5, 5, 10].map((k) => k * power).find((one) => one >= rough * 0.999);
  if (onlyWhole) step = Math.max(1, Math.ceil(step));
  const first = Math.ceil(low / step - 1e-9);
  const found = [];
  for (let k = first; k * step <= high + step * 1e-6; k++) found.push(Number((k * step).toPrecision(12)));
  return found;
};

// Returns the range of y that lines, points and marker need, in the unit that its axis is in.
const ranged = (chart, picture) => {
  const ys = [picture.marker.y];
  for (const line of picture.lines) for (const [, y] of line.points) ys.push(y);
  for (const point of chart.points) ys.push(point.y, point.y_high ?? point.y);
  if (chart.run) ys.push(chart.run.y);
  const low = picture.y.low;
  let high = picture.y.high;
  if (high === undefined) high = 1.06 * Math.max(...ys);
  else if (!picture.y.whole && !picture.y.text) {
    high = Math.max(high, 1 + 1.06 * (Math.max(...chart.points.map((p) => p.y), chart.run ? chart.run.y : 1) - 1));
  }
  return high > low ? [low, high] : [low, low + 1];
};

const MARKS = ["circle", "square", "triangle"];

const mark = (kind, x, y, attributes) => {
  if (kind === "square") return shape("rect", { x: x - 3.6, y: y - 3.6, width: 7.2, height: 7.2, ...attributes });
  if (kind === "triangle") return shape("path", { d: `M${x},${y - 4.6}l4.6,8h-9.2z`, ...attributes });
  if (kind === "diamond") return shape("path", { d: `M${x},${y - 7}l6.5,7l-6.5,7l-6.5,-7z`, ...attributes });
  return shape("circle", { cx: x, cy: y, r: 4, ...attributes });
};

const draw = (svg, chart, picture) => {
  const [low, high] = ranged(chart, picture), { x: ax, y: ay } = picture;
  const across = (x) => LEFT + ((x - ax.low) / (ax.high - ax.low)) * (WIDTH - LEFT - RIGHT);
  const up = (y) => HEIGHT - BOTTOM - ((y - low) / (high - low)) * (HEIGHT - TOP - BOTTOM);
  const inside = (y) => y >= low - 1e-9 * high && y <= high * (1 + 1e-9);
  const clip = svg.querySelector("clipPath");
  svg.replaceChildren(clip);
  const plot = shape("g", { "clip-path": `url(#${clip.id})` });
  if (picture.band) {
    const width = Math.max(0, across(picture.band.high) - across(picture.band.low));
    plot.append(shape("rect", { class: "sl-band", x: across(picture.band.low), y: TOP, width, height: HEIGHT - TOP - BOTTOM }));
  }
  svg.append(plot, frame(ax, ay, low, high, across, up));
  if (picture.band && across(picture.band.high) - across(0) > 60) {
    const place = { x: across(picture.band.high) - 6, y: HEIGHT - BOTTOM - 7, "text-anchor": "end" };
    svg.append(shape("text", { class: "sl-faint", ...place }, picture.band.text));
  }
  if (picture.level && inside(picture.level.y)) {
    const y = up(picture.level.y);
    plot.append(shape("line", { class: "sl-level", x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y }));
    const crowded = Math.abs(y - up(picture.marker.y)) < 26 && across(picture.marker.x) < WIDTH / 2;
    const left = picture.level.left && !crowded;
    const side = left ? { x: LEFT + 6 } : { x: WIDTH - RIGHT - 2, "text-anchor": "end" };
    const label = { class: "sl-faint sl-halo", ...side, y: y < TOP + 14 ? y + 13 : y - 5 };
    svg.append(shape("text", label, picture.level.text));
  }
  for (const line of picture.lines) {
    if (!line.points.length) continue;
    const d = line.points.map(([x, y], k) => `${k ? "L" : "M"}${across(x).toFixed(2)},${Math.max(-999, up(y)).toFixed(2)}`);
    const kind = `sl-line${line.dashed ? " sl-dashed" : ""}`;
    plot.append(shape("path", { class: kind, style: `stroke:var(--s${line.series})`, d: d.join("") }));
  }
  const series = seriesOf(chart);
  for (const point of chart.points) {
    whiskers(plot, point, across, up);
    const kind = MARKS[series.indexOf(point.series) % MARKS.length];
    const made = mark(kind, across(point.x), up(point.y), { class: "sl-point" });
    made.append(shape("title", {}, point.text));
    plot.append(made);
  }
  if (chart.run && inside(chart.run.y)) {
    const made = mark("diamond", across(chart.run.x), up(chart.run.y), { class: "sl-run" });
    made.append(shape("title", {}, chart.run.text));
    svg.append(made);
  }
  marker(svg, picture.marker, across, up, inside, high);
};

const frame = (ax, ay, low, high, across, up) => {
  const group = shape("g", { class: "sl-frame" });
  const [factor, unit] = ay.units ? inUnits(ay.units, high).map((v, k) => (k ? v : high / v)) : [1, ""];
  for (const tick of niceTicks(low / factor, high / factor, 5, ay.whole)) {
    const y = up(tick * factor);
    group.append(shape("line", { class: "sl-grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y }));
    group.append(shape("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, (ay.text || plainTick)(tick)));
  }
  for (const tick of niceTicks(ax.low, ax.high, 5)) {
    const x = across(tick);
    group.append(shape("line", { class: "sl-tick", x1: x, x2: x, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM + 4 }));
    group.append(shape("text", { x, y: HEIGHT - BOTTOM + 16, "text-anchor": "middle" }, ax.text(tick)));
  }
  group.append(shape("line", { class: "sl-axis", x1: LEFT, x2: WIDTH - RIGHT, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM }));
  const middle = (LEFT + WIDTH - RIGHT) / 2, centre = (TOP + HEIGHT - BOTTOM) / 2;
  group.append(shape("text", { class: "sl-label", x: middle, y: HEIGHT - 6, "text-anchor": "middle" }, ax.label));
  const turned = { class: "sl-label", x: 0, y: 0, "text-anchor": "middle", transform: `translate(12 ${centre}) rotate(-90)` };
  group.append(shape("text", turned, unit ? `${ay.label}, ${unit}` : ay.label));
  return group;
};

const whiskers = (plot, point, across, up) => {
  const bar = (x1, y1, x2, y2) => plot.append(shape("line", { class: "sl-whisker", x1, y1, x2, y2 }));
  if (point.y_low !== undefined) bar(across(point.x), up(point.y_low), across(point.x), up(point.y_high));
  if (point.x_low !== undefined) bar(across(point.x_low), up(point.y), across(point.x_high), up(point.y));
};

const marker = (svg, at, across, up, inside, high) => {
  const seen = inside(at.y), x = across(at.x), y = seen ? up(at.y) : TOP;
  svg.append(shape("line", { class: "sl-drop", x1: x, x2: x, y1: y, y2: HEIGHT - BOTTOM }));
  if (seen) svg.append(shape("circle", { class: at.beyond ? "sl-now sl-beyond" : "sl-now", cx: x, cy: y, r: 8 }));
  const right = x > WIDTH - 110;
  const text = seen ? at.text : `↑ ${at.text}`;
  const place = { x: right ? x - 11 : x + 11, y: y < TOP + 16 ? y + 18 : y - 9, "text-anchor": right ? "end" : "start" };
  svg.append(shape("text", { class: "sl-value sl-halo", ...place }, text));
};

const seriesOf = (chart) => [...new Set(chart.points.map((point) => point.series))];
