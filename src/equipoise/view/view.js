"use strict";
// The list of runs: filter, sort, choose, and draw anew when something has changed. The server escapes every
// text; here texts are only read and compared, and new rows come parsed from its own page.
(() => {
  const byId = (id) => document.getElementById(id);
  const main = byId("main");
  const table = byId("runs");
  const filter = byId("filter");
  const news = byId("news");
  const body = () => table.tBodies[0];
  const boxes = () => [...body().querySelectorAll("input[name=run]")];
  const PAUSE = 2000;
  const MOST_PAUSE = 30000;

  // Filter: every word must be somewhere in the row.
  const narrow = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = [...body().rows];
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    byId("count").textContent = words.length ? `${shown} of ${rows.length} runs` : `${rows.length} runs`;
  };

  // Sort: what has no number stays last, whichever way the rest goes.
  const order = { column: -1, kind: "", down: false };
  const keyOf = (row) => {
    const cell = row.cells[order.column];
    return order.kind === "number" ? parseFloat(cell.dataset.value) : cell.textContent.trim();
  };
  const compare = (a, b) => {
    if (order.kind !== "number") return a.localeCompare(b, undefined, { numeric: true }) * (order.down ? -1 : 1);
    if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
    return order.down ? b - a : a - b;
  };
  const sort = () => {
    if (order.column < 0) return;
    const rows = [...body().rows].map((row) => [keyOf(row), row]);
    rows.sort((a, b) => compare(a[0], b[0]));
    body().append(...rows.map(([, row]) => row));
  };
  [...table.tHead.rows[0].cells].forEach((header, column) => {
    if (!header.dataset.sort) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    button.addEventListener("click", () => {
      const kind = header.dataset.sort;
      order.down = order.column === column ? !order.down : kind === "number";
      Object.assign(order, { column, kind });
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      header.setAttribute("aria-sort", order.down ? "descending" : "ascending");
      sort();
    });
  });

  // Choose: the button says what it will do.
  const submit = document.querySelector("#choose button[type=submit]");
  const count = () => {
    const chosen = boxes().filter((box) => box.checked).length;
    submit.disabled = chosen === 0;
    submit.textContent = chosen > 1 ? `Compare ${chosen} runs` : "Show the chosen run";
    byId("chosen").textContent = chosen === 0 ? "None is chosen." : chosen === 1 ? "Tick another to compare." : "";
  };

  // Live: a version that changed brings a new page, of which the rows and the work under way are taken.
  const redraw = async () => {
    const answer = await fetch("/", { cache: "no-cache" });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const before = new Map(boxes().map((box) => [box.value, box.checked]));
    const focused = document.activeElement?.name === "run" ? document.activeElement.value : null;
    body().replaceWith(fresh.querySelector("#runs tbody"));
    for (const id of ["under-way", "none"]) byId(id).replaceWith(fresh.getElementById(id));
    byId("choose").hidden = fresh.getElementById("choose").hidden;
    document.title = fresh.title;
    main.dataset.version = fresh.getElementById("main").dataset.version;
    const added = boxes().filter((box) => !before.has(box.value)).length;
    for (const box of boxes()) box.checked = !box.disabled && (before.get(box.value) ?? false);
    if (added) news.textContent = `${added} new ${added === 1 ? "run" : "runs"}.`;
    sort();
    narrow();
    count();
    boxes().find((box) => box.value === focused)?.focus();
  };

  let pause = PAUSE;
  const look = async () => {
    try {
      if (!document.hidden) {
        const answer = await fetch("/runs.json", { cache: "no-cache" });
        if (answer.ok && (await answer.json()).version !== main.dataset.version) await redraw();
        if (pause !== PAUSE) news.textContent = "";
      }
      pause = PAUSE;
    } catch {
      news.textContent = "The viewer does not answer; eq view starts it again.";
      pause = Math.min(pause * 2, MOST_PAUSE);
    }
    setTimeout(look, pause);
  };

  filter.parentElement.hidden = false;
  filter.addEventListener("input", narrow);
  byId("choose").addEventListener("change", count);
  addEventListener("pageshow", () => { narrow(); count(); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) pause = PAUSE; });
  setTimeout(look, pause);
})();
