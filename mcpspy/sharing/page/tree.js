/** A JSON message as a tree that folds: the names and values as they are written, with escapes of letters decoded. */

import { DEEPEST_PLACE, FoldingLines, lineElement, markLine, moreElement } from "./folding.js";
import { innerJson, nodeText, pointedNodes, readableJson } from "./json.js";
import { appendLongText, buttonElement, clipText, countText, el } from "./text.js";

/**
 * @typedef {object} TreeLine
 * @property {import("./json.js").JsonNode} node
 * @property {number} depth
 * @property {boolean} open
 * @property {HTMLElement} element
 */

/**
 * A value that is searched.
 * @typedef {object} TreePlace
 * @property {string} key as written
 * @property {import("./json.js").JsonNode} node
 * @property {TreePlace | null} above
 */

const UNFOLDED_AT_FIRST = 150; // lines
const UNFOLDED_AT_MOST = 5000; // lines that "unfold all" creates
const BRANCH = 100; // children of a container that are created at a time
const LONG_STRING = 400; // characters
const FARTHEST = 1 << 18; // characters of a string that are shown to get to a place in it

/** @extends {FoldingLines<TreeLine>} */
export class JsonTree extends FoldingLines {
  /**
   * @param {import("./json.js").JsonNode} root
   * @param {import("./session.js").Finding[]} findings about the message
   */
  constructor(root, findings) {
    super("message");
    this.root = root;
    /** @type {Map<import("./json.js").JsonNode, string>} the severity of the findings at a value */
    this.marks = new Map();
    for (const finding of findings) this.marks.set(pointedNodes(root, finding.pointer).pop() ?? root, finding.severity);
    this.unfoldAll(UNFOLDED_AT_FIRST);
    this.setFirst();
  }

  /** Fold everything. */
  foldAll() {
    this.lines.clear();
    this.element.replaceChildren();
    this.addLines([{ key: null, node: this.root }], 0, null);
    this.setFirst();
  }

  /** Fold everything, or unfold it if everything is folded. */
  turnAll() {
    if (this.current && this.lines.size > 1) this.foldAll();
    else this.unfoldAll();
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
    const inner = innerJson(line.node) ?? line.node;
    if (!inner.children.length) return [];
    super.unfold(line);
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
    const press = () => {
      const made = this.unfold(line, from, more);
      more.remove();
      this.setCurrent(made[0]);
    };
    const button = buttonElement(`${countText(Math.min(rest, BRANCH))} more of ${countText(rest)}`, press);
    const more = moreElement(line.depth + 1, button);
    after.after(more);
  }

  /**
   * @param {{key: string | null, node: import("./json.js").JsonNode}[]} values
   * @param {number} depth
   * @param {HTMLElement | null} after null: at the beginning
   */
  addLines(values, depth, after) {
    const fragment = document.createDocumentFragment();
    const made = values.map(({ key, node }) => {
      const element = treeLine(key, node, depth, this.marks.get(node));
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
   * Show the value at a JSON Pointer.
   * @param {string} pointer
   */
  reveal(pointer) {
    this.goTo(pointedNodes(this.root, pointer));
  }

  /**
   * Unfold the way to a value, and show it.
   * @param {import("./json.js").JsonNode[]} way the values around it, from the root on, and the value itself
   * @param {number} [first] characters of its text that are shown at first
   * @returns {TreeLine | null} its line
   */
  goTo(way, first = 0) {
    let line = this.lineOf(this.element.firstElementChild);
    for (const node of way.slice(1, DEEPEST_PLACE)) {
      if (line && !line.open) this.unfold(line);
      let next = this.lineWith(node);
      for (let more = line && moreInside(line.element); !next && more; more = line && moreInside(line.element)) {
        more.querySelector("button")?.click();
        next = this.lineWith(node);
      }
      if (!next) break;
      line = next;
    }
    if (line && first > LONG_STRING) line.element.querySelector(".string")?.replaceWith(valueElement(line.node, first));
    this.setCurrent(line);
    line?.element.scrollIntoView({ block: "nearest" });
    return line;
  }

  /** @param {import("./json.js").JsonNode} node */
  lineWith(node) {
    for (const line of this.lines.values()) if (line.node === node) return line;
    return null;
  }

  /**
   * The places that have a text, from the first to the last; each is given as a function that shows it.
   * @param {(text: string) => number} endOf where the wanted text ends; 0 if it is not there
   */
  *places(endOf) {
    /** @type {TreePlace[]} */
    const waiting = [{ key: "", node: this.root, above: null }];
    for (let next = waiting.pop(); next; next = waiting.pop()) {
      const place = next;
      const inner = innerJson(place.node) ?? place.node;
      const end = inner.children.length
        ? 0
        : endOf(readableJson(place.node.source.slice(place.node.start, place.node.end)));
      const first = end && Math.min(end + LONG_STRING, FARTHEST);
      if (end || endOf(readableJson(place.key))) yield () => this.goTo(wayTo(place), first);
      for (let at = inner.children.length - 1; at >= 0; at -= 1)
        waiting.push({ key: inner.keys?.[at] ?? "", node: inner.children[at], above: place });
    }
  }

  /** Save what is encoded in the current value; a tree shows nothing of it. */
  savePart() {
    return false;
  }

  /** The text of the current value: a string decoded, other values as they are written; null for the whole message. */
  copied() {
    return this.current && this.current.node !== this.root ? nodeText(this.current.node) : null;
  }
}

/**
 * The values around a place, from the root on, and its own value.
 * @param {TreePlace} place
 */
function wayTo(place) {
  const found = [];
  for (let at = /** @type {TreePlace | null} */ (place); at; at = at.above) found.push(at.node);
  return found.reverse();
}

/**
 * The line inside an element's value that shows more of its children.
 * @param {HTMLElement} element
 */
function moreInside(element) {
  const depth = Number(element.dataset.depth) + 1;
  for (let next = element.nextElementSibling; next instanceof HTMLElement; next = next.nextElementSibling) {
    const found = Number(next.dataset.depth);
    if (found < depth) return null;
    if (found === depth && next.classList.contains("more")) return next;
  }
  return null;
}

/**
 * @param {string | null} key as written; for an array the index
 * @param {import("./json.js").JsonNode} node
 * @param {number} depth
 * @param {string | undefined} severity of the findings at it
 */
function treeLine(key, node, depth, severity) {
  const inner = innerJson(node);
  const folds = node.children.length > 0 || inner !== null;
  const found = lineElement(depth, key && readableJson(key), ": ", folds);
  found.append(valueElement(node, LONG_STRING));
  if (node.children.length) found.append(el("span", { class: "open" }, node.keys ? "{" : "["));
  if (inner) found.append(" ", el("span", { class: "inner" }, `JSON ${briefText(inner)}`));
  markLine(found, severity);
  return found;
}

/**
 * @param {import("./json.js").JsonNode} node
 * @param {number} first characters that are shown at first
 */
function valueElement(node, first) {
  if (node.type !== "object" && node.type !== "array") {
    const found = el("span", { class: node.type });
    appendLongText(found, readableJson(node.source.slice(node.start, node.end)), first);
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
  const names = node.keys.slice(0, 4).map((key) => clipText(readableJson(key.slice(1, -1)), 20));
  return `{${names.join(", ")}${node.keys.length > 4 ? ", …" : ""}}`;
}
