/* The legend: what is what. */

function legend(replay, sizes) {
  const box = html("div", "legend");
  box.setAttribute("aria-label", "Legend");
  const item = (name, text, sign) => {
    const sample = html("span", `sample sample-${name}`, sign);
    sample.setAttribute("aria-hidden", "true");
    const node = html("span", "legend-item");
    node.append(sample, html("span", "", text));
    box.append(node);
  };
  item("heat", "cold, next to leave → hot: score by λ, ranked among the blocks drawn in that tier");
  item("coming", "coming: room is taken, it fills as bytes arrive");
  if (sizes.most > sizes.least) {
    item("size", `size: ${whole(sizes.least)} to ${whole(sizes.most)} blocks that move together (log scale)`);
  }
  item("up", "on its way up", "▲");
  item("down", "on its way down", "▼");
  const fates = replay.data.words.fates;
  for (const fate of Object.keys(MARKS)) {
    if (replay.data.transfers.fate.includes(fates.indexOf(fate))) item("mark", `prefetch ${FATE_WORDS[fate]}`, MARKS[fate]);
  }
  item("others", "in the bar: blocks not drawn");
  item("private", "in the bar: held by running requests alone");
  item("density", "above the slider: blocks that come up (upwards), that leave VRAM (downwards), GPU at work (below)");
  const keys = "Keys: space plays and pauses, ← → step, Home and End; on a block the arrows go from block to block.";
  box.append(html("span", "legend-keys", keys));
  return box;
}
