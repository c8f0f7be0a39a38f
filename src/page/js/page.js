// SPDX-License-Identifier: MIT
// A recording on the page: from its index at once, and from its blocks as they are wanted.

import { button, element, fill, showDefinitions } from './elements.js';
import { Flame } from './flame.js';
import { longestOf } from './find.js';
import { KEYS_HELP, listen } from './input.js';
import { Panel } from './panel.js';
import { reportsSection } from './reports.js';
import { Search } from './search.js';
import { Store, textOf } from './store.js';
import { Sums } from './sums.js';
import { label } from './text.js';
import { Timeline } from './timeline.js';
import { bytesText, countText, durationText, finite, list, readTime } from './units.js';
import { box, causeWords, whySection } from './why.js';

/** @param {any} run @param {string} madeBy @returns {string[]} */
export function factsOf(run, madeBy) {
	/** @type {Map<string, number>} */
	const kinds = new Map();
	for (const gpu of list(run.gpus)) {
		const kind = `${gpu?.name ?? 'GPU'}${gpu?.memory_bytes ? ', ' + bytesText(gpu.memory_bytes) : ''}`;
		kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
	}
	const begin = /^\d{1,20}$/.test(run.begin_ns_unix) ? new Date(Number(BigInt(run.begin_ns_unix) / 1000000n)) : null;
	return [
		run.command, run.hostname && `on ${run.hostname}`, begin && !Number.isNaN(begin.getTime()) && begin.getTime() ?
			begin.toISOString().replace('T', ' ').slice(0, 19) + ' UTC' : null,
		finite(run.duration_ns) === null ? null : durationText(run.duration_ns), run.cpus ? `${countText(run.cpus)} CPUs` : null,
		...[...kinds].map(([kind, n]) => n > 1 ? `${n} × ${kind}` : kind),
		run.driver && `driver ${run.driver}`, run.kernel && `Linux ${run.kernel}`, run.gpu_times === false ? 'GPU times were not recorded' :
			null, madeBy,
	].filter(Boolean).map(label);
}

export function keysDialog() {
	return element('dialog', { 'aria-label': 'keys' }, element('h3', {}, 'Keys'),
		element('dl', {}, ...KEYS_HELP.flatMap(([key, does]) => [element('dt', {}, key), element('dd', {}, does)])), element('form',
			{ method: 'dialog' }, element('button', {}, 'close')));
}

/** @param {[string, string][]} parts their ids and what they are called */
export function navOf(parts) {
	return element('nav', { 'aria-label': 'parts of the page' }, ...parts.map(([id, text]) => element('a', { href: '#' + id }, text)));
}

export class Page {
	/** @param {any} index @param {string} [of] which of two recordings: A or B */
	constructor(index, of = '') {
		this.of = of;
		this.store = new Store(index, of === 'B' ? (id) => textOf('other-' + id) : textOf);
		this.index = this.store.index;
		this.missed = box(list(this.index.missed).map(String), 'missed' + of, 'What was missed' + (of && ` in ${of}`));
		this.wrong = box([], 'wrong' + of, 'What is wrong with this page' + (of && `: ${of}`));
		/** @type {Timeline} */
		this.timeline = new Timeline(this.store, (spot) => this.panel.show(spot), of ? `Timeline of ${of}` : 'Timeline');
		/** @type {Search} */
		this.search = new Search(this.timeline, of);
		/** @type {Panel} */
		this.panel = new Panel(this.timeline, (name) => this.search.choose(name), of);
		this.sums = new Sums(this.store, (name, kind) => this.goToName(name, (track) => track.kind === kind));
		this.flame = new Flame(this.store);
		this.store.onTrouble = () => this.showTroubles();
		this.range = element('input', { type: 'text', class: 'range', placeholder: of ? `span of ${of}: 10ms 1.5s` : 'span: 10ms 1.5s',
			'aria-label': `span${of && ' of ' + of}, from and to, such as 10ms 1.5s`, onchange: () => this.readSpan() });
		/** What a new span is told to: of two recordings both. */
		/** @type {(begin: number, end: number) => void} */
		this.onSpan = (begin, end) => void this.setSpan(begin, end);
	}

	show() {
		const { run = {}, title = 'recording' } = this.index, keys = keysDialog();
		fill(/** @type {HTMLElement} */ (document.getElementById('page')),
			element('header', {}, element('h1', {}, label(title)), navOf([['why', 'Why'], ['timeline', 'Timeline'], ['span', 'Sums'],
				['reports', 'Reports'], ['flame', 'Flame graph']]),
				element('p', { class: 'facts' }, factsOf(run ?? {}, this.index.made_by).join(' · '))),
			element('main', {}, this.missed, this.wrong, this.whySection(),
				element('section', { id: 'timeline', 'aria-labelledby': 'timeline-head' }, element('h2', { id: 'timeline-head' },
					'Timeline'), this.toolbar(keys, this.search.element), this.look()),
				this.sums.section, this.reportsSection(), this.flame.section, keys));
		showDefinitions();
		this.begin(() => this.search.input.focus());
		this.setSpan(0, Infinity);
	}

