/** A message as lines that fold: what its tree and its content have in common. */

import { clipText, el } from "./text.js";

const DEEPEST_INDENT = 40; // levels
/** The deepest level to which the search unfolds a message. */
export const DEEPEST_PLACE = 5000;
const LONG_KEY = 200; // characters

/**
 * A line that is shown.
 * @typedef {object} FoldingLine
 * @property {HTMLElement} element
 * @property {boolean} open whether the deeper lines that follow belong to it
 */

/**
 * The lines are a flat list of elements with a depth each, and a line that opens a value creates the lines inside it
 * when it is unfolded. So a deep or a large message costs no more than what is shown, and nothing here recurses.
 * @template {FoldingLine} Line
 */
export class FoldingLines {
  /** @param {string} label for assistive technology */
  constructor(label) {
    this.element = el("div", { class: "tree", role: "tree", tabindex: 0, "aria-label": label });
    /** @type {Map<HTMLElement, Line>} */
    this.lines = new Map();
    /** @type {Line | null} */
    this.current = null;
    this.element.addEventListener("click", (event) => this.press(event));
  }

  /** @param {Element | null} element */
  lineOf(element) {
    return element instanceof HTMLElement ? (this.lines.get(element) ?? null) : null;
  }

  /** @param {MouseEvent} event */
  press(event) {
    const target = event.target instanceof Element ? event.target : null;
    const line = this.lineOf(target?.closest("[role=treeitem]") ?? null);
    if (!line || target?.closest("button, audio")) return;
    this.setCurrent(line);
    if (!getSelection()?.toString() && line.element.hasAttribute("aria-expanded")) this.turn();
  }

  /** @param {Line | null} line */
  setCurrent(line) {
    this.current?.element.setAttribute("aria-selected", "false");
    this.current = line;
    if (!line) return;
    line.element.setAttribute("aria-selected", "true");
    line.element.id ||= `line-${Math.random().toString(36).slice(2)}`;
    this.element.setAttribute("aria-activedescendant", line.element.id);
  }

  /** Select the first line. */
  setFirst() {
    this.setCurrent(this.lineOf(this.element.firstElementChild));
  }

  /** Fold or unfold the current line. */
  turn() {
    const line = this.current;
    if (!line?.element.hasAttribute("aria-expanded")) return;
    if (line.open) this.fold(line);
    else this.unfold(line);
  }

  /** Unfold the current line. */
  open() {
    if (!this.current?.open) this.turn();
  }

  /** Fold the current line. */
  close() {
    if (this.current?.open) this.turn();
  }

  /** @param {Line} line */
  unfold(line) {
    line.open = true;
    line.element.setAttribute("aria-expanded", "true");
  }

  /** @param {Line} line */
  fold(line) {
    line.open = false;
    line.element.setAttribute("aria-expanded", "false");
    for (const element of elementsInside(line.element)) {
      this.lines.delete(element);
      element.remove();
    }
  }

  /**
   * Go to another line.
   * @param {number} step lines to move; a large number goes to the first or last
   */
  move(step) {
    const all = [...this.element.querySelectorAll("[role=treeitem]")];
    const at = this.current ? all.indexOf(this.current.element) : 0;
    this.setCurrent(this.lineOf(all[Math.min(Math.max(at + step, 0), all.length - 1)]));
    this.current?.element.scrollIntoView({ block: "nearest" });
  }
}

/** @param {HTMLElement} element */
function elementsInside(element) {
  const found = [];
  const depth = Number(element.dataset.depth);
  let next = element.nextElementSibling;
  while (next instanceof HTMLElement && Number(next.dataset.depth) > depth) {
    found.push(next);
    next = next.nextElementSibling;
  }
  return found;
}

/**
 * The element of a line, with its label.
 * @param {number} depth
 * @param {string | null} label
 * @param {string} after the label
 * @param {boolean} folds
 */
export function lineElement(depth, label, after, folds) {
  const found = el("div", {
    class: "line",
    role: "treeitem",
    "aria-level": depth + 1,
    "aria-selected": "false",
  });
  if (folds) found.setAttribute("aria-expanded", "false");
  setDepth(found, depth);
  if (label !== null) found.append(el("span", { class: "key" }, clipText(label, LONG_KEY)), after);
  return found;
}

/**
 * A line with a button that shows more lines.
 * @param {number} depth
 * @param {HTMLElement} button
 */
export function moreElement(depth, button) {
  const found = el("div", { class: "line more", role: "none" }, button);
  setDepth(found, depth);
  return found;
}

/**
 * @param {HTMLElement} element
 * @param {number} depth
 */
export function setDepth(element, depth) {
  element.dataset.depth = String(depth);
  element.style.setProperty("--depth", String(Math.min(depth, DEEPEST_INDENT)));
}

/**
 * Mark a line with the severity of the findings at its value.
 * @param {HTMLElement} line
 * @param {string | undefined} severity
 */
export function markLine(line, severity) {
  if (!severity) return;
  line.classList.add(severity);
  line.append(" ");
  line.append(el("span", { class: "here" }, `◂ ${severity}`));
}
