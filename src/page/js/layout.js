// SPDX-License-Identifier: MIT
// Where tracks are, from top to bottom: heads of groups and the tracks of those that are open.

/**
 * @typedef {import('./store.js').Track} Track
 * @typedef {{y: number, height: number, group: string, track: Track | null, count: number}} Line  a group's head where track is null
 */

export const HEAD = 22;
const LANE = 17;
const GAP = 4, STATE = 13, COUNTER = 28, ACCOUNT = 44, MOST_LANES = 10, IDLE = 0.95;

/** @param {Track} track @returns {number} */
export function lanesOf(track) {
	return track.kind === 'call' || track.kind === 'range' ? Math.min(track.depth + 1, MOST_LANES) : 1;
}

/** @param {Track} track @returns {number} */
export function laneHeight(track) {
	return track.kind === 'state' ? STATE : track.kind === 'counter' ? COUNTER : track.kind === 'account' ? ACCOUNT : LANE;
}

/**
 * Accounts first, then each thread's ranges, calls and states, then streams, then counters.
 * @param {Track[]} tracks
 */
function sortTracks(tracks) {
	const threads = [...new Set(tracks.map((track) => track.tid))], kinds = ['range', 'call', 'state'];
	const rank = (/** @type {Track} */ track) => track.kind === 'account' ? -1 : kinds.includes(track.kind) ?
		threads.indexOf(track.tid) * kinds.length + kinds.indexOf(track.kind) :
		(threads.length + Number(track.kind === 'counter')) * kinds.length;
	return tracks.sort((a, b) => rank(a) - rank(b) || a.number - b.number);
}

/**
 * Whether nothing but waits was seen of a thread, nearly all the time.
 * @param {Track[]} its tracks of a thread
 */
function isIdle(its) {
	let all = 0, blocked = 0;
	for (const track of its) {
		if (track.kind !== 'state')
			return false;
		all += track.waits.all;
		blocked += track.waits.blocked;
	}
	return all > 0 && blocked >= IDLE * all;
}

/**
 * Groups with their tracks, and whether they are closed at first: of each process its own, then those of its GPUs, then its threads that
 * do nothing, where there are several.
 * @param {Track[]} tracks @returns {[string, Track[], boolean][]}
 */
function groupsOf(tracks) {
	/** @type {Map<string, Track[]>} */
	const threads = new Map();
	/** @type {Map<string, Track[]>} */
	const groups = new Map();
	/** @type {Map<string, Track[]>} */
	const idle = new Map();
	const put = (/** @type {Map<string, Track[]>} */ map, /** @type {string} */ key, /** @type {Track} */ track) => map.set(key,
		[...map.get(key) ?? [], track]);
	for (const track of tracks)
		put(threads, track.tid ? `${track.process} ${track.tid}` : `track ${track.number}`, track);
	for (const its of threads.values()) {
		for (const track of its)
			put(isIdle(its) ? idle : groups, track.group, track);
	}
	for (const [group, its] of idle) {
		if (its.length < 3 || !groups.has(group)) {
			its.forEach((/** @type {Track} */ track) => put(groups, group, track));
			idle.delete(group);
		}
	}
	const processes = [...new Set(tracks.map((track) => track.process))];
	const measured = (/** @type {Track[]} */ its) => its.every((track) => track.kind === 'counter'); // of a GPU, whoever used it
	const rank = (/** @type {Track[]} */ its) => measured(its) ? Infinity :
		processes.indexOf(its[0].process) * 2 + Number(!its.some((track) => track.tid));
	/** @type {[string, Track[], boolean][]} */
	const ordered = [...groups].sort(([, a], [, b]) => rank(a) === rank(b) ? 0 : rank(a) - rank(b)).map(([group, its]) => [group,
		sortTracks(its), false]);
	for (const [group, its] of idle) {
		const of = ordered.map(([, those]) => measured(those) ? -1 : those[0].process), last = of.lastIndexOf(its[0].process);
		ordered.splice(last + 1, 0, [`${group}: more threads, blocked nearly all the time`, its, true]);
	}
	return ordered;
}

export class Layout {
	/** @param {Track[]} tracks */
	constructor(tracks) {
		this.tracks = tracks;
		/** @type {Set<string>} */
		this.closed = new Set();
		/** @type {Line[]} */
		this.lines = [];
		this.height = 0;
		/** @type {Map<string, Track[]>} */
		this.groups = new Map();
		for (const [group, its, closed] of groupsOf(tracks)) {
			this.groups.set(group, its);
			if (closed)
				this.closed.add(group);
		}
		this.arrange();
	}

	arrange() {
		this.lines = [];
		let y = 0;
		const add = (/** @type {string} */ group, /** @type {Track | null} */ track, /** @type {number} */ height,
			/** @type {number} */ count) => {
			this.lines.push({ y, height, group, track, count });
			y += height;
		};
		for (const [group, tracks] of this.groups) {
			add(group, null, HEAD, tracks.length);
			if (this.closed.has(group))
				continue;
			for (const track of tracks)
				add(group, track, lanesOf(track) * laneHeight(track) + GAP, 0);
		}
		this.height = y;
	}

	/** @param {string} group */
	toggle(group) {
		if (!this.closed.delete(group))
			this.closed.add(group);
		this.arrange();
	}

	/**
	 * The lines that a part of the height shows.
	 * @param {number} top @param {number} height @returns {Line[]}
	 */
	within(top, height) {
		const from = this.at(top);
		const found = [];
		for (let i = Math.max(0, from); i < this.lines.length && this.lines[i].y < top + height; i++)
			found.push(this.lines[i]);
		return found;
	}

	/**
	 * The number of the line at a height.
	 * @param {number} y @returns {number}
	 */
	at(y) {
		let low = 0, high = this.lines.length;
		while (low < high) {
			const middle = (low + high) >> 1;
			if (this.lines[middle].y <= y)
				low = middle + 1;
			else
				high = middle;
		}
		return low - 1;
	}

	/**
	 * Its line; its group is opened where it is not.
	 * @param {Track} track @returns {Line | undefined}
	 */
	lineOf(track) {
		for (const [group, its] of this.groups) {
			if (this.closed.has(group) && its.includes(track))
				this.toggle(group);
		}
		return this.lines.find((line) => line.track === track);
	}
}
