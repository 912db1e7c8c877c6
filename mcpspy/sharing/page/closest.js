// Hints for a mistake in a filter: the name that was probably meant, and a text quoted as in Python.

const CUTOFF = 0.6; // similarity from which a name is suggested

/**
 * The name most similar to a text, if it is similar enough: as in Python's `difflib.get_close_matches`.
 * @param {string} text
 * @param {string[]} names
 */
export function closest(text, names) {
  const wanted = Array.from(text);
  let [best, found] = [CUTOFF, ""];
  for (const name of names) {
    const letters = Array.from(name);
    const total = letters.length + wanted.length;
    if ((2 * Math.min(letters.length, wanted.length)) / total < best) continue; // also skips long texts
    const ratio = (2 * matched(letters, wanted)) / total;
    if (ratio > best || (ratio === best && name > found)) [best, found] = [ratio, name];
  }
  return found;
}

/**
 * The number of letters that two texts share: the longest common run, then the same on both sides of it.
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
 * A text in quotes, with escapes for invisible characters.
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
