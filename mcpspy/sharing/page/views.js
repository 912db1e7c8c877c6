/** The views of a session as tabs; the content of a view is created when it is first shown. */

import { foldFindings, showFindings } from "./findings.js";
import { showProblems } from "./problems.js";
import { Sequence } from "./sequence.js";
import { VIEWS } from "./state.js";
import { Stderr } from "./stderr.js";
import { byId } from "./text.js";
import { Timeline } from "./timeline.js";
import { showTools } from "./tools.js";

export class Views {
  /**
   * @param {import("./state.js").State} state
   */
  constructor(state) {
    this.state = state;
    /** @type {Record<string, import("./rows.js").VirtualRows>} the lists of rows by view */
    this.lists = { timeline: new Timeline(state).rows };
    /** @type {Set<string>} */
    this.made = new Set(["timeline"]);
    for (const view of VIEWS) byId(`tab-${view}`).addEventListener("click", () => state.show(view));
    byId("tabs").addEventListener("keydown", (event) => this.turn(event));
    state.on("view", () => this.show());
  }

  /** @param {KeyboardEvent} event */
  turn(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    event.stopPropagation();
    this.state.show(VIEWS[(VIEWS.indexOf(this.state.view) + step + VIEWS.length) % VIEWS.length]);
    byId(`tab-${this.state.view}`).focus();
  }

  show() {
    const { view } = this.state;
    document.body.dataset.view = view;
    for (const other of VIEWS) {
      const tab = byId(`tab-${other}`);
      tab.setAttribute("aria-selected", String(other === view));
      tab.tabIndex = other === view ? 0 : -1;
      byId(`view-${other}`).hidden = other !== view;
    }
    if (!this.made.has(view)) this.make(view);
    this.lists[view]?.measure();
    this.lists[view]?.reveal();
    if (!document.activeElement?.closest("#tabs")) this.focus();
  }

  /** @param {string} view */
  make(view) {
    this.made.add(view);
    if (view === "problems") showProblems(this.state.session);
    else if (view === "findings") showFindings(this.state.session);
    else if (view === "tools") showTools(this.state.session);
    else if (view === "sequence") this.lists.sequence = new Sequence(this.state).rows;
    else this.lists.stderr = new Stderr(this.state).rows;
  }

  /** Focus the view. */
  focus() {
    const { view } = this.state;
    (this.lists[view]?.element ?? byId(`view-${view}`)).focus();
  }

  /**
   * Move in the view: in a list to another row, else to another link or button.
   * @param {number} step
   * @param {"row" | "page"} [by]
   */
  move(step, by = "row") {
    const list = this.lists[this.state.view];
    const view = byId(`view-${this.state.view}`);
    if (list) {
      if (by === "page") list.page(step);
      else list.move(step);
    } else if (by === "page") view.scrollBy(0, step * view.clientHeight * 0.9);
    else focusNext(view, step);
  }

  /** Sort the table of this view by the column after the one that it is sorted by now. */
  sort() {
    const headings = [...byId(`view-${this.state.view}`).querySelectorAll("th")].filter((one) => one.scope === "col");
    const at = headings.findIndex((one) => one.hasAttribute("aria-sort"));
    headings[(at + 1) % headings.length]?.querySelector("button")?.click();
  }

  /** @param {boolean} open */
  fold(open) {
    if (this.state.view === "findings") foldFindings(open);
  }

  /**
   * Fold or unfold the group that has the focus.
   * @param {boolean} open
   */
  foldOne(open) {
    const group = document.activeElement?.closest("#view-findings details");
    if (group instanceof HTMLDetailsElement) group.open = open;
  }

  /** Open the selected row: its message, or, from another view, its row in the timeline. */
  open() {
    if (this.state.view === "timeline") return true;
    this.state.show("timeline");
    return false;
  }
}

/**
 * @param {HTMLElement} view
 * @param {number} step elements to move; a large number goes to the first or last
 */
function focusNext(view, step) {
  const all = [.../** @type {NodeListOf<HTMLElement>} */ (view.querySelectorAll("summary, a.frame, button"))].filter(
    (one) => one.getClientRects().length > 0,
  );
  const at = all.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  const next = all[Math.min(Math.max(at + step, 0), all.length - 1)];
  next?.focus();
}
