/**
 * A list that draws only the visible rows, so that 100,000 are as fast as 10.
 *
 * All rows have the same height, so a row's number gives its position. The element scrolls; it contains one as high as
 * all rows together. It has the focus, and names the selected row to assistive technology.
 */

const BEYOND = 8; // rows that are drawn above and below the visible part

export class VirtualRows {
  /**
   * @param {HTMLElement} element what scrolls
   * @param {HTMLElement} body the element in it that contains the rows
   * @param {object} how
   * @param {() => number} how.count
   * @param {(at: number) => HTMLElement} how.draw a row; its position and ARIA state are set here
   * @param {(at: number) => void} how.choose called when the user selects a row
   * @param {() => void} [how.open] called when the user opens the selected row
   */
  constructor(element, body, how) {
    this.element = element;
    this.body = body;
    this.how = how;
    /** The number of the selected row; -1 if it is not in the list. */
    this.cursor = -1;
    this.height = 24;
    /** @type {Map<number, HTMLElement>} the rows that are drawn */
    this.drawn = new Map();
    element.addEventListener("scroll", () => this.draw());
    body.addEventListener("click", (event) => this.pick(event));
    body.addEventListener("dblclick", () => how.open?.());
    new ResizeObserver(() => this.measure()).observe(element);
  }

  /** @param {MouseEvent} event */
  pick(event) {
    const row = event.target instanceof Element ? event.target.closest("[data-at]") : null;
    if (row instanceof HTMLElement) this.how.choose(Number(row.dataset.at));
  }

  /** Read the height of a row from the style sheet, and draw. */
  measure() {
    if (!this.element.clientHeight) return;
    const height = Number.parseFloat(getComputedStyle(this.element).getPropertyValue("--row"));
    if (height && height !== this.height) {
      this.height = height;
      this.refresh();
      this.reveal();
    } else this.draw();
  }

  /** Draw again, because the rows in the list or their appearance have changed. */
  refresh() {
    this.drawn.clear();
    this.body.replaceChildren();
    this.body.style.setProperty("height", `${this.how.count() * this.height}px`);
    this.draw();
  }

  /** Draw rows that have become visible, and remove those that are no longer visible. */
  draw() {
    const { element, height } = this;
    if (!element.clientHeight) return;
    const last = this.how.count() - 1;
    const from = Math.max(Math.floor(element.scrollTop / height) - BEYOND, 0);
    const to = Math.min(Math.ceil((element.scrollTop + element.clientHeight) / height) + BEYOND, last);
    for (const [at, row] of this.drawn) {
      if ((at < from || at > to) && at !== this.cursor) {
        row.remove();
        this.drawn.delete(at);
      }
    }
    for (let at = from; at <= to; at += 1) this.add(at);
    if (this.cursor >= 0 && this.cursor <= last) this.add(this.cursor); // so that a screen reader can read it
  }

  /** @param {number} at */
  add(at) {
    if (this.drawn.has(at)) return;
    const row = this.how.draw(at);
    row.id = `${this.element.id}-${at}`;
    row.dataset.at = String(at);
    row.style.setProperty("top", `${at * this.height}px`);
    row.setAttribute("aria-selected", String(at === this.cursor));
    this.drawn.set(at, row);
    const next = this.drawn.get(at + 1);
    this.body.insertBefore(row, next ?? null);
  }

  /**
   * Select a row without a notification.
   * @param {number} at
   */
  setCursor(at) {
    this.drawn.get(this.cursor)?.setAttribute("aria-selected", "false");
    this.cursor = at;
    this.draw();
    this.drawn.get(at)?.setAttribute("aria-selected", "true");
    if (at >= 0) this.element.setAttribute("aria-activedescendant", `${this.element.id}-${at}`);
    else this.element.removeAttribute("aria-activedescendant");
    this.reveal();
  }

  /** Scroll as little as needed to show the selected row. */
  reveal() {
    const { element, height, cursor } = this;
    if (cursor < 0 || !element.clientHeight) return;
    const head = this.body.offsetTop;
    const room = element.clientHeight - head - height;
    const top = cursor * height;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top > element.scrollTop + room) element.scrollTop = top - room;
    this.draw();
  }

  /**
   * Select the row that is `step` rows further on.
   * @param {number} step
   */
  move(step) {
    const count = this.how.count();
    if (count) this.how.choose(Math.min(Math.max(this.cursor + step, 0), count - 1));
  }

  /**
   * The same by a page.
   * @param {number} step 1 or -1
   */
  page(step) {
    const head = this.body.offsetTop;
    this.move(step * Math.max(Math.floor((this.element.clientHeight - head) / this.height) - 1, 1));
  }
}
