// SPDX-License-Identifier: MIT
// Text of a trace as it can be shown: nothing in it moves the text around it, and it is as short as its place.

const UNSEEN = new RegExp('[\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f' +
	'\\ufeff\\ufff9-\\ufffb]|\\udb40[\\udc00-\\udc7f]|[\\ud800-\\udbff](?![\\udc00-\\udfff])|(?<![\\ud800-\\udbff])[\\udc00-\\udfff]', 'g');

export const LONGEST_LABEL = 200;

/**
 * Controls, marks of direction, characters without width and halves of pairs as \u{202e}; lines and tabs stay where they may.
 * @param {unknown} value @param {boolean} [lines] @returns {string}
 */
export function shown(value, lines) {
	return String(value ?? '').replace(UNSEEN, (mark) => lines && (mark === '\n' || mark === '\t') ? mark :
		'\\u{' + /** @type {number} */ (mark.codePointAt(0)).toString(16) + '}');
}

/**
 * At most so many characters, with an ellipsis where some are missing; no pair of surrogates is cut in two.
 * @param {string} text @param {number} [most] @returns {string}
 */
export function cut(text, most = LONGEST_LABEL) {
	if (text.length <= most)
		return text;
	const end = most - 1, half = text.charCodeAt(end - 1);
	return text.slice(0, half >= 0xd800 && half < 0xdc00 ? end - 1 : end) + '…';
}

/** @param {unknown} value @returns {string} */
export function label(value) {
	return cut(shown(typeof value === 'string' ? value.slice(0, 2 * LONGEST_LABEL) : value));
}

/**
 * A field of csv (RFC 4180). A text that a spreadsheet would take for a formula begins with an apostrophe.
 * @param {unknown} value @returns {string}
 */
function csvField(value) {
	if (value === null || value === undefined)
		return '';
	let text = String(value);
	if (typeof value === 'string' && /^[=+@\t\r-]/.test(text) && !/^[+-]?[\d.]+$/.test(text))
		text = "'" + text;
	return /[",\r\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
}

/** @param {unknown[][]} rows @returns {string} */
export function csvText(rows) {
	return rows.map((row) => row.map(csvField).join(',') + '\r\n').join('');
}
