/** The stderr of the server, a row for each line; each opens its row in the timeline. */

import { VirtualRows } from "./rows.js";
import { byId, clipText, el } from "./text.js";

const LONGEST_LINE = 1000; // characters; the message shows the whole line

export class Stderr {
  /** @param {import("./state.js").State} state */
  constructor(state) {
    this.state = state;
    /** @type {number[]} the indexes of the lines */
    this.places = [];
    for (const [place, row] of state.session.rows.entries()) if (row.kind === "stderr") this.places.push(place);
    byId("no-lines").hidden = this.places.length > 0;
    byId("no-lines").textContent =
      state.session.about.transport === "stdio"
        ? "The server wrote nothing to stderr."
        : "Only servers on stdio have a stderr that mcpspy sees.";
    this.rows = new VirtualRows(byId("lines"), byId("lines-body"), {
      count: () => this.places.length,
      draw: (at) => this.draw(at),
      choose: (at) => state.select(this.places[at]),
      open: () => state.show("timeline"),
    });
    state.on("row", () => this.rows.setCursor(this.places.indexOf(state.place)));
    this.rows.refresh();
  }

  /** @param {number} at */
  draw(at) {
    const row = this.state.session.rows[this.places[at]];
    return el(
      "div",
      { role: "option", class: "errline" },
      el("span", { class: "n" }, `#${row.n}`),
      el("span", { class: "time", title: row.time }, row.t.toFixed(3)),
      el("span", { class: "text" }, clipText(row.text ?? row.preview ?? "", LONGEST_LINE)),
    );
  }
}
