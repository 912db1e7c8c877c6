/** A message as a person reads it: its content as lines that fold, with pictures and sounds. */

import { contentLines, outerLines, TextLines } from "./content.js";
import { DEEPEST_PLACE, FoldingLines, lineElement, markLine, moreElement, setDepth } from "./folding.js";
import { nodeText, pointedNodes } from "./json.js";
import { saveBytes } from "./load.js";
import { mediaFile, mediaText, mediaUrl, PICTURES, SOUNDS } from "./media.js";
import { appendText, buttonElement, el, sizeText } from "./text.js";

/** @typedef {import("./content.js").ContentLine} ContentLine */
/** @typedef {import("./json.js").JsonNode} JsonNode */
/** @typedef {{content: ContentLine, open: boolean, element: HTMLElement}} ReaderLine */

/**
 * Lines that are not shown yet, and the place where they go.
 * @typedef {object} Run
 * @property {{owner: ContentLine | null, lines: Iterator<ContentLine>}[]} stack the innermost lines last
 * @property {HTMLElement} more stands behind the lines that are shown, with a button for more
 * @property {number} left characters that are shown without a press of the button
 * @property {boolean} unfolded whether everything is shown
 */

const LINES_AT_A_TIME = 200;
const TEXT_AT_A_TIME = 1 << 16; // characters
const SHOWN_UNASKED = 1 << 20; // characters
const LEAST_LINE = 100; // characters that a line counts for, so that there are not too many lines
const BEFORE_PLACE = 160; // characters of a text that are shown before a place in it
/** @type {Record<ContentLine["kind"], string>} */
const KIND_CLASSES = { text: "", string: "", number: "number", literal: "word", note: "dim", media: "dim" };
const MOST_PIXELS = 64e6; // of a picture that is shown at once

/** @extends {FoldingLines<ReaderLine>} */
export class Reader extends FoldingLines {
  /**
   * @param {import("./json.js").JsonNode} root
   * @param {import("./session.js").Finding[]} findings about the message
   * @param {string} name of files that are saved, without extension
   */
  constructor(root, findings, name) {
    super("content of the message");
    this.element.classList.add("content");
    this.root = root;
    this.name = name;
    /** @type {Map<JsonNode, string>} the severity of the findings at a value */
    this.marks = new Map();
    for (const { pointer, severity } of findings) this.marks.set(markedNode(root, pointer), severity);
    /** @type {Map<JsonNode, ReaderLine>} the line of each value that is shown or was shown */
    this.values = new Map();
    /** @type {Map<HTMLElement, Run>} by the element behind its lines */
    this.runs = new Map();
    this.watcher = new IntersectionObserver((seen) => {
      for (const { isIntersecting, target } of seen)
        if (isIntersecting && target instanceof HTMLElement) this.growWatched(target);
    });
    this.begin(false);
  }

  /**
   * Show the message from its first line on.
   * @param {boolean} unfolded
   * @param {(line: ContentLine) => ContentLine} [change] of the outermost lines
   */
  begin(unfolded, change = (line) => line) {
    this.watcher.disconnect();
    this.lines.clear();
    this.runs.clear();
    this.values.clear();
    this.element.replaceChildren();
    const stack = [{ owner: null, lines: changed(outerLines(this.root), change) }];
    this.addRun(stack, unfolded, (more) => this.element.append(more));
    this.setFirst();
  }

  foldAll() {
    this.begin(false, (line) => ({ ...line, folded: true }));
  }

  unfoldAll() {
    this.begin(true);
  }

  /** Fold everything, or unfold it if everything is folded. */
  turnAll() {
    if ([...this.lines.values()].some(({ open }) => open)) this.foldAll();
    else this.unfoldAll();
  }

