/**
 * A JSON message as a tree that folds.
 *
 * The tree is a flat list of lines with a depth each, and a container's lines are created when it is unfolded. So a
 * deep or a large message costs no more than what is shown, and nothing here recurses.
 */

import { nodeText, parseJson, pointedNodes } from "./json.js";
import { appendLongText, buttonElement, clipText, countText, el } from "./text.js";

/**
 * @typedef {object} TreeLine
 * @property {import("./json.js").JsonNode} node
 * @property {number} depth
 * @property {boolean} open
 * @property {HTMLElement} element
 */

const UNFOLDED_AT_FIRST = 150; // lines
const UNFOLDED_AT_MOST = 5000; // lines that "unfold all" creates
const BRANCH = 100; // children of a container that are created at a time
const LONG_STRING = 400; // characters
const LONG_KEY = 200; // characters
const DEEPEST_INDENT = 40; // levels
const LARGEST_INNER = 1 << 20; // characters of a string that is searched for JSON

export class JsonTree {
  /**
   * @param {import("./json.js").JsonNode} root
   * @param {import("./session.js").Finding[]} findings about the message
   */
  constructor(root, findings) {
    this.root = root;
    this.element = el("div", { class: "tree", role: "tree", tabindex: 0, "aria-label": "message" });
    /** @type {Map<HTMLElement, TreeLine>} */
    this.lines = new Map();
    /** @type {Map<import("./json.js").JsonNode, string>} the severity of the findings at a value */
    this.marks = new Map();
    for (const finding of findings) this.marks.set(pointedNodes(root, finding.pointer).pop() ?? root, finding.severity);
    /** @type {TreeLine | null} */
    this.current = null;
    this.element.addEventListener("click", (event) => this.press(event));
    this.unfoldAll(UNFOLDED_AT_FIRST);
    this.setCurrent(this.lineOf(this.element.firstElementChild));
  }

  /** @param {Element | null} element */
  lineOf(element) {
    return element instanceof HTMLElement ? (this.lines.get(element) ?? null) : null;
  }

  /** @param {MouseEvent} event */
  press(event) {
    const target = event.target instanceof Element ? event.target : null;
    const line = this.lineOf(target?.closest("[role=treeitem]") ?? null);
    if (!line || target?.closest("button")) return;
    this.setCurrent(line);
    if (!getSelection()?.toString()) this.turn();
  }

  /** @param {TreeLine | null} line */
  setCurrent(line) {
    this.current?.element.setAttribute("aria-selected", "false");
    this.current = line;
    if (!line) return;
    line.element.setAttribute("aria-selected", "true");
    line.element.id ||= `line-${Math.random().toString(36).slice(2)}`;
    this.element.setAttribute("aria-activedescendant", line.element.id);
  }

  /** Fold everything. */
  foldAll() {
    this.lines.clear();
    this.element.replaceChildren();
    this.addLines([{ key: null, node: this.root }], 0, null);
    this.setCurrent(this.lineOf(this.element.firstElementChild));
  }

  /**
   * Unfold from the outside in, up to `most` lines.
   * @param {number} [most]
   */
  unfoldAll(most = UNFOLDED_AT_MOST) {
    this.foldAll();
    let waiting = [...this.lines.values()];
    while (waiting.length) {
      const next = [];
      for (const line of waiting) {
        const children = Math.min(line.node.children.length, BRANCH);
        if (children && this.lines.size + children <= most) next.push(...this.unfold(line));
      }
      waiting = next;
    }
  }

  /**
   * Create the lines of the children of a line.
   * @param {TreeLine} line
   * @param {number} [from] the first child
   * @param {HTMLElement} [after] where they go
   * @returns {TreeLine[]}
   */
  unfold(line, from = 0, after = line.element) {
    const { node } = line;
    const inner = node.type === "string" ? innerJson(node) : node;
    if (!inner?.children.length) return [];
    line.open = true;
    line.element.setAttribute("aria-expanded", "true");
    const children = inner.children.slice(from, from + BRANCH).map((child, place) => {
      const key = inner.keys ? inner.keys[from + place] : String(from + place);
      return { key, node: child };
    });
    const made = this.addLines(children, line.depth + 1, after);
    const rest = inner.children.length - from - children.length;
    if (rest > 0) this.addMore(line, from + BRANCH, rest, made[made.length - 1].element);
    return made;
  }

