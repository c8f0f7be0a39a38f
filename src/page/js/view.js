// SPDX-License-Identifier: MIT
// The part of time that is in view, and how it moves.

const LEAST = 100; // ns in view

export class View {
	/** @param {number} end of the trace @param {() => void} changed */
	constructor(end, changed) {
		this.limit = end;
		this.begin = 0;
		this.end = end;
		this.changed = changed;
	}

	get length() {
		return this.end - this.begin;
	}

	/** @param {number} begin @param {number} end */
	show(begin, end) {
		const most = this.limit * 1.04, length = Math.min(Math.max(end - begin, Math.min(LEAST, most)), most);
		const middle = (begin + end) / 2, slack = Math.max(this.limit * 0.02, length * 0.5);
		const from = Math.min(Math.max(middle - length / 2, -slack), this.limit + slack - length);
		if (!Number.isFinite(from) || from === this.begin && from + length === this.end)
			return;
		this.begin = from;
		this.end = from + length;
		this.changed();
	}

	all() {
		this.show(-this.limit * 0.005, this.limit * 1.005);
	}

	/** @param {number} factor below 1: closer @param {number} [at] the time that stays where it is */
	zoom(factor, at = (this.begin + this.end) / 2) {
		this.show(at - (at - this.begin) * factor, at + (this.end - at) * factor);
	}

	/** @param {number} part of what is in view */
	pan(part) {
		const by = this.length * part;
		this.show(this.begin + by, this.end + by);
	}

	/**
	 * So that this can be seen with something around it; stays where it can be already.
	 * @param {number} begin @param {number} end
	 */
	reveal(begin, end) {
		const length = end - begin, seen = begin >= this.begin && end <= this.end && length > this.length / 50;
		if (!seen)
			this.show(begin - Math.max(length * 2, 500), end + Math.max(length * 2, 500));
	}
}
