// SPDX-License-Identifier: MIT
// Rows of an account as shares. An account is known in parts of one length; rows of a part stand side by side, the largest first, and
// each is as long as its share. They are drawn upon each other, in one order of causes, so that a part reads as a column.

/**
 * @typedef {import('./decode.js').Rows} Rows
 * @typedef {{first: number, end: number, begin_ns: number, end_ns: number}} Part rows from the first up to the one before the end
 * @typedef {{row: number, low: number, high: number}} Share of 1, from below
 */

/** @type {WeakMap<Rows, Part[]>} */
const known = new WeakMap();

/**
 * A part begins where a row is longer than the one before it, behind a gap, and behind a row that is as long as a part.
 * @param {Rows} rows @returns {Part[]}
 */
export function partsOf(rows) {
	let parts = known.get(rows);
	if (parts)
		return parts;
	const { begin, dur } = rows, longest = dur.reduce((most, ns) => Math.max(most, ns), 0);
	known.set(rows, parts = []);
	for (let i = 0; i < rows.n; i++) {
		const part = parts[parts.length - 1];
		if (part && dur[i] <= dur[i - 1] && begin[i] <= part.end_ns && (part.end - part.first > 1 || dur[i - 1] < longest)) {
			part.end = i + 1;
			part.end_ns = Math.max(part.end_ns, begin[i] + dur[i]);
		} else {
			parts.push({ first: i, end: i + 1, begin_ns: begin[i], end_ns: begin[i] + dur[i] });
		}
	}
	return parts;
}

/** @param {Rows} rows @param {Part} part @returns {Share[]} by cause, from below */
export function sharesOf(rows, part) {
	const order = [];
	let all = 0;
	for (let row = part.first; row < part.end; row++) {
		order.push(row);
		all += rows.dur[row];
	}
	order.sort((a, b) => rows.name[a] - rows.name[b] || a - b);
	let low = 0;
	return order.map((row) => {
		const share = { row, low, high: low + (all ? rows.dur[row] / all : 0) };
		low = share.high;
		return share;
	});
}

/** @param {Rows} rows @param {number} time @returns {Part | undefined} */
export function partAt(rows, time) {
	return partsOf(rows).find((part) => part.begin_ns <= time && time < part.end_ns);
}

/** @param {Rows} rows @param {number} row @returns {{part: Part, share: Share} | null} */
export function shareOfRow(rows, row) {
	const part = partsOf(rows).find((its) => row >= its.first && row < its.end), share = part && sharesOf(rows,
		part).find((its) => its.row === row);
	return part && share ? { part, share } : null;
}

/**
 * Shares of each pixel, by name, from parts in view. Where a pixel has several parts, each has the share of its time.
 * @param {Rows} rows @param {number} begin @param {number} end @param {number} width
 * @returns {{names: number[], shares: Map<number, Float32Array>, cover: Float32Array}}
 */
export function columnsOf(rows, begin, end, width) {
	/** @type {Map<number, Float32Array>} */
	const shares = new Map();
	const cover = new Float32Array(width), scale = width / (end - begin);
	for (const part of partsOf(rows)) {
		const from = Math.max(0, (part.begin_ns - begin) * scale), to = Math.min(width, (part.end_ns - begin) * scale);
		if (to <= from)
			continue;
		for (const { row, low, high } of sharesOf(rows, part)) {
			let of = shares.get(rows.name[row]);
			if (!of)
				shares.set(rows.name[row], of = new Float32Array(width));
			for (let x = Math.floor(from); x < to; x++)
				of[x] += (high - low) * (Math.min(to, x + 1) - Math.max(from, x));
		}
		for (let x = Math.floor(from); x < to; x++)
			cover[x] += Math.min(to, x + 1) - Math.max(from, x);
	}
	return { names: [...shares.keys()].sort((a, b) => a - b), shares, cover };
}
