/** The problems: what failed, why and how certain that is, and what to do. */

import { MARKS } from "./names.js";
import { appendItems, byId, clipText, el, frameLink, pluralText, proseElement } from "./text.js";

const LONGEST_SENTENCE = 1000; // characters
const MOST_ROWS = 8; // links to the rows of a problem

/** @typedef {import("./session.js").Problem} Problem */

/**
 * The problems of a session as elements, the one that may have caused the others first.
 * @param {import("./session.js").Session} session
 */
export function problemElements({ about, problems, rows }) {
  if (problems.length) {
    const list = el("ol", { class: "problems" });
    appendItems(list, problems, problemElement);
    const part = "Rows were left out by the filter. A cause that only they show is missing.";
    return about.filter === null ? [list] : [list, el("p", { class: "dim" }, part)];
  }
  const found = rows.reduce((sum, row) => sum + row.findings.length, 0);
  const more = found ? ` The messages have ${pluralText(found, "finding")}.` : "";
  return [el("p", { class: "dim" }, `${about.live ? "No request failed so far." : "No request failed."}${more}`)];
}

/** @param {Problem} problem */
function problemElement({ headline, side, cause, further, advice, rows }) {
  const found = el(
    "li",
    { class: "problem" },
    el(
      "h3",
      {},
      el("span", { class: "mark error", "aria-hidden": "true" }, MARKS.error),
      el("span", {}, clipText(headline, LONGEST_SENTENCE)),
    ),
  );
  const who = el("b", { class: side }, side === "unknown" ? "side unknown" : side);
  found.append(causeElement(cause, who, `, ${cause.certainty}: `));
  for (const one of further) found.append(causeElement(one, `${one.certainty === "known" ? "also" : one.certainty}: `));
  for (const text of advice) {
    const line = proseElement(clipText(text, LONGEST_SENTENCE));
    line.prepend(el("b", {}, "do: "));
    found.append(line);
  }
  found.append(el("p", { class: "dim" }, "see", ...rows.slice(0, MOST_ROWS).flatMap((n) => [" ", frameLink(n)])));
  return found;
}

/**
 * A cause with links to the rows that show it.
 * @param {import("./session.js").Cause} cause
 * @param {...(Node | string)} label
 */
function causeElement({ text, rows }, ...label) {
  const links = rows.slice(0, MOST_ROWS).flatMap((n) => [" ", frameLink(n)]);
  return el("p", {}, el("span", { class: "dim" }, ...label), clipText(text, LONGEST_SENTENCE), ...links);
}

/**
 * Fill the view.
 * @param {import("./session.js").Session} session
 */
export function showProblems(session) {
  byId("view-problems").append(...problemElements(session));
}
