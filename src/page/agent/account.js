// SPDX-License-Identifier: MIT
// The account of the last ten seconds, and what it is made of: the agent makes one while somebody asks for it.

import { objectOf } from '../live/figures.js';
import { LiveAccount } from '../live/account.js';
import { Poll } from './source.js';

/**
 * Server-sent events in one text.
 * @param {string} text @returns {{id: string, of: Map<string, string>}} the last number; of each name its data
 */
export function eventsOf(text) {
	const of = new Map();
	let last = '';
	for (const event of text.split('\n\n')) {
		const fields = new Map(event.split('\n').filter((line) => line.includes(': ')).map((line) => /** @type {[string, string]} */ ([
			line.slice(0, line.indexOf(': ')), line.slice(line.indexOf(': ') + 2)])));
		last = fields.get('id') ?? last;
		if (fields.has('data'))
			of.set(fields.get('event') ?? 'message', fields.get('data'));
	}
	return { id: last, of };
}

/** @param {string} text @returns {any} */
function readObject(text) {
	try {
		return objectOf(JSON.parse(text));
	} catch {
		return {};
	}
}

export class AgentAccount {
	/** @param {() => void} onNews */
	constructor(onNews) {
		this.shown = new LiveAccount();
		this.of = /** @type {any} */ ({}); // "account": none, calls, whole; "processes"
		this.id = '';
		this.cameMs = 0;
		this.onNews = onNews;
	}

	/** A header of our own: a page of another site may send none. */
	start() {
		this.poll = new Poll('/live', (text, nowMs) => this.take(text, nowMs), () => 0, () => ({ Accept: 'text/event-stream', 'Cuscope-Look': '1',
			...(this.id ? { 'Last-Event-ID': this.id } : {}) }));
	}

	/** @param {string} text @param {number} nowMs */
	take(text, nowMs) {
		const { id, of } = eventsOf(text), why = of.get('why'), figures = of.get('message');
		if (figures !== undefined)
			this.of = readObject(figures);
		if (why !== undefined && this.shown.take(why))
			this.cameMs = nowMs;
		else if (why === undefined && id !== this.id)
			this.shown.it = null;
		this.id = id;
		this.onNews();
	}

	show() {
		const until = Number(this.shown.it?.until_ns) || 0;
		this.shown.show(until + 1e6 * (performance.now() - this.cameMs));
	}
}