  /**
   * Show the first of some lines, and the others as soon as they can be seen.
   * @param {Run["stack"]} stack
   * @param {boolean} unfolded
   * @param {(more: HTMLElement) => void} put puts an element to the place of the lines
   * @param {string} [what] the text of the button; the lines are then shown only when it is pressed
   */
  addRun(stack, unfolded, put, what) {
    const button = buttonElement(what ?? `show more of ${sizeText(this.root.end - this.root.start)}`, () => {
      run.left = SHOWN_UNASKED;
      const [first] = this.grow(run);
      if (first) this.setCurrent(first);
    });
    const more = moreElement(stack[stack.length - 1].owner ? depthInside(stack) : 0, button);
    const run = { stack, more, left: what ? 0 : SHOWN_UNASKED, unfolded };
    put(more);
    this.runs.set(more, run);
    return this.grow(run);
  }

  /** @param {HTMLElement} more */
  growWatched(more) {
    const run = this.runs.get(more);
    if (run) this.grow(run);
  }

  /**
   * Show more lines of a run; returns them.
   * @param {Run} run
   */
  grow(run) {
    const { stack, more } = run;
    const fragment = document.createDocumentFragment();
    const made = [];
    for (let size = 0; stack.length && made.length < LINES_AT_A_TIME && size < TEXT_AT_A_TIME; ) {
      const { value: content, done } = stack[stack.length - 1].lines.next();
      if (done) {
        stack.pop();
        continue;
      }
      const open = content.opens && (run.unfolded || !content.folded);
      const line = { content, open, element: this.draw(content, open) };
      if (content.inside && (open || !content.opens)) stack.push({ owner: content, lines: content.inside() });
      fragment.append(line.element);
      this.lines.set(line.element, line);
      if (!content.above || content.above.node !== content.node) this.values.set(content.node, line);
      made.push(line);
      const length = content.media ? content.node.end - content.node.start : content.text.length;
      const shown = Math.max(length, LEAST_LINE);
      size += shown;
      run.left -= shown;
    }
    more.before(fragment);
    this.settle(run);
    return made;
  }

  /**
   * Remove a run that has no more lines; else wait until the place behind its lines can be seen.
   * @param {Run} run
   */
  settle({ stack, more, left }) {
    this.watcher.unobserve(more);
    if (!stack.length) {
      this.runs.delete(more);
      more.remove();
      return;
    }
    setDepth(more, depthInside(stack));
    if (left > 0) this.watcher.observe(more);
  }

  /** @param {ReaderLine} line */
  unfold(line) {
    super.unfold(line);
    const { content } = line;
    if (content.inside)
      this.addRun([{ owner: content, lines: content.inside() }], false, (more) => line.element.after(more));
  }

  /** @param {ReaderLine} line */
  fold(line) {
    for (const run of this.runs.values()) {
      const at = run.stack.findIndex(({ owner }) => owner === line.content);
      if (at >= 0) {
        run.stack.length = at;
        this.settle(run);
      }
    }
    super.fold(line);
    for (const more of this.runs.keys()) if (!more.isConnected) this.runs.delete(more);
  }

  /** Fold the current line; of a line that does not fold, the line that it is inside. */
  close() {
    const { current } = this;
    if (current && !current.open) this.setCurrent(this.drawn(current.content.above) ?? current);
    super.close();
    this.current?.element.scrollIntoView({ block: "nearest" });
  }

  /** @param {number} step */
  move(step) {
    if (step > 0) this.growLast(step);
    super.move(step);
  }

  /**
   * Show more lines behind the last one, if it is about to be passed.
   * @param {number} step lines
   */
  growLast(step) {
    const last = this.element.lastElementChild;
    const run = last instanceof HTMLElement ? this.runs.get(last) : undefined;
    if (!run) return;
    const isNear = () => {
      let at = this.element.lastElementChild;
      for (let passed = 0; passed <= step && at !== this.current?.element; passed += 1) {
        if (!at) return true;
        at = at.previousElementSibling;
      }
      return at === this.current?.element;
    };
    while (run.stack.length && run.left > 0 && isNear()) this.grow(run);
  }

