/** What is printed: the problems, the findings, the tools and the first rows as plain elements, because paper does not scroll. */

import { findingsElements } from "./findings.js";
import { ARROWS, MARKS } from "./names.js";
import { problemElements } from "./problems.js";
import { idText, outcomeText, previewText, severityOf } from "./session.js";
import { byId, clipText, countText, durationText, el, sizeText } from "./text.js";
import { toolsElement } from "./tools.js";

const PRINTED_ROWS = 500;
const PRINTED_PREVIEW = 200; // characters
const PRINTED_COLUMNS = ["", "#", "seconds", "from", "message", "status", "latency", "size"];

/** @param {import("./state.js").State} state */
export function preparePrint(state) {
  const place = byId("print");
  const details = /** @type {NodeListOf<HTMLDetailsElement>} */ (document.querySelectorAll("#head details"));
  /** @type {HTMLDetailsElement[]} */
  let opened = [];
  const fill = () => {
    opened = [...opened, ...[...details].filter(({ open }) => !open)];
    for (const one of opened) one.open = true;
    place.replaceChildren(...printedElements(state));
  };
  const empty = () => {
    for (const one of opened) one.open = false;
    opened = [];
    place.replaceChildren();
  };
  addEventListener("beforeprint", fill);
  addEventListener("afterprint", empty);
  matchMedia("print").addEventListener("change", ({ matches }) => (matches ? fill() : empty()));
}

/** @param {import("./state.js").State} state */
function printedElements({ session, shown }) {
  const rows = shown.slice(0, PRINTED_ROWS).map((place) => printedRow(session.rows[place]));
  const rest = shown.length - rows.length;
  const head = el("tr", {}, ...PRINTED_COLUMNS.map((title) => el("th", { scope: "col" }, title)));
  return [
    el("h2", {}, "Problems"),
    ...problemElements(session),
    el("h2", {}, "Findings"),
    ...findingsElements(session, true),
    el("h2", {}, "Tools"),
    toolsElement(session),
    el("h2", {}, "Timeline"),
    el("table", { class: "timeline" }, el("thead", {}, head), el("tbody", {}, ...rows)),
    rest > 0 ? el("p", {}, `${countText(rest)} more rows are not printed.`) : el("p"),
  ];
}

/** @param {import("./session.js").Row} row */
function printedRow(row) {
  const severity = severityOf(row);
  const id = idText(row) && `id ${idText(row)}`;
  const subject = [row.method ?? `${row.kind}:`, row.name, id, clipText(previewText(row), PRINTED_PREVIEW)]
    .filter(Boolean)
    .join(" ");
  const cells = [
    severity ? MARKS[severity] : "",
    String(row.n),
    row.t.toFixed(3),
    `${ARROWS[row.from]} ${row.from}`,
    clipText(subject, 2 * PRINTED_PREVIEW),
    outcomeText(row),
    row.latency === null ? "" : durationText(row.latency),
    row.size ? sizeText(row.size) : "",
  ];
  return el("tr", {}, ...cells.map((text) => el("td", {}, text)));
}
