/** What the user has selected: the row, the view, the form of messages. Parts of the page listen for changes. */

import { rowAddress } from "./session.js";

/** @typedef {"row" | "view" | "shown" | "form" | "pair" | "times" | "marks"} Change */

/** The key of each view, in the order of the tabs. */
export const VIEW_KEYS = { timeline: "1", problems: "w", findings: "2", tools: "3", sequence: "4", stderr: "5" };
export const VIEWS = Object.keys(VIEW_KEYS);
export const FORMS = ["content", "tree", "raw", "hex"];

export class State {
  /** @param {import("./session.js").Session} session */
  constructor(session) {
    this.session = session;
    /** The selected row; -1 if there is none. */
    this.place = session.rows.length ? 0 : -1;
    this.view = VIEWS[0];
    /** @type {string | null} the form of messages that the user chose; null: each has the form that suits it */
    this.form = null;
    /** Whether the other message of an exchange is shown too. */
    this.pair = true;
    /** Whether times are those since the row above. */
    this.deltas = false;
    /** @type {Set<number>} the indexes of rows that the user has marked */
    this.marked = new Set();
    /** @type {number[]} the indexes of the rows in the timeline and the sequence */
    this.shown = session.rows.map((_, place) => place);
    /** @type {Set<number> | null} the indexes of the rows that match the filter; null without a filter */
    this.matches = null;
    /** @type {string[]} the texts that the filter searches for */
    this.words = [];
    /** @type {Map<Change, (() => void)[]>} */
    this.listeners = new Map();
    this.begin();
  }

  /** The selected row. */
  get row() {
    return this.session.rows[this.place];
  }

  /** The index of the selected row among the shown ones; -1 if it does not match the filter. */
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
   * Call a function after each change of a kind.
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
   * Select a row, and put its address into the page's URL.
   * @param {number} place
   */
  select(place) {
    if (place === this.place || !this.session.rows[place]) return;
    this.place = place;
    const address = `#${rowAddress(this.row)}`;
    if (location.hash !== address) history.replaceState(null, "", address);
    this.tell("row");
  }

  /** Begin with the row or the view that the page's URL names, else with the first problem if there is one. */
  begin() {
    const { problems } = this.session;
    const place = this.session.placeOf(namedInUrl());
    if (VIEWS.includes(namedInUrl())) this.view = namedInUrl();
    else if (place === undefined && problems.length) this.view = "problems";
    this.place = place ?? this.session.placeOf(proofOf(problems)) ?? this.place;
  }

  /** Select the row, or show the view, that the page's URL names. */
  follow() {
    if (VIEWS.includes(namedInUrl())) this.show(namedInUrl());
    const place = this.session.placeOf(namedInUrl());
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
   * @param {string[]} words that the filter searches for
   */
  setShown(shown, matches, words) {
    this.shown = shown;
    this.matches = matches;
    this.words = words;
    this.tell("shown");
  }

  /**
   * Select the next matching row after the selected one; returns whether there is one.
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

/** What the fragment of the page's URL names. */
function namedInUrl() {
  return location.hash.slice(1);
}

/**
 * The address of the row that proves the first problem; empty if there is none.
 * @param {import("./session.js").Problem[]} problems
 */
function proofOf([problem]) {
  return problem?.cause.rows[0] ?? problem?.rows[0] ?? "";
}
