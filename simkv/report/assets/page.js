(() => {
  "use strict";
  const root = document.documentElement;

  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const button = document.querySelector("button.theme");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const label = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", isDark() ? "Show in light colours" : "Show in dark colours");
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    label();
  });
  dark.addEventListener("change", label);
  label();

  const contents = document.querySelector(".contents details");
  const wide = window.matchMedia("(min-width: 72rem)");
  const fold = () => { contents.open = wide.matches; };
  wide.addEventListener("change", fold);
  fold();

  const links = new Map([...document.querySelectorAll(".contents a")].map((a) => [a.hash.slice(1), a]));
  const seen = new Set();
  const mark = (entries) => {
    for (const entry of entries) entry.isIntersecting ? seen.add(entry.target.id) : seen.delete(entry.target.id);
    const first = [...links.keys()].find((id) => seen.has(id));
    if (first === undefined) return;
    for (const [id, link] of links) id === first ? link.setAttribute("aria-current", "true") : link.removeAttribute("aria-current");
  };
  const watch = new IntersectionObserver(mark, { rootMargin: "0px 0px -60% 0px" });
  for (const section of document.querySelectorAll("main > section")) watch.observe(section);

  const folded = [];
  const unfold = () => {
    if (folded.length) return;
    for (const one of document.querySelectorAll("details:not([open])")) {
      if (one.matches(".alt, .contents *")) continue;
      one.open = true;
      folded.push(one);
    }
  };
  const foldAgain = () => { for (const one of folded.splice(0)) one.open = false; };
  window.addEventListener("beforeprint", unfold);
  window.addEventListener("afterprint", foldAgain);
  window.matchMedia("print").addEventListener("change", (event) => (event.matches ? unfold() : foldAgain()));

  if (navigator.clipboard) {
    for (const block of document.querySelectorAll(".code")) {
      const copy = document.createElement("button");
      copy.type = "button";
      copy.className = "copy";
      copy.textContent = "Copy";
      copy.addEventListener("click", async () => {
        await navigator.clipboard.writeText(block.querySelector("code").textContent);
        copy.textContent = "Copied";
        setTimeout(() => { copy.textContent = "Copy"; }, 1500);
      });
      block.append(copy);
    }
  }
})();
