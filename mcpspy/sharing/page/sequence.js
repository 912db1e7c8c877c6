/** The sequence: messages as arrows between client and server, with brackets from requests to their responses. */

import { bracketsOf, LANES } from "./lanes.js";
import { MARKS } from "./names.js";
import { VirtualRows } from "./rows.js";
import { idText, isAnswer, isBad, outcomeText, previewText, severityOf } from "./session.js";
import { byId, clipText, durationText, el } from "./text.js";
import { emptyText } from "./timeline.js";

const SVG = "http://www.w3.org/2000/svg";
const LANE = 6; // pixels from one bracket to the next
const LONGEST_LABEL = 200; // characters
const LEAST_PAUSE = 0.001; // seconds that are shown

export class Sequence {
  /** @param {import("./state.js").State} state */
  constructor(state) {
    this.state = state;
    this.brackets = bracketsOf(state.session);
    const { client, server } = state.session.peers;
    byId("lane-client").replaceChildren(el("b", {}, "client"), ` ${client ? clipText(client.name, 60) : ""}`);
    byId("lane-server").replaceChildren(el("b", {}, "server"), ` ${server ? clipText(server.name, 60) : ""}`);
    this.rows = new VirtualRows(byId("arrows"), byId("arrows-body"), {
      count: () => state.shown.length,
      draw: (at) => this.draw(at),
      choose: (at) => state.select(state.shown[at]),
      open: () => byId("detail").focus(),
    });
    state.on("row", () => this.rows.setCursor(state.at));
    state.on("shown", () => this.show());
    this.show();
  }

  show() {
    const { shown, matches } = this.state;
    byId("no-arrows").hidden = shown.length > 0;
    byId("no-arrows").textContent = emptyText(this.state);
    byId("arrows").classList.toggle("marking", matches !== null && matches.size < shown.length);
    this.rows.refresh();
    this.rows.setCursor(this.state.at);
  }

  /** @param {number} at */
  draw(at) {
    const { session, shown, matches } = this.state;
    const place = shown[at];
    const row = session.rows[place];
    const above = session.rows[shown[at - 1]];
    const pause = above ? row.t - above.t : 0;
    const severity = severityOf(row);
    return el(
      "div",
      { role: "option", class: `arrow kind-${row.kind} from-${row.from}${matches?.has(place) ? " hit" : ""}` },
      el("span", { class: `mark ${severity ?? ""}`, title: severity }, severity ? MARKS[severity] : ""),
      el("span", { class: "n" }, `#${row.n}`),
      el("span", { class: "time" }, row.t.toFixed(3)),
      el(
        "span",
        { class: "pause", title: "since the row above" },
        pause >= LEAST_PAUSE ? `+${durationText(pause)}` : "",
      ),
      this.lanes(place, "left"),
      arrowElement(row),
      this.lanes(place, "right"),
    );
  }

  /**
   * The brackets of one side in a row.
   * @param {number} place
   * @param {"left" | "right"} side
   */
  lanes(place, side) {
    const { before, after } = this.brackets[side];
    const height = this.rows.height;
    const middle = height / 2;
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("class", `lanes ${side}`);
    svg.setAttribute("width", String(LANES * LANE + 2));
    svg.setAttribute("height", String(height));
    svg.setAttribute("aria-hidden", "true");
    for (let lane = 0; lane < LANES; lane += 1) {
      const bit = 1 << lane;
      const ends = Boolean(before[place] & bit);
      const goes = Boolean(after[place] & bit);
      if (!ends && !goes) continue;
      const reach = (lane + 1) * LANE;
      const x = side === "right" ? reach : LANES * LANE + 2 - reach;
      const edge = side === "right" ? 0 : LANES * LANE + 2;
      const path = document.createElementNS(SVG, "path");
      if (ends && goes) path.setAttribute("d", `M${x} 0V${height}`);
      else path.setAttribute("d", `M${edge} ${middle}H${x}V${goes ? height : 0}`);
      svg.append(path);
    }
    return svg;
  }
}

/**
 * An arrow with its label at its beginning; a row without a message is a text in the middle.
 * @param {import("./session.js").Row} row
 */
function arrowElement(row) {
  const label = el(
    "span",
    { class: isBadLabel(row) ? "label error" : "label" },
    clipText(labelText(row), LONGEST_LABEL),
  );
  if (row.from === "mcpspy" || row.kind === "stderr" || row.kind === "end-of-stream") {
    return el("span", { class: "field note" }, label);
  }
  const dashes = isAnswer(row) || row.kind === "notification" ? " dashed" : "";
  const line = () => el("i", { class: `shaft${dashes}` });
  const short = el("i", { class: `shaft short${dashes}` });
  const parts =
    row.from === "client"
      ? [short, label, line(), el("i", { class: "head" }, "▶")]
      : [el("i", { class: "head" }, "◀"), line(), label, short];
  const direction = row.from === "client" ? "client to server" : "server to client";
  return el("span", { class: "field", title: direction }, ...parts);
}

/**
 * Whether the arrow of a row shows the failure: in an exchange that is the response, if there is one.
 * @param {import("./session.js").Row} row
 */
function isBadLabel(row) {
  return isBad(row) && (row.kind !== "request" || row.response === null);
}

/**
 * The kind of a message, and its outcome.
 * @param {import("./session.js").Row} row
 */
function labelText(row) {
  const subject = [row.method, row.name ?? previewText(row)].filter(Boolean).join(" ");
  if (isAnswer(row)) {
    const outcome = [outcomeText(row) || row.kind, row.latency === null ? "" : durationText(row.latency)]
      .filter(Boolean)
      .join(" ");
    return `${outcome}  ${subject || "(no request seen)"}`;
  }
  if (row.kind === "request") {
    const lacking = row.response === null ? `  ${outcomeText(row)}` : "";
    return `${subject}  id ${idText(row)}${lacking}`;
  }
  return ["notification", "end-of-stream"].includes(row.kind) ? subject : `${row.kind}: ${subject}`;
}