  /**
   * The shown line of some content.
   * @param {ContentLine | null} content
   */
  drawn(content) {
    if (!content) return null;
    const line = this.values.get(content.node);
    if (line && isSameLine(line.content, content)) return line.element.isConnected ? line : null;
    for (const other of this.lines.values()) if (isSameLine(other.content, content)) return other;
    return null;
  }

  /**
   * Show the value at a JSON Pointer, or what of it is shown.
   * @param {string} pointer
   */
  reveal(pointer) {
    const way = pointedNodes(this.root, pointer);
    const levels = new Map(way.map((node, level) => [node, level]));
    let best = null;
    let nearest = -1;
    for (const line of contentLines(this.root)) {
      const level = Math.max(...[line.node, ...line.blocks.slice(0, 1)].map((node) => levels.get(node) ?? -1));
      if (level > nearest) [best, nearest] = [line, level];
      if (nearest === way.length - 1) break;
    }
    if (best) this.goTo(best);
  }

  /**
   * Unfold the way to a line, and show it.
   * @param {ContentLine} line
   */
  goTo(line) {
    const way = [];
    for (let at = /** @type {ContentLine | null} */ (line); at; at = at.above) way.push(at);
    let found = null;
    for (const one of way.reverse().slice(0, DEEPEST_PLACE)) {
      if (found && !found.open && found.content.opens) this.unfold(found);
      found = this.drawn(one) ?? this.reach(one);
      if (!found) return null;
    }
    this.setCurrent(found);
    found?.element.scrollIntoView({ block: "nearest" });
    return found;
  }

  /**
   * Show a line that is farther away; the line around it is shown already.
   * @param {ContentLine} wanted
   */
  reach(wanted) {
    for (const run of [...this.runs.values()]) {
      const at = run.stack.findLastIndex(({ owner }) => isSameLine(owner, wanted.above));
      if (at < 0) continue;
      const deeper = run.stack.splice(at + 1);
      if (deeper.length) this.addGap(run, deeper);
      const entry = run.stack[at];
      const { skipped, rest } = linesUpTo(entry.lines, wanted);
      if (skipped) this.addGap(run, [{ owner: entry.owner, lines: skipped }]);
      entry.lines = rest;
      run.left = Math.max(run.left, 1);
      this.grow(run);
      const found = this.drawn(wanted);
      if (found) return found;
    }
    return null;
  }

  /**
   * Leave out lines of a run: they are shown when a button is pressed.
   * @param {Run} run
   * @param {Run["stack"]} stack
   */
  addGap(run, stack) {
    this.addRun(stack, run.unfolded, (more) => run.more.before(more), "show more of what is between");
  }

  /**
   * The places that have a text, from the first to the last; each is given as a function that shows it.
   * @param {(text: string) => number} endOf where the wanted text ends; 0 if it is not there
   */
  *places(endOf) {
    for (const line of contentLines(this.root)) {
      if (endOf(line.label) || endOf(line.text)) yield () => this.goTo(line);
    }
  }

  /** The text of the current value: a string decoded, other values as they are written. */
  copied() {
    return this.current ? nodeText(this.current.content.node) : null;
  }

  /** Save the image, the sound or the document of the current line; returns whether it has one. */
  savePart() {
    const content = this.current?.content;
    if (!content?.media) return false;
    this.saveMedia(content);
    return true;
  }

  /** @param {ContentLine} content */
  saveMedia({ media, node }) {
    if (!media) return;
    const { bytes, extension } = mediaFile(media, nodeText(node));
    saveBytes(bytes, `${this.name}.${extension}`);
  }

  /**
   * @param {ContentLine} content
   * @param {boolean} open
   */
  draw(content, open) {
    const { depth, label, text, kind, opens } = content;
    const after = label === "-" || (opens && !text) ? " " : ": ";
    const found = lineElement(depth, label || null, after, opens);
    if (open) found.setAttribute("aria-expanded", "true");
    const value = el("span", { class: `value ${KIND_CLASSES[kind]}` });
    appendText(value, text, true);
    found.append(value);
    if (label) markLine(found, this.severityAt(content));
    if (content.media) found.append(this.mediaElement(content));
    return found;
  }

