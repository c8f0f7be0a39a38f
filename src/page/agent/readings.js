// SPDX-License-Identifier: MIT
// The agent's last figures and what they were before: values, rates of counters, and histories, in a bound.

import { finite } from '../js/units.js';
import { History } from '../live/history.js';
import { readExposition } from './exposition.js';

const MOST_KEPT = 1200; // histories, of one series each: 4 KiB
const SNAPSHOTS = 'cuscope_agent_snapshots_total', AGE = 'cuscope_agent_figures_age_seconds';

/** @typedef {import('./exposition.js').Family} Family @typedef {import('./exposition.js').Sample} Sample */

export class Readings {
	constructor() {
		this.families = /** @type {Family[]} */ ([]);
		this.byName = /** @type {Map<string, Family>} */ (new Map());
		this.rates = /** @type {Map<string, number>} */ (new Map());
		this.before = /** @type {Map<string, number>} */ (new Map());
		this.histories = /** @type {Map<string, History>} */ (new Map());
		this.wanted = /** @type {Set<string>} */ (new Set());
		this.unreadable = 0;
		this.ns = 0;
		this.spanNs = 0; // that rates are of; 0: none yet
		this.snapshots = -1;
		this.intervalNs = 0;
	}

	/**
	 * @param {string} text of /metrics @param {number} nowNs when it came
	 * @returns {boolean} whether there are other figures than before
	 */
	take(text, nowNs) {
		const { families, unreadable } = readExposition(text), byName = new Map(families.map((family) => [family.name, family])),
			one = (/** @type {string} */ name) => finite(byName.get(name)?.samples[0].value) ?? null;
		const n = one(SNAPSHOTS), ns = nowNs - 1e9 * (one(AGE) ?? 0);
		this.unreadable = unreadable;
		if (n === null || n === this.snapshots)
			return false;
		const anew = n < this.snapshots || this.snapshots < 0;
		if (n < this.snapshots)
			this.histories.clear();
		this.spanNs = anew ? 0 : Math.max(ns - this.ns, 1e6);
		this.intervalNs = anew ? this.intervalNs : this.spanNs / (n - this.snapshots);
		this.families = families;
		this.byName = byName;
		this.ns = ns;
		this.snapshots = n;
		this.reckon(anew);
		return true;
	}

	/** @param {boolean} anew the agent began again: counters did, too */
	reckon(anew) {
		const now = /** @type {Map<string, number>} */ (new Map()), seconds = this.spanNs / 1e9;
		this.rates.clear();
		for (const { type, samples } of this.families) {
			for (const { key, value } of type === 'counter' ? samples : []) {
				const last = anew ? undefined : this.before.get(key);
				now.set(key, value);
				if (last !== undefined && value >= last && seconds > 0)
					this.rates.set(key, (value - last) / seconds);
			}
		}
		this.before = now;
		this.remember();
	}

	/** Only what somebody draws: its key was asked for. */
	remember() {
		const there = new Set();
		for (const { type, samples } of this.families) {
			for (const sample of samples) {
				if (!this.wanted.has(sample.key))
					continue;
				there.add(sample.key);
				let history = this.histories.get(sample.key);
				if (!history && this.histories.size < MOST_KEPT)
					this.histories.set(sample.key, history = new History(1));
				history?.add(this.ns, [this.numberOf(type, sample)]);
			}
		}
		for (const key of this.histories.keys()) {
			if (!there.has(key))
				this.histories.delete(key);
		}
	}

	/**
	 * What is shown of it: of a counter its rate.
	 * @param {string} type @param {Sample} sample @returns {number | null} null: not known
	 */
	numberOf(type, sample) {
		return type === 'counter' ? this.rates.get(sample.key) ?? null : finite(sample.value);
	}

	/** @param {string} key that is drawn from now on @returns {import('../live/history.js').Point[]} */
	pointsOf(key) {
		if (this.wanted.size < 8 * MOST_KEPT)
			this.wanted.add(key);
		return this.histories.get(key)?.points(0) ?? [];
	}

	/** @param {string} name @returns {number | null} of a family without labels; of a counter its rate */
	one(name) {
		const family = this.byName.get(name);
		return family ? this.numberOf(family.type, family.samples[0]) : null;
	}
}
