/* The closed forms: as simkv/report/sliders/forms.py has them. */

const LINE_POINTS = 200;

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
