/* The charts: from the sliders' values to lines, points, a marker, and words. */

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
