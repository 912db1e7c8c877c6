/**
 * The words of the filter, highlighted in messages.
 *
 * They are marked by ranges, so the page needs no elements for them. A browser without such ranges marks nothing.
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

/** @param {string[]} words */
function wantedWords(words) {
  return words.filter(Boolean).map((word) => ({ fold: smartCase(word), word: smartCase(word)(word) }));
}

/**
 * A function that tells where the first of some words ends in a text; 0 if it has none of them.
 * @param {string[]} words
 * @returns {(text: string) => number}
 */
export function wordFinder(words) {
  const wanted = wantedWords(words);
  return (text) => {
    for (const { fold, word } of wanted) {
      const at = fold(text).indexOf(word);
      if (at >= 0) return at + word.length;
    }
    return 0;
  };
}

/**
 * Mark the words in one line as the place that the search has found; null marks none.
 * @param {HTMLElement | null} line
 * @param {string[]} words
 */
export function markPlace(line, words) {
  if (!globalThis.CSS?.highlights) return;
  const place = new Highlight(...(line ? wordRanges(line, words) : []));
  place.priority = 1; // above the other matches
  CSS.highlights.set("place", place);
}

/**
 * The ranges of words in the texts of an element; each word is matched with its own case rule.
 * @param {HTMLElement} element
 * @param {string[]} words
 */
export function wordRanges(element, words) {
  /** @type {Range[]} */
  const found = [];
  const wanted = wantedWords(words);
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
