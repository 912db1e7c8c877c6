/**
 * The words of the filter, marked where they stand in messages.
 *
 * They are marked by ranges, so the page gets no elements for them. A browser that knows no such ranges marks nothing.
 */

import { smartCase } from "./terms.js";

const MOST_MARKS = 1000;

/**
 * Mark the words in an element, now and whenever it or the filter changes.
 * @param {import("./state.js").State} state
 * @param {HTMLElement} element
 */
export function markWords(state, element) {
  if (!globalThis.CSS?.highlights) return;
  const mark = () => CSS.highlights.set("words", new Highlight(...wordRanges(element, state.words)));
  state.on("shown", mark);
  new MutationObserver(mark).observe(element, { childList: true, subtree: true });
}

/**
 * Where words stand in the texts of an element, by the case that each asks for.
 * @param {HTMLElement} element
 * @param {string[]} words
 */
function wordRanges(element, words) {
  /** @type {Range[]} */
  const found = [];
  const wanted = words.filter(Boolean).map((word) => ({ fold: smartCase(word), word: smartCase(word)(word) }));
  if (!wanted.length) return found;
  const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const text = node.nodeValue ?? "";
    for (const { fold, word } of wanted) {
      const folded = fold(text);
      for (let at = folded.indexOf(word); at >= 0; at = folded.indexOf(word, at + word.length)) {
        if (found.length === MOST_MARKS) return found;
        const range = new Range();
        range.setStart(node, at);
        range.setEnd(node, at + word.length);
        found.push(range);
      }
    }
  }
  return found;
}
