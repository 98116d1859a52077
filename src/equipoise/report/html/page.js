// Text from data reaches the page through textContent only: whatever a document says, it is shown, never run.
const byId = (id) => document.getElementById(id);

const make = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
};

// Light or dark: what the reader's system asks for, until the reader says otherwise.
const theme = document.querySelector(".theme");
const darkNow = () => (document.documentElement.dataset.theme
  ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const nameTheme = () => { theme.textContent = darkNow() ? "Light" : "Dark"; };
theme.addEventListener("click", () => {
  document.documentElement.dataset.theme = darkNow() ? "light" : "dark";
  nameTheme();
});
theme.hidden = false;
nameTheme();

// The part that is being read, marked in the list of parts.
const partLinks = new Map([...document.querySelectorAll("nav a")].map((link) => [link.hash.slice(1), link]));
const inSight = new Set();
const sight = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) inSight[isIntersecting ? "add" : "delete"](target.id);
  const here = [...partLinks.keys()].find((id) => inSight.has(id));
  for (const [id, link] of partLinks) {
    if (id === here) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}, { rootMargin: "-15% 0px -60% 0px" });
for (const id of partLinks.keys()) sight.observe(byId(id));

// Paper cannot be unfolded. Charts repeat tables, and texts to copy are not needed on paper.
addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("details.fold:not(.also-table)")) fold.open = true;
});
