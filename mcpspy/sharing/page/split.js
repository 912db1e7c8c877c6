/** The bar between the list and the message: drag it, or move it with the arrow keys. */

import { byId } from "./text.js";

const LEAST_SHARE = 20; // percent of either side
const KEY_STEP = 5;

export function makeSplitter() {
  const bar = byId("splitter");
  const main = byId("main");
  let share = 50;

  /** @param {number} wanted percent of the list */
  const set = (wanted) => {
    share = Math.min(Math.max(wanted, LEAST_SHARE), 100 - LEAST_SHARE);
    main.style.setProperty("--share", `${share}%`);
    bar.setAttribute("aria-valuenow", String(Math.round(share)));
  };
  const isStacked = () => getComputedStyle(main).flexDirection === "column";

  bar.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    bar.setPointerCapture(event.pointerId);
  });
  bar.addEventListener("pointermove", (event) => {
    if (!bar.hasPointerCapture(event.pointerId)) return;
    const box = main.getBoundingClientRect();
    set(isStacked() ? ((event.clientY - box.top) / box.height) * 100 : ((event.clientX - box.left) / box.width) * 100);
  });
  bar.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (!step) return;
    set(share + step * KEY_STEP);
    event.preventDefault();
    event.stopPropagation();
  });
}
