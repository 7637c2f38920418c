"use strict";

const EVERY = 5000; // milliseconds between looks
const HEIGHT = 210;
const at = (id) => document.getElementById(id);

function made(name, attributes, ...inside) {
  const svg = ["svg", "path", "rect", "line", "text", "title", "g"].includes(name);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...inside);
  return node;
}

function short(value) {
  if (value === null || value === undefined) return "–";
  if (value && Math.abs(value) < 1e-4) return value.toExponential(1);
  return Number(value.toPrecision(3)).toLocaleString("en", { maximumFractionDigits: 6 });
}

const percent = (value) => (value === null || value === undefined ? "–" : `${Math.round(100 * value)} %`);

function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const [unit, size] = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]].find(([, each]) => seconds >= each) || ["s", 1];
  return `${short(seconds / size)} ${unit}`;
}

function bytes(count) {
  const power = Math.min(3, Math.floor(Math.log10(Math.max(1, count)) / 3));
  return `${short(count / 1000 ** power)} ${["B", "kB", "MB", "GB"][power]}`;
}

function clock(seconds, span) {
  const date = new Date(1000 * seconds);
  const time = date.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", ...(span < 600 && { second: "2-digit" }) });
  return span < 86400 ? time : `${date.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${time}`;
}

// Round values between two limits, at most about `n` of them.
function ticks(low, high, n) {
  const raw = (high - low) / n;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * [1, 2, 5, 10].find((each) => each * power >= raw);
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + 1e-9 * step; value += step) found.push(value);
  return found;
}

