// SPDX-License-Identifier: MIT
// Two minutes of figures, in a bound: the last so many points, each with its time and a number for each series.

export const HISTORY_NS = 120e9;
const POINTS = 256;

/** @typedef {{ns: number, value: number}} Point  NaN: not known */

export class History {
	/** @param {number} series */
	constructor(series) {
		this.times = new Float64Array(POINTS);
		this.values = Array.from({ length: series }, () => new Float64Array(POINTS));
		this.added = 0;
	}

	/** @param {number} ns @param {(number | null)[]} values one of each series; null: not known */
	add(ns, values) {
		const at = this.added++ % POINTS;
		this.times[at] = ns;
		this.values.forEach((series, i) => {
			series[at] = values[i] ?? NaN;
		});
	}

	clear() {
		this.added = 0;
	}

	/**
	 * Oldest first, none more than two minutes older than the last.
	 * @param {number} series @returns {Point[]}
	 */
	points(series) {
		/** @type {Point[]} */
		const points = [];
		const last = this.times[(this.added + POINTS - 1) % POINTS];
		for (let i = Math.max(0, this.added - POINTS); i < this.added; i++) {
			const at = i % POINTS;
			if (this.times[at] >= last - HISTORY_NS)
				points.push({ ns: this.times[at], value: this.values[series][at] });
		}
		return points;
	}
}

/**
 * Points that belong together as one line: a line ends where a figure is not known, or where figures stayed away.
 * @param {Point[]} points @param {number} gapNs @returns {Point[][]}
 */
export function linesOf(points, gapNs) {
	/** @type {Point[][]} */
	const lines = [];
	/** @type {Point | null} */
	let before = null;
	for (const point of points) {
		if (Number.isNaN(point.value)) {
			before = null;
			continue;
		}
		if (!before || point.ns - before.ns > gapNs)
			lines.push([]);
		lines[lines.length - 1].push(point);
		before = point;
	}
	return lines;
}
