"use strict";

/* The explorer: a slider moves the threshold, and every group's error rates follow. All numbers are
   counts from #explorer-data, which explorer.py makes. */

const SCALES = {
  score: ["Threshold on the score", "Same person where the score is at least"],
  probability: ["Threshold on the probability", "Same person where the probability is at least"],
  fpr: ["Same overall false-match rate for all methods", "Overall false-match rate at most"],
};

/* Where pairs and people stand in twos: genuine ones first. */
const KINDS = ["fnr", "fpr"];

/* Counts come as those between one step and the next, in a text; or as those accepted, in a list. */
function accepted(counts, length) {
  if (typeof counts !== "string") return counts;
  const found = new Float64Array(length);
  counts.split(",").forEach((count, i) => { found[i] = Number(count); });
  for (let i = length - 2; i >= 0; i -= 1) found[i] += found[i + 1];
  return found;
}

/* Where a rate lies (Wilson): wide enough for all groups at once, of as many pairs as tell something
   new. */
function wilson(found, z) {
  const [count, of] = [found.count * found.share, found.of * found.share];
  const middle = (count + z * z / 2) / (of + z * z);
  const half = z / (of + z * z) * Math.sqrt(count * (of - count) / of + z * z / 4);
  return [middle - half, middle + half];
}

/* What there is not enough of, pairs or effective people (null where nobody knows); else nothing. */
function lacking(pairs, fewest, people, least) {
  if (pairs < fewest) return `not enough data (${pairs} pairs)`;
  if (people === null || people >= least) return "";
  return `not enough data (${Math.min(Math.round(people), least - 1)} people)`;
}

class Explorer {
  constructor(data) {
    this.data = data;
    this.slider = byId("threshold");
    this.chart = new Chart((mark) => this.measure(mark));
    this.cells = []; // of the table: {method, group, metric, node}
    this.listen();
    byId("explorer-note").hidden = true;
    byId("explorer-app").hidden = false;
    byId("explorer-views").hidden = data.views.length < 2;
    byId("explorer-view").append(
      ...data.views.map(({ name }, i) => make("option", { value: i }, name)));
    this.setView(0);
  }

  listen() {
    this.slider.addEventListener("input", () => this.update());
    byId("explorer-view").addEventListener("change", ({ target }) => this.setView(target.value));
    byId("explorer-scales").addEventListener("change", ({ target }) => this.setScale(target.value));
    byId("explorer-methods").addEventListener("change", () => this.rebuild());
    byId("explorer-reset").addEventListener("click", () => this.reset());
  }

  /* What is chosen. */

  setView(index) {
    this.view = this.data.views[index];
    const choice = (type, name, value, ...words) =>
      make("label", {}, make("input", { type, name, value, autocomplete: "off" }), ...words);
    byId("explorer-scales").replaceChildren(...Object.keys(this.view.scales).map(
      (name) => choice("radio", "scale", name, SCALES[name][0])));
    byId("explorer-methods").replaceChildren(...this.view.methods.map((name, method) => {
      const look = { viewBox: "-7 -7 14 14", class: "key", "aria-hidden": "true" };
      return choice("checkbox", "method", name, draw("svg", look, marker(method)), name);
    }));
    this.reset();
  }

  reset() {
    this.boxes().forEach((box) => { box.checked = true; });
    const first = document.querySelector("input[name=scale]");
    first.checked = true;
    this.setScale(first.value);
  }

  setScale(name) {
    this.scaleName = name;
    this.scale = this.view.scales[name];
    const { min, max, step, start, note, methods } = this.scale;
    const length = Math.round((max - min) / step) + 1;
    methods.forEach((method) => ["genuine", "imposter"].forEach((kind) => {
      method[kind] = method[kind].map((counts) => accepted(counts, length));
    }));
    byId("threshold-label").textContent = SCALES[name][1];
    byId("threshold-note").textContent = note;
    byId("threshold-note").hidden = !note;
    Object.entries({ min, max, step }).forEach((pair) => this.slider.setAttribute(...pair));
    this.slider.value = start;
    this.rebuild();
  }

  boxes() {
    return [...document.querySelectorAll("input[name=method]")];
  }

  shown() {
    return this.boxes().flatMap((box, i) => (box.checked ? { index: i, name: box.value } : []));
  }

  /* What that means in numbers. */

  step() {
    return Math.round((Number(this.slider.value) - this.scale.min) / this.scale.step);
  }

  /* Errors of one method in one group: how many, of how many pairs. */
  measure({ method, group, metric }) {
    const [genuine, imposter] = this.view.pairs[group];
    const kind = metric === "fpr" ? "imposter" : "genuine";
    const passed = this.scale.methods[method][kind][group][this.step()];
    const of = metric === "fpr" ? imposter : genuine;
    const count = metric === "fpr" ? passed : genuine - passed;
    const lacks = this.lacks(group, metric, of);
    const text = lacks || (passed === null ? "–" : percent(count / of));
    const share = this.view.effective[method][group][KINDS.indexOf(metric)];
    return { count, of, share, rate: count / of, clear: !lacks && passed !== null, text };
  }

  /* What a group has not enough of for a rate to be told; nothing where it has. */
  lacks(group, metric, of) {
    const wanted = this.scaleName === "fpr" && metric === "fpr";
    const fewest = wanted ? this.scale.people[this.step()] : this.data.fewest_people;
    return lacking(of, this.needed(metric), this.view.people[group][KINDS.indexOf(metric)], fewest);
  }

  /* How many pairs a rate needs to be told: more where the rate itself is what is asked for. */
  needed(metric) {
    const wanted = this.scaleName === "fpr" && metric === "fpr";
    const { fewest } = this.data;
    return wanted ? Math.max(fewest, Math.ceil((3 / this.scale.rates[this.step()]) * (1 - 1e-12))) : fewest;
  }

