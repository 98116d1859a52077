// The metric and the systems that the tables show. Charts always show all systems.
const shown = byId("shown");
if (shown) {
  const metric = shown.querySelector("select");
  const boxes = [...shown.querySelectorAll("input")];
  // What is hidden at first is on another metric than the main one of its section.
  const parts = [...document.querySelectorAll("[data-metric]")].map((part) => ({ part, main: !part.hidden }));
  const measured = (section, name) => parts.some(({ part }) => part.dataset.metric === name && part.closest("section") === section);

  const draw = () => {
    const chosen = metric ? metric.value : "";
    for (const { part, main } of parts) {
      part.hidden = measured(part.closest("section"), chosen) ? part.dataset.metric !== chosen : !main;
    }
    const hidden = new Set(boxes.filter((box) => !box.checked).map((box) => box.value));
    for (const part of document.querySelectorAll("[data-systems]")) {
      part.hidden = part.dataset.systems.split(" ").some((system) => hidden.has(system));
    }
  };

  // The address says what is shown, so that it can be sent to someone.
  const remember = () => {
    const query = new URLSearchParams(location.search);
    query.delete("hidden");
    query.delete("metric");
    for (const box of boxes.filter((each) => !each.checked)) query.append("hidden", box.dataset.name);
    if (metric && metric.selectedIndex > 0) query.set("metric", metric.value);
    try { history.replaceState(null, "", `?${query}${location.hash}`); } catch { /* a file has no query */ }
  };

  const query = new URLSearchParams(location.search);
  for (const box of boxes) box.checked = !query.getAll("hidden").includes(box.dataset.name);
  if (metric) metric.selectedIndex = Math.max(0, [...metric.options].findIndex((each) => each.value === query.get("metric")));
  draw();
  shown.hidden = false;
  shown.addEventListener("change", () => { draw(); remember(); });
}

// A table that is wider than its card says so; a shadow alone is easy to miss.
const sideways = new ResizeObserver((entries) => {
  for (const { target } of entries) target.previousElementSibling.hidden = target.scrollWidth <= target.clientWidth + 1;
});
for (const region of document.querySelectorAll(".wide")) {
  region.before(make("p", { class: "note sideways", "aria-hidden": "true", hidden: true }, "The table is wider than the page: scroll sideways →"));
  sideways.observe(region);
}
