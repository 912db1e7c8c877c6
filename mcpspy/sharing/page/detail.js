/** The selected message, and beside it the other message of its exchange. */

import { hexElement, rawElement } from "./bodies.js";
import { READ } from "./content.js";
import { factElements, findingElements, headElement, stderrElement, subjectElement } from "./facts.js";
import { saveBytes } from "./load.js";
import { messageOf } from "./message.js";
import { Reader } from "./reader.js";
import { isAnswer } from "./session.js";
import { FORMS } from "./state.js";
import { byId, el } from "./text.js";
import { JsonTree } from "./tree.js";
import { markPlace, wordFinder, wordRanges } from "./words.js";

const SIDE_BY_SIDE = 620; // pixels, as in the style sheet

export class Detail {
  /**
   * @param {import("./state.js").State} state
   * @param {Promise<import("./capture.js").Capture>} capture
   * @param {(text: string) => void} notice shows the user a text
   */
  constructor(state, capture, notice) {
    this.state = state;
    this.notice = notice;
    /** @type {import("./capture.js").Capture | null} */
    this.capture = null;
    /** @type {Map<HTMLElement, JsonTree | Reader>} the messages that are shown as lines */
    this.folding = new Map();
    this.places = new Places([].values());
    /** Whether the last place in the next message is shown, because the search goes up. */
    this.fromEnd = false;
    state.on("shown", () => this.findPlaces());
    for (const change of /** @type {const} */ (["row", "form", "pair"])) state.on(change, () => this.schedule());
    this.scheduled = false;
    for (const form of FORMS) byId(`form-${form}`).addEventListener("click", () => state.setForm(form));
    byId("pair").addEventListener("click", () => this.turnPair());
    byId("copy").addEventListener("click", () => this.copy(false));
    byId("save").addEventListener("click", () => this.save(false));
    capture.then(
      (found) => {
        this.capture = found;
        this.show();
      },
      () =>
        byId("cards").replaceChildren(
          el("p", { class: "error" }, "The capture in this page is damaged, so messages cannot be shown."),
        ),
    );
  }

