// SPDX-License-Identifier: MIT
// The last figures and the histories, in a bound: two minutes of the total, of 64 GPUs and of 200 processes.

import { finite } from '../js/units.js';
import { GPU_SERIES, listOf, PROCESS_SERIES } from './figures.js';
import { History } from './history.js';

export const MOST_HISTORIES = 200;
const MOST_GPUS = 64;

/** @typedef {{key: string, its: any}} Process */

/**
 * A key for each process: its pid; of two with one pid the one that ended has another.
 * @param {any[]} processes @returns {Process[]} in their order
 */
export function keyed(processes) {
	const running = new Set(processes.filter((its) => !its.ended).map((its) => its.pid)), taken = new Map();
	return processes.map((its) => {
		const first = its.ended && running.has(its.pid) ? `${its.pid} ended` : String(its.pid), times = taken.get(first) ?? 0;
		taken.set(first, times + 1);
		return { key: times ? `${first} ${times}` : first, its };
	});
}

export class Model {
	constructor() {
		this.page = /** @type {any} */ (null);
		this.processes = /** @type {Process[]} */ ([]);
		this.byKey = /** @type {Map<string, any>} */ (new Map());
		this.unreadable = 0;
		this.total = new History(PROCESS_SERIES.length);
		this.gpus = /** @type {History[]} */ ([]);
		this.histories = /** @type {Map<string, {history: History, calls: number}>} */ (new Map());
	}

	forget() {
		this.total.clear();
		this.gpus = [];
		this.histories.clear();
	}

	/** @returns {number} */
	get intervalNs() {
		return finite(this.page?.interval_ns) ?? 1e9;
	}

	/**
	 * @param {string} text an event's data
	 * @param {string} [open] the process that is looked at: it keeps its history when it has gone
	 * @returns {boolean} whether it is there
	 */
	take(text, open) {
		/** @type {any} */
		let page = null;
		try {
			page = JSON.parse(text);
		} catch { /* told below */ }
		const ns = finite(page?.counting_ns);
		if (!page || typeof page !== 'object' || ns === null) {
			this.unreadable++;
			return false;
		}
		if (ns < (finite(this.page?.counting_ns) ?? 0)) // counting began anew
			this.forget();
		this.page = page;
		this.processes = keyed(listOf(page.processes));
		this.byKey = new Map(this.processes.map(({ key, its }) => [key, its]));
		this.total.add(ns, PROCESS_SERIES.map((series) => series.of(page.total ?? {})));
		listOf(page.gpus).slice(0, MOST_GPUS).forEach((gpu, i) => {
			(this.gpus[i] ??= new History(GPU_SERIES.length)).add(ns, GPU_SERIES.map((series) => series.of(gpu)));
		});
		this.remember(ns, open);
		return true;
	}

	/** @param {number} ns @param {string} [open] */
	remember(ns, open) {
		for (const key of this.histories.keys()) {
			if (!this.byKey.has(key) && key !== open)
				this.histories.delete(key);
		}
		for (const { key, its } of this.processes) {
			let known = this.histories.get(key);
			if (!known && this.histories.size >= MOST_HISTORIES && key !== open)
				continue;
			if (!known || (finite(its.calls) ?? 0) < known.calls) // another process has its pid
				this.histories.set(key, known = { history: new History(PROCESS_SERIES.length), calls: 0 });
			known.calls = finite(its.calls) ?? 0;
			if (!its.ended)
				known.history.add(ns, PROCESS_SERIES.map((series) => series.of(its)));
		}
	}

	/** @param {string} key @returns {History | null} */
	historyOf(key) {
		return this.histories.get(key)?.history ?? null;
	}

	/** @param {string} key @returns {any} */
	processOf(key) {
		return this.byKey.get(key) ?? null;
	}
}
