/* Live closed forms: sliders move p, β, λ, context and bandwidth; the curves are drawn anew beside the simulated points.
   Its parts, in sliders/, come before this; their answers stand as data-* on each chart. */

const LOG_STEPS = 1000;

const key = (chart, picture) => {
  const list = element("ul", { class: "sl-key", "aria-hidden": "true" });
  const entry = (draws, text) => {
    const svg = shape("svg", { viewBox: "0 0 22 12", width: 22, height: 12 });
    svg.append(draws);
    const item = element("li");
    item.append(svg, text);
    list.append(item);
  };
  for (const line of picture.lines) {
    if (!line.points.length) continue;
    const kind = `sl-line${line.dashed ? " sl-dashed" : ""}`;
    entry(shape("path", { class: kind, style: `stroke:var(--s${line.series})`, d: "M0,6H22" }), line.label);
  }
  seriesOf(chart).forEach((series, k) => {
    entry(mark(MARKS[k % MARKS.length], 11, 6, { class: "sl-point" }), series === "simulated" ? series : `simulated, ${series}`);
  });
  if (chart.run) entry(mark("diamond", 11, 6, { class: "sl-run", transform: "translate(3 2) scale(.72)" }), chart.run.series);
  entry(shape("circle", { class: "sl-now", cx: 11, cy: 6, r: 4.6 }), "the sliders");
  return list;
};

let count = 0;

class Panel {
  constructor(root) {
    this.root = root;
    this.data = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
    this.forms = this.data.forms;
    this.rest = this.data.rest;
    this.at = { ...this.rest };
    this.controls = {};
    this.number = ++count;
    this.low = (name) => this.data.sliders.find((one) => one.key === name).low;
    const charts = element("div", { class: "sl-charts" });
    this.charts = this.data.charts.map((chart) => this.chart(chart, charts));
    const body = element("div", { class: "sl-body" });
    body.append(this.panel(), charts);
    root.append(body, ...this.words());
    this.redraw();
  }

  panel() {
    const panel = element("fieldset", { class: "sl-panel" });
    panel.append(element("legend", {}, "Closed forms at"));
    const rows = element("div", { class: "sl-rows" });
    rows.append(...this.data.sliders.map((one) => this.slider(one)));
    this.reset = element("button", { type: "button", class: "sl-reset" }, "Reset: as simulated");
    this.reset.addEventListener("click", () => this.set(this.rest));
    this.state = element("p", { class: "sl-state", role: "status" });
    panel.append(rows, element("div", { class: "sl-foot" }, this.reset, this.state));
    return panel;
  }

  slider(one) {
    const name = `sl-${this.number}-${one.key}`;
    const range = element("input", { type: "range", id: name, "data-key": one.key, autocomplete: "off",
      ...(one.log ? { min: 0, max: LOG_STEPS, step: 1 } : { min: one.low, max: one.high, step: one.step }) });
    const box = element("input", { type: "number", step: "any", min: one.low / one.per_unit, max: one.high / one.per_unit,
      "data-key": one.key, autocomplete: "off", "aria-label": one.unit ? `${one.label}, ${one.unit}` : one.label });
    range.addEventListener("input", () => this.set({ [one.key]: this.ofRange(one, Number(range.value)) }));
    box.addEventListener("input", () => {
      const value = Number(box.value) * one.per_unit;
      const sound = box.value !== "" && value >= one.low * (1 - 1e-9) && value <= one.high * (1 + 1e-9);
      box.setAttribute("aria-invalid", String(!sound));
      if (sound) this.set({ [one.key]: one.key === "context" ? Math.round(value) : value }, box);
    });
    box.addEventListener("change", () => this.set({}));
    this.controls[one.key] = { one, range, box };
    const row = element("div", { class: "sl-row" });
    const value = element("span", { class: "sl-box" }, box, element("span", { class: "sl-unit" }, one.unit));
    row.append(element("label", { for: name }, one.label), value, range, element("small", {}, one.origin));
    return row;
  }

  ofRange(one, place) {
    if (!one.log) return Math.min(one.high, Math.max(one.low, place));
    const value = one.low * (one.high / one.low) ** (place / LOG_STEPS);
    return Math.min(one.high, Math.max(one.low, Number((Math.round(value / one.step) * one.step).toPrecision(12))));
  }

