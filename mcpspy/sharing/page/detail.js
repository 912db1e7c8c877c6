/** The selected message, and beside it the other message of its exchange. */

import { hexElement, rawElement } from "./bodies.js";
import { factElements, findingElements, headElement, stderrElement, subjectElement } from "./facts.js";
import { saveBytes } from "./load.js";
import { messageOf } from "./message.js";
import { isAnswer } from "./session.js";
import { FORMS } from "./state.js";
import { byId, el } from "./text.js";
import { JsonTree } from "./tree.js";

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
    /** @type {Map<HTMLElement, JsonTree>} the trees that are shown */
    this.trees = new Map();
    for (const change of /** @type {const} */ (["row", "form", "pair"])) state.on(change, () => this.schedule());
    this.scheduled = false;
    for (const form of FORMS) byId(`form-${form}`).addEventListener("click", () => state.setForm(form));
    byId("pair").addEventListener("click", () => this.turnPair());
    byId("copy").addEventListener("click", () => this.copy());
    byId("save").addEventListener("click", () => this.save());
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
      this.scheduled = false;
      this.show();
    });
  }

  show() {
    const { state, capture } = this;
    for (const form of FORMS) byId(`form-${form}`).setAttribute("aria-pressed", String(form === state.form));
    byId("pair").setAttribute("aria-pressed", String(state.pair));
    const cards = byId("cards");
    if (!capture) return;
    this.trees.clear();
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
    const tree = this.trees.get(body);
    const found = el("article", {
      class: place === this.state.place ? "card selected" : "card",
      "aria-label": `message #${row.n}`,
    });
    found.append(subjectElement(row), el("div", { class: "facts" }, ...factElements(row, capture)));
    found.append(...findingElements(row, session.rules, (pointer) => tree?.reveal(pointer)));
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
   * The message in the chosen form; a message that is not JSON has no tree.
   * @param {import("./session.js").Row} row
   * @param {import("./message.js").Message} message
   * @param {number} width pixels that there are
   * @returns {HTMLElement}
   */
  body(row, message, width) {
    if (this.state.form === "hex") return hexElement(message.bytes, width);
    if (this.state.form === "raw" || !message.json) return rawElement(message.text);
    const tree = new JsonTree(message.json, row.findings);
    this.trees.set(tree.element, tree);
    return tree.element;
  }

  /** The tree that has the focus. */
  focusedTree() {
    return document.activeElement instanceof HTMLElement ? this.trees.get(document.activeElement) : undefined;
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

  /** Show the tree, the text, the bytes, in turn. */
  turnForm() {
    this.state.setForm(FORMS[(FORMS.indexOf(this.state.form) + 1) % FORMS.length]);
  }

  turnPair() {
    this.state.pair = !this.state.pair;
    this.state.tell("pair");
  }

  /** Copy the text of the selected frame. */
  async copy() {
    if (!this.capture || !this.state.row) return;
    const { text, json } = messageOf(this.state.row, this.capture);
    const copied = json ? json.source.slice(json.start, json.end) : text;
    try {
      await navigator.clipboard.writeText(copied);
    } catch {
      copyBySelection(copied);
    }
    this.notice(`Copied the message of #${this.state.row.n}.`);
  }

  /** Save the selected frame, byte for byte. */
  save() {
    if (!this.capture || !this.state.row) return;
    const { n } = this.state.row;
    const { bytes, json } = messageOf(this.state.row, this.capture);
    saveBytes(new Uint8Array(bytes), `frame-${n}.${json ? "json" : "txt"}`);
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
