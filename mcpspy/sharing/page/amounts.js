// Numbers, sizes and times in filters. Amounts (bytes, nanoseconds) are bigints, because they have many digits.

/** The minimum and maximum that a value allows; null for a bound that does not exist.
 * @typedef {[least: bigint | null, most: bigint | null]} Bounds */

/** Parses one number: its amount, and the size of one unit in its last digit; a time that clocks repeat has two amounts.
 * @typedef {(text: string) => [amounts: bigint[], step: bigint]} AmountReader */

const TIME_UNITS = { us: 1_000n, ms: 1_000_000n, s: 1_000_000_000n };
const SIZE_UNITS = { "": 1n, b: 1n, kb: 1_000n, mb: 1_000_000n, kib: 1n << 10n, mib: 1n << 20n };
const QUANTITY = /^([0-9]+)(?:\.([0-9]+))?([a-z]*)$/;
const DIGITS = 18; // digits of a number
const PLACES = 9; // digits after its point
const CLOCK = "(?:[01]?[0-9]|2[0-3]):[0-5][0-9]";
const SECONDS = ":[0-5][0-9](?:\\.[0-9]{1,6})?";
const ZONE = "Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9]";
const MOMENT = new RegExp(`^(?=.)([0-9]{4}-[0-9]{2}-[0-9]{2})?(?:(?:^|T)(${CLOCK})(${SECONDS})?(${ZONE})?)?$`);
const LONGEST_REPEATED = 3 * 3_600_000; // milliseconds; clocks are put back by at most two hours
const NO_MOMENT = "it takes seconds since the start, a time of day (19:15:02) or a date (2026-11-20T19:15)";

/**
 * The amounts that a value allows: a number as precise as it is written, a comparison, or a range. All within one of
 * these bounds are allowed. With a time that clocks repeat, a comparison or a range begins with the first one and ends
 * with the last one.
 * @param {string} value
 * @param {AmountReader} read
 * @returns {Bounds[]}
 * @throws {RangeError}
 */
export function bounds(value, read) {
  const dots = value.indexOf("..");
  if (dots >= 0) return [[read(value.slice(0, dots))[0][0], lastOf(read(value.slice(dots + 2))[0])]];
  const [sign, text] = comparison(value);
  const [amounts, step] = read(text);
  if (sign === "") return amounts.map((amount) => [amount, amount + step - 1n]);
  const strict = sign.length === 1 ? 1n : 0n;
  return [sign.startsWith(">") ? [amounts[0] + strict, null] : [null, lastOf(amounts) - strict]];
}

/** @param {bigint[]} amounts */
function lastOf(amounts) {
  return amounts[amounts.length - 1];
}

/**
 * The sign of a comparison, if there is one, and the text after it.
 * @param {string} value
 */
export function comparison(value) {
  const sign = /^[<>]=?/.exec(value)?.[0] ?? "";
  return [sign, value.slice(sign.length)];
}

/**
 * Nanoseconds, with a unit.
 * @type {AmountReader}
 */
export const duration = (text) => quantity(text, TIME_UNITS);

/**
 * Bytes, with or without a unit.
 * @type {AmountReader}
 */
export const byteSize = (text) => quantity(text, SIZE_UNITS);

/**
 * Parses nanoseconds from the start of a capture to a moment: seconds, or a date or time of day or both. Without a time
 * zone it is local time.
 * @param {bigint} started  microseconds since the epoch
 * @returns {AmountReader}
 */
export function sinceStart(started) {
  return (text) => {
    if (QUANTITY.test(text)) return quantity(text, { ...TIME_UNITS, "": TIME_UNITS.s });
    const match = MOMENT.exec(text.toUpperCase());
    if (!match) throw new RangeError(NO_MOMENT);
    const [, date, clock, seconds = "", zone = ""] = match;
    const time = microseconds(date ?? day(started, zone), clock ?? "0:00", seconds, zone);
    const since = [(time - started) * 1000n];
    if (!clock) return [since, (microseconds(date, "24:00", "", zone) - time) * 1000n]; // 23 to 25 hours
    const later = zone ? 0n : repeatedAfter(time);
    if (later) since.push(since[0] + later * 1000n);
    const places = Math.max(seconds.length - ":00.".length, 0);
    return [since, seconds ? 10n ** BigInt(9 - places) : 60n * TIME_UNITS.s];
  };
}

