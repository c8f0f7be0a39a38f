// SPDX-License-Identifier: MIT
// Rows by their name or their correlation: blocks say by their sums and their least and largest number whether one can be in them.

import { pause, Turn } from './pace.js';

/**
 * @typedef {import('./store.js').Store} Store
 * @typedef {import('./store.js').Track} Track
 * @typedef {import('./store.js').Block} Block
 * @typedef {import('./store.js').Rows} Rows
 * @typedef {import('./store.js').Spot} Spot
 * @typedef {{name: number, n: number, ns: number, max: number, kinds: Set<string>}} NameSum
 */

const MOST_NAMES = 200, MOST_PEERS = 64, MOST_SAMPLED = 48;

/**
 * What the index knows of each name.
 * @param {Store} store @returns {Map<number, NameSum>}
 */
export function sumsOfNames(store) {
	/** @type {Map<number, NameSum>} */
	const sums = new Map();
	for (const track of store.tracks) {
		for (const block of track.blocks) {
			for (const [name, n, ns, max] of block.sums) {
				const sum = sums.get(name) ?? { name, n: 0, ns: 0, max: 0, kinds: new Set() };
				sum.n += n;
				sum.ns += ns;
				sum.max = Math.max(sum.max, max);
				sum.kinds.add(track.kind);
				sums.set(name, sum);
			}
		}
	}
	return sums;
}

/**
 * Names that have all of some words, those with most time first.
 * @param {Store} store @param {Map<number, NameSum>} sums @param {string} text @returns {NameSum[]}
 */
export function namesWith(store, sums, text) {
	const words = text.toLowerCase().split(/\s+/).filter(Boolean), found = [];
	if (!words.length)
		return [];
	for (let name = 0; name < store.names.length; name++) {
		const lower = String(store.names[name]).slice(0, 4096).toLowerCase();
		if (words.every((word) => lower.includes(word)))
			found.push(sums.get(name) ?? { name, n: 0, ns: 0, max: 0, kinds: new Set() });
	}
	return found.sort((a, b) => b.ns - a.ns).slice(0, MOST_NAMES);
}

/**
 * Blocks that may have a name, in order of time.
 * @param {Store} store @param {number} name @returns {Block[]}
 */
function blocksWith(store, name) {
	const all = store.tracks.flatMap((track) => track.kind === 'counter' ? [] : track.blocks);
	const known = all.filter((block) => block.sums.some((sum) => sum[0] === name));
	return (known.length ? known : all.filter((block) => block.track.kind === 'call' || block.track.kind === 'range')).sort((a,
		b) => a.begin - b.begin);
}

const stepping = new Turn();

/**
 * The next or previous row of a name, in all tracks, by begin.
 * @param {Store} store @param {number} name @param {number} time that it is after or before @param {number} by 1 or -1 @returns {Promise<Spot | null>}
 */
export async function stepTo(store, name, time, by) {
	const mine = stepping.begin(), blocks = blocksWith(store, name).filter((block) => by > 0 ? block.end > time : block.begin < time);
	blocks.sort((a, b) => by > 0 ? a.begin - b.begin : b.end - a.end);
	let best = /** @type {Spot | null} */ (null);
	for (const block of blocks) {
		const at = best ? best.rows.begin[best.row] : by * Infinity;
		if (by > 0 ? block.begin > at : block.end < at)
			break;
		const rows = await store.load(block);
		if (!mine())
			return null;
		for (let i = 0; rows && i < rows.n; i++) {
			const begin = rows.begin[by > 0 ? i : rows.n - 1 - i], row = by > 0 ? i : rows.n - 1 - i;
			if (rows.name[row] !== name || (begin - time) * by <= 0)
				continue;
			if (!best || (best.rows.begin[best.row] - begin) * by > 0)
				best = { track: block.track, block, row, rows };
			break;
		}
	}
	return best;
}

/**
 * The longest row of a name, of those in some tracks.
 * @param {Store} store @param {number} name @param {(track: Track) => boolean} [of] @returns {Promise<Spot | null>}
 */
export async function longestOf(store, name, of = () => true) {
	let best = /** @type {Spot | null} */ (null);
	const longest = (/** @type {Block} */ block) => block.sums.reduce((most, sum) => sum[0] === name ? Math.max(most, sum[3]) : most, -1);
	const blocks = blocksWith(store, name).filter((block) => of(block.track)).map((block) => ({ block, max: longest(block) })).sort((a,
		b) => b.max - a.max);
	for (const { block, max } of blocks) {
		if (best && max >= 0 && max <= best.rows.dur[best.row])
			break;
		const rows = await store.load(block);
		for (let i = 0; rows && i < rows.n; i++) {
			if (rows.name[i] === name && (!best || rows.dur[i] > best.rows.dur[best.row]))
				best = { track: block.track, block, row: i, rows };
		}
		await pause();
	}
	return best;
}

/**
 * Work of a call, or the call of work: rows of the process that have its correlation.
 * @param {Store} store @param {Spot} spot @returns {Promise<Spot[]>}
 */
export async function peersOf(store, spot) {
	const correlation = spot.rows.columns.correlation?.[spot.row] ?? 0, other = spot.track.kind === 'call' ? 'work' : 'call', found = [];
	if (!correlation)
		return [];
	for (const track of store.tracks) {
		if (track.kind !== other || track.process !== spot.track.process)
			continue;
		for (const block of track.blocks) {
			if (correlation < block.c0 || correlation > block.c1 || found.length >= MOST_PEERS)
				continue;
			const rows = await store.load(block), its = rows?.columns.correlation;
			for (let i = 0; rows && its && i < rows.n && found.length < MOST_PEERS; i++) {
				if (its[i] === correlation)
					found.push({ track, block, row: i, rows });
			}
		}
	}
	const depth = (/** @type {Spot} */ its) => its.rows.columns.depth?.[its.row] ?? 0;
	return found.sort((a, b) => depth(a) - depth(b));
}

/**
 * Durations of a name in one kind of tracks; of many blocks a part, evenly.
 * @param {Store} store @param {string} kind @param {number} name @param {() => boolean} mine
 * @returns {Promise<{durations: number[], looked: number, blocks: number}>}
 */
export async function durationsOf(store, kind, name, mine) {
	const blocks = blocksWith(store, name).filter((block) => block.track.kind === kind), durations = [];
	const step = Math.max(1, blocks.length / MOST_SAMPLED);
	let looked = 0;
	for (let at = 0; at < blocks.length && mine(); at += step, looked++) {
		const rows = await store.load(blocks[Math.floor(at)]);
		for (let i = 0; rows && i < rows.n; i++) {
			if (rows.name[i] === name)
				durations.push(rows.dur[i]);
		}
		await pause();
	}
	return { durations, looked, blocks: blocks.length };
}
