/** The card of a message above the message: its kind, its outcome, acts of gates, findings, HTTP heads. */

import { ARROWS, EXPECTED, MARKS, WAYS } from "./names.js";
import { idText, isBad, outcomeText } from "./session.js";
import { clipText, durationText, el, frameLink, outsideLink, proseElement, sizeText } from "./text.js";

const LONGEST_FACT = 500; // characters
const RELATED = 10; // links to other frames

/**
 * The heading of a message.
 * @param {import("./session.js").Row} row
 */
export function subjectElement(row) {
  const found = el(
    "h3",
    {},
    el("span", { class: row.from, "aria-hidden": "true" }, `${ARROWS[row.from]} `),
    frameLink(row.n, row.part),
  );
  found.append(" ", el("span", { class: "method" }, clipText(row.method ?? row.kind, LONGEST_FACT)));
  if (row.name) found.append(" ", el("span", { class: "name" }, clipText(row.name, LONGEST_FACT)));
  return found;
}

/**
 * Its kind and its outcome, with a line for each group of facts.
 * @param {import("./session.js").Row} row
 * @param {import("./capture.js").Capture} capture
 */
export function factElements(row, capture) {
  const what = [row.kind, WAYS[row.from]];
  const id = idText(row);
  if (id) what.push(`id ${clipText(id, 100)}`);
  if (row.size) what.push(sizeText(row.size));
  const found = [el("p", {}, what.join(" · ")), el("p", {}, `${row.t.toFixed(6)} s · ${row.time}`)];
  const outcome = outcomeElement(row);
  if (outcome.childNodes.length) found.push(outcome);
  if (row.expected) found.push(proseElement(`no failure: ${EXPECTED[row.expected]}`));
  if (row.http) found.push(el("p", {}, httpText(row.http)));
  if (row.session) found.push(el("p", {}, `session ${clipText(row.session, LONGEST_FACT)}`));
  if (row.extensions?.length) found.push(el("p", {}, `declares ${clipText(row.extensions.join(", "), LONGEST_FACT)}`));
  if (row.kind === "invalid" && row.preview)
    found.push(el("p", { class: "error" }, clipText(row.preview, LONGEST_FACT)));
  if (row.gate !== undefined) found.push(gateElement(row, capture));
  return found;
}

/** @param {import("./session.js").Row} row */
function outcomeElement(row) {
  const found = el("p", {});
  const other = row.kind === "request" ? row.response : row.request;
  const parts = [
    row.revision,
    outcomeText(row) ? el("strong", { class: outcomeClass(row) }, outcomeText(row)) : null,
    row.latency === null ? null : durationText(row.latency),
  ].filter((part) => part !== null);
  for (const [at, part] of parts.entries()) found.append(at ? " · " : "", part);
  if (other)
    found.append(parts.length ? " · " : "", row.kind === "request" ? "answered by " : "answers ", frameLink(other));
  return found;
}

/** @param {import("./session.js").Row} row */
function outcomeClass(row) {
  return isBad(row) ? "error" : row.outcome === "ok" ? "good" : "";
}

/** @param {NonNullable<import("./session.js").Row["http"]>} http */
function httpText(http) {
  const request = [http.method, http.target].filter(Boolean).join(" ");
  return clipText(`HTTP ${request}${http.status ? ` · status ${http.status}` : ""}`, LONGEST_FACT);
}

/**
 * What a gate did to the frame, and what was forwarded in its place.
 * @param {import("./session.js").Row} row
 * @param {import("./capture.js").Capture} capture
 */
function gateElement(row, capture) {
  const who = row.gate === null ? "a person" : `gate ${row.gate}`;
  const held = typeof row.held === "number" ? `, held ${durationText(row.held)}` : "";
  const found = el("div", { class: "gate" }, el("p", {}, `${row.forwarded ?? "still held"} by ${who}${held}`));
  const sent = row.forwarded ? capture.forwardedText(row.n) : null;
  if (typeof sent === "string") {
    found.append(
      el("details", {}, el("summary", {}, "forwarded instead"), el("pre", { class: "raw" }, clipText(sent, 1 << 16))),
    );
  }
  return found;
}

/**
 * The findings about a message, with explanations.
 * @param {import("./session.js").Row} row
 * @param {Record<string, import("./session.js").Rule>} rules
 * @param {(pointer: string) => void} reveal shows the place in the message
 */
export function findingElements(row, rules, reveal) {
  return row.findings.map((finding) => {
    const rule = rules[finding.rule];
    const summary = el(
      "summary",
      {},
      el("span", { class: `mark ${finding.severity}`, "aria-hidden": "true" }, MARKS[finding.severity]),
    );
    summary.append(
      " ",
      el("span", { class: finding.severity }, finding.severity),
      " ",
      clipText(finding.message, LONGEST_FACT),
    );
    const found = el("details", { class: "finding" }, summary);
    if (rule) found.append(...ruleElements(rule));
    found.append(placeElement(finding, reveal));
    found.append(
      el(
        "p",
        { class: "dim" },
        `${finding.rule} · ${finding.blame}${finding.revision ? ` · ${finding.revision}` : ""}`,
      ),
    );
    found.append(el("p", {}, outsideLink(finding.spec)));
    return found;
  });
}

/**
 * The lines that the server wrote to stderr during a call.
 * @param {import("./session.js").Row[]} lines
 */
export function stderrElement(lines) {
  if (!lines.length) return null;
  const found = el("details", { class: "http", open: true }, el("summary", {}, "stderr during the call"));
  for (const line of lines) {
    const text = clipText(line.preview ?? line.text ?? "", LONGEST_FACT);
    found.append(el("div", { class: "errlines" }, frameLink(line.n), " ", text));
  }
  return found;
}

/**
 * The explanation of a rule, and its fix.
 * @param {import("./session.js").Rule} rule
 */
export function ruleElements(rule) {
  const found = [proseElement(rule.explanation)];
  if (rule.fix) found.push(proseElement(`How to fix: ${rule.fix}`));
  return found;
}

/**
 * The place of a finding, and the related frames.
 * @param {import("./session.js").Finding} finding
 * @param {(pointer: string) => void} reveal
 */
function placeElement(finding, reveal) {
  const found = el("p", {});
  if (finding.pointer) {
    const button = el("button", { type: "button", class: "pointer" }, clipText(finding.pointer, LONGEST_FACT));
    button.addEventListener("click", () => reveal(finding.pointer));
    found.append("at ", button, " ");
  }
  if (finding.related.length) found.append("see");
  for (const n of finding.related.slice(0, RELATED)) found.append(" ", frameLink(n));
  return found;
}

/**
 * An HTTP head, folded.
 * @param {import("./capture.js").HttpHead | null} head
 * @param {"request" | "response"} which
 */
export function headElement(head, which) {
  if (!head) return null;
  const first =
    which === "request" ? `${head.method ?? ""} ${head.target ?? ""}` : `${head.status ?? ""} ${head.reason ?? ""}`;
  const table = el("table", { class: "head" });
  for (const field of Array.isArray(head.headers) ? head.headers : []) {
    if (!Array.isArray(field)) continue;
    table.append(
      el(
        "tr",
        {},
        el("th", { scope: "row" }, clipText(String(field[0]), LONGEST_FACT)),
        el("td", {}, clipText(String(field[1]), LONGEST_FACT)),
      ),
    );
  }
  return el("details", { class: "http" }, el("summary", {}, clipText(`HTTP ${which}: ${first}`, LONGEST_FACT)), table);
}
