// SPDX-License-Identifier: MIT
// What is around the figures of a live page: title, facts, pause, keys, what was missed, and since when nothing came.

import { button, element, fill, showDefinitions } from '../js/elements.js';
import { label } from '../js/text.js';

const LEAST_PATIENCE_MS = 3000, PATIENT_INTERVALS = 3;
const FRAME_KEYS = [['p, blank', 'pauses the page; counting goes on'], ['/', 'to the filter of processes'], ['?', 'keys']];

/**
 * How long figures may stay away before that is said.
 * @param {number} intervalNs of the figures @returns {number} ms
 */
export function patienceMs(intervalNs) {
	return Math.max(LEAST_PATIENCE_MS, PATIENT_INTERVALS * intervalNs / 1e6);
}

/**
 * Escape: whether it closed something. Silence: of the figures, what they are made of, and what else is to be said.
 * @typedef {{show: () => void, escape: () => boolean, filter: () => HTMLElement | null,
 *   silence: () => {ms: number, intervalNs: number, more: string}}} Framed
 */

export class Frame {
	/** @param {string} name @param {string[][]} keys besides those of all @param {Framed} of */
	constructor(name, keys, of) {
		this.name = name;
		this.of = of;
		this.paused = false;
		this.missed = element('section', { id: 'missed', class: 'box', hidden: true, 'aria-label': 'What was missed' },
			element('h2', {}, 'What was missed'), element('ul'));
		this.silent = element('p', { class: 'box', role: 'status', hidden: true });
		this.facts = element('p', { class: 'facts' }, 'waiting for the first figures');
		this.title = element('h1', {}, name);
		this.pause = button('pause (p)', () => this.setPaused(!this.paused), { 'aria-pressed': 'false' });
		this.keys = element('dialog', { 'aria-label': 'keys' }, element('h3', {}, 'Keys'),
			element('dl', {}, ...[...FRAME_KEYS.slice(0, 2), ...keys, ...FRAME_KEYS.slice(2)].flatMap(([key, does]) =>
				[element('dt', {}, key), element('dd', {}, does)])),
			element('form', { method: 'dialog' }, element('button', {}, 'close')));
	}

	/** @param {HTMLElement[]} sections */
	start(...sections) {
		fill(/** @type {HTMLElement} */ (document.getElementById('page')),
			element('header', {}, this.title, element('div', { class: 'steps' }, this.pause,
				button('?', () => this.keys.showModal(), { 'aria-label': 'keys' })), this.facts),
			element('main', { class: 'live' }, this.silent, this.missed, ...sections, this.keys));
		showDefinitions();
		document.addEventListener('keydown', (event) => this.key(event));
		for (const [of, what] of /** @type {[EventTarget, string][]} */ ([[document, 'visibilitychange'], [window, 'resize'],
			[matchMedia('(prefers-color-scheme: dark)'), 'change']]))
			of.addEventListener(what, () => this.of.show());
		setInterval(() => this.tellSilence(), 1000);
	}

	/** @param {KeyboardEvent} event */
	key(event) {
		const at = event.target instanceof Element ? event.target : null, typing = at?.matches('input, select, textarea');
		if (event.ctrlKey || event.altKey || event.metaKey || this.keys.open)
			return;
		if (event.key === 'Escape' && typing)
			/** @type {HTMLElement} */ (at).blur();
		else if (event.key === 'Escape') {
			if (!this.of.escape())
				return;
		} else if (typing || (event.key === ' ' && at?.closest('button, a, summary, [tabindex]')))
			return;
		else if (event.key === 'p' || event.key === ' ')
			this.setPaused(!this.paused);
		else if (event.key === '/')
			this.of.filter()?.focus();
		else if (event.key === '?')
			this.keys.showModal();
		else
			return;
		event.preventDefault();
	}

	/** @param {boolean} paused */
	setPaused(paused) {
		this.paused = paused;
		this.pause.setAttribute('aria-pressed', String(paused));
		this.pause.textContent = paused ? 'go on (p)' : 'pause (p)';
		this.tellSilence();
		if (!paused)
			this.of.show();
	}

	/** Since when there are no figures, where that is longer than it should be. */
	tellSilence() {
		const { ms, intervalNs, more } = this.of.silence(), silent = ms > patienceMs(intervalNs);
		const text = [silent ? `No figures since ${Math.round(ms / 1000)} s.` : '',
			this.paused ? 'Paused: figures below stand still, counting goes on.' : '', more].filter(Boolean).join(' ');
		this.silent.hidden = !text;
		if (this.silent.textContent !== text)
			this.silent.textContent = text;
		document.documentElement.classList.toggle('stale', silent);
	}

	/** @param {string} of @param {string[]} facts @param {string[]} missed sentences; those that are empty are left out */
	tell(of, facts, missed) {
		const list = /** @type {Element} */ (this.missed.lastElementChild);
		this.title.textContent = document.title = label(`${this.name}: ${of}`);
		this.facts.textContent = facts.filter(Boolean).join(' · ');
		this.missed.hidden = !missed.length;
		if (list.children.length !== missed.length || missed.some((text, i) => list.children[i].textContent !== label(text)))
			fill(list, ...missed.map((text) => element('li', {}, label(text))));
	}
}