  toRange(one, value) {
    return one.log ? Math.round((LOG_STEPS * Math.log(value / one.low)) / Math.log(one.high / one.low)) : value;
  }

  set(values, typing) {
    Object.assign(this.at, values);
    this.redraw(typing);
  }

  redraw(typing) {
    for (const { one, range, box } of Object.values(this.controls)) {
      const value = this.at[one.key];
      range.value = this.toRange(one, value);
      range.setAttribute("aria-valuetext", `${plainTick(value / one.per_unit)} ${one.unit}`.trim());
      if (box === typing) continue;
      box.value = String(Number((value / one.per_unit).toPrecision(one.key === "context" ? 12 : 4)));
      box.setAttribute("aria-invalid", "false");
    }
    const moved = Object.keys(this.at).filter((name) => this.at[name] !== this.rest[name]);
    this.root.dataset.moved = moved.join(" ");
    this.reset.disabled = !moved.length;
    const said = this.charts.map((one) => this.update(one, moved));
    this.state.textContent = said.filter(Boolean).join(" · ");
  }

  chart(chart, into) {
    const figure = element("figure", { class: "sl-chart", "data-chart": chart.key });
    const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
    const clip = shape("clipPath", { id: `sl-clip-${this.number}-${chart.key}` });
    clip.append(shape("rect", { x: LEFT - 6, y: TOP - 6, width: WIDTH - LEFT - RIGHT + 12, height: HEIGHT - TOP - BOTTOM + 12 }));
    svg.append(clip);
    const parts = {
      figure, svg, chart,
      key: element("div"),
      formula: element("figcaption", { class: "sl-formula" }),
      note: element("p", { class: "sl-note" }),
      points: element("p", { class: "sl-note sl-points" }),
    };
    const title = element("h4", {}, chart.title);
    if (chart.sequences) title.append(element("span", {}, `, ${people(chart.sequences)} at once`));
    figure.append(title, svg, parts.key, parts.formula, parts.note, parts.points);
    if (chart.apart.length) {
      const more = element("details", {}, element("summary", {}, "Where simulated points and closed form part"));
      more.append(...chart.apart.map((text) => element("p", {}, text)));
      figure.append(more);
    }
    into.append(figure);
    return parts;
  }

  update(parts, moved) {
    const { chart, figure, svg } = parts, picture = CHARTS[chart.key](this, chart, this.at);
    draw(svg, chart, picture);
    svg.setAttribute("aria-label", `${chart.title}. ${picture.said}`);
    for (const [name, value] of Object.entries(picture.values)) figure.setAttribute(`data-${name}`, String(value));
    parts.key.replaceChildren(key(chart, picture));
    parts.formula.replaceChildren(...picture.formula.filter(Boolean).map((line) => element("span", {}, line)));
    parts.note.textContent = picture.note || "";
    parts.note.classList.toggle("sl-warn", Boolean(picture.warn));
    parts.points.textContent = this.left(chart, moved.filter((name) => picture.moved.includes(name)));
    return chart.key === "lambda" ? "" : `${chart.title.split(" over")[0]} ${picture.marker.text}`;
  }

  left(chart, moved) {
    if (!moved.length || !(chart.points.length || chart.run)) return "";
    const own = moved.map((name) => `${NAMED[name]} (${this.text(name)})`);
    const listed = own.length > 2 ? `${own.slice(0, -1).join(", ")} and ${own[own.length - 1]}` : own.join(" and ");
    return `Simulated points are of the scenario's own ${listed}: the sliders left them.`;
  }

  text(name) {
    const value = this.rest[name];
    if (name === "bandwidth") return rate(value);
    return name === "context" ? `${whole(value)} tokens` : digits(value);
  }

  words() {
    const found = this.data.notes.map((note) => element("p", { class: "sl-note" }, note));
    for (const [title, reason] of this.data.left_out) found.push(element("p", { class: "sl-note" }, `${title} is left out: ${reason}.`));
    const facts = element("dl", { class: "sl-given" });
    for (const [name, value] of this.data.given) facts.append(element("dt", {}, name), element("dd", {}, value));
    found.push(element("details", {}, element("summary", {}, "What the closed forms are made of"), facts));
    return found;
  }
}

for (const root of document.querySelectorAll('div.widget[data-kind="sliders"]')) new Panel(root);
