// The metric of the leaderboard, and the systems in all tables. Charts always show all systems.
const shown = byId("shown");
if (shown) {
  const boards = document.querySelectorAll(".board");
  const metric = shown.querySelector("select");
  const boxes = [...shown.querySelectorAll("input")];

  const draw = () => {
    boards.forEach((board, index) => { board.hidden = metric !== null && index !== Number(metric.value); });
    const hidden = new Set(boxes.filter((box) => !box.checked).map((box) => box.value));
    for (const part of document.querySelectorAll("[data-systems]")) {
      part.hidden = part.dataset.systems.split(" ").some((system) => hidden.has(system));
    }
  };

  // The address says what is shown, so that it can be sent to someone.
  const remember = () => {
    const parts = new URLSearchParams(location.search);
    parts.delete("hidden");
    parts.delete("metric");
    for (const box of boxes.filter((each) => !each.checked)) parts.append("hidden", box.dataset.name);
    if (metric && metric.selectedIndex > 0) parts.set("metric", metric.selectedOptions[0].text);
    try { history.replaceState(null, "", `?${parts}${location.hash}`); } catch { /* a file has no query */ }
  };

  const parts = new URLSearchParams(location.search);
  for (const box of boxes) box.checked = !parts.getAll("hidden").includes(box.dataset.name);
  if (metric) metric.selectedIndex = Math.max(0, [...metric.options].findIndex((each) => each.text === parts.get("metric")));
  draw();
  shown.hidden = false;
  shown.addEventListener("change", () => { draw(); remember(); });
}
