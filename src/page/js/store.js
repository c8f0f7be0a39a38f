// SPDX-License-Identifier: MIT
// What the file holds: its index, believed in nothing, and its blocks, read when they are wanted and kept while there is room.

import { bytesOfBlock, inflate, readBins, readFrames, readRows, readStacks } from './decode.js';
import { stateClass } from './colors.js';
import { pause } from './pace.js';
import { cut, label, shown } from './text.js';
import { list } from './units.js';

/**
 * @typedef {import('./decode.js').Rows} Rows
 * @typedef {import('./decode.js').Bins} Bins
 * @typedef {import('./decode.js').Frame} Frame
 * @typedef {{id: number, track: Track, begin: number, end: number, rows: number, c0: number, c1: number, binText: string,
 *   bins?: Bins | null, sums: [number, number, number, number][], damaged: boolean}} Block
 * @typedef {{number: number, kind: string, title: string, group: string, process: number, tid: number, unit: string, rows: number,
 *   blocks: Block[], depth: number, peak: number, waits: {all: number, blocked: number}}} Track  waits: of states, ns
 * @typedef {{track: Track, block: Block, row: number, rows: Rows}} Spot a row of a track
 */

const MOST_DECODED = 160 << 20; // bytes of decoded blocks that are kept
const MOST_TIME = Number.MAX_SAFE_INTEGER;
const AT_ONCE = 2; // blocks that are being decoded

/** @param {unknown} value @param {number} [most] @returns {number} from 0 on; what is none is 0 */
function number(value, most = MOST_TIME) {
	return typeof value === 'number' && value >= 0 && value <= most ? value : 0;
}

/** @param {string} id @returns {Promise<string>} the text of an element that may not be parsed yet */
export async function textOf(id) {
	if (!document.getElementById(id) && document.readyState === 'loading')
		await new Promise((resolve) => document.addEventListener('DOMContentLoaded', resolve, { once: true }));
	const found = document.getElementById(id);
	if (!found)
		throw new Error('it is missing: the file is cut short');
	return found.textContent ?? '';
}

export class Store {
	/** @param {any} index @param {(id: string) => Promise<string>} [read] */
	constructor(index, read = textOf) {
		this.index = index && typeof index === 'object' ? index : {};
		this.read = read;
		/** @type {string[]} what was wrong */
		this.troubles = [];
		this.damaged = 0;
		this.onChange = () => {};
		/** @type {string[]} */
		this.names = list(this.index.names);
		/** @type {string[]} */
		this.labels = [];
		/** @type {Map<Block, Rows>} the least used first */
		this.decoded = new Map();
		this.decodedBytes = 0;
		/** @type {Map<Block, Promise<Rows | null>>} */
		this.loading = new Map();
		/** @type {Block[]} */
		this.wanted = [];
		/** @type {Map<string, Promise<any[]>>} */
		this.parts = new Map();
		/** @type {Track[]} */
		this.tracks = [];
		this.end = 1;
		this.readIndex();
	}

	readIndex() {
		this.tracks = list(this.index.tracks).map((track, i) => ({
			number: i, kind: String(track?.kind ?? ''), title: label(track?.title ?? ''),
			group: label(track?.group ?? this.index.processes?.[track?.process]?.title ?? ''),
			process: Number.isInteger(track?.process) ? track.process : -1, tid: number(track?.tid), unit: label(track?.unit ?? ''),
			rows: number(track?.rows), depth: Math.min(number(track?.depth), 64), peak: number(track?.peak), blocks: [], waits: { all: 0,
				blocked: 0 },
		}));
		let impossible = 0;
		this.end = number(this.index.run?.duration_ns);
		for (const block of list(this.index.blocks)) {
			const track = this.tracks[block?.track];
			if (!track)
				continue; // of stacks and frames, found by its number
			if (!(block.begin >= 0 && block.end >= block.begin && block.end <= MOST_TIME && Number.isInteger(block.id))) {
				impossible++;
				continue;
			}
			track.blocks.push({ id: block.id, track, begin: block.begin, end: block.end, rows: number(block.rows), c0: number(block.c0),
				c1: number(block.c1), binText: String(block.bins ?? ''), sums: list(block.sums).filter((sum) => Array.isArray(sum) &&
					sum.length === 4 && sum.every((its) => its >= 0)), damaged: false });
			this.end = Math.max(this.end, block.end);
		}
		for (const track of this.tracks) {
			track.blocks.sort((a, b) => a.begin - b.begin);
			if (track.kind === 'state')
				this.sumWaits(track);
		}
		if (impossible)
			this.troubles.push(`${impossible} blocks of this page have impossible times and are left out.`);
		this.end = Math.max(this.end, 1);
	}

	/** @param {Track} track */
	sumWaits({ blocks, waits }) {
		for (const [name, , ns] of blocks.flatMap((block) => block.sums)) {
			waits.all += ns;
			waits.blocked += stateClass(String(this.names[name])) === 'blocked' ? ns : 0;
		}
	}

