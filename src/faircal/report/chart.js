"use strict";

/* The explorer's chart: groups down, a panel for each error rate, a marker for each method. */

/* Axes are fixed, and stretched below `near`: there false-match rates differ. */
const METRICS = {
  fpr: { name: "False-match rate", near: 0.002, ticks: [0, 0.1, 0.5, 1, 5, 10, 50, 100] },
  fnr: { name: "False non-match rate", near: 0.05, ticks: [0, 2, 5, 10, 20, 50, 100] },
};
/* In the order of the figures: told apart by colour-blind readers, and in grey. */
const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"];
const SHAPES = [
  "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z",
  "M-4.6-4.6h9.2v9.2h-9.2z",
  "M0-5.8L5.4 4.2H-5.4z",
  "M0-6.2L5.6 0L0 6.2L-5.6 0z",
  "M0 5.8L5.4-4.2H-5.4z",
  "M-1.9-5.6h3.8v3.7h3.7v3.8h-3.7v3.7h-3.8v-3.7h-3.7v-3.8h3.7z",
  "M0-2.6L3-5.6L5.6-3L2.6 0L5.6 3L3 5.6L0 2.6L-3 5.6L-5.6 3L-2.6 0L-5.6-3L-3-5.6z",
  "M-5.8 0L4.2-5.4V5.4z",
  "M0-6.6L1.6-2.2L6.3-2L2.6.9L3.9 5.3L0 2.8L-3.9 5.3L-2.6.9L-6.3-2L-1.6-2.2z",
  "M5.8 0L-4.2-5.4V5.4z",
  "M0-5.8L5.5-1.8L3.4 4.7H-3.4L-5.5-1.8z",
  "M0-5.8L5-2.9V2.9L0 5.8L-5 2.9V-2.9z",
];

const byId = (id) => document.getElementById(id);
const percent = (rate) => `${(100 * rate).toFixed(2)} %`;
const whole = (count) => count.toLocaleString("en");

/* Names come from the data: they are only ever set as text or attribute values, never as markup. */
function fill(node, attributes, children) {
  Object.entries(attributes).forEach(([name, value]) => node.setAttribute(name, value));
  node.append(...children);
  return node;
}

const make = (tag, attributes = {}, ...children) =>
  fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS(byId("explorer-chart").namespaceURI, tag), attributes, children);

function marker(method) {
  const colour = (method + Math.floor(method / SHAPES.length)) % COLOURS.length;
  return draw("path", { d: SHAPES[method % SHAPES.length], fill: COLOURS[colour] });
}

class Chart {
  /* `measure` gives a mark's {count, of, rate, clear}; it is clear where it can be shown. */
  constructor(measure) {
    this.measure = measure;
    this.plot = byId("explorer-plot");
    this.svg = byId("explorer-chart");
    this.tip = byId("explorer-tip");
    this.marks = []; // {method, group, metric, node, at(rate), y}
    this.spot = -1; // the mark whose numbers are shown
    this.listen();
  }

