// The metric of the leaderboard, and the systems in all tables. Charts always show all systems.
const shown = byId("shown");
if (shown) {
  const boards = document.querySelectorAll(".board");
  const metric = shown.querySelector("select");
  const boxes = [...shown.querySelectorAll("input")];
  shown.hidden = false;
  shown.addEventListener("change", () => {
    boards.forEach((board, index) => { board.hidden = metric !== null && index !== Number(metric.value); });
    const hidden = new Set(boxes.filter((box) => !box.checked).map((box) => box.value));
    for (const part of document.querySelectorAll("[data-systems]")) {
      part.hidden = part.dataset.systems.split(" ").some((system) => hidden.has(system));
    }
  });
}
