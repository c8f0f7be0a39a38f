// SPDX-License-Identifier: MIT
// The part of time that is in view, and how it moves. Views of recordings beside each other share a frame: each sees it by its own times,
// which are later by its shift.

const LEAST = 100; // ns in view

export class View {
	/** @param {number} end of the trace @param {() => void} changed */
	constructor(end, changed) {
		this.limit = end;
		this.changed = changed;
		this.shift = 0;
		this.onMove = () => {};
		this.frame = { begin: 0, end, views: [/** @type {View} */ (this)] };
	}

	get begin() {
		return this.frame.begin + this.shift;
	}

	get end() {
		return this.frame.end + this.shift;
	}

	get length() {
		return this.frame.end - this.frame.begin;
	}

	/** From where to where there is something, by the times of the frame. */
	get bounds() {
		const { views } = this.frame;
		return { first: Math.min(...views.map((view) => -view.shift)), last: Math.max(...views.map((view) => view.limit - view.shift)) };
	}

	/**
	 * From now on they move as one.
	 * @param {View} other
	 */
	join(other) {
		this.frame = other.frame;
		this.frame.views.push(this);
	}

	/**
	 * Of its frame it alone moves.
	 * @param {number} shift
	 */
	moveTo(shift) {
		this.shift = Number.isFinite(shift) ? shift : 0;
		this.tell();
		this.onMove();
	}

	tell() {
		for (const view of this.frame.views)
			view.changed();
	}

	/** @param {number} begin @param {number} end */
	show(begin, end) {
		const { frame } = this, { first, last } = this.bounds, most = (last - first) * 1.04;
		const length = Math.min(Math.max(end - begin, Math.min(LEAST, most)), most);
		const middle = (begin + end) / 2 - this.shift, slack = Math.max((last - first) * 0.02, length * 0.5);
		const from = Math.min(Math.max(middle - length / 2, first - slack), last + slack - length);
		if (!Number.isFinite(from) || from === frame.begin && from + length === frame.end)
			return;
		frame.begin = from;
		frame.end = from + length;
		this.tell();
	}

	all() {
		const { first, last } = this.bounds, more = (last - first) * 0.005;
		this.show(first - more + this.shift, last + more + this.shift);
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
