// SPDX-License-Identifier: MIT
// Sums of a span: blocks within it by their sums, those at its edges row by row.

import { firstAfter } from './decode.js';
import { pause } from './pace.js';

/**
 * As for `cuscope report --from --to`, a row counts, and whole, where it ended in the span; `within` is the time of all rows that is in it.
 * @typedef {{name: number, n: number, ns: number, within: number, max: number}} Sum
 * @typedef {import('./store.js').Store} Store
 * @typedef {import('./store.js').Track} Track
 * @typedef {import('./store.js').Block} Block
 * @typedef {import('./store.js').Rows} Rows
 */

/** @param {Map<number, Sum>} sums @param {number} name @param {number} n @param {number} ns @param {number} within @param {number} max */
function add(sums, name, n, ns, within, max) {
	let sum = sums.get(name);
	if (!sum)
		sums.set(name, sum = { name, n: 0, ns: 0, within: 0, max: 0 });
	sum.n += n;
	sum.ns += ns;
	sum.within += within;
	sum.max = Math.max(sum.max, max);
}

/**
 * Rows that are in it: of calls those that no other call made, as reports count them.
 * @param {Rows} rows @param {number} begin @param {number} end @param {string} kind of their track @param {(row: number, within: number) => void} each
 */
export function rowsWithin(rows, begin, end, kind, each) {
	const depths = kind === 'call' ? rows.columns.depth : undefined;
	for (let i = firstAfter(rows, begin); i < rows.n && rows.begin[i] < end; i++) {
		const to = rows.begin[i] + rows.dur[i];
		if (to > begin && !(depths && depths[i]))
			each(i, Math.min(to, end) - Math.max(rows.begin[i], begin));
	}
}

/** @param {number} time @param {number} begin @param {number} end Infinity: to the trace's end */
function endsWithin(time, begin, end) {
	return time > begin && time < end;
}

/**
 * @param {Store} store @param {Track} track @param {number} begin @param {number} end @param {() => boolean} mine
 * @returns {Promise<Map<number, Sum>>} by name
 */
export async function sumTrack(store, track, begin, end, mine) {
	/** @type {Map<number, Sum>} */
	const sums = new Map();
	for (const block of track.blocks) {
		if (block.end < begin || block.begin > end || !mine())
			continue;
		if (block.begin >= begin && block.end < end) {
			for (const [name, n, ns, max] of block.sums)
				n && add(sums, name, n, ns, ns, max);
			continue;
		}
		const rows = await store.load(block);
		if (rows)
			rowsWithin(rows, begin, end, track.kind, (row, within) => {
				const counts = endsWithin(rows.begin[row] + rows.dur[row], begin, end);
				add(sums, rows.name[row], Number(counts), counts ? rows.dur[row] : 0, within, counts ? rows.dur[row] : 0);
			});
		await pause();
	}
	return sums;
}

/**
 * @param {Map<Track, Map<number, Sum>>} byTrack @param {(track: Track) => boolean} of @returns {Map<number, Sum>}
 */
export function together(byTrack, of) {
	/** @type {Map<number, Sum>} */
	const all = new Map();
	for (const [track, sums] of byTrack) {
		for (const sum of of(track) ? sums.values() : [])
			add(all, sum.name, sum.n, sum.ns, sum.within, sum.max);
	}
	return all;
}
