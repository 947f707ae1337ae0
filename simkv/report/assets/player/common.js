/* Words and small helpers that all parts of the player use. */

const SVG = "http://www.w3.org/2000/svg";
const ABSENT = 0, COMING = 1, HERE = 2;
const EVENT = { coming: 1, here: 2, used: 3, gone: 4 };
const NONE = -1;
const SNAPSHOT_EVERY = 200;
const BINS = 150;
const NAMES = { vram: "VRAM", dram: "DRAM", ssd: "SSD" };
const VERBS = {
  load: "loading", promote: "promoting", prefetch: "prefetching", store: "storing", spill: "writing down",
  cascade: "passing down", swap_out: "swapping out", swap_in: "swapping in", stream: "streaming", other: "moving",
};
const NOUNS = {
  load: "load", promote: "promotion", prefetch: "prefetch", store: "store", spill: "write-down",
  cascade: "write-down", swap_out: "swap-out", swap_in: "swap-in", stream: "stream", other: "transfer",
};
const MARKS = { useful: "✓", late: "!", wasted: "✕", open: "?" };
const FATE_WORDS = {
  useful: "useful: it was there in time", late: "late: somebody waited for it", wasted: "wasted: nobody read it",
  open: "whose use isn't known at the window's end",
};

function html(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

function svg(tag, attributes) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, String(value));
  return node;
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** How many of the rising `values` are at most `limit`. */
function countUpTo(values, limit) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= limit) low = middle + 1; else high = middle;
  }
  return low;
}

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
const whole = (value) => Math.round(value).toLocaleString("en");
const plural = (count, word) => `${whole(count)} ${word}${count === 1 ? "" : "s"}`;

function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let k = 0;
  while (value >= 1024 && k < units.length - 1) { value /= 1024; k += 1; }
  return `${value >= 100 || k === 0 ? Math.round(value) : value.toPrecision(3)} ${units[k]}`;
}

function duration(seconds) {
  const size = Math.abs(seconds);
  if (size >= 100) return `${whole(seconds)} s`;
  if (size >= 1 || size === 0) return `${Number(seconds.toPrecision(3))} s`;
  if (size >= 1e-3) return `${Number((seconds * 1e3).toPrecision(3))} ms`;
  return `${Number((seconds * 1e6).toPrecision(3))} µs`;
}

function shorten(text, most) {
  const letters = Array.from(text);
  return letters.length <= most ? text : `${letters.slice(0, most - 1).join("")}…`;
}
