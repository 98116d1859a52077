// The units.
const island = byId("units-data");
if (island) explore(JSON.parse(island.textContent), byId("explorer"));

function explore(data, home) {
  const PAGE = 20;
  const MARKED = 200;
  const MAX_NAMED = 6;
  const START = "#units?";
  const systems = data.systems;
  // The units on which the systems differ most, or those on which the only system is worst.
  const FIRST_SORT = systems.length > 1 ? { sort: "spread", down: true } : { sort: "0", down: data.columns[0].better !== "up" };
  const state = { metric: 0, won: -1, lost: -1, slices: data.slices.map(() => -1), q: "", ...FIRST_SORT, page: 0, unit: -1 };
  const placeOf = new Map(data.units.map((unit, place) => [unit, place]));
  const texts = data.details.some(Boolean);
  let shown = [];
  let searchable = null;

  const column = () => data.columns[state.metric];
  const valueOf = (system, unit) => column().values[system][unit];
  const better = (a, b) => a !== null && b !== null && (column().better === "up" ? a > b : a < b);
  const textOf = (unit) => (data.details[unit] ? data.texts[data.details[unit][0]] : "");
  const figure = (value) => (value === null ? "n/a" : Number.isInteger(value) ? String(value) : value.toFixed(3));

  const upper = (text) => text[0].toUpperCase() + text.slice(1);

  const whole = (count) => count.toLocaleString("en-US");

  const badge = (system, brief = false) => make("span", { class: "system", title: systems[system].name },
    make("span", { class: `letter s${system % 8}`, "aria-hidden": "true" }, systems[system].letter), " ",
    make("span", { class: brief ? "visually-hidden" : "name" }, systems[system].name));

  const spread = (unit) => {
    const known = systems.map((_, system) => valueOf(system, unit)).filter((value) => value !== null);
    return known.length > 1 ? Math.max(...known) - Math.min(...known) : known.length ? 0 : -1;
  };

  const matches = (unit, words) => {
    searchable ??= data.units.map((id, at) => {
      const detail = data.details[at];
      const known = detail ? [detail[0], ...detail[1]].map((place) => data.texts[place]) : [];
      return [id, ...known].join("\n").toLowerCase();
    });
    return words.every((word) => searchable[unit].includes(word));
  };

  const wonAndLost = (unit) => {
    const { won, lost } = state;
    const all = systems.map((_, system) => system);
    if (won >= 0 && lost >= 0) return better(valueOf(won, unit), valueOf(lost, unit));
    if (won >= 0) return all.every((other) => other === won || better(valueOf(won, unit), valueOf(other, unit)));
    if (lost >= 0) return all.every((other) => other === lost || better(valueOf(other, unit), valueOf(lost, unit)));
    return true;
  };

  const sortKey = (unit) => {
    if (state.sort === "spread") return spread(unit);
    if (state.sort === "id") return data.units[unit];
    const value = valueOf(Number(state.sort), unit);
    return value === null ? NaN : value;
  };

  const select = () => {
    const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = [];
    for (let unit = 0; unit < data.units.length; unit += 1) {
      const inSlices = state.slices.every((value, at) => value < 0 || data.slices[at].of[unit] === value);
      if (inSlices && wonAndLost(unit) && matches(unit, words)) chosen.push([sortKey(unit), unit]);
    }
    const known = (key) => !(typeof key === "number" && Number.isNaN(key));
    chosen.sort(([a, first], [b, second]) =>
      known(b) - known(a) || (state.down ? compare(b, a) : compare(a, b)) || first - second);
    shown = chosen.map(([, unit]) => unit);
    state.page = Math.min(state.page, Math.max(0, Math.ceil(shown.length / PAGE) - 1));
  };

  // The address says what is shown, so that it can be sent to someone.
  const address = (unit) => {
    const parts = new URLSearchParams();
    if (state.metric) parts.set("metric", column().metric);
    if (state.won >= 0) parts.set("won", systems[state.won].name);
    if (state.lost >= 0) parts.set("lost", systems[state.lost].name);
    state.slices.forEach((value, at) => {
      if (value >= 0) parts.set(`slice.${data.slices[at].name}`, data.slices[at].values[value]);
    });
    if (state.q) parts.set("q", state.q);
    if (state.sort !== FIRST_SORT.sort || state.down !== FIRST_SORT.down) parts.set("sort", `${state.down ? "-" : ""}${state.sort}`);
    if (unit >= 0) parts.set("unit", data.units[unit]);
    return START + parts.toString();
  };

  const remember = () => {
    try { history.replaceState(null, "", address(state.unit)); } catch { /* some viewers refuse */ }
  };

  const recall = () => {
    if (!location.hash.startsWith(START)) return false;
    const parts = new URLSearchParams(location.hash.slice(START.length));
    const at = (list, name) => (name === null ? -1 : list.findIndex((each) => each === name));
    state.metric = Math.max(0, at(data.columns.map((each) => each.metric), parts.get("metric")));
    state.won = at(systems.map((each) => each.name), parts.get("won"));
    state.lost = at(systems.map((each) => each.name), parts.get("lost"));
    state.slices = data.slices.map((each) => at(each.values, parts.get(`slice.${each.name}`)));
    state.q = parts.get("q") ?? "";
    const sort = parts.get("sort") ?? `${FIRST_SORT.down ? "-" : ""}${FIRST_SORT.sort}`;
    state.down = sort.startsWith("-");
    state.sort = sort.replace(/^-/, "");
    if (!["spread", "id"].includes(state.sort) && !(Number(state.sort) in systems)) state.sort = "spread";
    state.unit = placeOf.get(parts.get("unit")) ?? -1;
    return true;
  };

  // Filters.
  const changed = () => { state.page = 0; draw(); remember(); };
  const chooser = (label, options, get, set) => {
    const field = make("select", { onchange: () => { set(Number(field.value)); changed(); } });
    options.forEach(([value, text]) => field.append(make("option", { value }, text)));
    const show = () => { field.value = String(get()); };
    show();
    return { label: make("label", {}, label, field), show };
  };
  const named = [[-1, `any ${data.nouns[2]}`], ...systems.map((each, place) => [place, `${each.letter} ${each.name}`])];
  const choosers = [];
  if (data.columns.length > 1) {
    choosers.push(chooser("Metric", data.columns.map((each, place) => [place, each.metric]),
      () => state.metric, (value) => { state.metric = value; }));
  }
  if (systems.length > 1) {
    choosers.push(chooser("Won by", named, () => state.won, (value) => { state.won = value; }));
    choosers.push(chooser("Lost by", named, () => state.lost, (value) => { state.lost = value; }));
  }
  data.slices.forEach((slice, at) => {
    choosers.push(chooser(slice.name, [[-1, "all"], ...slice.values.map((value, place) => [place, value])],
      () => state.slices[at], (value) => { state.slices[at] = value; }));
  });
  const search = make("input", { type: "search", autocomplete: "off", oninput: () => { state.q = search.value; changed(); } });
  const reset = make("button", { type: "button", onclick: () => {
    Object.assign(state, { won: -1, lost: -1, slices: data.slices.map(() => -1), q: "", page: 0 });
    showFilters();
    changed();
  } }, "Clear");
  const showFilters = () => {
    choosers.forEach((each) => each.show());
    search.value = state.q;
  };
  const filters = make("form", { class: "filters", "aria-label": `Filter the ${data.nouns[1]}`, onsubmit: (event) => event.preventDefault() },
    ...choosers.map((each) => each.label), make("label", {}, "Search", search), reset);

  // The table.
  const count = make("p", { role: "status", class: "note" });
  const headRow = make("tr");
  const body = make("tbody");
  const table = make("table", {}, make("caption", { class: "visually-hidden" }, `${upper(data.nouns[1])}. Choose one to see its details.`), make("thead", {}, headRow), body);
  const previous = make("button", { type: "button", onclick: () => turn(-1) }, "← Previous");
  const next = make("button", { type: "button", onclick: () => turn(1) }, "Next →");
  const where = make("span", { class: "note" });
  const pager = make("div", { class: "pager" }, previous, where, next);
  const panel = make("div", { class: "panel", role: "region", "aria-label": `One ${data.nouns[0]}`, tabindex: "-1", hidden: true });

  const turn = (step) => { state.page += step; draw(); };

  const header = (name, ...label) => {
    const active = state.sort === name;
    const cell = make("th", { scope: "col", class: name === "id" ? "" : "number", "aria-sort": active ? (state.down ? "descending" : "ascending") : false });
    cell.append(make("button", { type: "button", onclick: () => {
      state.down = active ? !state.down : name !== "id";
      state.sort = name;
      changed();
      headRow.querySelector("[aria-sort] button")?.focus();
    } }, ...label));
    return cell;
  };

  const draw = () => {
    select();
    headRow.replaceChildren(header("id", upper(data.nouns[0])), ...(texts ? [make("th", { scope: "col" }, "Text")] : []),
      ...(systems.length > 1 ? [header("spread", make("abbr", { title: "highest minus lowest score" }, "Spread"))] : []),
      ...systems.map((_, system) => header(String(system), badge(system, systems.length > MAX_NAMED))));
    const first = state.page * PAGE;
    body.replaceChildren(...shown.slice(first, first + PAGE).map(drawRow));
    const last = Math.min(first + PAGE, shown.length);
    count.textContent = `${whole(shown.length)} of ${whole(data.units.length)} ${data.nouns[1]}. Scores are ${column().metric.replace(" (%)", " in percent")}; ${column().better === "up" ? "higher" : "lower"} is better.`;
    where.textContent = shown.length ? `${whole(first + 1)} to ${whole(last)} of ${whole(shown.length)}` : "none";
    previous.disabled = state.page === 0;
    next.disabled = last >= shown.length;
    pager.hidden = shown.length <= PAGE;
  };

  const drawRow = (unit) => {
    const values = systems.map((_, system) => valueOf(system, unit));
    const top = values.filter((value) => !values.some((other) => better(other, value)));
    const differ = new Set(values).size > 1;
    const link = make("a", { href: address(unit), onclick: (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      open(unit);
    } }, data.units[unit]);
    return make("tr", { "data-unit": unit, "aria-current": unit === state.unit ? "true" : false },
      make("th", { scope: "row" }, link),
      ...(texts ? [make("td", { class: "text" }, textOf(unit))] : []),
      ...(systems.length > 1 ? [make("td", { class: "number" }, spread(unit) < 0 ? "n/a" : figure(spread(unit)))] : []),
      ...values.map((value) => make("td", { class: differ && value !== null && top.includes(value) ? "number best" : "number" }, figure(value))));
  };

  // One unit.
  const marked = (text, answers) => {
    const lower = text.toLowerCase();
    const parts = [];
    let from = 0;
    while (from < text.length) {
      const found = answers.map((answer) => [lower.indexOf(answer, from), answer.length]).filter(([at]) => at >= 0);
      if (!found.length || lower.length !== text.length) break;
      const [at, length] = found.reduce((a, b) => (b[0] < a[0] ? b : a));
      parts.push(text.slice(from, at), make("mark", {}, text.slice(at, at + length)));
      from = at + length;
    }
    return [...parts, text.slice(from)];
  };

  const drawHits = (system, hits, answers) => {
    const [items, scores, right] = hits;
    const list = make("ol", { tabindex: "0", "aria-label": `What ${systems[system].name} retrieved, best first` });
    items.forEach((item, rank) => {
      const [id, text, place] = data.items[item];
      const isRight = right.includes(rank);
      const about = [id, data.texts[place], scores[rank] === null ? "" : `score ${scores[rank]}`].filter(Boolean).join(" · ");
      const line = make("p", { class: "where" }, about);
      if (isRight) line.prepend(make("span", { class: "right-mark" }, "✓ relevant "));
      list.append(make("li", { class: isRight ? "right" : "" }, line, make("p", { class: "hit" }, ...marked(data.texts[text], answers))));
    });
    return items.length ? list : make("p", { class: "note" }, "What it retrieved was not stored.");
  };

  const drawUnit = (unit) => {
    const detail = data.details[unit];
    const at = shown.indexOf(unit);
    const step = (by, text) => make("button", { type: "button", disabled: !(at + by in shown), "data-step": by, onclick: () => open(shown[at + by]) }, text);
    const facts = data.slices.filter((slice) => slice.of[unit] >= 0).map((slice) =>
      make("div", {}, make("dt", {}, slice.name), make("dd", {}, slice.values[slice.of[unit]])));
    panel.replaceChildren(
      make("p", { class: "pager" }, step(-1, `← Previous ${data.nouns[0]}`), step(1, `Next ${data.nouns[0]} →`),
        make("button", { type: "button", onclick: close }, "Close"),
        make("a", { href: address(unit) }, `Link to this ${data.nouns[0]}`)),
      make("h3", {}, data.units[unit]));
    if (detail) {
      const answers = detail[1].map((place) => data.texts[place]);
      panel.append(make("p", { class: "question" }, data.texts[detail[0]]));
      if (answers.length) {
        panel.append(make("p", { class: "note" }, answers.length > 1 ? "Right answers:" : "Right answer:"),
          make("ul", {}, ...answers.map((answer) => make("li", {}, answer))));
      }
    }
    if (facts.length) panel.append(make("dl", { class: "facts" }, ...facts));
    if (data.unit_note) panel.append(make("p", { class: "note" }, data.unit_note));
    const answers = detail ? detail[1].map((place) => data.texts[place].toLowerCase()).filter((text) => text && text.length <= MARKED) : [];
    const retrieved = detail && detail[2].length;
    panel.append(make("div", { class: "sides" }, ...systems.map((_, system) => make("div", { class: "side" },
      make("h4", {}, badge(system)),
      make("p", { class: "note" }, `${column().metric} `, make("strong", {}, figure(valueOf(system, unit)))),
      ...(retrieved ? [drawHits(system, detail[2][system], answers)] : [])))));
    if (!retrieved) panel.append(make("p", { class: "note" }, `The retrieved items of this ${data.nouns[0]} are not in this report.`));
  };

  const open = (unit) => {
    state.unit = unit;
    const at = shown.indexOf(unit);
    if (at >= 0) state.page = Math.floor(at / PAGE);
    draw();
    drawUnit(unit);
    panel.hidden = false;
    panel.focus({ preventScroll: true });
    panel.scrollIntoView({ block: "nearest" });
    remember();
  };

  const close = () => {
    const row = body.querySelector(`[data-unit="${state.unit}"]`);
    state.unit = -1;
    panel.hidden = true;
    row?.removeAttribute("aria-current");
    row?.querySelector("a").focus();
    remember();
  };

  home.addEventListener("keydown", (event) => {
    const inField = event.target.matches("input, select");
    if (event.key === "Escape" && !panel.hidden) close();
    else if (inField) return;
    else if (panel.contains(event.target) && (event.key === "ArrowLeft" || event.key === "ArrowRight")) {
      panel.querySelector(`[data-step="${event.key === "ArrowLeft" ? -1 : 1}"]:not(:disabled)`)?.click();
    } else if (body.contains(event.target) && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      const row = event.target.closest("tr");
      const neighbour = event.key === "ArrowDown" ? row.nextElementSibling : row.previousElementSibling;
      neighbour?.querySelector("a").focus();
    } else return;
    event.preventDefault();
  });

  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target.matches("input, select, textarea")) return;
    event.preventDefault();
    search.focus();
  });

  const restore = () => {
    if (!recall()) return;
    showFilters();
    draw();
    if (state.unit >= 0) open(state.unit);
    else byId("units").scrollIntoView();
  };

  const keys = make("p", { class: "note keys" }, make("kbd", {}, "/"), " search, ", make("kbd", {}, "↑"), " ", make("kbd", {}, "↓"),
    ` move between ${data.nouns[1]}, `, make("kbd", {}, "Enter"), " open, ", make("kbd", {}, "←"), " ", make("kbd", {}, "→"),
    ` previous/next ${data.nouns[0]}, `, make("kbd", {}, "Esc"), " close.");
  home.append(filters, count, make("div", { class: "wide", role: "region", "aria-label": upper(data.nouns[1]), tabindex: "0" }, table), pager, keys, panel);
  home.hidden = false;
  draw();
  restore();
  addEventListener("hashchange", restore);
}