/**
 * The start of a capture in microseconds since the epoch.
 * @param {string} text  ISO 8601 with a `Z`
 */
export function moment(text) {
  const match = MOMENT.exec(text);
  if (!match) throw new RangeError(NO_MOMENT);
  return microseconds(match[1], match[2], match[3] ?? "", match[4] ?? "Z");
}

/**
 * @param {string} date
 * @param {string} clock
 * @param {string} seconds
 * @param {string} zone  empty for local time
 */
function microseconds(date, clock, seconds, zone) {
  const [year, month, dayOfMonth] = date.split("-").map(Number);
  const time = new Date(0);
  time.setUTCFullYear(year, month - 1, dayOfMonth);
  if (year === 0 || time.getUTCMonth() !== month - 1 || time.getUTCDate() !== dayOfMonth) {
    throw new RangeError(NO_MOMENT);
  }
  const [hours, minutes] = clock.split(":").map(Number);
  const [whole, fraction = ""] = seconds.slice(1).split(".");
  if (zone) {
    time.setUTCHours(hours, minutes - offset(zone), Number(whole));
  } else {
    time.setFullYear(year, month - 1, dayOfMonth);
    time.setHours(hours, minutes, Number(whole), 0);
  }
  return BigInt(time.getTime()) * 1_000n + BigInt(fraction.padEnd(6, "0"));
}

/**
 * The microseconds after which clocks show the same local time again, because they are put back; 0 if they do not.
 * @param {bigint} time  microseconds since the epoch
 */
function repeatedAfter(time) {
  const first = new Date(Number(time / 1000n));
  const behind = new Date(first.getTime() + LONGEST_REPEATED);
  const minutes = behind.getTimezoneOffset() - first.getTimezoneOffset();
  const again = new Date(first.getTime() + minutes * 60_000);
  const repeated = minutes > 0 && again.getTimezoneOffset() === behind.getTimezoneOffset();
  return repeated ? BigInt(minutes) * 60_000_000n : 0n;
}

/**
 * The minutes by which a time zone is ahead of UTC.
 * @param {string} zone
 */
function offset(zone) {
  if (zone === "Z") return 0;
  const [hours, minutes] = zone.slice(1).split(":").map(Number);
  return (hours * 60 + minutes) * (zone.startsWith("-") ? -1 : 1);
}

/**
 * The date of a moment.
 * @param {bigint} time  microseconds since the epoch
 * @param {string} zone  empty for local time
 */
function day(time, zone) {
  const moment = new Date(Number(time / 1000n));
  const ahead = zone ? offset(zone) : -moment.getTimezoneOffset();
  return new Date(moment.getTime() + ahead * 60_000).toISOString().slice(0, 10);
}

/**
 * A number with a unit, and the size of one unit in its last digit; ties are rounded to even.
 * @param {string} text
 * @param {Record<string, bigint>} units
 * @returns {[amounts: bigint[], step: bigint]}
 */
function quantity(text, units) {
  const match = QUANTITY.exec(text.toLowerCase());
  if (!match || !Object.hasOwn(units, match[3])) {
    const names = Object.keys(units).filter(Boolean).join(", ");
    throw new RangeError(match ? `the units are ${names}` : `it takes a number and a unit: ${names}`);
  }
  const [, whole, fraction = "", unit] = match;
  if (whole.length > DIGITS) throw new RangeError(`that is too large: ${DIGITS} digits are the most`);
  if (fraction.length > PLACES) {
    throw new RangeError(`that is too exact: ${PLACES} digits behind the point are the most`);
  }
  const scale = 10n ** BigInt(fraction.length);
  const step = rounded(units[unit], scale);
  return [[rounded(BigInt(whole + fraction) * units[unit], scale)], step > 1n ? step : 1n];
}

/**
 * @param {bigint} dividend
 * @param {bigint} divisor
 */
function rounded(dividend, divisor) {
  const [quotient, twice] = [dividend / divisor, (dividend % divisor) * 2n];
  return twice > divisor || (twice === divisor && quotient % 2n === 1n) ? quotient + 1n : quotient;
}
