// SPDX-License-Identifier: MIT
// Elements of the page. All text goes in as text, through shown().

import { shown } from './text.js';

/**
 * Functions are listeners ("onclick"); "text" is its text, "lines" text whose line ends stay, "about" a definition that shows on hover and focus.
 * @typedef {{[name: string]: string | number | boolean | null | undefined | ((event: any) => void)}} Attributes
 */

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag @param {Attributes} [attributes] @param {(Node | string | null | undefined)[]} children @returns {HTMLElementTagNameMap[K]}
 */
export function element(tag, attributes = {}, ...children) {
	const made = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes)) {
		if (value === null || value === undefined || value === false)
			continue;
		if (typeof value === 'function')
			made.addEventListener(name.slice(2), value);
		else if (name === 'text')
			made.textContent = shown(value);
		else if (name === 'lines')
			made.textContent = shown(value, true);
		else if (name === 'about')
			addDefinition(made, String(value));
		else
			made.setAttribute(name, value === true ? '' : String(value));
	}
	for (const child of children) {
		if (child !== null && child !== undefined)
			made.append(typeof child === 'string' ? shown(child) : child);
	}
	return made;
}

/** @param {HTMLElement} of @param {string} text */
function addDefinition(of, text) {
	of.dataset.about = shown(text);
	if (!/^(BUTTON|A|INPUT|SELECT)$/.test(of.tagName) && !of.hasAttribute('tabindex'))
		of.tabIndex = 0;
	of.classList.add('about');
}

/** @param {Element} of @param {(Node | string | null | undefined)[]} children */
export function fill(of, ...children) {
	of.replaceChildren(...children.filter((child) => child !== null && child !== undefined)
		.map((child) => typeof child === 'string' ? shown(child) : /** @type {Node} */ (child)));
}

/** @param {string} text @param {() => void} act @param {Attributes} [more] */
export function button(text, act, more = {}) {
	return element('button', { type: 'button', onclick: act, ...more }, text);
}

/**
 * To somewhere in the timeline; unlike a button it wraps as the text around it.
 * @param {string} text @param {() => void} act @param {Attributes} [more]
 */
export function link(text, act, more = {}) {
	const go = (/** @type {MouseEvent} */ event) => {
		event.preventDefault();
		act();
	};
	return element('a', { href: '#timeline', class: 'link', onclick: go, ...more }, text);
}

/** Definitions beside what has the pointer or the focus. */
export function showDefinitions() {
	const tip = element('div', { class: 'tip', role: 'tooltip', id: 'tip', hidden: true });
	/** @type {HTMLElement | null} */
	let of = null;
	document.body.append(tip);
	const show = (/** @type {Event} */ event) => {
		const target = event.target instanceof Element ? /** @type {HTMLElement | null} */ (event.target.closest('[data-about]')) : null;
		if (target === of)
			return;
		of?.removeAttribute('aria-describedby');
		of = target;
		tip.hidden = !target;
		if (target) {
			tip.textContent = target.dataset.about ?? '';
			target.setAttribute('aria-describedby', 'tip');
			placeBeside(tip, target.getBoundingClientRect());
		}
	};
	document.addEventListener('focusin', show);
	document.addEventListener('pointerover', show);
	document.addEventListener('keydown', (event) => {
		if (event.key === 'Escape')
			tip.hidden = true;
	});
}

/**
 * Under a place, or over it where there is no room.
 * @param {HTMLElement} tip @param {{left: number, top: number, bottom: number}} of
 */
export function placeBeside(tip, of) {
	const { offsetWidth, offsetHeight } = tip, room = document.documentElement;
	tip.style.left = Math.max(4, Math.min(of.left, room.clientWidth - offsetWidth - 4)) + 'px';
	tip.style.top = (of.bottom + 6 + offsetHeight < room.clientHeight ? of.bottom + 6 : Math.max(4, of.top - offsetHeight - 6)) + 'px';
}

/** @param {string} text @returns {Promise<boolean>} whether the clipboard has it */
export async function copyText(text) {
	try {
		await navigator.clipboard.writeText(text);
		return true;
	} catch {
		const box = element('textarea', { 'aria-hidden': 'true', class: 'off' });
		box.value = text;
		document.body.append(box);
		box.select();
		const done = document.execCommand('copy');
		box.remove();
		return done;
	}
}
