"use strict";
// The list of runs: filter, sort, choose, and update when the folder changes. The filter, the order and the chosen runs
// are in the address. The server escapes every text; new rows are parsed from its own page.
(() => {
  const byId = (id) => document.getElementById(id);
  const main = byId("main");
  const table = byId("runs");
  const filter = byId("filter");
  const news = byId("news");
  const groups = () => [...table.tBodies];
  const runRows = (within = table) => [...within.querySelectorAll("tr.run")];
  const boxes = (within = table) => [...within.querySelectorAll("input[name=run]")];
  const PAUSE = 2000;
  const MOST_PAUSE = 30000;
  const MOST_OPENED = 20;

  // Filter: every word must be in the row or in the name of its data.
  const narrow = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const group of groups()) {
      const data = group.querySelector("tr.group").textContent.toLowerCase();
      const rows = runRows(group);
      for (const row of rows) {
        const text = `${row.textContent.toLowerCase()} ${data}`;
        row.hidden = !words.every((word) => text.includes(word));
        shown += !row.hidden;
      }
      group.hidden = rows.every((row) => row.hidden);
    }
    const all = runRows().length;
    byId("count").textContent = words.length ? `${shown} of ${all} runs` : `${all} runs`;
  };

  // Sort within each group: rows without a number are last in both directions.
  const headers = [...table.tHead.rows[0].cells];
  const order = { column: -1, down: false };
  const nameOf = (column) => headers[column].textContent.trim();
  const kindOf = () => headers[order.column].dataset.sort;
  const keyOf = (row) => {
    const cell = row.cells[order.column];
    return kindOf() === "number" ? parseFloat(cell.dataset.value) : cell.textContent.trim();
  };
  const compare = (a, b) => {
    if (kindOf() !== "number") return a.localeCompare(b, undefined, { numeric: true }) * (order.down ? -1 : 1);
    if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
    return order.down ? b - a : a - b;
  };
  const sort = () => {
    if (order.column < 0) return;
    headers.forEach((header, column) => {
      if (column === order.column) header.setAttribute("aria-sort", order.down ? "descending" : "ascending");
      else header.removeAttribute("aria-sort");
    });
    for (const group of groups()) {
      const rows = runRows(group).map((row) => [keyOf(row), row]);
      rows.sort((a, b) => compare(a[0], b[0]));
      group.append(...rows.map(([, row]) => row));
    }
  };
  headers.forEach((header, column) => {
    if (!header.dataset.sort) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    header.append(button);
    button.addEventListener("click", () => {
      order.down = order.column === column ? !order.down : header.dataset.sort === "number";
      order.column = column;
      sort();
      save();
    });
  });

  // Choose: one run, all runs of a data set, or all runs that the filter shows.
  const submit = document.querySelector("#choose button[type=submit]");
  const within = (all) => all.closest("tbody") ?? table;
  const choosable = (part) => boxes(part).filter((box) => !box.disabled && !box.closest("tr").hidden);
  const count = () => {
    const chosen = boxes().filter((box) => box.checked).length;
    submit.disabled = chosen === 0;
    submit.textContent = chosen > 1 ? `Compare ${chosen} runs` : "Show the selected run";
    byId("chosen").textContent = chosen === 0 ? "No run is selected." : chosen === 1 ? "Select another one to compare." : "";
    for (const all of table.querySelectorAll("input.all")) {
      const part = choosable(within(all));
      const ticked = part.filter((box) => box.checked).length;
      all.hidden = part.length < 2;
      all.checked = ticked > 0 && ticked === part.length;
      all.indeterminate = ticked > 0 && ticked < part.length;
    }
  };
  const choose = ({ target }) => {
    if (target.matches("input.all")) {
      for (const box of choosable(within(target))) box.checked = target.checked;
    }
    count();
    save();
  };

  // The address: what is filtered, sorted and chosen, so that it can be reloaded, shared and returned to.
  const save = () => {
    const state = new URLSearchParams();
    if (filter.value) state.set("filter", filter.value);
    if (order.column >= 0) state.set(order.down ? "sort_down" : "sort", nameOf(order.column));
    for (const box of boxes()) if (box.checked) state.append("run", box.value);
    history.replaceState(null, "", `/?${state.toString() || "list"}`);
  };
  const restore = () => {
    const state = new URLSearchParams(location.search);
    filter.value = state.get("filter") ?? filter.value;
    const sorted = state.get("sort") ?? state.get("sort_down");
    const column = headers.findIndex((header, at) => header.dataset.sort && nameOf(at) === sorted);
    Object.assign(order, { column, down: state.has("sort_down") });
    const chosen = new Set(state.getAll("run"));
    for (const box of boxes()) box.checked = !box.disabled && (chosen.has(box.value) || box.checked);
  };

  // Open the comparison if all runs have the same data and the same number of units. The link back to the list has a
  // query, and so does the list once something was chosen in it.
  const openComparison = () => {
    const keys = boxes().filter((box) => !box.disabled).map((box) => box.value);
    const sizes = new Set(runRows().map((row) => row.dataset.units));
    const shared = groups().length === 1 && groups()[0].dataset.data !== "" && sizes.size === 1;
    const running = document.querySelector("#under-way section") !== null;
    if (location.search || !shared || running || keys.length < 2 || keys.length > MOST_OPENED) return;
    location.replace(`/report?${new URLSearchParams(keys.map((key) => ["run", key]))}`);
  };

  // Live: if the version has changed, the rows and the runs in progress are taken from a new page.
  const updateList = async () => {
    const answer = await fetch("/?list", { cache: "no-cache" });
    if (!answer.ok) return;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const before = new Map(boxes().map((box) => [box.value, box.checked]));
    const focused = document.activeElement?.name === "run" ? document.activeElement.value : null;
    for (const group of groups()) group.remove();
    table.append(...fresh.querySelectorAll("#runs tbody"));
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
        if (answer.ok && (await answer.json()).version !== main.dataset.version) await updateList();
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
  filter.addEventListener("input", () => { narrow(); count(); save(); });
  byId("choose").addEventListener("change", choose);
  addEventListener("pageshow", () => { restore(); sort(); narrow(); count(); });
  openComparison();
  document.addEventListener("visibilitychange", () => { if (!document.hidden) pause = PAUSE; });
  setTimeout(look, pause);
})();