	/**
	 * What is on the page answers from now on.
	 * @param {() => void} search what is done to search
	 */
	begin(search) {
		this.showTroubles();
		listen(this.timeline, { span: (begin, end) => this.onSpan(begin, end), clear: () => this.clear(), search,
			step: (by) => this.search.step(by) });
		this.timeline.view.all();
		this.timeline.redraw();
		this.timeline.describe();
	}

	look() {
		return element('div', { class: 'look' }, this.timeline.scroller, this.panel.element);
	}

	whySection() {
		return whySection(this.index, (cause) => this.goToCause(cause));
	}

	reportsSection() {
		return reportsSection(this.index, (ns) => this.goToTime(ns));
	}

	/** Where its timeline is. */
	scrollHere() {
		(this.timeline.scroller.closest('.side') ?? document.getElementById('timeline'))?.scrollIntoView({ block: 'start' });
	}

	/** @param {HTMLDialogElement} keys @param {(Node | null)[]} first */
	toolbar(keys, ...first) {
		const { view } = this.timeline;
		return element('div', { class: 'bar', role: 'toolbar', 'aria-label': 'timeline' }, ...first,
			element('span', { class: 'steps' }, button('+', () => view.zoom(0.5), { 'aria-label': 'zoom in' }), button('−',
				() => view.zoom(2), { 'aria-label': 'zoom out' }), button('all', () => view.all(), { 'aria-label': 'the whole trace' })),
			element('span', { class: 'steps' }, this.range, button('span = view', () => this.onSpan(Math.max(0, view.begin),
				Math.min(view.limit, view.end))), button('no span', () => this.onSpan(0, Infinity))),
			button('?', () => keys.showModal(), { 'aria-label': 'keys' }));
	}

	readSpan() {
		const times = this.range.value.split(/\s*(?:,|\.\.\.?|-|to|\s)\s*(?=[\d.])/).map(readTime);
		if (times.length === 2 && times[0] !== null && times[1] !== null && times[0] < times[1])
			this.onSpan(times[0], times[1]);
		else if (!this.range.value.trim())
			this.onSpan(0, Infinity);
		this.range.setAttribute('aria-invalid', String(Boolean(this.range.value.trim()) && (times.length !== 2 ||
			times.some((time) => time === null))));
	}

	/** @param {number} begin @param {number} end Infinity: the whole trace */
	setSpan(begin, end) {
		this.timeline.span = end === Infinity ? null : { begin: Math.round(begin), end: Math.round(end) };
		this.timeline.redraw();
		this.flame.setSpan(Math.round(begin), end === Infinity ? end : Math.round(end));
		return this.sums.show(Math.round(begin), end === Infinity ? end : Math.round(end));
	}

	clear() {
		if (this.timeline.selected)
			this.timeline.select(null);
		else if (this.timeline.span)
			this.onSpan(0, Infinity);
		this.search.clear();
	}

	showTroubles() {
		const { damaged, troubles } = this.store;
		const sentences = this.store.index.version === undefined ? ['The index of this page is damaged or cut: nothing else can be shown.',
			...troubles] : this.store.index.version > 1 ? ['This page is of a newer version: some of it may be missing.', ...troubles] :
			troubles;
		this.wrong.hidden = !sentences.length;
		fill(/** @type {Element} */ (this.wrong.lastElementChild), ...sentences.map((text) => element('li', {}, text)), damaged > 1 ?
			element('li', {}, `${countText(damaged)} parts cannot be read; all else is shown.`) : null);
	}

	/** @param {string} name @param {(track: import('./store.js').Track) => boolean} of */
	async goToName(name, of) {
		const number = this.store.names.indexOf(name), spot = number < 0 ? null : await longestOf(this.store, number, of);
		if (spot)
			this.goTo(spot);
		return spot;
	}

	/** @param {import('./store.js').Spot} spot */
	goTo(spot) {
		this.scrollHere();
		this.timeline.select(spot, true);
		this.timeline.canvas.focus({ preventScroll: true });
	}

	/**
	 * To the longest occurrence of a cause: of its process where it has one.
	 * @param {any} cause as index.why has it
	 */
	async goToCause(cause) {
		const pids = [cause.of_pid, cause.pid], words = [causeWords(this.index, cause.cause).text, cause.cause];
		const names = words.map((text) => this.store.names.findIndex((name) => name === text ||
			label(name) === text)).filter((name) => name >= 0);
		const ofProcess = (/** @type {import('./store.js').Track} */ track) => pids.includes(this.index.processes?.[track.process]?.pid);
		for (const fits of [ofProcess, () => true]) {
			for (const name of names) {
				const spot = await longestOf(this.store, name, (track) => track.kind === 'account' && fits(track));
				if (spot)
					return this.goTo(spot);
			}
		}
		const track = this.store.tracks.find((its) => its.tid === cause.tid && its.tid);
		this.scrollHere();
		if (track)
			this.timeline.revealTrack(track);
	}

	/** @param {number} ns */
	goToTime(ns) {
		const length = Math.min(this.timeline.view.length, Math.max(1e5, this.store.end / 1000));
		this.scrollHere();
		this.timeline.view.show(ns - length / 2, ns + length / 2);
	}
}
