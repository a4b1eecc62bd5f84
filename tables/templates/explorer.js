// The table of cells: filters, sorting and the dialog of one cell, drawn from the JSON in the page when first needed.
// Foreign words reach the page as text nodes and attribute values only.
(() => {
  const table = document.getElementById("explorer");
  if (!table) return;
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (typeof value === "function") element.addEventListener(name, value);
      else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children);
    return element;
  };
  const points = (value, digits = 1) => value === null ? "" : value.toFixed(digits).replace("-", "−");
  const signed = (value) => value === null ? "" : (value > 0 && points(value) !== "0.0" ? "+" : "") + points(value).replace(/^−(0\.0)$/, "$1");
  const named = (dataset) => (Object.hasOwn(data.names, dataset) ? data.names[dataset] : dataset);
  const FIRST = 100;
  const COLUMNS = [
    ["dataset", "Dataset", (row) => named(row.dataset)], ["k", "k"], ["method", "Method"],
    ["mean", "Mean (std)", (row) => row.n ? `${points(row.mean)}${row.std === null ? "" : ` (${points(row.std)})`}` : "–"],
    ["difference", "Difference", (row) => signed(row.difference)],
    ["low", "95 % interval", (row) => row.low === null ? "" : `${signed(row.low)} to ${signed(row.high)}`],
    ["p", "p (Holm)", (row) => row.p === null ? "" : row.p < 0.001 ? "< 0.001" : row.p.toFixed(3)],
    ["better", "Worse / equal / better", (row) => row.three_way ?? ""],
    ["collapsed", "One class (%)", (row) => points(row.collapsed, 0)],
    ["n", "Trials", (row) => `${row.n}/${row.planned}`],
    ["model", "Model"], ["readout", "Readout"], ["features", "Features"], ["preset", "Training"], ["settings", "Settings"],
    ["seconds", "s per trial", (row) => row.seconds === null ? "" : String(row.seconds)],
  ];
  const FILTERS = [
    ["set", "Result set"], ["dataset", "Dataset"], ["k", "k"], ["method", "Method"], ["model", "Model"],
    ["readout", "Readout"], ["features", "Features"], ["splits", "Splits"], ["preset", "Training"], ["settings", "Settings"],
  ];
  const dialog = document.getElementById("cell"), form = document.getElementById("filters");
  const count = document.getElementById("count"), more = document.getElementById("more");
  let data = null, rows = [], shown = [], limit = FIRST, wanted = {}, order = ["", false], opened = null;

  function load() {
    if (data) return;
    data = JSON.parse(document.getElementById("data").textContent);
    rows = data.rows.map((values, place) => {
      const row = Object.fromEntries(data.columns.map((name, column) => [name, values[column]]));
      row.place = place;
      row.words = [...values.slice(1), named(row.dataset)].filter((value) => typeof value === "string").join(" ").toLowerCase();
      return row;
    });
    if (data.columns.includes("set")) COLUMNS.unshift(["set", "Result set"]);
    drawFilters();
    drawHead();
  }

  function drawFilters() {
    const search = make("input", {type: "search", name: "q", autocomplete: "off", input: () => filter({q: search.value})});
    form.append(make("label", {}, "Search", search));
    for (const [name, words] of FILTERS) {
      const values = [...new Set(rows.map((row) => row[name]))].filter((value) => value !== undefined && value !== "");
      if (values.length < 2) continue;
      values.sort((a, b) => typeof a === "number" ? a - b : String(a).localeCompare(String(b)));
      const choice = make("select", {name, change: () => filter({[name]: choice.value})}, make("option", {value: ""}, "all"));
      choice.append(...values.map((value) => make("option", {value}, name === "dataset" ? named(value) : String(value))));
      form.append(make("label", {}, words, choice));
    }
    form.append(make("button", {type: "reset"}, "Clear"));
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => { wanted = {}; order = ["", false]; limit = FIRST; remember(); draw(); });
  }

  function drawHead() {
    const line = make("tr");
    for (const [name, words] of COLUMNS) {
      const press = () => {
        order = [name, order[0] === name ? !order[1] : typeof rows.find((row) => row[name] !== null)?.[name] !== "string"];
        remember();
        draw();
      };
      line.append(make("th", {scope: "col", "data-name": name}, make("button", {type: "button", click: press}, words)));
    }
    table.append(make("thead", {}, line), make("tbody"));
  }

  function filter(change) {
    Object.assign(wanted, change);
    limit = FIRST;
    remember();
    draw();
  }

  function compare(first, second) {
    const a = first[order[0]], b = second[order[0]];
    if (a === b) return first.place - second.place;
    if (a === null || b === null || a === "" || b === "") return (a === null || a === "") - (b === null || b === "");
    const found = typeof a === "number" ? a - b : String(a).localeCompare(String(b));
    return order[1] ? -found : found;
  }

  function draw() {
    const words = (wanted.q ?? "").toLowerCase().split(/\s+/).filter(Boolean);
    const picks = FILTERS.filter(([name]) => wanted[name]).map(([name]) => name);
    shown = rows.filter((row) => picks.every((name) => String(row[name]) === wanted[name]) && words.every((word) => row.words.includes(word)));
    if (order[0]) shown.sort(compare);
    for (const head of table.tHead.rows[0].cells) {
      if (head.dataset.name === order[0]) head.setAttribute("aria-sort", order[1] ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
    table.tBodies[0].replaceChildren(...shown.slice(0, limit).map(line));
    count.textContent = `${shown.length} of ${rows.length} cells`;
    more.hidden = shown.length <= limit;
    more.textContent = `Show all ${shown.length}`;
    for (const field of form.elements) if (field.name) field.value = wanted[field.name] ?? "";
  }

  function line(row) {
    const cells = COLUMNS.map(([name, , text]) => {
      if (name !== "method") return make("td", {}, text ? text(row) : String(row[name] ?? ""));
      const target = data.pages ? `${data.pages[row.set]}#cell=${row.key}` : `#cell=${row.key}`;
      return make("th", {scope: "row"}, make("a", {href: target}, row.method));
    });
    const sure = row.p !== null && row.p < 0.05;
    const found = make("tr", {class: sure ? row.difference > 0 ? "better" : "worse" : null}, ...cells);
    if (sure) found.cells[COLUMNS.findIndex(([name]) => name === "difference")].append(make("strong", {role: "img", "aria-label": " significant"}, row.difference > 0 ? " ▲" : " ▼"));
    return found;
  }

  // The address says what is shown: #cells?dataset=NCI1&sort=-mean, and #cell=KEY for an opened cell.
  function remember() {
    const found = new URLSearchParams(Object.entries(wanted).filter(([, value]) => value));
    if (order[0]) found.set("sort", (order[1] ? "-" : "") + order[0]);
    history.replaceState(null, "", found.size ? `#cells?${found}` : "#cells");
  }

  function follow() {
    const place = decodeURIComponent(location.hash.slice(1));
    if (place.startsWith("cell=")) {
      load();
      open(rows.find((row) => row.key === place.slice(5)));
    } else {
      if (dialog?.open) dialog.close();
      if (!location.hash.startsWith("#cells?")) return;
      load();
      wanted = Object.fromEntries(new URLSearchParams(location.hash.slice(7)));
      const sort = wanted.sort ?? "";
      delete wanted.sort;
      order = COLUMNS.some(([name]) => name === sort.replace(/^-/, "")) ? [sort.replace(/^-/, ""), sort.startsWith("-")] : ["", false];
      document.getElementById("cells").scrollIntoView();
    }
    draw();
  }

  const listed = (heads, lines) => make("div", {class: "scroll", tabindex: "0"}, make("table", {class: "words"},
    make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", {scope: "col"}, head)))),
    make("tbody", {}, ...lines.map((cells) => make("tr", {}, ...cells.map((cell) => make("td", {}, cell === null ? "" : String(cell))))))));

  function open(row) {
    if (!row || !dialog || !data.details) return;
    opened = row;
    const detail = data.details[row.place], word = (number) => data.words[number];
    const title = `${row.method} on ${named(row.dataset)}, k = ${row.k}`;
    const step = (by, words, label) => make("button", {type: "button", "aria-label": label, click: () => move(by)}, words);
    const bar = make("div", {class: "bar"}, make("h2", {id: "cell-title", tabindex: "-1"}, title),
      step(-1, "←", "Previous cell"), step(1, "→", "Next cell"),
      make("button", {type: "button", id: "close", click: () => dialog.close()}, "Close"));
    const sentence = [`${row.n} of ${row.planned} trials`];
    if (row.n) sentence.push(`mean ${points(row.mean)} %`);
    if (row.difference !== null) sentence.push(`difference to plain training ${signed(row.difference)}` + (row.low === null ? "" : `, 95 % interval ${signed(row.low)} to ${signed(row.high)}`));
    if (row.p !== null) sentence.push(`p = ${row.p < 0.001 ? "< 0.001" : row.p.toFixed(3)} (Holm)`);
    if (row.collapsed) sentence.push(`${points(row.collapsed, 0)} % of the trials put all test graphs into one class`);
    const parts = [bar, make("p", {}, sentence.join("; ") + ".")];
    if (detail.curve.length > 1) parts.push(make("h3", {}, "Training loss"), curve(detail.curve));
    if (detail.made.length) {
      parts.push(make("h3", {}, "Generated graphs"), listed(["Figure", "Mean", "Lowest", "Highest", "Trials"],
        detail.made.map(([name, ...numbers]) => [name.replaceAll("_", " "), ...numbers])));
    }
    parts.push(make("h3", {}, "Trials"), trials(detail.trials, word));
    parts.push(make("h3", {}, "Settings"), listed(["Setting", "Value"], detail.facts.map(([name, value]) => [word(name), word(value)])));
    parts.push(make("h3", {}, "Measured with"), make("ul", {}, ...detail.measured.map((one) => make("li", {}, one))));
    parts.push(make("p", {class: "caption"}, `Cell ${row.key}`));
    dialog.replaceChildren(...parts);
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
    document.getElementById("cell-title").focus();
  }

  function move(by) {
    const list = shown.includes(opened) ? shown : rows;
    const next = list[list.indexOf(opened) + by];
    if (!next) return;
    history.replaceState(null, "", `#cell=${next.key}`);
    open(next);
  }

  function trials(columns, word) {
    const names = Object.keys(columns);
    const heads = names.map((name) => ({fold: "fold", repeat: "label draw"})[name] ?? name.replace(/^#/, "").replaceAll("_", " "));
    const text = (name, value) => value === null ? "" : name.startsWith("#") ? word(value) : value === true ? "yes" : value === false ? "no" : name.endsWith("(%)") ? value.toFixed(2) : value;
    return listed(heads, columns.fold.map((_, place) => names.map((name) => text(name, columns[name][place]))));
  }

  function curve(points) {
    const draw = (tag, attributes, text) => {
      const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
      for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
      if (text !== undefined) element.textContent = text;
      return element;
    };
    const [wide, high, left, bottom] = [420, 204, 40, 36];
    const last = points.at(-1)[0], most = Math.max(...points.map((point) => point[3])) || 1;
    const log = points[0][0] > 0 && last > 20;
    const along = (epoch) => log ? Math.log(epoch / points[0][0]) / Math.log(last / points[0][0]) : (epoch - points[0][0]) / (last - points[0][0]);
    const x = (epoch) => left + along(epoch) * (wide - left - 12), y = (loss) => 10 + (1 - loss / most) * (high - bottom - 10);
    const path = (list, column) => list.map((point) => `${x(point[0]).toFixed(1)},${y(point[column]).toFixed(1)}`).join(" ");
    const words = `Mean training loss from ${points[0][1]} at epoch ${points[0][0]} to ${points.at(-1)[1]} at epoch ${last}`;
    const svg = draw("svg", {viewBox: `0 0 ${wide} ${high}`, role: "img", "aria-label": words, class: "curve"});
    svg.append(draw("polygon", {points: `${path(points, 2)} ${path([...points].reverse(), 3)}`, class: "band"}));
    svg.append(draw("polyline", {points: path(points, 1), class: "mean"}));
    svg.append(draw("line", {x1: left, y1: y(0), x2: wide - 12, y2: y(0), class: "axis"}), draw("line", {x1: left, y1: 10, x2: left, y2: y(0), class: "axis"}));
    for (const part of [0, 0.5, 1]) svg.append(draw("text", {x: left - 6, y: y(part * most) + 4, "text-anchor": "end"}, String(Number((part * most).toPrecision(2)))));
    const ticks = log ? [1, 10, 100, 1000, 10000].filter((tick) => tick >= points[0][0] && tick < last * 0.8).concat(last) : [points[0][0], last];
    for (const tick of ticks) svg.append(draw("text", {x: x(tick), y: high - 18, "text-anchor": tick === last ? "end" : "middle"}, String(tick)));
    svg.append(draw("text", {x: (left + wide) / 2, y: high - 5, "text-anchor": "middle"}, log ? "epoch (log scale)" : "epoch"));
    return make("figure", {}, svg, make("figcaption", {class: "caption"}, "Line: mean over the trials; band: lowest to highest."));
  }

  more.addEventListener("click", () => { limit = Infinity; draw(); });
  dialog?.addEventListener("close", () => {
    if (location.hash.startsWith("#cell=")) remember();
    const link = opened && table.querySelector(`a[href$="#cell=${CSS.escape(opened.key)}"]`);
    link?.focus();
  });
  dialog?.addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") move(event.key === "ArrowLeft" ? -1 : 1);
  });
  dialog?.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  table.addEventListener("keydown", (event) => {
    const by = {ArrowDown: 1, ArrowUp: -1}[event.key], links = [...table.querySelectorAll("tbody a")];
    const next = by && links[links.indexOf(document.activeElement) + by];
    if (next && links.includes(document.activeElement)) { event.preventDefault(); next.focus(); }
  });
  addEventListener("hashchange", follow);
  addEventListener("beforeprint", () => { load(); limit = Infinity; draw(); });
  const start = () => { load(); draw(); follow(); };
  requestAnimationFrame(() => setTimeout(start));
})();
