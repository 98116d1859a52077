// Texts and charts to save.
const say = (button, words) => {
  const status = button.parentElement.querySelector(".status-text");
  status.textContent = words;
  setTimeout(() => { status.textContent = ""; }, 2500);
};

const save = (name, address) => {
  const link = make("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
};

const textAddress = (media, text) => `data:${media};charset=utf-8,${encodeURIComponent(text)}`;

const copyBySelection = (source) => {
  source.closest("details").open = true;
  const range = document.createRange();
  range.selectNodeContents(source);
  const selection = getSelection();
  selection.removeAllRanges();
  selection.addRange(range);
  return document.execCommand("copy");
};

for (const bar of document.querySelectorAll(".buttons")) bar.hidden = false;

for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    const source = byId(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(source.textContent);
      say(button, "Copied.");
    } catch {
      say(button, copyBySelection(source) ? "Copied." : "Selected: copy it with the keyboard.");
    }
  });
}

for (const button of document.querySelectorAll("[data-save]")) {
  button.addEventListener("click", () => {
    save(button.dataset.name, textAddress(button.dataset.media, byId(button.dataset.save).textContent));
    say(button, "Saved.");
  });
}

// A chart by itself: on light ground, with nothing that only a page needs.
const standalone = (svg) => {
  const copy = svg.cloneNode(true);
  for (const name of ["tabindex", "data-chart", "data-zoom"]) copy.removeAttribute(name);
  const ground = document.createElementNS(svg.namespaceURI, "rect");
  const { x, y, width, height } = svg.viewBox.baseVal;
  for (const [name, value] of Object.entries({ x, y, width, height, fill: "#ffffff" })) ground.setAttribute(name, value);
  copy.prepend(ground);
  return new XMLSerializer().serializeToString(copy);
};

const savePng = (svg, name) => {
  const image = new Image();
  image.addEventListener("load", () => {
    const { width, height } = svg.viewBox.baseVal;
    const canvas = make("canvas", { width: width * 2, height: height * 2 });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    save(name, canvas.toDataURL("image/png"));
  });
  image.src = textAddress("image/svg+xml", standalone(svg));
};

for (const figure of document.querySelectorAll("figure.chart")) {
  const svg = figure.querySelector("svg");
  const name = svg.dataset.chart;
  const what = svg.getAttribute("aria-label").split(". ")[0];
  const button = (kind, act) => make("button", { type: "button", "aria-label": `Save as ${kind}: ${what}`, onclick: act }, kind);
  figure.append(make("p", { class: "buttons small" }, "Save as ",
    button("SVG", () => save(`${name}.svg`, textAddress("image/svg+xml", standalone(svg)))), " ",
    button("PNG", () => savePng(svg, `${name}.png`))));
}
