/** What the person has chosen: the row, the view, the form of messages. Parts of the page listen for changes. */

import { rowAddress } from "./session.js";

/** @typedef {"row" | "view" | "shown" | "form" | "pair" | "times" | "marks"} Change */

export const VIEWS = ["timeline", "findings", "tools", "sequence", "stderr"];
export const FORMS = ["tree", "raw", "hex"];

export class State {
  /** @param {import("./session.js").Session} session */
  constructor(session) {
    this.session = session;
    /** The selected row; -1 where there is none. */
    this.place = session.rows.length ? 0 : -1;
    this.view = VIEWS[0];
    this.form = FORMS[0];
    /** Whether the other message of an exchange is shown too. */
    this.pair = true;
    /** Whether times are those since the row above. */
    this.deltas = false;
    /** @type {Set<number>} the places of rows that the person has marked */
    this.marked = new Set();
    /** @type {number[]} the places of the rows in the timeline and the sequence */
    this.shown = session.rows.map((_, place) => place);
    /** @type {Set<number> | null} the places of the rows that the filter fits; null without a filter */
    this.matches = null;
    /** @type {string[]} the texts that the filter looks for */
    this.words = [];
    /** @type {Map<Change, (() => void)[]>} */
    this.listeners = new Map();
  }

  /** The selected row. */
  get row() {
    return this.session.rows[this.place];
  }

  /** Where the selected row stands among those that are shown; -1 where the filter has left it out. */
  get at() {
    const { shown, place } = this;
    let low = 0;
    let high = shown.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (shown[middle] < place) low = middle + 1;
      else high = middle;
    }
    return shown[low] === place ? low : -1;
  }

  /**
   * Call something after each change of a kind.
   * @param {Change} change
   * @param {() => void} listener
   */
  on(change, listener) {
    this.listeners.set(change, [...(this.listeners.get(change) ?? []), listener]);
  }

  /** @param {Change} change */
  tell(change) {
    for (const listener of this.listeners.get(change) ?? []) listener();
  }

  /**
   * Select a row, and put its address into that of the page.
   * @param {number} place
   */
  select(place) {
    if (place === this.place || !this.session.rows[place]) return;
    this.place = place;
    const address = `#${rowAddress(this.row)}`;
    if (location.hash !== address) history.replaceState(null, "", address);
    this.tell("row");
  }

  /** Select the row that the page's address names. */
  follow() {
    const place = this.session.placeOf(location.hash.slice(1));
    if (place === undefined || place === this.place) return;
    this.place = place;
    this.tell("row");
  }

  /** @param {string} view */
  show(view) {
    this.view = view;
    this.tell("view");
  }

  /** @param {string} form */
  setForm(form) {
    this.form = form;
    this.tell("form");
  }

  /**
   * Show some rows in the timeline and the sequence.
   * @param {number[]} shown
   * @param {Set<number> | null} matches
   * @param {string[]} words that the filter looks for
   */
  setShown(shown, matches, words) {
    this.shown = shown;
    this.matches = matches;
    this.words = words;
    this.tell("shown");
  }

  /**
   * Select the next row that fits, from the selected one on; tells whether there is one.
   * @param {number} step 1 or -1
   * @param {(row: import("./session.js").Row, place: number) => boolean} fits
   */
  seek(step, fits) {
    const { shown, session } = this;
    let at =
      step > 0 ? shown.findIndex((place) => place > this.place) : shown.findLastIndex((place) => place < this.place);
    for (; at >= 0 && at < shown.length; at += step) {
      if (fits(session.rows[shown[at]], shown[at])) {
        this.select(shown[at]);
        return true;
      }
    }
    return false;
  }
}
