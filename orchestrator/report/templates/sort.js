"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const valueOf = (row, column) => row.cells[column].dataset.value;
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      const compare = (a, b) => {
        const [x, y] = [valueOf(a, column), valueOf(b, column)];
        if (x !== undefined && y !== undefined) return sign * (Number(x) - Number(y));
        if (x !== undefined || y !== undefined) return x !== undefined ? -1 : 1;
        return sign * a.cells[column].textContent.localeCompare(b.cells[column].textContent);
      };
      body.append(...[...body.rows].sort(compare));
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    });
  });
}
