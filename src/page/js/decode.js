// SPDX-License-Identifier: MIT
// From a block's text to its rows. Whatever a block has in it, this ends with rows or with an error of one sentence.

/**
 * Rows by columns. `reach` has for each REACH rows the latest end of all rows up to there.
 * @typedef {{n: number, columns: {[name: string]: Float64Array | Int32Array}, begin: Float64Array, dur: Float64Array, name: Int32Array,
 *   texts: string[], reach: Float64Array, bytes: number}} Rows
 * @typedef {{data: Uint8Array, at: number, end: number}} Cursor
 */

const REACH = 64;
const MOST_BYTES = 256 << 20; // inflated, of a block: more is no block of ours
const SMALL = new Set(['name', 'text', 'stack']);

const WORD_MARK = 0xe000, WORD_OTHER = 0x4000; // as src/page/wide.h has them

/**
 * Of a page in UTF-16: words, behind a digit that says whether the last one is half.
 * @param {string} text @returns {Uint8Array}
 */
function bytesOfWords(text) {
	const bytes = new Uint8Array(2 * text.length);
	let n = 0;
	for (let i = 1; i < text.length; i++) {
		let word = text.charCodeAt(i);
		if (word === WORD_MARK)
			word = text.charCodeAt(++i) ^ WORD_OTHER;
		bytes[n++] = word & 255;
		bytes[n++] = word >> 8;
	}
	return bytes.subarray(0, Math.max(0, n - (text[0] === '1' ? 1 : 0)));
}

/** @param {string} text @returns {Uint8Array} */
function bytesOfBase64(text) {
	const binary = atob(text.trim()), bytes = new Uint8Array(binary.length);
	for (let i = 0; i < bytes.length; i++)
		bytes[i] = binary.charCodeAt(i);
	return bytes;
}

/** @param {string} text of a block: in base64 none begins with a digit, for packed are bytes that begin with 0x78 @returns {Uint8Array} */
export function bytesOfBlock(text) {
	return /^[01]/.test(text) ? bytesOfWords(text) : bytesOfBase64(text);
}

/** @param {Uint8Array} packed @returns {Promise<Uint8Array>} */
export async function inflate(packed) {
	const stream = new Blob([packed]).stream().pipeThrough(new /** @type {any} */ (globalThis).DecompressionStream('deflate'));
	const reader = /** @type {ReadableStreamDefaultReader<Uint8Array>} */ (stream.getReader()), parts = [];
	let length = 0;
	for (;;) {
		const { done, value } = await reader.read();
		if (done)
			break;
		parts.push(value);
		if ((length += value.length) > MOST_BYTES)
			throw new Error('it is too large');
	}
	const bytes = new Uint8Array(length);
	length = 0;
	for (const part of parts) {
		bytes.set(part, length);
		length += part.length;
	}
	return bytes;
}

/** @param {Cursor} cursor @returns {number} */
export function readVarint(cursor) {
	let value = 0;
	for (let scale = 1; cursor.at < cursor.end && scale <= 2 ** 49; scale *= 128) {
		const byte = cursor.data[cursor.at++];
		value += (byte & 127) * scale;
		if (byte < 128) {
			if (value > Number.MAX_SAFE_INTEGER)
				break;
			return value;
		}
	}
	throw new Error('a number in it is cut or too large');
}

/**
 * A length that the rest of the block has room for.
 * @param {Cursor} cursor @param {number} [each] @returns {number}
 */
function readLength(cursor, each = 1) {
	const n = readVarint(cursor);
	if (n * each > cursor.end - cursor.at)
		throw new Error('it ends early');
	return n;
}

/**
 * A column's values, differences added up; of a gap they are from the end of the row before, see addGaps().
 * @param {Cursor} cursor @param {string} type @param {number} n @param {number} first what the first delta is added to
 * @returns {Float64Array | Int32Array}
 */
export function readColumn(cursor, type, n, first) {
	const values = SMALL.has(type) ? new Int32Array(n) : new Float64Array(n), { data, end } = cursor;
	const delta = type === 'delta' || type === 'sdelta', zigzag = type === 'sdelta' || type === 'gap';
	let before = type === 'delta' ? first : 0, at = cursor.at;
	for (let i = 0; i < n; i++) {
		let value = at < end ? data[at] : 128; // most are of one byte
		if (value < 128) {
			at++;
		} else {
			cursor.at = at;
			value = readVarint(cursor);
			at = cursor.at;
		}
		if (zigzag)
			value = value % 2 ? -(value + 1) / 2 : value / 2;
		if (delta)
			value = before += value;
		values[i] = value;
	}
	cursor.at = at;
	return values;
}

/**
 * Numbers of so many bits each, as bytes say that come first; then all bits but the highest ones, the lowest first.
 * @param {Cursor} cursor @param {number} n @returns {Float64Array}
 */
export function readBits(cursor, n) {
	const values = new Float64Array(n), { data, end } = cursor;
	let at = cursor.at + n, byte = 0, left = 0;
	if (at > end)
		throw new Error('it ends early');
	for (let i = 0; i < n; i++) {
		const length = data[cursor.at + i];
		if (length > 53)
			throw new Error('a number in it is cut or too large');
		let value = 0, scale = 1;
		for (let bits = length - 1; bits > 0;) {
			if (!left) {
				if (at === end)
					throw new Error('it ends early');
				byte = data[at++];
				left = 8;
			}
			const some = Math.min(bits, left);
			value += (byte & (1 << some) - 1) * scale;
			scale *= 1 << some;
			byte >>= some;
			left -= some;
			bits -= some;
		}
		values[i] = length ? value + scale : 0;
	}
	cursor.at = at;
	return values;
}

