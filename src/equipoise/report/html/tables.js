// Tables that can be sorted; one with groups is sorted within each of them.
const keyOf = (row, column, kind) => {
  const cell = row.cells[column];
  // A system is sorted by its name, not by the letter before it.
  if (kind !== "number") return (cell.querySelector(".name") ?? cell).textContent.trim();
  const text = cell.dataset.value ?? cell.textContent.replace(/,/g, "");
  return parseFloat(text);
};

const alphabet = new Intl.Collator(undefined, { numeric: true });

const compare = (a, b) => {
  if (typeof a === "string") return alphabet.compare(a, b);
  if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
  return a - b;
};

const sortTable = (table, header, column) => {
  const kind = header.dataset.sort;
  const now = header.getAttribute("aria-sort");
  const down = now ? now === "ascending" : kind === "number";
  for (const other of table.tHead.querySelectorAll("th")) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", down ? "descending" : "ascending");
  const known = ([key]) => !(typeof key === "number" && Number.isNaN(key));
  for (const body of table.tBodies) {
    const rows = [...body.querySelectorAll("tr:not(.group)")].map((row) => [keyOf(row, column, kind), row]);
    // What has no number stays last, whichever way the rest goes.
    rows.sort((a, b) => known(b) - known(a) || (down ? compare(b[0], a[0]) : compare(a[0], b[0])));
    for (const [, row] of rows) row.classList.remove("new-band");
    body.append(...rows.map(([, row]) => row));
  }
};

for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((header, column) => {
    if (!header.dataset.sort) return;
    const button = make("button", { type: "button", onclick: () => sortTable(table, header, column) });
    button.append(...header.childNodes);
    header.append(button);
  });
}