  /**
   * Add a line that shows more children of a large container.
   * @param {TreeLine} line
   * @param {number} from
   * @param {number} rest
   * @param {HTMLElement} after
   */
  addMore(line, from, rest, after) {
    const more = el("div", { class: "line more", role: "none", "data-depth": line.depth + 1 });
    indent(more, line.depth + 1);
    const press = () => {
      const made = this.unfold(line, from, more);
      more.remove();
      this.setCurrent(made[0]);
    };
    more.append(buttonElement(`${countText(Math.min(rest, BRANCH))} more of ${countText(rest)}`, press));
    after.after(more);
  }

  /** @param {TreeLine} line */
  fold(line) {
    line.open = false;
    line.element.setAttribute("aria-expanded", "false");
    for (const element of insideOf(line.element)) {
      this.lines.delete(element);
      element.remove();
    }
  }

  /** Fold or unfold the current line. */
  turn() {
    const line = this.current;
    if (!line?.element.hasAttribute("aria-expanded")) return;
    if (line.open) this.fold(line);
    else this.unfold(line);
  }

  /**
   * @param {{key: string | null, node: import("./json.js").JsonNode}[]} values
   * @param {number} depth
   * @param {HTMLElement | null} after null: at the beginning
   */
  addLines(values, depth, after) {
    const fragment = document.createDocumentFragment();
    const made = values.map(({ key, node }) => {
      const element = lineElement(key, node, depth, this.marks.get(node));
      const line = { node, depth, open: false, element };
      this.lines.set(element, line);
      fragment.append(element);
      return line;
    });
    if (after) after.after(fragment);
    else this.element.prepend(fragment);
    return made;
  }

  /**
   * Unfold the path of a JSON Pointer, and show its value.
   * @param {string} pointer
   */
  reveal(pointer) {
    let line = this.lineOf(this.element.firstElementChild);
    for (const node of pointedNodes(this.root, pointer).slice(1)) {
      if (line && !line.open) this.unfold(line);
      const next = [...this.lines.values()].find((other) => other.node === node);
      if (!next) break;
      line = next;
    }
    this.setCurrent(line);
    line?.element.scrollIntoView({ block: "nearest" });
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
function insideOf(element) {
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
 * @param {HTMLElement} element
 * @param {number} depth
 */
function indent(element, depth) {
  element.style.setProperty("--depth", String(Math.min(depth, DEEPEST_INDENT)));
}

/**
 * The JSON inside a string; null if there is none.
 * @param {import("./json.js").JsonNode} node
 */
function innerJson(node) {
  const text = node.end - node.start < LARGEST_INNER ? nodeText(node) : "";
  return /^\s*[[{]/.test(text) ? parseJson(text) : null;
}

/**
 * @param {string | null} key as written; for an array the index
 * @param {import("./json.js").JsonNode} node
 * @param {number} depth
 * @param {string | undefined} severity of the findings at it
 */
function lineElement(key, node, depth, severity) {
  const inner = node.type === "string" ? innerJson(node) : null;
  const folds = node.children.length > 0 || (inner?.children.length ?? 0) > 0;
  const found = el("div", {
    class: `line ${severity ?? ""}`,
    role: "treeitem",
    "aria-level": depth + 1,
    "data-depth": depth,
  });
  if (folds) found.setAttribute("aria-expanded", "false");
  found.setAttribute("aria-selected", "false");
  indent(found, depth);
  if (key !== null) found.append(el("span", { class: "key" }, clipText(key, LONG_KEY)), ": ");
  found.append(valueElement(node));
  if (node.children.length) found.append(el("span", { class: "open" }, node.keys ? "{" : "["));
  if (inner) found.append(" ", el("span", { class: "inner" }, `JSON ${briefText(inner)}`));
  if (severity) found.append(" ", el("span", { class: "here" }, `◂ ${severity}`));
  return found;
}

/** @param {import("./json.js").JsonNode} node */
function valueElement(node) {
  if (node.type !== "object" && node.type !== "array") {
    const found = el("span", { class: node.type });
    appendLongText(found, node.source.slice(node.start, node.end), LONG_STRING);
    return found;
  }
  return el("span", { class: "brief" }, briefText(node));
}

/**
 * A container in a few words.
 * @param {import("./json.js").JsonNode} node
 */
function briefText(node) {
  if (!node.keys) return `[${node.children.length ? countText(node.children.length) : ""}]`;
  const names = node.keys.slice(0, 4).map((key) => clipText(key.slice(1, -1), 20));
  return `{${names.join(", ")}${node.keys.length > 4 ? ", …" : ""}}`;
}