/**
 * A column of a block: of bits those, and of times the differences added up.
 * @param {Cursor} cursor @param {string} type @param {number} n @param {number} first @returns {Float64Array | Int32Array}
 */
function readAny(cursor, type, n, first) {
	if (!type.startsWith('bits'))
		return readColumn(cursor, type, n, first);
	const values = readBits(cursor, n);
	for (let i = 0, before = first; type === 'bits delta' && i < n; i++)
		values[i] = before += values[i];
	return values;
}

/** @param {Cursor} cursor @returns {string[]} */
function readTexts(cursor) {
	const n = readLength(cursor), texts = new Array(n), decoder = new TextDecoder();
	for (let i = 0; i < n; i++) {
		const length = readLength(cursor);
		texts[i] = decoder.decode(cursor.data.subarray(cursor.at, cursor.at += length));
	}
	return texts;
}

/**
 * Times of rows that are told as gaps behind the row before.
 * @param {Float64Array} gaps @param {Float64Array} dur @param {number} first @returns {Float64Array}
 */
function addGaps(gaps, dur, first) {
	let end = first;
	return gaps.map((gap, i) => {
		const begin = end + gap;
		end = begin + dur[i];
		return begin;
	});
}

/** @param {Rows} rows */
function addReach(rows) {
	let latest = -Infinity;
	for (let i = 0; i < rows.n; i++) {
		latest = Math.max(latest, rows.begin[i] + rows.dur[i]);
		rows.reach[i / REACH | 0] = latest;
	}
}

/**
 * A counter's value holds until the next one.
 * @param {Float64Array} begin @param {number} end @returns {Float64Array}
 */
function untilNext(begin, end) {
	return begin.map((time, i) => Math.max(0, (i + 1 < begin.length ? begin[i + 1] : end) - time));
}

/**
 * @param {Uint8Array} data inflated @param {[string, string][]} kinds name and type of each column
 * @param {{begin: number, end: number}} block @returns {Rows}
 */
export function readRows(data, kinds, block) {
	const cursor = { data, at: 0, end: data.length }, n = readLength(cursor);
	/** @type {Rows['columns']} */
	const columns = {};
	for (const [name, type] of kinds) {
		const length = readLength(cursor), part = { data, at: cursor.at, end: cursor.at + length };
		columns[name] = readAny(part, type, n, block.begin);
		if (part.at !== part.end)
			throw new Error(`its column ${name} has more than its rows`);
		cursor.at = part.end;
	}
	if (kinds.some(([name, type]) => name === 'begin' && type === 'gap'))
		columns.begin = addGaps(/** @type {Float64Array} */ (columns.begin),
			/** @type {Float64Array} */ (columns.dur ?? new Float64Array(n)), block.begin);
	const begin = /** @type {Float64Array} */ (columns.begin ?? new Float64Array(n));
	const rows = {
		n, columns, begin,
		dur: /** @type {Float64Array} */ (columns.dur ?? untilNext(begin, block.end)),
		name: /** @type {Int32Array} */ (columns.name ?? new Int32Array(n)),
		texts: readTexts(cursor),
		reach: new Float64Array(Math.ceil(n / REACH)),
		bytes: n * 8 * (kinds.length + 1) + data.length,
	};
	if (begin.some((time, i) => !(time >= (i ? begin[i - 1] : 0))) || !(n === 0 || begin[n - 1] <= Number.MAX_SAFE_INTEGER))
		throw new Error('its times are impossible');
	addReach(rows);
	return rows;
}

/**
 * The first row that may end after a time: rows before it do not.
 * @param {Rows} rows @param {number} time @returns {number}
 */
export function firstAfter(rows, time) {
	let low = 0, high = rows.reach.length;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (rows.reach[middle] > time)
			high = middle;
		else
			low = middle + 1;
	}
	return Math.min(low * REACH, rows.n);
}

/**
 * Stacks: each the numbers of its frames, innermost first.
 * @param {Uint8Array} data @returns {Int32Array[]}
 */
export function readStacks(data) {
	const cursor = { data, at: 0, end: data.length }, n = readLength(cursor), stacks = new Array(n);
	for (let i = 0; i < n; i++) {
		const frames = readLength(cursor);
		stacks[i] = /** @type {Int32Array} */ (readColumn(cursor, 'stack', frames, 0));
	}
	return stacks;
}

/**
 * @typedef {{kind: number, name: string, place: string}} Frame
 * @param {Uint8Array} data @returns {Frame[]}
 */
export function readFrames(data) {
	const cursor = { data, at: 0, end: data.length }, n = readLength(cursor, 3), frames = new Array(n), decoder = new TextDecoder();
	const text = () => {
		const length = readLength(cursor);
		return decoder.decode(data.subarray(cursor.at, cursor.at += length));
	};
	for (let i = 0; i < n; i++)
		frames[i] = { kind: readVarint(cursor), name: text(), place: text() };
	return frames;
}

/**
 * 64 parts of a block: how busy each was (0 to 1), and with which name most.
 * @typedef {{busy: Float32Array, name: Uint16Array}} Bins
 * @param {string} text @returns {Bins | null} null: there are none, or they are damaged
 */
export function readBins(text) {
	let bytes;
	try {
		bytes = bytesOfBase64(text);
	} catch {
		return null;
	}
	if (bytes.length < 192)
		return null;
	const view = new DataView(bytes.buffer), busy = new Float32Array(64), name = new Uint16Array(64);
	for (let i = 0; i < 64; i++) {
		busy[i] = bytes[i] / 255;
		name[i] = view.getUint16(64 + 2 * i, true);
	}
	return { busy, name };
}
