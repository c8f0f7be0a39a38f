// SPDX-License-Identifier: MIT
// The account of the last ten seconds, where top makes one: what `why` says, drawn as on the page of a recording.

import { element, fill } from '../js/elements.js';
import { cut } from '../js/text.js';
import { durationText, finite, list } from '../js/units.js';
import { whyParts } from '../js/why.js';
import { objectOf } from './figures.js';

const MOST_LEFT_OUT = 20;

/** @returns {any} what causes are called, as the page has it */
function causesOfPage() {
	try {
		return JSON.parse(document.getElementById('causes')?.textContent ?? '{}');
	} catch {
		return {};
	}
}

/**
 * What an event says; null: nothing that can be read.
 * @param {string} text @returns {any}
 */
export function accountOf(text) {
	try {
		const it = JSON.parse(text);
		return it && typeof it === 'object' && typeof it.state === 'string' ? it : null;
	} catch {
		return null;
	}
}

/**
 * Which ten seconds they are.
 * @param {any} it @param {number | null} nowNs since counting began @returns {string}
 */
export function timeOf(it, nowNs) {
	if (it.state !== 'answer')
		return String(it.sentence ?? '');
	const from = finite(it.from_ns) ?? 0, until = finite(it.until_ns) ?? 0, ago = nowNs === null ? 0 : Math.max(0, nowNs - until);
	return `Of ${durationText(until - from)}, until ${Math.round(ago / 1e9)} s ago.`;
}

export class LiveAccount {
	constructor() {
		this.it = /** @type {any} */ (null);
		this.drawn = /** @type {any} */ (null);
		this.causes = /** @type {any} */ (null);
		this.time = element('p', { class: 'note', role: 'status' });
		this.parts = element('div');
		this.element = element('section', { id: 'why', 'aria-labelledby': 'why-head', hidden: true },
			element('h2', { id: 'why-head' }, 'Where the time goes'), this.time, this.parts);
	}

	/** @param {string} text an event's data @returns {boolean} whether it can be read; else what was there stays */
	take(text) {
		const it = accountOf(text);
		this.it = it ?? this.it;
		return Boolean(it);
	}

	/** @param {number | null} nowNs since counting began */
	show(nowNs) {
		this.element.hidden = !this.it;
		if (!this.it)
			return;
		const time = cut(timeOf(this.it, nowNs), 500);
		if (this.time.textContent !== time)
			this.time.textContent = time;
		if (this.drawn === this.it)
			return;
		this.drawn = this.it;
		this.causes ??= causesOfPage();
		const open = this.parts.querySelector(':scope > details:last-child')?.hasAttribute('open'), leftOut = list(this.it.left_out);
		fill(this.parts, ...(this.it.state === 'answer' ? whyParts({ causes: this.causes, why_text: this.it.text }, objectOf(this.it.why),
			null) : []), leftOut.length ? element('p', { class: 'note' }, 'Left out: ' + leftOut.slice(0, MOST_LEFT_OUT)
			.map((text) => cut(String(text), 300)).join('; ') + '.') : null);
		if (open)
			this.parts.querySelector(':scope > details:last-of-type')?.setAttribute('open', '');
	}
}
