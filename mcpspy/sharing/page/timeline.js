/** The timeline: a row for each message, line of stderr, gap, signal and end. */

import { ARROWS, MARKS } from "./names.js";
import { VirtualRows } from "./rows.js";
import { idText, isAnswer, isBad, outcomeText, previewText, severityOf } from "./session.js";
import { byId, clipText, durationText, el, pluralText, sizeText } from "./text.js";

const LONGEST_CELL = 300; // characters
const SHORTEST_BAR = 1e-4; // seconds of a latency without a bar
const BAR_DECADES = 5; // factors of ten up to the longest bar
export const SLOW = 1; // seconds from which a call is slow

export class Timeline {
  /**
   * @param {import("./state.js").State} state
   */
  constructor(state) {
    this.state = state;
    const grid = byId("rows");
    this.rows = new VirtualRows(grid, byId("rows-body"), {
      count: () => state.shown.length,
      draw: (at) => timelineRow(state, at),
      choose: (at) => state.select(state.shown[at]),
      open: () => byId("detail").focus(),
    });
    state.on("row", () => this.rows.setCursor(state.at));
    state.on("shown", () => this.show());
    for (const change of /** @type {const} */ (["times", "marks"])) state.on(change, () => this.rows.refresh());
    state.on("row", () => this.showPartner());
    this.show();
  }

  show() {
    const { shown, matches } = this.state;
    byId("rows").setAttribute("aria-rowcount", String(shown.length + 1));
    byId("no-rows").hidden = shown.length > 0;
    byId("no-rows").textContent = emptyText(this.state);
    byId("rows").classList.toggle("marking", matches !== null && matches.size < shown.length);
    this.rows.refresh();
    this.rows.setCursor(this.state.at);
    this.showPartner();
  }

  /** Mark the other row of the selected exchange. */
  showPartner() {
    const { state, rows } = this;
    const partner = state.place < 0 ? undefined : state.session.partnerOf(state.place);
    for (const [at, row] of rows.drawn) row.classList.toggle("partner", state.shown[at] === partner);
  }
}

/**
 * The reason why no row is shown.
 * @param {import("./state.js").State} state
 */
export function emptyText({ session }) {
  return session.rows.length ? "No rows match the filter." : "The capture has no frames.";
}

/**
 * @param {import("./state.js").State} state
 * @param {number} at
 */
function timelineRow(state, at) {
  const place = state.shown[at];
  const row = state.session.rows[place];
  const severity = severityOf(row);
  const found = severity ? pluralText(row.findings.length, "finding") : null;
  const mark = `${severity ? MARKS[severity] : ""}${state.marked.has(place) ? "*" : ""}`;
  const element = el(
    "div",
    { role: "row", class: rowClasses(state, place), "aria-rowindex": at + 2 },
    timelineCell("mark", mark, { class: `mark ${severity ?? ""}`, title: found, "aria-label": found }),
    timelineCell("n", `#${row.n}`),
    timelineCell("time", timeText(state, at), { title: row.time }),
    el(
      "span",
      { role: "gridcell", class: `from ${row.from}`, "aria-label": row.from },
      ARROWS[row.from],
      el("b", {}, ` ${row.from}`),
    ),
    subjectCell(row, previewText(row)),
    timelineCell("status", statusText(row), {
      class: `status ${statusClass(row)}`,
    }),
    latencyCell(row),
    timelineCell("size", row.size ? sizeText(row.size) : ""),
  );
  if (state.place >= 0 && state.session.partnerOf(state.place) === place) element.classList.add("partner");
  return element;
}

/**
 * @param {import("./state.js").State} state
 * @param {number} place
 */
function rowClasses(state, place) {
  const row = state.session.rows[place];
  const hit = state.matches?.has(place) ? " hit" : "";
  return `row kind-${row.kind}${isBad(row) ? " bad" : ""}${hit}`;
}

/**
 * @param {string} name
 * @param {string} text
 * @param {Record<string, string | null>} [attributes]
 */
function timelineCell(name, text, attributes = {}) {
  return el("span", { role: "gridcell", class: name, ...attributes }, text);
}

/**
 * Seconds since the start, or since the row above.
 * @param {import("./state.js").State} state
 * @param {number} at
 */
function timeText(state, at) {
  const row = state.session.rows[state.shown[at]];
  const above = state.session.rows[state.shown[at - 1]];
  if (!state.deltas || !above) return row.t.toFixed(3);
  const since = row.t - above.t;
  return `${since < 0 ? "" : "+"}${since.toFixed(3)}`;
}

/**
 * The subject of a row: method and name, or its kind; then the preview, and the id if there is room.
 * @param {import("./session.js").Row} row
 * @param {string} preview
 */
function subjectCell(row, preview) {
  const cell = el("span", { role: "gridcell", class: "subject" });
  if (row.method || isAnswer(row)) {
    cell.append(el("span", { class: "method" }, clipText(row.method ?? "(no request seen)", LONGEST_CELL)));
    if (row.name) cell.append(" ", el("span", { class: "name" }, clipText(row.name, LONGEST_CELL)));
  } else {
    cell.append(el("span", { class: "method" }, `${row.kind}:`));
  }
  if (preview) cell.append(" ", el("span", { class: "preview" }, clipText(preview, LONGEST_CELL)));
  const id = idText(row);
  if (id) cell.append(" ", el("span", { class: "id" }, clipText(`id ${id}`, 24)));
  return cell;
}

/** @param {import("./session.js").Row} row */
function statusClass(row) {
  if (row.gate !== undefined) return "warning";
  return isBad(row) ? "error" : row.outcome === "ok" ? "ok" : "";
}

/** @param {import("./session.js").Row} row */
function statusText(row) {
  if (row.gate !== undefined) return row.forwarded ?? "held";
  const told = row.kind === "request" && row.response !== null; // the row of its response shows it
  return told ? "" : outcomeText(row);
}

/** @param {import("./session.js").Row} row */
function latencyCell(row) {
  const cell = timelineCell("latency", "");
  if (row.latency === null || row.kind === "request") return cell;
  cell.append(durationText(row.latency));
  const bar = document.createElement("i");
  const share = Math.log10(Math.max(row.latency, SHORTEST_BAR) / SHORTEST_BAR) / BAR_DECADES;
  bar.style.setProperty("width", `${Math.min(share, 1) * 100}%`);
  cell.append(bar);
  if (row.latency >= SLOW) cell.classList.add("slow");
  return cell;
}