  /** @param {ContentLine} content */
  severityAt({ node, blocks }) {
    for (const one of [node, ...blocks.slice(0, 1)]) if (this.marks.has(one)) return this.marks.get(one);
    return undefined;
  }

  /**
   * The picture or the player of a line, and the button that saves it.
   * @param {ContentLine} content
   */
  mediaElement(content) {
    const media = /** @type {import("./media.js").MediaFile} */ (content.media);
    const found = el("div", { class: "media" });
    const save = buttonElement("Save", () => this.saveMedia(content), { title: "save the decoded bytes (s)" });
    const show = () => {
      const picture = pictureElement(media, nodeText(content.node));
      button.replaceWith(picture);
    };
    const button = buttonElement("Show the picture", show);
    if (!media.empty && (media.form === "SVG" || PICTURES.includes(media.form))) {
      found.append(button, " ");
      if (media.form !== "SVG" && media.pixels <= MOST_PIXELS) show();
    } else if (!media.empty && SOUNDS.includes(media.form)) {
      const player = el("audio", { controls: "", preload: "metadata", "aria-label": mediaText(media) });
      player.setAttribute("src", mediaUrl(media, nodeText(content.node)));
      found.append(player, " ");
    }
    found.append(save);
    return found;
  }
}

/**
 * A picture; SVG runs no script and loads nothing there.
 * @param {import("./media.js").MediaFile} media
 * @param {string} text in base64
 */
function pictureElement(media, text) {
  const found = el("img", { alt: mediaText(media), decoding: "async" });
  found.addEventListener("error", () =>
    found.replaceWith(el("span", { class: "dim" }, "the browser cannot show this picture")),
  );
  found.setAttribute("src", mediaUrl(media, text));
  return found;
}

/**
 * @template Line
 * @param {Iterator<Line>} lines
 * @param {(line: Line) => Line} change
 */
function* changed(lines, change) {
  for (let next = lines.next(); !next.done; next = lines.next()) yield change(next.value);
}

/**
 * @template Line
 * @param {Line} first
 * @param {Iterator<Line>} lines
 */
function* joined(first, lines) {
  yield first;
  yield* changed(lines, (line) => line);
}

/**
 * The depth of the innermost lines that are not shown yet.
 * @param {Run["stack"]} stack
 */
function depthInside(stack) {
  const { owner } = stack[stack.length - 1];
  return owner ? owner.depth + 1 : 0;
}

/**
 * Cut some lines at a line that is wanted.
 * @param {Iterator<ContentLine>} lines
 * @param {ContentLine} wanted
 * @returns {{skipped: Iterator<ContentLine> | null, rest: Iterator<ContentLine>}} the rest begins with the wanted line
 */
function linesUpTo(lines, wanted) {
  if (lines instanceof TextLines) return lines.cutBefore(wanted.start, BEFORE_PLACE);
  const skipped = [];
  for (let next = lines.next(); !next.done; next = lines.next()) {
    if (isSameLine(next.value, wanted)) {
      const first = next.value;
      const rest = joined(first, lines);
      return { skipped: skipped.length ? skipped.values() : null, rest };
    }
    skipped.push(next.value);
  }
  return { skipped: null, rest: skipped.values() };
}

/**
 * Whether two lines show the same; each search makes lines anew.
 * @param {ContentLine | null} one
 * @param {ContentLine | null} other
 */
function isSameLine(one, other) {
  if (!one || !other) return one === other;
  return one.node === other.node && one.start === other.start && one.opens === other.opens && one.label === other.label;
}

/**
 * The value at a JSON Pointer; the type of a content block is part of the line of the block.
 * @param {JsonNode} root
 * @param {string} pointer
 */
function markedNode(root, pointer) {
  const way = pointedNodes(root, pointer);
  const block = /\/content\/(?:\d+\/)?(?:type|mimeType)$/.test(pointer) ? way[way.length - 2] : undefined;
  return block ?? way[way.length - 1];
}