	/**
	 * A name as it is shown in the view.
	 * @param {number} name @returns {string}
	 */
	label(name) {
		return this.labels[name] ??= name in this.names ? label(this.names[name]) || '(no name)' : '(not known)';
	}

	/**
	 * The whole name.
	 * @param {number} name @returns {string}
	 */
	name(name) {
		return shown(this.names[name] ?? '(not known)');
	}

	/** @param {Rows} rows @param {number} row @returns {string} */
	detail(rows, row) {
		const text = rows.columns.detail?.[row] ?? 0; // 1 and the text's number
		return text ? rows.texts[text - 1] ?? '' : '';
	}

	/** @param {Block} block @returns {Bins | null} */
	bins(block) {
		return block.bins === undefined ? block.bins = readBins(block.binText) : block.bins;
	}

	/**
	 * Decoded rows, where they are there; else they come, if `want` is set.
	 * @param {Block} block @param {boolean} [want] @returns {Rows | null}
	 */
	rows(block, want) {
		const rows = this.decoded.get(block);
		if (rows) {
			this.decoded.delete(block);
			this.decoded.set(block, rows);
			return rows;
		}
		if (want && !block.damaged && !this.loading.has(block))
			this.wanted.push(block);
		return null;
	}

	/** A picture was drawn: what it lacks is read, what earlier ones lacked no more. */
	fetchWanted() {
		while (this.loading.size < AT_ONCE && this.wanted.length)
			this.load(/** @type {Block} */ (this.wanted.shift())).then(() => this.onChange());
	}

	/** @param {Block} block @returns {Promise<Rows | null>} null: it is damaged */
	load(block) {
		const there = this.rows(block);
		if (there || block.damaged)
			return Promise.resolve(there);
		let coming = this.loading.get(block);
		if (!coming) {
			coming = this.decode(block).finally(() => {
				this.loading.delete(block);
				this.fetchWanted();
			});
			this.loading.set(block, coming);
		}
		return coming;
	}

	/** @param {Block} block @returns {Promise<Rows | null>} */
	async decode(block) {
		try {
			const data = await this.bytes(block.id);
			await pause();
			const rows = readRows(data, list(this.index.columns?.[block.track.kind]), block);
			this.keep(block, rows);
			return rows;
		} catch (error) {
			block.damaged = true;
			this.damaged++;
			this.tell(`A part of ${block.track.title} cannot be read: ${/** @type {Error} */ (error).message}.`);
			return null;
		}
	}

	/** @param {number} id @returns {Promise<Uint8Array>} */
	async bytes(id) {
		const text = await this.read('b' + id);
		await pause();
		let packed;
		try {
			packed = bytesOfBlock(text);
		} catch {
			throw new Error('it is damaged');
		}
		await pause();
		try {
			return await inflate(packed);
		} catch {
			throw new Error('it is damaged or cut');
		}
	}

	/** @param {string} sentence */
	tell(sentence) {
		if (this.troubles.length < 20 && !this.troubles.includes(sentence))
			this.troubles.push(cut(sentence, 400));
		this.onTrouble?.();
	}

	/** @type {(() => void) | undefined} */
	onTrouble;

	/** @param {Block} block @param {Rows} rows */
	keep(block, rows) {
		this.decoded.set(block, rows);
		this.decodedBytes += rows.bytes;
		for (const [oldest, its] of this.decoded) {
			if (this.decodedBytes <= MOST_DECODED || oldest === block)
				break;
			this.decoded.delete(oldest);
			this.decodedBytes -= its.bytes;
		}
	}

	/**
	 * An entry of the index's stacks or frames.
	 * @param {'stacks' | 'frames'} what @param {number} number @returns {Promise<any>}
	 */
	async entry(what, number) {
		const part = list(this.index[what]).find((its) => number >= its?.first && number < its.first + its.n);
		if (!part)
			return null;
		const key = what + part.block;
		let entries = this.parts.get(key);
		if (!entries) {
			entries = this.bytes(part.block).then(what === 'stacks' ? /** @type {(b: Uint8Array) => any[]} */ (readStacks) : readFrames)
				.catch((error) => {
					this.tell(`A part of the ${what} cannot be read: ${error.message}.`);
					return [];
				});
			this.parts.set(key, entries);
		}
		return (await entries)[number - part.first] ?? null;
	}

	/**
	 * Frames of a stack, innermost first; `stack` as rows have it.
	 * @param {number} stack @returns {Promise<Frame[]>}
	 */
	async stack(stack) {
		const numbers = stack > 0 ? await this.entry('stacks', stack - 1) : null, frames = [];
		for (const number of numbers ?? [])
			frames.push(await this.entry('frames', number) ?? { kind: 0, name: '(not known)', place: '' });
		return frames;
	}

	/** @param {Track} track @returns {string} */
	processTitle(track) {
		const process = this.index.processes?.[track.process];
		return process ? label(process.title ?? `process ${process.pid}`) : track.group;
	}
}
