/* Heat: the score by which blocks stay. */

/** Score of each cell that can be read on a shelf: λ·recency + (1−λ)·frequency, by rank among the shelf's blocks. */
function scores(replay, state, shelf, lam) {
  const base = shelf * replay.cells;
  const here = [];
  let total = 0;
  for (let cell = 0; cell < replay.cells; cell += 1) {
    if (state.status[base + cell] === HERE) { here.push(cell); total += replay.size[cell]; }
  }
  const recency = ranks(here, (cell) => state.last[base + cell], replay.size, total);
  const frequency = ranks(here, (cell) => state.uses[base + cell], replay.size, total);
  const found = new Map();
  for (const cell of here) {
    const parts = [recency.get(cell), frequency.get(cell)];
    found.set(cell, { score: lam * parts[0] + (1 - lam) * parts[1], recency: parts[0], frequency: parts[1] });
  }
  return found;
}

/** Share of the other blocks with a smaller key, by cell. */
function ranks(cells, key, size, total) {
  const order = cells.slice().sort((one, other) => (key(one) < key(other) ? -1 : key(one) > key(other) ? 1 : 0));
  const found = new Map();
  let below = 0;
  for (let k = 0; k < order.length;) {
    let until = k, same = 0;
    while (until < order.length && key(order[until]) === key(order[k])) { same += size[order[until]]; until += 1; }
    for (; k < until; k += 1) {
      const others = total - size[order[k]];
      found.set(order[k], others > 0 ? below / others : 1);
    }
    below += same;
  }
  return found;
}
