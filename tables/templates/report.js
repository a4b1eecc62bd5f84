"use strict";
// Sort by a column: numbers by data-value, words by their text; empty cells stay last; groups of rows stay together.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.querySelectorAll("thead tr:last-child th")];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") === "descending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const value = (row) => {
        const cell = row.cells[column];
        const text = cell.dataset.value ?? cell.textContent.trim();
        const number = Number(text);
        return text === "" ? null : Number.isNaN(number) ? text : number;
      };
      for (const body of table.tBodies) {
        const rows = [...body.rows].sort((first, second) => {
          const a = value(first), b = value(second);
          if (a === null || b === null) return (a === null) - (b === null);
          const order = typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
          return up ? order : -order;
        });
        body.append(...rows);
      }
    });
  });
}
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
// The contents show where the reader is.
if ("IntersectionObserver" in window) {
  const links = new Map([...document.querySelectorAll('nav a[href^="#"]')].map((link) => [link.hash.slice(1), link]));
  const heads = [...links.keys()].map((id) => document.getElementById(id)).filter(Boolean);
  const watch = new IntersectionObserver(() => {
    const passed = heads.filter((head) => head.getBoundingClientRect().top < innerHeight * 0.3);
    links.forEach((link) => link.removeAttribute("aria-current"));
    links.get((passed.at(-1) ?? heads[0])?.id)?.setAttribute("aria-current", "true");
  }, {rootMargin: "0px 0px -70% 0px"});
  heads.forEach((head) => watch.observe(head));
}
