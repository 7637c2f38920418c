/* Charts of the page: every study is drawn from the data inside it, and again after each click. */
"use strict";
(() => {
  const BAND = 0.14;
  const PRINTED = { width: 335, height: 270 };
  const CONFIG = { displayModeBar: false, responsive: false, showTips: false };
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let printing = false;

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const isDark = () => dark.matches && !printing;
  const colorOf = (method) => (isDark() ? method.dark : method.color);
  const pale = (color) => {
    const part = (at) => parseInt(color.slice(at, at + 2), 16);
    return `rgba(${part(1)},${part(3)},${part(5)},${BAND})`;
  };
  const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const withMinus = (value) => String(value).replace("-", "−");
  const meanText = (mean, error) => withMinus(mean) + (error === null ? "" : ` ± ${withMinus(error)}`);
  const tooltip = (method, where, mean, error, n) =>
    `<b>${escaped(method.label)}</b><br>${escaped(where)}<br>regret ${meanText(mean, error)}<br>n = ${n}`;

  function make(tag, settings = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(settings)) {
      if (name === "onclick" || name === "onchange") element[name] = value;
      else element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  }

  function swatch(method) {
    const [svg, line] = ["svg", "line"].map((tag) => document.createElementNS("http://www.w3.org/2000/svg", tag));
    const put = (element, values) => Object.entries(values).forEach(([k, v]) => element.setAttribute(k, v));
    put(svg, { width: 30, height: 10, "aria-hidden": "true" });
    put(line, { x1: 1, x2: 29, y1: 5, y2: 5, stroke: colorOf(method), "stroke-width": 3 });
    if (method.dash !== "solid") line.setAttribute("stroke-dasharray", method.dash.replace(/px/g, ""));
    svg.append(line);
    return svg;
  }

  class Charts {
    constructor(place) {
      this.place = place;
      this.data = JSON.parse(place.querySelector("script.data").textContent);
      this.hidden = new Set([...this.data.methods.keys()].filter((at) => !this.data.methods[at].on));
      this.log = { y: false, x: false };
      this.setting = 0;
      this.p = this.lowest();
      this.build();
      this.draw();
    }

    get probs() { return this.data.settings[this.setting].probs; }
    get sweeps() { return this.probs.length > 1; }
    lowest() { return this.probs.every((p) => p !== null) ? Math.min(...this.probs) : this.probs[0]; }
    isShown(index) { return !this.hidden.has(index); }
    where(setting, p) {
      const name = this.data.settings[setting].name;
      const parts = [];
      if (name !== "default") parts.push(name);
      if (p !== null && !name.includes(`p${p}`)) parts.push(`p = ${p}`);
      return parts.join(", ");
    }

    build() {
      this.controls = make("div", { class: "controls" });
      this.legend = make("div", { class: "legend", role: "group", "aria-label": "methods" });
      const id = this.place.dataset.study;
      const figure = (name) => {
        const plot = make("div", { class: `plot ${name}`, id: `${id}-${name}` });
        const caption = make("figcaption", { "aria-live": "polite" });
        return { plot, caption, figure: make("figure", {}, caption, plot) };
      };
      this.time = figure("over-time");
      this.final = figure("final");
      const hint = make("p", { class: "hint" },
        "Hover or tap for values; click a method to show or hide it. Bands and bars are one standard error.");
      this.place.append(this.controls, make("div", { class: "plots" }, this.time.figure, this.final.figure), this.legend, hint);
      this.buildControls();
    }

    buildControls() {
      const groups = [];
      if (this.data.settings.length > 1) {
        const id = `${this.place.dataset.study}-setting`;
        const select = make("select", { id, onchange: (event) => {
          this.setting = Number(event.target.value);
          if (!this.probs.includes(this.p)) this.p = this.lowest();
          this.change();
        } });
        this.data.settings.forEach(({ name }, index) => select.append(make("option", { value: index }, name)));
        select.value = this.setting;
        groups.push(make("div", { class: "group" }, make("label", { for: id }, "setting"), select));
      }
      if (this.sweeps) {
        groups.push(this.choice("p", `${this.data.share}, p`, this.probs.map((p) => [p, String(p)]),
          () => this.p, (p) => { this.p = p; }));
      }
      const scales = [[false, "linear"], [true, "log"]];
      groups.push(this.choice("y", "regret", scales, () => this.log.y, (log) => { this.log.y = log; }));
      groups.push(this.choice("x", "rounds", scales, () => this.log.x, (log) => { this.log.x = log; }));
      this.controls.replaceChildren(...groups);
      this.buildLegend();
    }

    choice(name, label, options, current, choose) {
      const group = make("div", { class: "group", role: "group", "aria-label": label, "data-choice": name });
      group.append(make("span", { "aria-hidden": "true" }, label));
      for (const [value, text] of options) {
        const press = () => {
          choose(value);
          for (const other of group.querySelectorAll("button")) other.setAttribute("aria-pressed", String(other === button));
          this.draw();
        };
        const button = make("button", { type: "button", "aria-pressed": String(current() === value), "data-value": value, onclick: press }, text);
        group.append(button);
      }
      return group;
    }

    buildLegend() {
      const buttons = this.data.methods.map((method, index) => {
        const toggle = () => {
          if (!this.hidden.delete(index)) this.hidden.add(index);
          button.setAttribute("aria-pressed", String(this.isShown(index)));
          this.draw();
        };
        const button = make("button", { type: "button", "aria-pressed": String(this.isShown(index)), "data-method": method.key, onclick: toggle },
          swatch(method), method.label);
        return button;
      });
      const every = (text, hidden) => make("button", { type: "button", class: "every", onclick: () => {
        this.hidden = new Set(hidden());
        this.buildLegend();
        this.draw();
      } }, text);
      this.legend.replaceChildren(...buttons, every("all", () => []), every("none", () => this.data.methods.keys()));
    }

    change() { this.buildControls(); this.draw(); }

    draw() {
      const where = this.where(this.setting, this.p);
      this.plot(this.time, `Regret over rounds${where ? `: ${where}` : ""}`, this.overTime(), this.timeAxis());
      if (this.sweeps) {
        const name = this.where(this.setting, null);
        this.plot(this.final, `Final regret by ${this.data.share}${name ? `: ${name}` : ""}`, this.sweep(), this.probAxis());
      } else {
        this.plot(this.final, "Final regret", this.bars(), { type: "category" }, { barmode: "group" });
      }
    }

    overTime() {
      const traces = [];
      for (const [setting, p, index, n, rounds, means, errors] of this.data.lines) {
        if (setting !== this.setting || p !== this.p || !this.isShown(index)) continue;
        const method = this.data.methods[index];
        const x = this.data.rounds[rounds];
        if (errors.every((error) => error !== null)) traces.push(this.band(method, x, means, errors));
        traces.push({
          x, y: means, mode: "lines", name: escaped(method.label), meta: method.key,
          line: { color: colorOf(method), width: 2, dash: method.dash },
          hovertext: means.map((mean, at) => tooltip(method, `round ${x[at]}`, mean, errors[at], n)),
          hoverinfo: "text",
        });
      }
      return traces;
    }

    band(method, x, means, errors) {
      // A logarithmic axis cannot show values that are not positive.
      const low = means.map((mean, at) => (this.log.y ? Math.max(mean - errors[at], mean / 3) : mean - errors[at]));
      const high = means.map((mean, at) => mean + errors[at]);
      return {
        x: [...x, ...[...x].reverse()], y: [...high, ...low.reverse()], mode: "lines", fill: "toself",
        fillcolor: pale(colorOf(method)), line: { width: 0 }, hoverinfo: "skip",
      };
    }

    sweep() {
      return this.finals((setting) => setting === this.setting).map(({ method, rows }) => ({
        x: rows.map((row) => row.p), y: rows.map((row) => row.mean), mode: "lines+markers",
        name: escaped(method.label), meta: method.key,
        line: { color: colorOf(method), width: 2, dash: method.dash },
        marker: { color: colorOf(method), size: 8, symbol: method.symbol, line: { width: method.symbol.endsWith("open") ? 2 : 0, color: colorOf(method) } },
        error_y: { type: "data", array: rows.map((row) => row.error ?? 0), thickness: 1.2, width: 3 },
        hovertext: rows.map((row) => tooltip(method, `p = ${row.p}`, row.mean, row.error, row.n)), hoverinfo: "text",
      }));
    }

    bars() {
      return this.finals(() => true).map(({ method, rows }) => ({
        type: "bar", x: rows.map((row) => this.barName(row)), y: rows.map((row) => row.mean),
        name: escaped(method.label), meta: method.key, textposition: "none",
        marker: { color: colorOf(method), pattern: { shape: method.pattern, fgcolor: css("--card"), size: 6, solidity: 0.25, fillmode: "overlay" } },
        error_y: { type: "data", array: rows.map((row) => row.error ?? 0), thickness: 1.2, width: 2, color: css("--soft") },
        hovertext: rows.map((row) => tooltip(method, this.where(row.setting, row.p), row.mean, row.error, row.n)), hoverinfo: "text",
      }));
    }

    barName({ setting, p }) {
      const { name } = this.data.settings[setting];
      return name === "default" ? this.where(setting, p) || "all" : name;
    }

    finals(wanted) {
      return this.data.methods.map((method, index) => ({
        method,
        rows: this.isShown(index) ? this.data.finals
          .filter(([setting, , of]) => of === index && wanted(setting))
          .map(([setting, p, , n, mean, error]) => ({ setting, p, n, mean, error })) : [],
      })).filter(({ rows }) => rows.length);
    }

    timeAxis() { return { title: { text: "round" }, ...(this.log.x ? { type: "log", dtick: 1 } : { type: "linear" }) }; }
    probAxis() {
      const narrow = printing || this.place.clientWidth < 480;
      return { title: { text: `${this.data.share}, p` }, autorange: "reversed", tickvals: this.probs, tickangle: 0, tickfont: { size: narrow ? 10 : 12 } };
    }

    plot({ plot, caption }, title, traces, xaxis, more = {}) {
      if (caption.textContent !== title) caption.textContent = title;
      plot.setAttribute("role", "img");
      plot.setAttribute("aria-label", `${title}; the numbers are in the files below`);
      const lines = { gridcolor: css("--grid"), linecolor: css("--line"), zeroline: false, automargin: true, fixedrange: true };
      const decades = this.log.y && { dtick: 1, range: wholeDecades(traces) };
      const layout = {
        width: printing ? PRINTED.width : plot.clientWidth, height: printing ? PRINTED.height : plot.clientHeight,
        margin: { l: 52, r: 12, t: 10, b: 44 }, showlegend: false, hovermode: "closest", dragmode: false,
        paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
        font: { family: getComputedStyle(document.body).fontFamily, size: printing ? 10 : 12, color: css("--ink") },
        hoverlabel: { bgcolor: css("--page"), bordercolor: css("--soft"), font: { color: css("--ink") }, align: "left", namelength: -1 },
        xaxis: { ...lines, ...xaxis },
        yaxis: { ...lines, ...decades, title: { text: "regret" }, type: this.log.y ? "log" : "linear", rangemode: this.log.y ? "normal" : "tozero" },
        ...more,
      };
      window.Plotly.react(plot, traces, layout, CONFIG);
    }
  }

  /* The range of a logarithmic axis: whole powers of ten, which are the only labels. */
  function wholeDecades(traces) {
    const values = traces.flatMap((trace) => trace.y).filter((value) => value > 0).map(Math.log10);
    if (!values.length) return undefined;
    const low = Math.floor(Math.min(...values));
    return [low, Math.max(low + 1, Math.ceil(Math.max(...values)))];
  }

  const all = [];
  const again = () => all.forEach((charts) => { charts.buildLegend(); charts.draw(); });
  const places = [...document.querySelectorAll(".charts")];
  const next = () => {
    const place = places.shift();
    if (place) { all.push(new Charts(place)); setTimeout(next); } else document.documentElement.dataset.drawn = "all";
  };
  next();

  let width = innerWidth;
  let waiting;
  addEventListener("resize", () => {
    if (innerWidth === width || printing) return;
    width = innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(() => all.forEach((charts) => charts.draw()), 150);
  });
  dark.addEventListener("change", again);

  const print = (now) => {
    printing = now;
    // A closed element is not printed, and the numbers behind a verdict should be.
    for (const details of document.querySelectorAll("details.numbers")) details.open = now;
    // Charts take their colours before the browser switches to its print style.
    document.documentElement.toggleAttribute("data-printing", now);
    again();
  };
  addEventListener("beforeprint", () => print(true));
  addEventListener("afterprint", () => print(false));
})();
