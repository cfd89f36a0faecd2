/* Code of the pages that runs in the browser. */

// Functions of the grid: format a number, and link to a trial's page.
window.dashAgGridFunctions = {
  number: (value) => {
    if (value == null || (Number.isInteger(value) && Math.abs(value) < 1e7)) return value;
    return Math.abs(value) < 1e7 ? Number(value.toPrecision(5)) : value.toExponential(4);
  },
};
window.dashAgGridComponentFunctions = {
  TrialLink: ({ data, value }) =>
    window.React.createElement("a", { href: trialAddress(data.id) }, value),
};

// Undo the escaping of `figures.as_text`.
function unescaped(text) {
  return text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}

// Return the grid's filter for an axis from `low` to `high`: numbers, or indices of texts.
function between({ categoryarray }, low, high) {
  if (!categoryarray) {
    const [filter, filterTo] = [low, high].map((end) => Number(end.toPrecision(7)));
    return { filterType: "number", type: "inRange", filter, filterTo };
  }
  const texts = categoryarray.filter((_, index) => low <= index && index <= high);
  const some = texts.map((text) => ({ type: "equals", filter: unescaped(text) }));
  const none = [{ type: "blank" }, { type: "notBlank" }];
  const conditions = (some.length ? some : none).map((one) => ({ filterType: "text", ...one }));
  return { filterType: "text", operator: some.length ? "OR" : "AND", conditions };
}

// For a study's page, whose address ends in "study/" and the study.
function trialAddress(id) {
  const [, prefix, study] = location.pathname.match(/(.*)\/study\/(.*)/);
  return `${prefix}/trial/${id.slice(0, 12)}?study=${study}`;
}

window.dash_clientside = {
  ...window.dash_clientside,
  view: {
    // Plotly keeps zooms by `uirevision`, but Dash writes them into the figure that it replaces.
    // So a figure over the same axes takes over the previous figure's zoom and box.
    draw(figure, before) {
      if (!figure) return dash_clientside.no_update;
      if (before.layout.uirevision === figure.layout.uirevision) {
        for (const axis of ["xaxis", "yaxis"]) {
          const { autorange, range } = before.layout[axis] ?? {};
          if (autorange === false) Object.assign(figure.layout[axis], { autorange, range });
        }
        figure.layout.selections = before.layout.selections;
      }
      return figure;
    },

    // Open the trial of a clicked point.
    open: (click) =>
      click ? trialAddress(click.points[0].customdata[0]) : dash_clientside.no_update,

    // Return the table's filters for a box in the scatter plot, and their columns. A figure over
    // other axes has no box yet. Filters that the reader typed into other columns stay.
    brush(drawn, x, y, scales, { layout }, filters, boxed) {
      const keep = [dash_clientside.no_update, dash_clientside.no_update];
      const isDrawn = dash_clientside.callback_context.triggered_id.drawn === "scatter";
      if (isDrawn && !Object.keys(drawn).some((name) => name.startsWith("selections"))) return keep;
      const box = {};
      const corners = isDrawn && layout.selections?.at(-1);
      if (corners) {
        const { x0, x1, y0, y1 } = corners;
        box[x] = between(layout.xaxis, Math.min(x0, x1), Math.max(x0, x1));
        box[y] = between(layout.yaxis, Math.min(y0, y1), Math.max(y0, y1));
      }
      const names = Object.keys(box);
      if (!names.length && !boxed.length) return keep;
      const others = Object.entries(filters ?? {}).filter(([name]) => !boxed.includes(name));
      return [{ ...Object.fromEntries(others), ...box }, names];
    },

    // Return ids of the trials in the table (null: all), of the points, and of the ticked trials,
    // and the number of trials in the table. A box filters the table and leaves the points.
    choose(rows, selected, all, boxed, shownBefore, pointsBefore, tickedBefore) {
      const keep = dash_clientside.no_update;
      const changed = (now, before) => (JSON.stringify(now) === JSON.stringify(before) ? keep : now);
      const ids = (some) => some.map(({ id }) => id).sort();
      const table = rows ?? all;
      const shown = table.length === all.length ? null : ids(table);
      return [
        changed(shown, shownBefore),
        boxed.length ? keep : changed(shown, pointsBefore),
        changed(ids(selected ?? []), tickedBefore),
        `${table.length.toLocaleString("en")} of ${all.length.toLocaleString("en")} trials`,
      ];
    },
  },
};