  groupName(group) {
    return group === 0 ? "All pairs" : this.view.groups[group];
  }

  setting() {
    if (this.scaleName !== "fpr") return Number(this.slider.value).toFixed(this.scale.decimals);
    return `${Number((100 * this.scale.rates[this.step()]).toPrecision(3))} %`;
  }

  threshold(method) {
    if (this.scaleName !== "fpr") return this.setting();
    return this.scale.methods[method].thresholds[this.step()] ?? "none gives this rate";
  }

  /* One sentence on the group that is matched wrongly most often, and the one least often. */
  contrast({ index, name }) {
    const groups = this.view.groups.map((_, group) => ({
      ...this.measure({ method: index, group, metric: "fpr" }), name: this.groupName(group),
    })).slice(1).filter(({ clear }) => clear).sort((a, b) => b.rate - a.rate);
    if (groups.length < 2) return `${name}: not enough data to compare groups.`;
    const [worst, best] = [groups[0], groups[groups.length - 1]];
    if (!worst.count) return `${name}: no group is matched wrongly here.`;
    const times = worst.rate / best.rate;
    const often = times < 1.05 ? "about" : `${times.toFixed(times < 10 ? 1 : 0)} times`;
    const said = best.count
      ? `${worst.name} is matched wrongly ${often} as often as ${best.name}`
      : `${worst.name} is matched wrongly, ${best.name} not once`;
    const counts = `${whole(worst.count)} of ${whole(worst.of)} pairs against ` +
      `${best.count ? whole(best.count) : "none"} of ${whole(best.of)}`;
    const apart = wilson(worst, this.view.z)[0] > wilson(best, this.view.z)[1];
    if (apart) return `${name}: ${said} (${counts}).`;
    return `${name}: the data does not tell the groups apart ` +
      `(most in ${worst.name}, least in ${best.name}: ${counts}).`;
  }

  /* What is shown: built when methods change, filled whenever the slider moves. */

  rebuild() {
    this.buildTable();
    this.chart.build(this.view.groups.map((key, group) => {
      const [genuine, imposter] = this.view.pairs[group];
      const { fewest, fewest_people: least } = this.data;
      const few = (of, kind) => lacking(of, fewest, this.view.people[group][kind], least);
      return { key, name: this.groupName(group), few: { fpr: few(imposter, 1), fnr: few(genuine, 0) } };
    }), this.shown());
    this.update();
  }

  buildTable() {
    const methods = this.shown();
    this.cells = [];
    const cell = (attributes, place) => {
      const node = make("td", attributes);
      this.cells.push({ ...place, node });
      return node;
    };
    const body = this.view.groups.map((key, group) => {
      const [genuine, imposter] = this.view.pairs[group].map(whole);
      const pairs = make("small", {}, `${imposter} + ${genuine} pairs`);
      const cells = methods.flatMap(({ index, name }) => Object.keys(METRICS).map((metric) => cell(
        { "data-method": name, "data-group": key, "data-metric": metric },
        { method: index, group, metric })));
      return make("tr", {}, make("th", { scope: "row" }, this.groupName(group), pairs), ...cells);
    });
    const head = [
      make("tr", {}, make("td", { rowspan: 2 }), ...methods.map(
        ({ name }) => make("th", { scope: "colgroup", colspan: 2 }, name))),
      make("tr", {}, ...methods.flatMap(() => Object.keys(METRICS).map(
        (metric) => make("th", { scope: "col" }, metric.toUpperCase())))),
    ];
    const foot = make("tr", {}, make("th", { scope: "row" }, "Threshold"),
      ...methods.map(({ index }) => cell({ colspan: 2 }, { method: index })));
    const table = byId("explorer-table");
    table.tHead.replaceChildren(...head);
    table.tBodies[0].replaceChildren(...body);
    table.tFoot.replaceChildren(foot);
  }

  update() {
    const setting = this.setting();
    byId("threshold-value").textContent = setting;
    this.slider.setAttribute("aria-valuetext", setting);
    this.cells.forEach((cell) => {
      if (cell.metric) this.fillCell(cell);
      else cell.node.textContent = this.threshold(cell.method);
    });
    this.chart.place();
    const said = this.view.groups.length > 1 ? this.shown().map((method) => this.contrast(method)) : [];
    byId("explorer-ratios").replaceChildren(...said.map((line) => make("li", {}, line)));
    this.tell(`${SCALES[this.scaleName][1]} ${setting}.`, said);
  }

  fillCell(cell) {
    const { text, rate, clear } = this.measure(cell);
    cell.node.textContent = text;
    cell.node.dataset.value = clear ? rate : "";
    cell.node.classList.toggle("none", !clear);
  }

  /* Words for those who don't see the chart; spoken once the slider rests. */
  tell(where, said) {
    byId("explorer-caption").textContent = where;
    byId("explorer-chart").setAttribute("aria-label",
      `Error rates of each group, as in the table below. ${where} ${said.slice(0, 3).join(" ")}`);
    clearTimeout(this.speaking);
    this.speaking = setTimeout(() => {
      byId("explorer-said").textContent = said[0] ?? where;
    }, 800);
  }
}

/* On paper everything is open. */
addEventListener("beforeprint", () => {
  document.querySelectorAll("details:not([open])").forEach((part) => {
    part.open = true;
    part.classList.add("was-shut");
  });
});
addEventListener("afterprint", () => {
  document.querySelectorAll(".was-shut").forEach((part) => {
    part.open = false;
    part.classList.remove("was-shut");
  });
});

if (byId("explorer-data")) new Explorer(JSON.parse(byId("explorer-data").textContent));
