// The interactive chart of a tree: every node on one canvas, with search, zoom, pan, hover and collapse.
(function () {
  "use strict";
  const data = JSON.parse(document.getElementById("tree-data").textContent);
  const canvas = document.getElementById("tree");
  const context = canvas.getContext("2d");
  const tooltip = document.getElementById("tree-tooltip");
  const search = document.getElementById("tree-search");
  const status = document.getElementById("tree-status");
  const count = data.x.length;
  const children = Array.from({ length: count }, () => []);
  for (let node = 0; node < count; node++) if (data.parent[node] >= 0) children[data.parent[node]].push(node);
  const size = subtreeSizes();
  const byImportance = Array.from({ length: count }, (_, node) => node).sort((a, b) => size[b] - size[a] || a - b);
  const collapsed = new Set();
  let hidden = new Uint8Array(count);
  let view = { scale: 1, x: 0, y: 0 };
  let hovered = -1;
  let matches = new Set();
  let pending = false;
  let labels = [];
  // Size of the canvas and positions of all nodes in pixels, updated once per frame.
  let width = 1;
  let height = 1;
  let unit = 1;
  const screenX = new Float64Array(count);
  const screenY = new Float64Array(count);
  const textWidth = new Map();

  function subtreeSizes() {
    // Nodes are in the order of their depth, so that children come after their parents.
    const sizes = new Array(count).fill(1);
    for (let node = count - 1; node >= 0; node--) if (data.parent[node] >= 0) sizes[data.parent[node]] += sizes[node];
    return sizes;
  }

  function updateHidden() {
    hidden = new Uint8Array(count);
    for (let node = 0; node < count; node++) {
      const above = data.parent[node];
      if (above >= 0 && (hidden[above] || collapsed.has(above))) hidden[node] = 1;
    }
  }

  function updateScreen() {
    width = canvas.clientWidth;
    height = canvas.clientHeight;
    unit = (Math.min(width, height) / 2 - 12) * view.scale;
    for (let node = 0; node < count; node++) {
      screenX[node] = width / 2 + data.x[node] * unit + view.x;
      screenY[node] = height / 2 - data.y[node] * unit + view.y;
    }
  }

  function drawLink(node, above) {
    const [ax, ay, bx, by] = [data.x[node], data.y[node], data.x[above], data.y[above]];
    const [sx, sy, tx, ty] = [screenX[node], screenY[node], screenX[above], screenY[above]];
    context.moveTo(sx, sy);
    const d = 2 * (ax * by - ay * bx);
    // A short link is straight to the eye.
    if (data.kind !== "disk" || Math.abs(d) < 1e-3 || Math.abs(sx - tx) + Math.abs(sy - ty) < 20) {
      context.lineTo(tx, ty);
      return;
    }
    // The circle through both points that is orthogonal to the unit circle.
    const a2 = 1 + ax * ax + ay * ay;
    const b2 = 1 + bx * bx + by * by;
    const cx = (by * a2 - ay * b2) / d;
    const cy = (ax * b2 - bx * a2) / d;
    const radius = Math.sqrt(Math.max(cx * cx + cy * cy - 1, 0));
    const mx = width / 2 + cx * unit + view.x;
    const my = height / 2 - cy * unit + view.y;
    const start = Math.atan2(sy - my, sx - mx);
    let turn = Math.atan2(ty - my, tx - mx) - start;
    if (turn > Math.PI) turn -= 2 * Math.PI;
    if (turn < -Math.PI) turn += 2 * Math.PI;
    context.arc(mx, my, radius * unit, start, start + turn, turn < 0);
  }

  function isVisible(node, margin) {
    const [x, y] = [screenX[node], screenY[node]];
    return x > -margin && y > -margin && x < width + margin && y < height + margin;
  }

  function draw() {
    pending = false;
    updateScreen();
    const ratio = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const style = getComputedStyle(canvas);
    const ink = style.color;
    const paper = style.backgroundColor;
    context.fillStyle = paper;
    context.fillRect(0, 0, width, height);
    context.lineWidth = 0.7;
    context.strokeStyle = data.colors.line;
    if (data.kind === "disk") {
      context.beginPath();
      context.arc(width / 2 + view.x, height / 2 + view.y, unit, 0, 2 * Math.PI);
      context.stroke();
    }
    context.beginPath();
    for (let node = 0; node < count; node++) {
      const above = data.parent[node];
      if (above >= 0 && !hidden[node] && (isVisible(node, 60) || isVisible(above, 60))) drawLink(node, above);
    }
    context.stroke();
    drawNodes(ink);
    drawLabels(ink, paper);
    status.textContent = describe();
  }

  function drawNodes(ink) {
    // One path per colour: filling thousands of circles one by one is slow.
    const shrink = (count > 1500 ? 0.7 : 1) * Math.min(Math.sqrt(view.scale), 2);
    const outlined = [];
    for (let group = 0; group < data.colors.groups.length; group++) {
      for (const faded of matches.size ? [true, false] : [false]) {
        context.beginPath();
        for (let node = count - 1; node >= 0; node--) {
          if (data.group[node] !== group || hidden[node] || !isVisible(node, 20)) continue;
          if (matches.size && matches.has(node) === faded) continue;
          const radius = shrink * Math.min(2 + Math.log2(size[node]) * 0.7, 8);
          context.moveTo(screenX[node] + radius, screenY[node]);
          if (radius < 2) context.rect(screenX[node] - radius, screenY[node] - radius, 2 * radius, 2 * radius);
          else context.arc(screenX[node], screenY[node], radius, 0, 2 * Math.PI);
          if (collapsed.has(node) || matches.has(node) || node === hovered) outlined.push([node, radius]);
        }
        context.fillStyle = data.colors.groups[group];
        context.globalAlpha = faded ? 0.25 : 1;
        context.fill();
      }
    }
    context.globalAlpha = 1;
    context.lineWidth = 2;
    context.strokeStyle = ink;
    context.beginPath();
    for (const [node, radius] of outlined) {
      context.moveTo(screenX[node] + radius, screenY[node]);
      context.arc(screenX[node], screenY[node], radius, 0, 2 * Math.PI);
    }
    context.stroke();
  }

  function overlaps(a, b) {
    return a.right >= b.left && b.right >= a.left && a.bottom >= b.top && b.bottom >= a.top;
  }

  function drawLabels(ink, paper) {
    // The largest subtrees first; a label that would overlap another one is left out.
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    labels = [];
    const order = [...(hovered >= 0 ? [hovered] : []), ...matches, ...byImportance];
    const done = new Set();
    for (const node of order) {
      if (labels.length >= 120 || done.size >= 600) break;
      if (done.has(node) || hidden[node] || !isVisible(node, 0)) continue;
      done.add(node);
      const name = data.name[node];
      const text = name.length > 28 ? name.slice(0, 27) + "…" : name;
      const [x, y] = [screenX[node], screenY[node]];
      if (!textWidth.has(text)) textWidth.set(text, context.measureText(text).width);
      const space = textWidth.get(text) + 4;
      // To the right of the node, or to the left.
      const box = [x + 8, x - 8 - space]
        .map((left) => ({ node: node, left: left, right: left + space, top: y - 8, bottom: y + 8 }))
        .find((candidate) => labels.every((other) => !overlaps(candidate, other)));
      if (!box) continue;
      labels.push(box);
      context.lineWidth = 3;
      context.strokeStyle = paper;
      context.strokeText(text, box.left + 2, y);
      context.fillStyle = ink;
      context.fillText(text, box.left + 2, y);
    }
  }

  function describe() {
    let shown = 0;
    for (let node = 0; node < count; node++) shown += 1 - hidden[node];
    const found = search.value ? ", " + matches.size.toLocaleString("en") + " found" : "";
    return shown.toLocaleString("en") + " of " + count.toLocaleString("en") + " nodes" + found;
  }

  function requestDraw() {
    if (!pending) {
      pending = true;
      requestAnimationFrame(draw);
    }
  }

  function nodeAt(x, y) {
    let best = -1;
    let nearest = 12 * 12;
    for (let node = 0; node < count; node++) {
      if (hidden[node]) continue;
      const distance = (screenX[node] - x) ** 2 + (screenY[node] - y) ** 2;
      if (distance < nearest) [best, nearest] = [node, distance];
    }
    return best;
  }

  function pathTo(node) {
    const names = [];
    for (let above = node; above >= 0; above = data.parent[above]) names.unshift(data.name[above]);
    return names.join(" > ");
  }

  function zoom(factor, x, y) {
    const scale = Math.min(Math.max(view.scale * factor, 0.5), 5000);
    const ratio = scale / view.scale;
    const [cx, cy] = [x - canvas.clientWidth / 2, y - canvas.clientHeight / 2];
    view = { scale: scale, x: cx - (cx - view.x) * ratio, y: cy - (cy - view.y) * ratio };
    requestDraw();
  }

  function focusOn(node) {
    for (let above = data.parent[node]; above >= 0; above = data.parent[above]) collapsed.delete(above);
    updateHidden();
    const half = Math.min(canvas.clientWidth, canvas.clientHeight) / 2 - 12;
    const scale = Math.max(view.scale, 2);
    view = { scale: scale, x: -data.x[node] * half * scale, y: data.y[node] * half * scale };
    hovered = node;
    requestDraw();
  }

  function toggle(node) {
    if (!children[node].length) return;
    if (!collapsed.delete(node)) collapsed.add(node);
    updateHidden();
    requestDraw();
  }

  function find(text) {
    const wanted = text.trim().toLowerCase();
    matches = new Set();
    for (let node = 0; wanted && node < count; node++) {
      if (data.name[node].toLowerCase().includes(wanted) || data.id[node].toLowerCase().includes(wanted)) matches.add(node);
    }
    requestDraw();
  }

  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
  }, { passive: false });
  let dragged = null;
  canvas.addEventListener("pointerdown", (event) => {
    tooltip.hidden = true;
    dragged = { x: event.offsetX, y: event.offsetY, view: view, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (dragged) {
      const [dx, dy] = [event.offsetX - dragged.x, event.offsetY - dragged.y];
      if (Math.hypot(dx, dy) > 3) dragged.moved = true;
      if (dragged.moved) view = { scale: dragged.view.scale, x: dragged.view.x + dx, y: dragged.view.y + dy };
      requestDraw();
      return;
    }
    const node = nodeAt(event.offsetX, event.offsetY);
    if (node !== hovered) {
      hovered = node;
      requestDraw();
    }
    tooltip.hidden = node < 0;
    if (node >= 0) {
      const below = size[node] > 1 ? " (" + (size[node] - 1).toLocaleString("en") + " below)" : "";
      tooltip.textContent = (data.id[node] ? data.id[node] + ": " : "") + pathTo(node) + below;
      // Below the pointer, and inside the window.
      tooltip.style.left = Math.max(0, Math.min(event.clientX, innerWidth - tooltip.offsetWidth - 20)) + "px";
      tooltip.style.top = Math.min(event.clientY + 16, innerHeight - tooltip.offsetHeight) + "px";
    }
  });
  canvas.addEventListener("pointerleave", () => {
    tooltip.hidden = true;
  });
  canvas.addEventListener("pointerup", (event) => {
    if (dragged && !dragged.moved) {
      const node = nodeAt(event.offsetX, event.offsetY);
      if (node >= 0) toggle(node);
    }
    dragged = null;
  });
  canvas.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: [40, 0], ArrowRight: [-40, 0], ArrowUp: [0, 40], ArrowDown: [0, -40] };
    if (moves[event.key]) view = { scale: view.scale, x: view.x + moves[event.key][0], y: view.y + moves[event.key][1] };
    else if (event.key === "+" || event.key === "=") zoom(1.4, canvas.clientWidth / 2, canvas.clientHeight / 2);
    else if (event.key === "-") zoom(1 / 1.4, canvas.clientWidth / 2, canvas.clientHeight / 2);
    else return;
    event.preventDefault();
    requestDraw();
  });
  search.addEventListener("input", () => find(search.value));
  search.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !matches.size) return;
    const found = [...matches];
    focusOn(found[(found.indexOf(hovered) + 1) % found.length]);
  });
  document.getElementById("tree-reset").addEventListener("click", () => {
    view = { scale: 1, x: 0, y: 0 };
    collapsed.clear();
    search.value = "";
    matches = new Set();
    updateHidden();
    requestDraw();
  });
  document.getElementById("tree-collapse").addEventListener("click", () => {
    for (let node = 0; node < count; node++) if (data.depth[node] >= 1 && children[node].length) collapsed.add(node);
    updateHidden();
    requestDraw();
  });
  new ResizeObserver(requestDraw).observe(canvas);
  // For tests and for the console of the browser.
  window.treeChart = {
    nodes: count,
    draw: draw,
    toScreen: (node) => [screenX[node], screenY[node]],
    shown: () => hidden.reduce((sum, value) => sum - value, count),
    scale: () => view.scale,
    matches: () => [...matches],
    labels: () => labels,
    hovered: () => hovered,
  };
  draw();
})();
