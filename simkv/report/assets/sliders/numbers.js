/* Numbers as people read them: as simkv/results/quantity.py does. */

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