  /* Draw the frame and a marker each for groups [{key, name, few: {fpr, fnr}}] and methods
     [{index, name}]; `place` puts them where they belong. */
  build(groups, methods) {
    this.show(-1);
    this.groups = groups;
    this.methods = methods;
    this.width = this.plot.clientWidth; // before there are markers: reading it fixes where they are
    const width = Math.max(this.width, 280);
    const beside = width >= 680;
    const longest = Math.max(...groups.map(({ name }) => name.length));
    const left = Math.min(longest * 7 + 16, width * (beside ? 0.2 : 0.34));
    const panel = beside ? (width - left - 44) / 2 : width - left - 14;
    const row = 16 + 8 * Math.max(methods.length, 1);
    const tall = row * groups.length + 62;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${beside ? tall : 2 * tall}`);
    this.svg.replaceChildren();
    this.marks = [];
    Object.keys(METRICS).forEach((metric, i) => {
      const second = beside && i > 0;
      const x = second ? left + panel + 30 : left;
      const y = 26 + (beside ? 0 : i * tall);
      this.drawFrame({ metric, x, y, panel, row, from: second ? x : 0 });
      this.drawMarks({ metric, x, y, panel, row });
    });
    this.marks.sort((a, b) => a.group - b.group); // the order of the arrow keys
  }

  along(metric, rate) {
    const { near } = METRICS[metric];
    return Math.asinh(rate / near) / Math.asinh(1 / near);
  }

  drawFrame({ metric, x, y, panel, row, from }) {
    const { name, ticks } = METRICS[metric];
    const bottom = y + row * this.groups.length;
    this.svg.append(draw("text", { x, y: y - 10, class: "title" }, `${name} (${metric.toUpperCase()})`));
    this.groups.forEach((group, i) => {
      const top = y + row * i;
      const size = { x: from, y: top, width: x + panel - from, height: row };
      this.svg.append(draw("rect", { ...size, class: i % 2 ? "bare" : "band" }));
      if (from === 0) this.svg.append(this.label(group.name, x, top + row / 2 + 4));
    });
    ticks.forEach((tick) => {
      const at = x + panel * this.along(metric, tick / 100);
      this.svg.append(
        draw("line", { x1: at, x2: at, y1: y, y2: bottom, class: "grid" }),
        draw("text", { x: at, y: bottom + 15, class: "tick" }, String(tick)));
    });
    this.svg.append(draw("text", { x: x + panel / 2, y: bottom + 30, class: "tick" }, "percent"));
    this.groups.forEach((group, i) => {
      const at = { x: x + 8, y: y + row * (i + 0.5) + 4, class: "few" };
      this.svg.append(draw("text", at, group.few[metric]));
    });
  }

  label(name, width, y) {
    const room = Math.floor((width - 12) / 6.8);
    return draw("text", { x: 4, y }, name.length > room ? `${name.slice(0, room - 1)}…` : name);
  }

  drawMarks({ metric, x, y, panel, row }) {
    const at = (rate) => x + panel * this.along(metric, rate);
    this.groups.forEach(({ key }, group) => this.methods.forEach(({ index, name }, k) => {
      const names = { "data-method": name, "data-group": key, "data-metric": metric };
      const node = draw("g", { class: "marker", ...names }, marker(index));
      this.svg.append(node);
      const place = { at, y: y + row * group + 12 + 8 * k };
      this.marks.push({ method: index, group, metric, name, node, ...place });
    }));
  }

  place() {
    this.marks.forEach((mark) => {
      const found = this.measure(mark);
      mark.node.classList.toggle("off", !found.clear);
      if (!found.clear) return;
      mark.x = mark.at(found.rate);
      mark.node.style.transform = `translate(${mark.x}px, ${mark.y}px)`;
    });
    this.show(this.spot);
  }

  /* Show the numbers of one mark beside it; of none with -1. */
  show(index) {
    if (this.spot >= 0) this.marks[this.spot].node.classList.remove("on");
    this.spot = index;
    const mark = this.marks[index];
    this.tip.hidden = !mark || mark.node.classList.contains("off");
    if (this.tip.hidden) return;
    const { rate, count, of } = this.measure(mark);
    mark.node.classList.add("on");
    this.tip.replaceChildren(
      make("strong", {}, mark.name), make("span", {}, this.groups[mark.group].name),
      make("span", {}, `${METRICS[mark.metric].name} ${percent(rate)}`),
      make("span", {}, `${whole(count)} of ${whole(of)} pairs`));
    const zoom = this.svg.clientWidth / this.svg.viewBox.baseVal.width;
    const most = this.plot.clientWidth - this.tip.offsetWidth;
    this.tip.style.left = `${Math.max(Math.min(mark.x * zoom + 12, most), 0)}px`;
    this.tip.style.top = `${mark.y * zoom + 14}px`;
  }

  /* The mark nearest to the pointer, if it is near; markers stand closer than a finger is wide. */
  nearest(event) {
    const box = this.svg.getBoundingClientRect();
    const zoom = this.svg.viewBox.baseVal.width / box.width;
    const [x, y] = [(event.clientX - box.left) * zoom, (event.clientY - box.top) * zoom];
    const far = this.marks.map((mark) => (
      mark.node.classList.contains("off") ? Infinity : Math.hypot(mark.x - x, mark.y - y)));
    const least = Math.min(...far);
    return least <= 14 ? far.indexOf(least) : -1;
  }

  walk(event) {
    const clear = this.marks.flatMap(({ node }, i) => (node.classList.contains("off") ? [] : i));
    const here = clear.indexOf(this.spot);
    const [next, before] = [Math.min(here + 1, clear.length - 1), Math.max(here - 1, 0)];
    const to = {
      ArrowRight: next, ArrowDown: next, ArrowLeft: before, ArrowUp: before,
      Home: 0, End: clear.length - 1, Escape: -1,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.show(clear[to] ?? -1);
  }

  listen() {
    ["pointermove", "pointerdown"].forEach((kind) => this.svg.addEventListener(kind, (event) => {
      this.show(this.nearest(event));
    }));
    this.plot.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse") this.show(-1); // after a tap it stays
    });
    this.plot.addEventListener("focus", () => {
      if (this.plot.matches(":focus-visible")) this.walk(new KeyboardEvent("keydown", { key: "Home" }));
    });
    this.plot.addEventListener("blur", () => this.show(-1));
    this.plot.addEventListener("keydown", (event) => this.walk(event));
    new ResizeObserver(() => {
      if (this.plot.clientWidth === this.width || !this.groups) return;
      this.build(this.groups, this.methods);
      this.place();
    }).observe(this.plot);
  }
}
