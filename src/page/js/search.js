// SPDX-License-Identifier: MIT
// The field that searches for names: a list of those that match; the one that is chosen is stepped through.

import { button, element, fill } from './elements.js';
import { longestOf, namesWith, stepTo, sumsOfNames } from './find.js';
import { countText, durationText } from './units.js';

/** @typedef {import('./timeline.js').Timeline} Timeline */

const SHOWN = 30;

export class Search {
	/** @param {Timeline} timeline @param {string} [of] which of two recordings */
	constructor(timeline, of = '') {
		this.timeline = timeline;
		this.store = timeline.store;
		this.name = -1;
		/** @type {Search | null} of the other recording, where the name that is chosen here is marked as well */
		this.beside = null;
		/** @type {Map<number, import('./find.js').NameSum> | undefined} */
		this.sums = undefined;
		/** @type {import('./find.js').NameSum[]} */
		this.names = [];
		this.input = element('input', { type: 'search', placeholder: 'search names (/)',
			'aria-label': 'search names' + (of && ` of ${of}`), 'aria-controls': 'names' + of, autocomplete: 'off',
			oninput: () => this.list(), onfocus: () => this.list(), onkeydown: (event) => this.onKey(event) });
		this.listed = element('ul', { id: 'names' + of, class: 'names', hidden: true, 'aria-label': 'names that match' + (of && ` in ${of}`) });
		this.status = element('span', { role: 'status', class: 'count' });
		this.steps = element('span', { class: 'steps' }, button('‹', () => this.step(-1), { 'aria-label': 'previous occurrence' }),
			button('›', () => this.step(1), { 'aria-label': 'next occurrence' }),
			button('longest', () => this.longest()));
		this.element = element('div', { class: 'search', role: 'search', 'aria-label': of || null }, this.input, this.listed, this.steps, this.status);
		this.element.addEventListener('focusout', (event) => {
			if (!this.element.contains(/** @type {Node | null} */ (event.relatedTarget)))
				this.listed.hidden = true;
		});
	}

	list() {
		this.sums ??= sumsOfNames(this.store);
		this.names = namesWith(this.store, this.sums, this.input.value);
		this.listed.hidden = !this.input.value.trim();
		fill(this.listed, ...this.names.slice(0, SHOWN).map((sum) => element('li', {}, button(this.store.label(sum.name),
			() => this.choose(sum.name)),
			element('span', { class: 'count' }, sum.n ? `${countText(sum.n)}, ${durationText(sum.ns)}, longest ${durationText(sum.max)}` :
				'within other calls'))),
			this.names.length ? null : element('li', { class: 'note' }, 'no name has this'));
		if (!this.input.value)
			this.clear();
	}

	/** @param {KeyboardEvent} event */
	onKey(event) {
		if (event.key === 'Enter' && this.names.length)
			this.choose(this.names[0].name);
		else if (event.key === 'Escape')
			this.clear();
		else if (event.key === 'ArrowDown')
			this.listed.querySelector('button')?.focus();
		else
			return;
		event.preventDefault();
	}

	/** @param {number} name */
	async choose(name) {
		this.name = this.timeline.found = name;
		this.listed.hidden = true;
		this.beside?.mark(this.store.names[name]);
		this.timeline.canvas.focus({ preventScroll: true });
		await this.longest();
	}

	/** @param {string} text */
	mark(text) {
		this.clear();
		this.name = this.timeline.found = this.store.names.indexOf(text);
	}

	clear() {
		this.name = this.timeline.found = -1;
		this.listed.hidden = true;
		this.status.textContent = '';
		this.timeline.redraw();
	}

	/** @param {number} by */
	async step(by) {
		if (this.name < 0)
			return;
		const { selected, view } = this.timeline, from = selected && selected.rows.name[selected.row] === this.name ?
			selected.rows.begin[selected.row] : (view.begin + view.end) / 2;
		this.arrive(await stepTo(this.store, this.name, from, by), by > 0 ? 'none after it' : 'none before it');
	}

	async longest() {
		if (this.name >= 0)
			this.arrive(await longestOf(this.store, this.name), 'it has no row');
	}

	/** @param {import('./store.js').Spot | null} spot @param {string} otherwise */
	arrive(spot, otherwise) {
		this.status.textContent = spot ? `${this.store.label(this.name)}: ${durationText(spot.rows.dur[spot.row])}` :
			`${this.store.label(this.name)}: ${otherwise}`;
		if (spot)
			this.timeline.select(spot, true);
	}
}
