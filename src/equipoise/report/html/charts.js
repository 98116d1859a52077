/* Charts in a page: a mark that is pointed at, or reached by the arrow keys, says what it is; maps can be
   looked at closer. Works on every svg[data-chart]; without it the charts are static images. */
(() => {
  "use strict";
  const charts = document.querySelectorAll("svg[data-chart]");
  if (!charts.length) return;

  const tip = document.createElement("div");
  tip.className = "chart-tip";
  tip.setAttribute("role", "status");
  tip.hidden = true;
  document.body.append(tip);
  let marked = null;

  const hide = () => {
    tip.hidden = true;
    if (marked) marked.classList.remove("chart-on");
    marked = null;
  };

  const show = (mark, x, y) => {
    if (mark !== marked) {
      hide();
      marked = mark;
      mark.classList.add("chart-on");
      tip.textContent = mark.dataset.tooltip;
    }
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = Math.min(x + 14, document.documentElement.clientWidth - box.width - 8);
    const above = y - box.height - 12;
    tip.style.left = Math.max(8, left) + "px";
    tip.style.top = (above < 8 ? y + 18 : above) + "px";
  };

  const neighbour = (mark) => {
    const box = mark.getBoundingClientRect();
    show(mark, box.left + box.width / 2, box.top);
  };

  const walk = (svg, step) => {
    const marks = [...svg.querySelectorAll("[data-tooltip]")];
    if (!marks.length) return;
    const here = marks.indexOf(marked);
    const next = here < 0 ? (step > 0 ? 0 : marks.length - 1) : here + step;
    neighbour(marks[(next + marks.length) % marks.length]);
  };

  const zoomed = (svg) => {
    const whole = svg.viewBox.baseVal;
    const home = { x: whole.x, y: whole.y, width: whole.width, height: whole.height };
    const view = { ...home };
    const apply = () => svg.setAttribute("viewBox", [view.x, view.y, view.width, view.height].join(" "));
    const at = (event) => {
      const box = svg.getBoundingClientRect();
      return [
        view.x + ((event.clientX - box.left) / box.width) * view.width,
        view.y + ((event.clientY - box.top) / box.height) * view.height,
      ];
    };
    const by = (factor, x = view.x + view.width / 2, y = view.y + view.height / 2) => {
      const width = Math.min(home.width, Math.max(home.width / 24, view.width * factor));
      const ratio = width / view.width;
      view.x = x - (x - view.x) * ratio;
      view.y = y - (y - view.y) * ratio;
      view.width = width;
      view.height *= ratio;
      if (width === home.width) Object.assign(view, home);
      apply();
    };
    let held = null;
    svg.addEventListener("wheel", (event) => {
      /* The page scrolls as ever, unless the chart has the focus or Ctrl is held. */
      if (!event.ctrlKey && document.activeElement !== svg) return;
      event.preventDefault();
      by(event.deltaY > 0 ? 1.2 : 1 / 1.2, ...at(event));
    }, { passive: false });
    svg.addEventListener("pointerdown", (event) => {
      if (view.width < home.width) held = at(event);
    });
    svg.addEventListener("pointermove", (event) => {
      if (!held) return;
      const [x, y] = at(event);
      view.x += held[0] - x;
      view.y += held[1] - y;
      apply();
    });
    for (const end of ["pointerup", "pointerleave"]) svg.addEventListener(end, () => { held = null; });
    svg.addEventListener("dblclick", () => by(Infinity));
    return { "+": () => by(1 / 1.4), "=": () => by(1 / 1.4), "-": () => by(1.4), 0: () => by(Infinity) };
  };

  for (const svg of charts) {
    const keys = {
      ArrowRight: () => walk(svg, 1),
      ArrowDown: () => walk(svg, 1),
      ArrowLeft: () => walk(svg, -1),
      ArrowUp: () => walk(svg, -1),
      Escape: hide,
      ...("zoom" in svg.dataset ? zoomed(svg) : {}),
    };
    svg.addEventListener("keydown", (event) => {
      const act = event.ctrlKey || event.metaKey || event.altKey ? null : keys[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    });
    svg.addEventListener("pointermove", (event) => {
      const mark = event.target.closest("[data-tooltip]");
      if (mark) show(mark, event.clientX, event.clientY);
      else hide();
    });
    svg.addEventListener("pointerleave", hide);
    svg.addEventListener("blur", hide);
  }
})();