  /** Show the message after all keys of one burst are processed. */
  schedule() {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      if (this.scheduled) this.show();
    });
  }

  show() {
    this.scheduled = false;
    const { state, capture } = this;
    const shown = state.row ? this.formOf(state.row) : "";
    for (const form of FORMS) byId(`form-${form}`).setAttribute("aria-pressed", String(form === shown));
    byId("pair").setAttribute("aria-pressed", String(state.pair));
    const cards = byId("cards");
    if (!capture) return;
    this.folding.clear();
    if (!state.row) {
      cards.replaceChildren(el("p", { class: "dim" }, "Select a row to see its message."));
      return;
    }
    const partner = state.pair ? state.session.partnerOf(state.place) : undefined;
    const places = [state.place, ...(partner === undefined ? [] : [partner])];
    places.sort((one, other) => Number(this.isAnswer(one)) - Number(this.isAnswer(other)));
    const width = cards.clientWidth / (cards.clientWidth < SIDE_BY_SIDE ? 1 : places.length);
    const focused = cards.contains(document.activeElement);
    cards.replaceChildren(...places.map((place) => this.card(place, capture, width)));
    if (focused) this.focus();
    cards.scrollTop = 0;
    byId("detail").scrollTop = 0;
    this.findPlaces();
  }

  /**
   * The form in which a message is shown: the one that the user chose, else the one that suits it.
   * @param {import("./session.js").Row} row
   */
  formOf(row) {
    return this.state.form ?? (row.kind === "error" || READ.includes(row.method ?? "") ? "content" : "tree");
  }

  /** @param {number} place */
  isAnswer(place) {
    return this.state.session.rows[place].kind !== "request";
  }

  /**
   * @param {number} place
   * @param {import("./capture.js").Capture} capture
   * @param {number} width pixels that there are
   */
  card(place, capture, width) {
    const { session } = this.state;
    const row = session.rows[place];
    const message = messageOf(row, capture);
    const heads = capture.heads(row.channel);
    const body = this.body(row, message, width);
    const lines = this.folding.get(body);
    const found = el("article", {
      class: place === this.state.place ? "card selected" : "card",
      "aria-label": `message #${row.n}`,
    });
    found.append(subjectElement(row), el("div", { class: "facts" }, ...factElements(row, capture)));
    found.append(...findingElements(row, session.rules, (pointer) => lines?.reveal(pointer)));
    found.append(...this.callElements(place));
    const head =
      row.kind === "request" || row.from === "client"
        ? headElement(heads.request, "request")
        : headElement(heads.response, "response");
    if (head) found.append(head);
    found.append(body);
    return found;
  }

  /**
   * What belongs to the call of an answer: the findings of its request, if no other card shows them, and stderr.
   * @param {number} place
   */
  callElements(place) {
    const { pair, session } = this.state;
    const partner = session.partnerOf(place);
    const found = [];
    if (!pair && partner !== undefined && isAnswer(session.rows[place])) {
      const request = session.rows[partner];
      if (request.findings.length) found.push(el("p", { class: "facts" }, `the request #${request.n} has:`));
      found.push(...findingElements(request, session.rules, () => this.state.select(partner)));
    }
    const lines = stderrElement(session.stderrOfCall(place));
    return lines ? [...found, lines] : found;
  }

  /**
   * The message in its form; a message that is not JSON is a text or bytes.
   * @param {import("./session.js").Row} row
   * @param {import("./message.js").Message} message
   * @param {number} width pixels that there are
   * @returns {HTMLElement}
   */
  body(row, message, width) {
    const form = this.formOf(row);
    if (form === "hex") return hexElement(message.bytes, width);
    if (form === "raw" || !message.json) return rawElement(message.text);
    const lines =
      form === "tree"
        ? new JsonTree(message.json, row.findings)
        : new Reader(message.json, row.findings, `frame-${row.n}`);
    this.folding.set(lines.element, lines);
    return lines.element;
  }

  /** The message that has the focus, if it is shown as lines. */
  focusedLines() {
    const found = document.activeElement?.closest(".tree");
    return found instanceof HTMLElement ? this.folding.get(found) : undefined;
  }

  /** Look for the words of the filter in the selected message, and show the first place that has them. */
  findPlaces() {
    const { words } = this.state;
    const body = document.querySelector("#cards .selected :is(.tree, .raw)");
    markPlace(null, words);
    this.places = new Places([].values());
    if (body instanceof HTMLElement && words.some(Boolean)) {
      const lines = this.folding.get(body);
      this.places = new Places(lines ? lines.places(wordFinder(words)) : rangesIn(body, words));
      if (this.fromEnd) this.places.toEnd();
      this.nextPlace(this.fromEnd ? -1 : 1);
    }
    this.fromEnd = false;
  }

  /**
   * Show the next place in the selected message that the filter looks for; returns whether there is one.
   * @param {number} step 1 or -1
   */
  nextPlace(step) {
    if (this.scheduled) this.show();
    const go = this.places.next(step);
    this.fromEnd = !go && step < 0;
    if (!go) return false;
    markPlace(go()?.element ?? null, this.state.words);
    return true;
  }

  /** Whether a text has the focus. */
  focusedText() {
    return Boolean(document.activeElement?.closest("#cards pre"));
  }

  /**
   * Scroll the messages, or on a narrow screen the element around them.
   * @param {number} pixels
   */
  scroll(pixels) {
    for (const id of ["cards", "detail"]) byId(id).scrollBy(0, pixels);
  }

  /** Focus the selected message. */
  focus() {
    /** @type {HTMLElement | null} */
    const found = document.querySelector("#cards .selected :is(.tree, pre)");
    found?.focus();
  }

  /** Show the content, the tree, the text, the bytes, in turn. */
  turnForm() {
    const form = this.state.row ? this.formOf(this.state.row) : FORMS[0];
    this.state.setForm(FORMS[(FORMS.indexOf(form) + 1) % FORMS.length]);
  }

  turnPair() {
    this.state.pair = !this.state.pair;
    this.state.tell("pair");
  }

  /**
   * Copy the text of the selected frame.
   * @param {boolean} part if a value in it is selected: its text
   */
  async copy(part) {
    if (!this.capture || !this.state.row) return;
    const value = part ? (this.focusedLines()?.copied() ?? null) : null;
    const { text, json } = messageOf(this.state.row, this.capture);
    const copied = value ?? (json ? json.source.slice(json.start, json.end) : text);
    try {
      await navigator.clipboard.writeText(copied);
    } catch {
      copyBySelection(copied);
    }
    this.notice(`Copied ${value === null ? "the message" : "a value"} of #${this.state.row.n}.`);
  }

  /**
   * Save the selected frame, byte for byte.
   * @param {boolean} part if an image or a sound in it is selected: its bytes
   */
  save(part) {
    if (!this.capture || !this.state.row) return;
    if (part && this.focusedLines()?.savePart()) return;
    const { n } = this.state.row;
    const { bytes, json } = messageOf(this.state.row, this.capture);
    saveBytes(new Uint8Array(bytes), `frame-${n}.${json ? "json" : "txt"}`);
  }
}

/** The places that a search finds in a message, one after the other; they are looked for as they are wanted. */
class Places {
  /** @param {Iterator<() => {element: HTMLElement} | null>} found */
  constructor(found) {
    this.found = found;
    /** @type {(() => {element: HTMLElement} | null)[]} */
    this.known = [];
    this.at = -1;
  }

  /** @param {number} step 1 or -1 */
  next(step) {
    const at = this.at + step;
    if (at === this.known.length) {
      const { value, done } = this.found.next();
      if (!done) this.known.push(value);
    }
    if (this.known[at]) this.at = at;
    return this.known[at] ?? null;
  }

  /** Go behind the last place. */
  toEnd() {
    while (this.next(1));
    this.at = this.known.length;
  }
}

/**
 * The places in a text that is shown as it is.
 * @param {HTMLElement} element
 * @param {string[]} words
 */
function* rangesIn(element, words) {
  for (const range of wordRanges(element, words)) {
    yield () => {
      const { top } = range.getBoundingClientRect();
      const cards = byId("cards");
      cards.scrollBy(0, top - cards.getBoundingClientRect().top - cards.clientHeight / 2);
      return null;
    };
  }
}

/**
 * Copy if the browser does not let a page write to the clipboard.
 * @param {string} text
 */
function copyBySelection(text) {
  const focused = document.activeElement;
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
  if (focused instanceof HTMLElement) focused.focus();
}
