// SPDX-License-Identifier: MIT
// Numbers with their units, as people read them. Each takes what may not be a number.

const DURATIONS = /** @type {[number, string][]} */ ([[3.6e12, 'h'], [6e10, 'min'], [1e9, 's'], [1e6, 'ms'], [1e3, 'us'], [1, 'ns']]);
const SIZES = /** @type {[number, string][]} */ ([[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [1024, 'KiB'], [1, 'B']]);
const NOT_KNOWN = 'not known';

/** @param {unknown} value @returns {any[]} what may be no list */
export function list(value) {
	return Array.isArray(value) ? value : [];
}

/** @param {number} value @param {number} digits @returns {string} */
function rounded(value, digits) {
	const text = value.toFixed(digits);
	return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

/** @param {unknown} value @param {[number, string][]} units @returns {string} */
function inUnits(value, units) {
	const number = finite(value);
	if (number === null)
		return NOT_KNOWN;
	const size = Math.abs(number), last = units[units.length - 1];
	const [scale, unit] = units.find(([least]) => size >= least) ?? last;
	const part = number / scale;
	return rounded(part, scale === 1 ? 1 : Math.abs(part) < 10 ? 3 : Math.abs(part) < 100 ? 2 : 1) + ' ' + unit;
}

/** @param {unknown} value @returns {number | null} */
export function finite(value) {
	return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

/** @param {unknown} ns @returns {string} */
export function durationText(ns) {
	return inUnits(ns, DURATIONS);
}

/** @param {unknown} bytes @returns {string} */
export function bytesText(bytes) {
	return inUnits(bytes, SIZES);
}

/** @param {unknown} value @returns {string} */
export function countText(value) {
	const number = finite(value);
	if (number === null)
		return NOT_KNOWN;
	return Number.isInteger(number) ? String(number).replace(/\B(?=(\d{3})+$)/g, ',') : rounded(number, Math.abs(number) < 10 ? 3 : 1);
}

/** @param {unknown} value of 100 @returns {string} */
export function percentText(value) {
	const number = finite(value);
	return number === null ? NOT_KNOWN : number.toFixed(1) + ' %';
}

/**
 * A time with all of its digits: 1.234567890 s.
 * @param {unknown} ns @returns {string}
 */
export function timeText(ns) {
	const number = finite(ns);
	return number === null ? NOT_KNOWN : (number / 1e9).toFixed(9) + ' s';
}

/**
 * A span as a clock has it: 4 min 5 s.
 * @param {unknown} ns @returns {string}
 */
export function clockText(ns) {
	const seconds = Math.round((finite(ns) ?? 0) / 1e9), parts = /** @type {[number, string][]} */ ([[Math.floor(seconds / 3600), 'h'],
		[Math.floor(seconds / 60) % 60, 'min'], [seconds % 60, 's']]);
	const first = parts.findIndex(([n]) => n > 0);
	return parts.slice(first < 0 ? 2 : first, first < 0 ? 3 : first + 2).map(([n, unit]) => `${n} ${unit}`).join(' ');
}

/**
 * As options of cuscope take a time; exact.
 * @param {number} ns @returns {string}
 */
export function timeOption(ns) {
	return Math.round(ns) + 'ns';
}

/**
 * What somebody typed: "1.5s", "20 ms", "3us"; seconds where no unit is there. null: it is no time.
 * @param {string} text @returns {number | null}
 */
export function readTime(text) {
	const match = /^\s*(\d+(?:\.\d*)?|\.\d+)\s*(ns|us|µs|ms|s|m|min|h)?\s*$/.exec(text);
	if (!match)
		return null;
	const scale = { ns: 1, us: 1e3, 'µs': 1e3, ms: 1e6, s: 1e9, m: 6e10, min: 6e10, h: 3.6e12 };
	return Number(match[1]) * scale[/** @type {keyof typeof scale} */ (match[2] ?? 's')];
}

/**
 * The distance of marks on a ruler, 1, 2 or 5 of a power of ten.
 * @param {number} least @returns {number}
 */
export function niceStep(least) {
	const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
	return [1, 2, 5, 10].map((part) => part * power).find((step) => step >= least) ?? 10 * power;
}

/**
 * What columns of tables are shown as, by the type that the index names.
 * @param {string} type @param {unknown} value @param {string} [column] its name: numbers that name something have no commas
 * @returns {string}
 */
export function cellText(type, value, column = '') {
	if (value === null || value === undefined)
		return '';
	switch (type) {
	case 'duration': return durationText(value);
	case 'time': return timeText(value);
	case 'bytes': return bytesText(value);
	case 'rate': return finite(value) === null ? String(value) : bytesText(value) + '/s';
	case 'percent': return percentText(value);
	case 'number': case 'real': return finite(value) === null || /\b[PT]?IDs?$/i.test(column) ? String(value) : countText(value);
	default: return Array.isArray(value) ? value.join(' ') : String(value);
	}
}
