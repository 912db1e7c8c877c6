/** The keys, the same as in the terminal: one table for the actions and for the help. */

import { byId, el } from "./text.js";

/**
 * The action of some keys.
 * @typedef {object} KeyAction
 * @property {string[]} keys as KeyboardEvent.key names them
 * @property {string} text for the help
 * @property {string} [where] the heading in the help
 * @property {() => void} act
 */

/** @type {Record<string, string>} */
const KEY_NAMES = {
  Home: "home",
  End: "end",
  ArrowUp: "↑",
  ArrowDown: "↓",
  ArrowLeft: "←",
  ArrowRight: "→",
  Enter: "⏎",
  " ": "space",
  Escape: "esc",
  PageUp: "pgup",
  PageDown: "pgdn",
};

/** The keys that scroll a text, in every browser. */
const SCROLL_KEYS = ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "PageUp", "PageDown", "Home", "End", " "];

/**
 * React to keys. A focused control handles a key first.
 * @param {() => KeyAction[][]} scopes the actions of the focused element, then those of the elements around it
 */
export function answerKeys(scopes) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const target = event.target instanceof Element ? event.target : null;
    if (target?.closest("dialog")) return;
    if (target?.closest("input[type=search]") && event.key !== "Escape") return;
    if (
      target?.closest("button, a, summary, input") &&
      ["Enter", " "].includes(event.key) &&
      !target.closest("input[type=search]")
    )
      return;
    if (target?.closest("audio") && event.key !== "Escape") return;
    if (target?.closest("pre") && SCROLL_KEYS.includes(event.key)) return;
    for (const actions of scopes()) {
      const found = actions.find(({ keys }) => keys.includes(event.key));
      if (found) {
        event.preventDefault();
        found.act();
        return;
      }
    }
  });
}

/**
 * Write the help.
 * @param {KeyAction[]} actions
 */
export function writeHelp(actions) {
  const table = byId("keys");
  let heading = "";
  for (const { keys, text, where } of actions) {
    if (where && where !== heading) {
      heading = where;
      table.append(el("tr", {}, el("th", { colspan: 2, scope: "colgroup" }, heading)));
    }
    const names = keys.flatMap((key) => [el("kbd", {}, KEY_NAMES[key] ?? key), " "]);
    table.append(el("tr", {}, el("td", {}, ...names), el("td", {}, text)));
  }
}

/** Close the help. */
export function hideHelp() {
  /** @type {HTMLDialogElement} */ (byId("help")).close();
}

/** Open the help. */
export function showHelp() {
  /** @type {HTMLDialogElement} */ (byId("help")).showModal();
}
