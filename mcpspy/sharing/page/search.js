/** The filter: its box, its errors, and the search, in slices so that the page reacts to keys meanwhile. */

import { compileFilter } from "./filter.js";
import { nextTurn } from "./load.js";
import { byId, countText, el } from "./text.js";

const WAIT = 80; // milliseconds after a key until the search begins
const SLICE = 12; // milliseconds of work without a pause

export class Search {
  /**
   * @param {import("./state.js").State} state
   * @param {Promise<import("./capture.js").Capture>} capture
   */
  constructor(state, capture) {
    this.state = state;
    this.capture = capture;
    this.box = /** @type {HTMLInputElement} */ (byId("filter"));
    this.others = /** @type {HTMLInputElement} */ (byId("others"));
    /** Counts the searches: one that is not the newest stops. */
    this.newest = 0;
    this.timer = 0;
    this.box.addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.run(), WAIT);
    });
    this.others.addEventListener("change", () => this.run());
    this.showCount(state.shown.length, 1);
  }

  /**
   * Put a filter into the box and apply it.
   * @param {string} text
   */
  set(text) {
    this.box.value = text;
    return this.run();
  }

  /** Apply the filter in the box. */
  async run() {
    clearTimeout(this.timer);
    this.newest += 1;
    const text = this.box.value;
    let filter = null;
    try {
      filter = text.trim() ? compileFilter(text, this.state.session.about.started) : null;
    } catch (mistake) {
      this.showMistake(/** @type {{message: string, column?: number}} */ (mistake));
      return;
    }
    this.showMistake(null);
    if (filter) {
      const number = this.newest;
      await this.search(filter, number);
      if (number !== this.newest) return;
    } else this.showAll();
    this.box.dataset.done = text; // the rows are those of this filter from now on
  }

  showAll() {
    const { rows } = this.state.session;
    const places = rows.map((_, place) => place);
    this.state.setShown(places, null, []);
    this.showCount(rows.length, 1);
  }

  /**
   * @param {ReturnType<typeof compileFilter>} filter
   * @param {number} number of this search
   */
  async search(filter, number) {
    const { rows } = this.state.session;
    const capture = await this.capture.catch(() => null);
    /** @type {Set<number>} */
    const matches = new Set();
    let turn = performance.now();
    for (const [place, row] of rows.entries()) {
      const rawText = () => (row.channel !== null && row.size ? (capture?.frameText(row.n) ?? "") : (row.text ?? ""));
      if (filter.test(row, rawText)) matches.add(place);
      if (performance.now() - turn > SLICE) {
        this.showCount(matches.size, place / rows.length);
        await nextTurn();
        turn = performance.now();
      }
      if (number !== this.newest) return;
    }
    const all = this.others.checked ? rows.map((_, place) => place) : [...matches];
    this.state.setShown(all, matches, filter.words);
    if (this.state.place >= 0 && !matches.has(this.state.place) && matches.size && !this.others.checked)
      this.selectNear();
    this.showCount(matches.size, 1);
  }

  /** Select the match next to the row that the filter has left out. */
  selectNear() {
    const { shown, place } = this.state;
    this.state.select(shown.find((other) => other > place) ?? shown[shown.length - 1]);
  }

  /**
   * Select the next match; returns whether there is one.
   * @param {number} step 1 or -1
   */
  next(step) {
    const { matches } = this.state;
    return matches !== null && this.state.seek(step, (_, place) => matches.has(place));
  }

  /**
   * @param {number} count
   * @param {number} progress 0 to 1
   */
  showCount(count, progress) {
    const all = countText(this.state.session.rows.length);
    const text = this.box.value.trim() ? `${countText(count)} of ${all}` : `${all} rows`;
    byId("count").textContent = progress < 1 ? `${text}, ${Math.round(progress * 100)} %` : text;
  }

  /** @param {{message: string, column?: number} | null} mistake */
  showMistake(mistake) {
    const place = byId("mistake");
    place.replaceChildren();
    place.hidden = mistake === null;
    this.box.setAttribute("aria-invalid", String(mistake !== null));
    if (mistake?.column) {
      const characters = Array.from(this.box.value); // a column counts characters
      const before = characters.slice(0, mistake.column - 1).join("");
      const line = el(
        "span",
        { class: "column", "aria-hidden": "true" },
        before,
        el("u", {}, this.box.value.slice(before.length) || " "),
      );
      place.append(line, " ");
    }
    if (mistake) place.append(el("span", {}, mistake.message));
  }
}
