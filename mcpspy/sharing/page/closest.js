// What a mistake in a filter says: the name that was meant, and a text as Python quotes it.

const CUTOFF = 0.6; // what a name must have in common with a text to be meant by it

/**
 * The name that is most like a text, nothing if none is much like it: what Python's `difflib.get_close_matches` finds.
 * @param {string} text
 * @param {string[]} names
 */
export function closest(text, names) {
  const wanted = Array.from(text);
  let [best, found] = [CUTOFF, ""];
  for (const name of names) {
    const letters = Array.from(name);
    const total = letters.length + wanted.length;
    if ((2 * Math.min(letters.length, wanted.length)) / total < best) continue; // also keeps long texts out
    const ratio = (2 * matched(letters, wanted)) / total;
    if (ratio > best || (ratio === best && name > found)) [best, found] = [ratio, name];
  }
  return found;
}

/**
 * How many letters two texts have in common: those of the longest common run, and so on at both of its sides.
 * @param {string[]} a
 * @param {string[]} b
 * @returns {number}
 */
function matched(a, b) {
  let [longest, startA, startB] = [0, 0, 0];
  let lengths = new Array(b.length + 1).fill(0); // of the run that ends here and at each letter of b
  for (let i = 0; i < a.length; i++) {
    const next = new Array(b.length + 1).fill(0);
    for (let j = 0; j < b.length; j++) {
      if (a[i] !== b[j]) continue;
      next[j + 1] = lengths[j] + 1;
      if (next[j + 1] > longest) {
        longest = next[j + 1];
        [startA, startB] = [i - longest + 1, j - longest + 1];
      }
    }
    lengths = next;
  }
  if (longest === 0) return 0;
  const before = matched(a.slice(0, startA), b.slice(0, startB));
  return before + longest + matched(a.slice(startA + longest), b.slice(startB + longest));
}

/**
 * A text in quotes, with what cannot be seen written as escapes.
 * @param {string} text
 */
export function quotedText(text) {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const shown = text.replace(/[\\'"]|(?! )[\p{C}\p{Z}]/gu, (letter) => {
    if (letter === "\\" || letter === quote) return `\\${letter}`;
    if (letter === "'" || letter === '"') return letter;
    const short = { "\t": "\\t", "\n": "\\n", "\r": "\\r" }[letter];
    if (short) return short;
    const code = letter.codePointAt(0) ?? 0;
    const [mark, digits] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
    return `\\${mark}${code.toString(16).padStart(Number(digits), "0")}`;
  });
  return quote + shown + quote;
}
