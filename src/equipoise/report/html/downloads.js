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

const wrapped = (text, length) => text.split(/\s+/).reduce((lines, word) => {
  const last = lines.at(-1);
  if (last !== undefined && last.length + word.length < length) return [...lines.slice(0, -1), `${last} ${word}`];
  return word ? [...lines, word] : lines;
}, []);

// A chart by itself: on light ground, with nothing that only a page needs.
const standalone = (svg) => {
  const copy = svg.cloneNode(true);
  for (const name of ["tabindex", "data-chart", "data-zoom"]) copy.removeAttribute(name);
  const draw = (tag, attributes, text = "") => {
    const element = document.createElementNS(svg.namespaceURI, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.textContent = text;
    return element;
  };
  const { x, width, height } = svg.viewBox.baseVal;
  // The title of the page comes with it, in lines that fit.
  const caption = svg.closest("figure").querySelector("figcaption");
  const lines = [caption.querySelector("strong").textContent, ...wrapped(caption.querySelector(".soft")?.textContent ?? "", width / 6.5)];
  const y = -20 * lines.length - 8;
  copy.prepend(draw("rect", { x, y, width, height: height - y, fill: "#ffffff" }), ...lines.map((line, index) =>
    draw("text", { x: x + 16, y: y + 24 + 20 * index, "font-size": index ? 12 : 15, "font-weight": index ? "normal" : "bold", fill: "#1c2530" }, line)));
  for (const [name, value] of Object.entries({ viewBox: [x, y, width, height - y].join(" "), width, height: height - y })) copy.setAttribute(name, value);
  return new XMLSerializer().serializeToString(copy);
};

const savePng = (svg, name) => {
  const image = new Image();
  image.addEventListener("load", () => {
    const { width, height } = image;
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
