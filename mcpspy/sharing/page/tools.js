/** The tools: the size of each for a model, the number of its calls, and their durations. */

import { buttonElement, byId, clipText, countText, durationText, el, frameLink, sizeText } from "./text.js";

const BYTES_OF_TOKEN = 4; // approximate bytes per token of most models
const LONGEST_TOOL = 200; // characters

/**
 * A column: its heading, its sort value, and its text.
 * @typedef {object} ToolColumn
 * @property {string} title
 * @property {string} [about]
 * @property {(tool: import("./session.js").Tool) => string | number} value
 * @property {(tool: import("./session.js").Tool) => Node | string} text
 */

/** @type {ToolColumn[]} */
const TOOL_COLUMNS = [
  { title: "tool", value: (tool) => tool.name, text: (tool) => clipText(tool.name, LONGEST_TOOL) },
  {
    title: "definition",
    about: "bytes of its definition, as it was listed last",
    value: (tool) => tool.bytes,
    text: (tool) => (tool.listed ? sizeText(tool.bytes) : "not listed"),
  },
  {
    title: "≈ tokens",
    about: "about one token for 4 bytes of the definition",
    value: (tool) => tool.bytes,
    text: (tool) => (tool.listed ? `≈ ${countText(tokenCount(tool.bytes))}` : ""),
  },
  { title: "calls", value: (tool) => tool.calls, text: (tool) => countText(tool.calls) },
  {
    title: "errors",
    about: "calls that ended in an error or a tool's error",
    value: (tool) => tool.errors,
    text: (tool) => toolNumber(tool.errors, "error"),
  },
  { title: "findings", value: (tool) => tool.found, text: (tool) => toolNumber(tool.found, "warning") },
  {
    title: "p50",
    about: "half of the calls took no longer",
    value: (tool) => tool.p50 ?? -1,
    text: (tool) => toolTime(tool.p50),
  },
  {
    title: "p95",
    about: "95 % of the calls took no longer",
    value: (tool) => tool.p95 ?? -1,
    text: (tool) => toolTime(tool.p95),
  },
  { title: "max", about: "the longest call", value: (tool) => tool.max ?? -1, text: (tool) => toolTime(tool.max) },
  {
    title: "frames",
    about: "the listing and the first call",
    value: (tool) => tool.called || tool.listed,
    text: toolFrames,
  },
];

/** @param {number} bytes */
function tokenCount(bytes) {
  return Math.round(bytes / BYTES_OF_TOKEN);
}

/**
 * @param {number} number
 * @param {string} severity if it is not zero
 */
function toolNumber(number, severity) {
  return el("span", { class: number ? severity : "dim" }, countText(number));
}

/** @param {number | null} seconds */
function toolTime(seconds) {
  return seconds === null ? "" : durationText(seconds);
}

/** @param {import("./session.js").Tool} tool */
function toolFrames(tool) {
  const found = el("span", {});
  for (const n of [tool.listed, tool.called]) if (n) found.append(frameLink(n), " ");
  return found;
}

/**
 * The tools as a table.
 * @param {import("./session.js").Session} session
 * @param {number} [by] the sort column; without one, the order of the listing
 * @param {boolean} [down] the largest first
 * @returns {HTMLElement}
 */
export function toolsElement(session, by = -1, down = false) {
  const { tools } = session;
  if (!tools.length) return el("p", { class: "dim" }, "No tools were listed or called.");
  const sorted =
    by < 0 ? tools : [...tools].sort((one, other) => compareTools(TOOL_COLUMNS[by], one, other) * (down ? -1 : 1));
  const heading = el("tr", {});
  for (const [at, { title, about }] of TOOL_COLUMNS.entries()) {
    const order = at === by ? (down ? "descending" : "ascending") : null;
    const button = buttonElement(`${title}${order ? (down ? " ↓" : " ↑") : ""}`, () => {
      const table = toolsElement(session, at, at === by ? !down : at > 0);
      button.closest(".tools")?.replaceWith(table);
      table.querySelectorAll("button")[at].focus();
    });
    heading.append(el("th", { scope: "col", title: about, "aria-sort": order }, button));
  }
  const body = el("tbody");
  for (const tool of sorted)
    body.append(
      el("tr", {}, ...TOOL_COLUMNS.map(({ text }, at) => el(at ? "td" : "th", at ? {} : { scope: "row" }, text(tool)))),
    );
  const total = tools.reduce((sum, tool) => sum + tool.bytes, 0);
  const cost = `${countText(tools.length)} tools · ${sizeText(total)} of definitions · ≈ ${countText(tokenCount(total))} tokens in each request to a model`;
  return el(
    "div",
    { class: "tools" },
    el("p", {}, cost),
    el("div", { class: "wide" }, el("table", {}, el("thead", {}, heading), body)),
  );
}

/**
 * @param {ToolColumn} column
 * @param {import("./session.js").Tool} one
 * @param {import("./session.js").Tool} other
 */
function compareTools({ value }, one, other) {
  const [left, right] = [value(one), value(other)];
  return typeof left === "string" ? left.localeCompare(String(right)) : left - Number(right);
}

/**
 * Fill the view.
 * @param {import("./session.js").Session} session
 */
export function showTools(session) {
  byId("view-tools").append(toolsElement(session));
}
