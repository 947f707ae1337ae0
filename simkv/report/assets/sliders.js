// Live closed forms: sliders move p, β, λ, context and bandwidth; the curves are drawn anew beside the simulated points.
// The formulas are those of simkv/report/sliders/forms.py, and their answers stand as data-* on each chart.
(() => {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const WIDTH = 400, HEIGHT = 250, LEFT = 58, RIGHT = 14, TOP = 12, BOTTOM = 42;
  const LINE_POINTS = 200, LOG_STEPS = 1000, LEAST_P = 0.05;

  // ---- numbers as people read them (simkv/results/quantity.py) ----

  const digits = (value, significant = 3) => {
    if (value === 0) return "0";
    const rounded = Number(value.toPrecision(significant));
    const magnitude = Math.floor(Math.log10(Math.abs(rounded)) + 1e-12);
    if (magnitude < -4 || magnitude >= 6) return value.toExponential(significant - 1);
    return rounded.toFixed(Math.max(0, significant - 1 - magnitude));
  };

  const inUnits = (units, value) => {
    const [size, name] = units.find(([size]) => Math.abs(value) >= size * 0.9995) || units[units.length - 1];
    return [value / size, name];
  };

  const TIMES = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];
  const SIZES = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "B"]];
  const RATES = [[1e12, "TB/s"], [1e9, "GB/s"], [1e6, "MB/s"], [1e3, "kB/s"], [1, "B/s"]];

  const shown = (units, value) => {
    if (value === 0) return `0 ${units[units.length - 1][1] === "ns" ? "s" : units[units.length - 1][1]}`;
    const [number, name] = inUnits(units, value);
    return `${digits(number)} ${name}`;
  };
  const time = (value) => shown(TIMES, value);
  const size = (value) => shown(SIZES, value);
  const rate = (value) => shown(RATES, value);
  const whole = (value) => Math.round(value).toLocaleString("en-US");
  const percent = (value) => `${digits(100 * value)} %`;
  const speed = (value) => (value < 2 ? value.toFixed(3) : digits(value));
  const people = (count) => `${whole(count)} sequence${count === 1 ? "" : "s"}`;

  // ---- closed forms ----

  const hitRate = (forms, p) => {
    if (!forms.knots) return p;
    for (let k = 1; k < forms.knots.length; k++) {
      const [left, low] = forms.knots[k - 1], [right, high] = forms.knots[k];
      if (p >= left && p <= right) return low + ((high - low) * (p - left)) / (right - left);
    }
    return 1;
  };

  const memoryTime = (forms, bandwidth) =>
    forms.t_vram_s + forms.start_s + forms.piece_bytes / bandwidth + forms.ssd_s;

  const accessTime = (forms, pHit, bandwidth) => pHit * forms.t_vram_s + (1 - pHit) * memoryTime(forms, bandwidth);

  const blocks = (forms, tokens) => {
    const own = Math.ceil(tokens / forms.block_tokens), side = forms.side;
    if (!side) return own;
    const pages = side.windows.reduce((sum, [of, most]) => sum + Math.min(Math.ceil(tokens / of), most), 0);
    return own + Math.ceil((pages + side.state_pages) / side.pages_per_block);
  };

  const sequenceBytes = (forms, tokens) => blocks(forms, tokens) * forms.block_bytes;

  const readBytes = (forms, tokens) => {
    if (forms.always_bytes !== null) return forms.always_bytes;
    const all = blocks(forms, tokens);
    return forms.block_bytes * (forms.most_blocks === null ? all : Math.min(all, forms.most_blocks));
  };

  const computeTime = (forms, sequences, tokens) => {
    const read = forms.most_tokens === null ? tokens : Math.min(tokens, forms.most_tokens);
    const parts = forms.steps[sequences];
    let part = parts[0];
    for (const next of parts) if (next[0] <= read) part = next;
    return part[1] + part[2] * (read - part[0]);
  };

  const transferTime = (forms, sequences, pHit, tokens, bandwidth) =>
    (1 - pHit) * sequences * readBytes(forms, tokens) * (1 / bandwidth + forms.ssd_s_per_byte);

  // p is read as a decimal, so that 40 GB over 0.1 of 4 GB is exactly 100.
  const mostSequences = (forms, p, tokens) => {
    const [units, decimals = ""] = Number(p.toFixed(9)).toString().split(".");
    const share = BigInt(units + decimals);
    if (share <= 0n) return Infinity;
    return Number((BigInt(forms.free_bytes) * 10n ** BigInt(decimals.length)) /
      (share * BigInt(sequenceBytes(forms, tokens))));
  };

  const feasibleBeta = (compute, transfer) => (transfer <= compute ? 1 : compute / transfer);
  const speedupOf = (compute, transfer, beta) => (compute + transfer) / (compute + (1 - beta) * transfer);

  const between = (points, x) => {
    for (let k = 1; k < points.length; k++) {
      const left = points[k - 1], right = points[k];
      if (x >= left.x && x <= right.x) return left.y + ((right.y - left.y) * (x - left.x)) / (right.x - left.x);
    }
    return points.length ? points[x < points[0].x ? 0 : points.length - 1].y : null;
  };

  const grid = (low, high, f, count = LINE_POINTS) =>
    Array.from({ length: count + 1 }, (_, k) => low + ((high - low) * k) / count).map((x) => [x, f(x)]);

  // ---- the charts: from the sliders' values to lines, points, a marker, and words ----

  const tAvg = ({ forms }, chart, at) => {
    const pHit = hitRate(forms, at.p), memory = memoryTime(forms, at.bandwidth);
    const value = accessTime(forms, pHit, at.bandwidth);
    return {
      x: { label: "p_hit", low: 0, high: 1, text: percentTick },
      y: { label: "T_avg", low: 0, units: TIMES },
      lines: [{ label: "closed form", series: 1, points: grid(0, 1, (x) => accessTime(forms, x, at.bandwidth), 2) }],
      marker: { x: pHit, y: value, text: time(value) },
      values: { "t-avg-s": value, "p-hit": pHit, "t-mem-s": memory },
      formula: [
        "T_avg = p_hit × T_vram + (1 − p_hit) × T_mem",
        `= ${digits(pHit)} × ${time(forms.t_vram_s)} + ${digits(1 - pHit)} × ${time(memory)} = ${time(value)}`,
      ],
      said: `At p = ${digits(at.p)}, p_hit is ${percent(pHit)} and an access takes ${time(value)} on average; ` +
        `a hit takes ${time(forms.t_vram_s)}, a miss ${time(memory)}.`,
      moved: ["bandwidth"],
    };
  };

  const stepTimes = (forms, chart, at, pHit = hitRate(forms, at.p)) => [
    computeTime(forms, chart.sequences, at.context),
    transferTime(forms, chart.sequences, pHit, at.context, at.bandwidth),
  ];

  const fits = (forms, chart, at) => {
    const most = Math.min(mostSequences(forms, at.p, at.context), forms.seats);
    return most >= chart.sequences ? "" : `Only ${whole(most)} of these ${people(chart.sequences)} fit at this p and context.`;
  };

  const tStep = ({ forms }, chart, at) => {
    const pHit = hitRate(forms, at.p), [compute, transfer] = stepTimes(forms, chart, at);
    const serial = compute + transfer, ideal = Math.max(compute, transfer);
    const beta = Math.min(at.beta, feasibleBeta(compute, transfer)), value = compute + (1 - beta) * transfer;
    const moving = (x) => stepTimes(forms, chart, at, x)[1];
    return {
      x: { label: "p_hit", low: 0, high: 1, text: percentTick },
      y: { label: "T_step", low: 0, units: TIMES },
      lines: [
        { label: "no overlap, T_c + T_t", series: 2, points: grid(0, 1, (x) => compute + moving(x), 2) },
        { label: "perfect overlap, max(T_c, T_t)", series: 1, points: grid(0, 1, (x) => Math.max(compute, moving(x))) },
      ],
      marker: { x: pHit, y: value, text: time(value) },
      values: {
        "t-compute-s": compute, "t-transfer-s": transfer, "t-serial-s": serial, "t-ideal-s": ideal, "t-step-s": value,
      },
      formula: [
        `no overlap: T_c + T_t = ${time(compute)} + ${time(transfer)} = ${time(serial)}`,
        `perfect overlap: max(T_c, T_t) = ${time(ideal)}`,
        `at β = ${digits(beta)}: T_c + (1 − β) × T_t = ${time(value)}`,
      ],
      said: `A decode step of ${people(chart.sequences)} computes for ${time(compute)} and moves KV for ` +
        `${time(transfer)}: ${time(serial)} without overlap, ${time(ideal)} with perfect overlap, ${time(value)} at ` +
        `β = ${digits(beta)}.`,
      note: fits(forms, chart, at),
      moved: ["context", "bandwidth"],
    };
  };

  const speedup = ({ forms }, chart, at) => {
    const [compute, transfer] = stepTimes(forms, chart, at), most = feasibleBeta(compute, transfer);
    const beta = Math.min(at.beta, most), beyond = at.beta > most * (1 + 1e-9);
    const value = speedupOf(compute, transfer, beta), whatIf = speedupOf(compute, transfer, at.beta);
    const bound = speedupOf(compute, transfer, most), article = 1 + transfer / compute;
    const binding = transfer <= compute ? "article" : "overlap";
    const times = `(${time(compute)} + ${time(transfer)}) / (${time(compute)} + (1 − ${digits(beta)}) × ${time(transfer)})`;
    return {
      x: { label: "β", low: 0, high: 1, text: plainTick },
      y: { label: "S, times", low: 1, high: Math.max(1.05, Math.min(article, 2.2)) },
      band: { low: 0, high: most, text: "feasible" },
      lines: [
        { label: "closed form", series: 1, points: grid(0, most, (x) => speedupOf(compute, transfer, x)) },
        { label: "beyond one step", series: 1, dashed: true,
          points: most < 1 ? grid(most, 1, (x) => speedupOf(compute, transfer, x)) : [] },
      ],
      level: { y: bound, text: `S at most ${speed(bound)}`, left: true },
      marker: { x: beta, y: value, text: speed(value), beyond },
      values: {
        speedup: value, "what-if": whatIf, "beta-max": most, "s-max": bound, "s-max-article": article, binding,
        infeasible: beyond, beta,
      },
      formula: [
        `S = (T_c + T_t) / (T_c + (1 − β) × T_t) = ${times} = ${speed(value)}`,
        `β at most min(1, T_c / T_t) = ${digits(most)}; S at most ${speed(bound)}` +
          (binding === "article" ? ", the article's bound 1 + T_t / T_c." :
            `: overlap binds. The article's 1 + T_t / T_c = ${digits(article)} would need β = 1.`),
      ],
      said: `With ${people(chart.sequences)}, hiding β = ${digits(beta)} of the transfers makes a step ${speed(value)} ` +
        `times as fast; at most β = ${digits(most)} can be hidden, which makes ${speed(bound)}.`,
      note: beyond
        ? `β = ${digits(at.beta)} isn't feasible: one step's computing hides at most ${digits(most)}, which is used. ` +
          `As a what-if it would give ${speed(whatIf)}.`
        : fits(forms, chart, at),
      warn: beyond,
      moved: ["p", "context", "bandwidth"],
    };
  };

  const concurrency = ({ forms, low }, chart, at) => {
    const value = mostSequences(forms, at.p, at.context), each = sequenceBytes(forms, at.context);
    const least = low("p"), seats = forms.seats;
    const stairs = (p) => mostSequences(forms, Number(p.toFixed(4)), at.context);
    const seen = Math.max(stairs(Math.max(least, 0.1)), 1, ...chart.points.map((point) => point.y));
    return {
      x: { label: "p, resident share", low: 0, high: 1, text: plainTick },
      y: { label: "sequences at once", low: 0, high: 1.05 * Math.max(seen, Math.min(value, 3 * seen)), whole: true },
      lines: [{ label: "C_max", series: 1, points: grid(least, 1, stairs, 380) }],
      level: { y: seats, text: `seats, ${whole(seats)}` },
      marker: { x: at.p, y: value, text: whole(value) },
      values: { "c-max": value, "sequence-bytes": each },
      formula: [
        "C_max = ⌊(M_VRAM − M_model) / (p × S_seq)⌋",
        `= ⌊${size(forms.free_bytes)} / (${digits(at.p)} × ${size(each)})⌋ = ${whole(value)}`,
      ],
      said: `At p = ${digits(at.p)} at most ${people(value)} of ${whole(at.context)} tokens fit, of ${size(each)} each; ` +
        `the engine has ${whole(seats)} seats.`,
      note: value > seats ? `The engine has ${whole(seats)} seats: no more than that run at once.`
        : value === 0 ? "Not even one sequence fits." : "",
      moved: ["context"],
    };
  };

  const hits = ({ data, forms }, chart, at) => {
    const value = between(chart.points, at.lambda), reads = data.hits_of === "reads";
    const access = accessTime(forms, value, at.bandwidth), computed = (1 - value) * data.prompt_tokens;
    const ys = [...chart.points.flatMap((p) => [p.y, p.y_low ?? p.y, p.y_high ?? p.y]), ...chart.levels.map((l) => l.y),
      ...(chart.run ? [chart.run.y] : [])];
    const room = Math.max(0.005, (Math.max(...ys) - Math.min(...ys)) * 0.15);
    return {
      x: { label: "λ (0: frequency, 1: recency)", low: 0, high: 1, text: plainTick },
      y: { label: `hit rate, ${data.hits_of}`, low: Math.max(0, Math.min(...ys) - room),
        high: Math.min(1, Math.max(...ys) + room), text: percentTick },
      lines: [
        { label: "between simulated points", series: 1, points: chart.points.map((p) => [p.x, p.y]) },
        ...chart.levels.map((level, k) => ({ label: level.label, series: k + 3, dashed: true,
          points: [[0, level.y], [1, level.y]] })),
      ],
      marker: { x: at.lambda, y: value, text: percent(value) },
      values: { "hit-rate": value },
      formula: [
        `λ = ${digits(at.lambda)}: ${percent(value)} of ${data.hits_of} hit. No closed form: between simulated points.`,
        reads && forms.t_vram_s ? `An access then takes T_avg = ${digits(value)} × ${time(forms.t_vram_s)} + ` +
            `${digits(1 - value)} × ${time(memoryTime(forms, at.bandwidth))} = ${time(access)}.`
          : reads ? "" : `Of a prompt of ${whole(data.prompt_tokens)} tokens ${whole(computed)} are then computed.`,
      ],
      said: `At λ = ${digits(at.lambda)}, ${percent(value)} of ${data.hits_of} hit, read between simulated points.`,
      moved: ["p", "context", "bandwidth"],
    };
  };

  const CHARTS = { t_avg: tAvg, t_step: tStep, speedup, concurrency, lambda: hits };
  const NAMED = { p: "p", context: "context", bandwidth: "bandwidth" };

  // ---- drawing ----

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

  // ---- the page ----

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
})();
