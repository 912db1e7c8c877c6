/** The findings, by rule and by who is at fault. */

import { ruleElements } from "./facts.js";
import { MARKS } from "./names.js";
import { SEVERITIES } from "./session.js";
import { appendItems, byId, clipText, el, frameLink, outsideLink, pluralText, proseElement } from "./text.js";

/**
 * The findings of one rule about one side.
 * @typedef {object} FindingGroup
 * @property {string} rule
 * @property {string} blame
 * @property {"error" | "warning" | "info"} severity
 * @property {import("./session.js").Finding[]} findings
 */

/**
 * The findings of a session, the worst first.
 * @param {import("./session.js").Session} session
 * @returns {FindingGroup[]}
 */
function findingGroups(session) {
  /** @type {Map<string, FindingGroup>} */
  const groups = new Map();
  for (const row of session.rows) {
    for (const finding of row.findings) {
      const key = `${finding.severity} ${finding.rule} ${finding.blame}`;
      const { rule, blame, severity } = finding;
      const group = groups.get(key) ?? { rule, blame, severity, findings: [] };
      group.findings.push(finding);
      groups.set(key, group);
    }
  }
  const order = (/** @type {FindingGroup} */ group) => SEVERITIES.indexOf(group.severity);
  return [...groups.values()].sort(
    (one, other) => order(one) - order(other) || other.findings.length - one.findings.length,
  );
}

/**
 * The findings of a session as elements.
 * @param {import("./session.js").Session} session
 * @param {boolean} open whether the groups are unfolded
 */
export function findingsElements(session, open) {
  const groups = findingGroups(session);
  if (!groups.length) return [el("p", { class: "dim" }, "Nothing was found.")];
  return groups.map((group) => groupElement(session, group, open));
}

/**
 * @param {import("./session.js").Session} session
 * @param {FindingGroup} group
 * @param {boolean} open
 */
function groupElement(session, group, open) {
  const rule = session.rules[group.rule];
  const summary = el(
    "summary",
    {},
    el("span", { class: `mark ${group.severity}`, "aria-hidden": "true" }, MARKS[group.severity]),
    " ",
    el("span", { class: `severity ${group.severity}` }, group.severity),
    " ",
    el("b", {}, group.rule),
    " ",
    el("span", { class: "dim" }, `${group.blame} · ${pluralText(group.findings.length, "time")}`),
  );
  if (rule) summary.append(el("div", { class: "about" }, proseElement(rule.summary)));
  const list = el("ul", { class: "found" });
  appendItems(list, group.findings, foundElement);
  const found = el("details", { class: "group", open }, summary);
  if (rule) found.append(el("div", { class: "prose" }, ...ruleElements(rule), el("p", {}, outsideLink(rule.spec))));
  found.append(list);
  return found;
}

/** @param {import("./session.js").Finding} finding */
function foundElement(finding) {
  const item = el("li", {}, frameLink(finding.frame, finding.part), " ", clipText(finding.message, 1000));
  if (finding.pointer) item.append(" ", el("span", { class: "dim" }, clipText(finding.pointer, 300)));
  return item;
}

/**
 * Fill the view.
 * @param {import("./session.js").Session} session
 */
export function showFindings(session) {
  const groups = findingGroups(session).length;
  byId("view-findings").append(...findingsElements(session, groups <= 3));
}

/**
 * Fold or unfold all groups.
 * @param {boolean} open
 */
export function foldFindings(open) {
  for (const group of byId("view-findings").querySelectorAll("details")) group.open = open;
}