// A chart with n places from left to right; `draw` gets functions from places and values to pixels.
function chart(place, { n, low, high, labels, describe, draw, name }) {
  const width = Math.max(240, place.clientWidth);
  if (!(high > low)) [low, high] = [low - 0.5, low + 0.5];
  const [left, bottom] = [46, 22];
  const x = (index) => left + ((width - left - 6) * index) / n;
  const y = (value) => 8 + ((HEIGHT - bottom - 8) * (high - value)) / (high - low);
  const svg = made("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, height: HEIGHT, role: "img", "aria-label": name });
  for (const value of ticks(low, high, 4)) {
    svg.append(made("line", { class: "axis", x1: left, x2: width, y1: y(value), y2: y(value) }));
    svg.append(made("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, short(value)));
  }
  const apart = Math.ceil((labels.length * 80) / (width - left));
  labels.forEach((label, index) => {
    if (index % apart === 0 && x(index) + 56 < width) svg.append(made("text", { x: x(index), y: HEIGHT - 5 }, label));
  });
  svg.append(...draw(x, y));
  for (let index = 0; index < n; index++) {
    const hit = { class: "hit", x: x(index), width: x(index + 1) - x(index), y: 0, height: HEIGHT - bottom };
    svg.append(made("rect", hit, made("title", {}, describe(index))));
  }
  place.replaceChildren(svg);
}

function columns(values) {
  return (x, y) =>
    values.map((value, index) => {
      const width = Math.max(1, 0.8 * (x(1) - x(0)));
      return made("rect", { class: "bar", x: x(index) + 0.1 * width, width, y: y(value), height: y(0) - y(value) });
    });
}

// The line through points [index, value, error] in the middle of their places, and its band.
function curve(points, line, band) {
  return (x, y) => {
    const path = (pairs) => pairs.map(([index, value]) => `${x(index + 0.5)},${y(value)}`).join("L");
    const upper = points.map(([index, value, error]) => [index, value + error]);
    const lower = points.map(([index, value, error]) => [index, value - error]).reverse();
    if (points.length === 1) { // a line needs two ends
      const [[index, value, error]] = points;
      const [from, to] = [x(index), x(index + 1)];
      const sides = `M${from},${y(value + error)}H${to}V${y(value - error)}H${from}Z`;
      return [made("path", { class: band, d: sides }), made("path", { class: line, d: `M${from},${y(value)}H${to}` })];
    }
    return [made("path", { class: band, d: `M${path([...upper, ...lower])}Z` }), made("path", { class: line, d: `M${path(points)}` })];
  };
}

function rewards(bins) {
  const points = (name) => bins.map((bin, index) => [index, bin[name], bin[`${name}_error`]]).filter(([, value]) => value !== null);
  const [own, other] = [points("mean"), points("uniform")];
  const all = [...own, ...other];
  const span = bins.at(-1).to - bins[0].from;
  chart(at("reward"), {
    n: bins.length,
    low: Math.min(...all.map(([, value, error]) => value - error)),
    high: Math.max(...all.map(([, value, error]) => value + error)),
    labels: bins.map((bin) => clock(bin.from, span)),
    name: "Mean reward over time, as chosen and as a uniform choice would have earned",
    describe: (index) => {
      const bin = bins[index];
      const text = (name) => `${short(bin[name])} ± ${short(bin[`${name}_error`])}`;
      return `from ${clock(bin.from, span)}: ${bin.rewards} rewards\nas chosen ${text("mean")}\nuniform ${text("uniform")}`;
    },
    draw: (x, y) => [...(other.length ? curve(other, "uniform", "band other")(x, y) : []), ...curve(own, "own", "band")(x, y)],
  });
}

function counted(id, values, labels, describe, name) {
  chart(at(id), { n: values.length, low: 0, high: Math.max(...values) || 1, labels, describe, name, draw: columns(values) });
}

// Rows of a name, a bar and a text; values may be negative.
function bars(place, rows) {
  const largest = Math.max(...rows.map(([, value]) => Math.abs(value)), 1e-300);
  const hasNegative = rows.some(([, value]) => value < 0);
  const zero = hasNegative ? 50 : 0;
  place.replaceChildren(
    ...rows.flatMap(([name, value, text, mark]) => {
      const width = ((100 - zero) * Math.abs(value)) / largest;
      const bar = made("rect", { class: value < 0 ? "bar less" : "bar", x: value < 0 ? zero - width : zero, width, height: 14 });
      const svg = made("svg", { viewBox: "0 0 100 14", preserveAspectRatio: "none", "aria-hidden": "true" }, bar);
      return [made("dt", {}, name), made("dd", {}, svg), made("dd", mark ? { class: mark } : {}, text)];
    }),
  );
  if (!rows.length) place.replaceChildren(made("dt", {}, "none"));
}

function seen(health) {
  const rows = [];
  for (const [shares, end] of [[health.seen, ""], [health.context_seen, " (context)"]]) {
    for (const [column, lately] of Object.entries(shares.lately)) {
      const before = shares.before[column];
      const drifts = before !== null && Math.abs(lately - before) > 0.1;
      rows.push([column + end, lately ?? 0, `${percent(lately)} (${percent(before)})`, drifts ? "drift" : ""]);
    }
  }
  bars(at("seen"), rows);
}

// One column per epoch: its rank, and the scales of the parts of its model.
function epochs(list) {
  const row = (name, cells, kind) => made("tr", {}, made("th", { scope: kind === "th" ? "col" : "row" }, name), ...cells.map((cell) => made(kind, {}, cell)));
  const parts = [...new Set(list.flatMap((each) => Object.keys(each.scales)))];
  at("epochs").replaceChildren(
    made("thead", {}, row("from round", list.map((each) => each.round.toLocaleString("en")), "th")),
    made("tbody", {}, row("rank", list.map((each) => `${each.rank}`), "td"), ...parts.map((part) => row(part, list.map((each) => short(each.scales[part])), "td"))),
  );
}

function tiles(health, reward) {
  const { lift } = health;
  const interval = lift.interval && `${short(lift.interval[0])} to ${short(lift.interval[1])}`;
  const shown = [
    [lift.lift === null ? "–" : (lift.lift > 0 ? "+" : "") + short(lift.lift), `lift over a uniform choice${interval ? `, 95 %: ${interval}` : ""}`],
    [short(reward.mean), `mean reward of ${reward.n.toLocaleString("en")} decisions`],
    [health.decisions.toLocaleString("en"), "decisions"],
    [health.pending.toLocaleString("en"), health.pending ? `pending decisions; the oldest is ${duration(health.oldest_pending)} old` : "pending decisions"],
    [health.late.toLocaleString("en"), "late rewards"],
    [bytes(health.storage_bytes ?? 0), `stored; ${health.behind} events behind`],
  ];
  at("tiles").replaceChildren(...shown.map(([value, text]) => made("li", {}, made("b", {}, value), made("span", {}, text))));
}

function decisions(list) {
  at("decisions").replaceChildren(
    ...list.map((each) => {
      const chosen = each.items.map((item, index) => `${item} (${percent(each.probabilities[index])})`).join(", ");
      const outcome = each.reward === null ? "pending" : `reward ${short(each.reward)}`;
      const parts = made("dl", { class: "bars" });
      bars(parts, each.parts.map(([name, value]) => [name, value, (value > 0 ? "+" : "") + short(value)]));
      return made("div", { class: "decision" }, made("div", {}, made("strong", {}, chosen), made("small", {}, `${clock(each.time, 0)}, ${outcome}`)), parts);
    }),
  );
}

function draw(data) {
  const { health, bins } = data;
  const learned = health.rewards.lately.n + health.rewards.before.n > 0;
  at("start").hidden = learned;
  for (const section of document.querySelectorAll(".learned")) section.hidden = !learned;
  for (const section of document.querySelectorAll(".decided")) section.hidden = !bins.length;
  at("warnings").replaceChildren(...health.warnings.map((text) => made("p", { class: "warning" }, text)));
  tiles(health, data.reward);
  seen(health);
  decisions(data.decisions);
  if (bins.length) {
    const span = bins.at(-1).to - bins[0].from;
    const labels = bins.map((bin) => clock(bin.from, span));
    counted("traffic", bins.map((bin) => bin.decisions), labels, (index) => `from ${labels[index]}: ${bins[index].decisions} decisions`, "Decisions over time");
  }
  if (learned) {
    if (bins.some((bin) => bin.mean !== null)) rewards(bins);
    bars(at("measure"), data.measure.map(([name, gain]) => [name, gain, `+${short(gain)}`]));
    epochs(health.epochs.slice(-8));
    const seconds = health.refit_seconds;
    if (seconds.length) counted("refits", seconds, seconds.map((_, index) => `${index - seconds.length + 1 || "latest"}`), (index) => `${short(seconds[index])} s`, "Seconds of refits");
  }
}

let latest = null;

async function look() {
  try {
    const answer = await fetch(new URL("dashboard.json", location.origin + location.pathname));
    const data = await answer.json();
    if (!answer.ok) throw new Error(data.error);
    draw((latest = data));
    at("state").textContent = `as of ${clock(data.time, 0)}`;
    document.documentElement.dataset.drawn = "yes";
  } catch (error) {
    at("state").textContent = `cannot update: ${error.message}`;
  }
}

addEventListener("resize", () => latest && draw(latest));
look();
setInterval(() => document.hidden || look(), EVERY);
