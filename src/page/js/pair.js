// SPDX-License-Identifier: MIT
// Two recordings beside each other, A above B: what differs, timelines that move as one, and tables of the difference or of either.

import { colorOf, inkOn } from './colors.js';
import { button, element, fill, showDefinitions } from './elements.js';
import { moveAlone } from './input.js';
import { factsOf, keysDialog, navOf, Page } from './page.js';
import { tableOf } from './reports.js';
import { Table } from './tables.js';
import { label } from './text.js';
import { cellText, durationText, finite, list } from './units.js';
import { causeWords } from './why.js';

/** @typedef {import('./tables.js').TableOf} TableOf */

const UNITS = /** @type {{[unit: string]: string}} */ ({ ns: 'duration', bytes: 'bytes' });
const PAIR_ABOUT = {
	shift: 'Drag it, or press the left and right keys: B moves against A. Alt and a drag in a timeline, and the keys [ and ], do the same.',
	bars: 'What a step of A and one of B consist of, of one scale; a second of each where steps were not found in both.',
};

/**
 * Changes with their signs, and numbers of rows that have a unit of their own with that.
 * @param {TableOf} of @returns {TableOf}
 */
function asChanges(of) {
	const unit = of.columns.findIndex((column) => column.name === 'Unit');
	return { ...of, textOf: (row, i) => {
		const { type, name } = of.columns[i], own = type === 'number' && Object.hasOwn(UNITS, String(row[unit])) ? UNITS[String(row[unit])] : type;
		return (/Change/.test(name) && Number(row[i]) > 0 ? '+' : '') + cellText(own, row[i], name);
	} };
}

/**
 * What a step is made of, as two bars, causes in one order.
 * @param {any} index @param {TableOf} of the table of steps: A, B, two of change, cause, what
 */
function stepBars(index, of) {
	const parts = of.rows.slice(1), ns = (/** @type {unknown[]} */ row, /** @type {number} */ side) => Math.max(0, finite(row[side]) ?? 0);
	const sums = [0, 1].map((side) => parts.reduce((sum, row) => sum + ns(row, side), 0)), longest = Math.max(...sums, 1);
	return element('div', { class: 'pair-bars' }, ...sums.flatMap((sum, side) => {
		const bar = element('div', { class: 'stack', role: 'img', 'aria-label': `${'AB'[side]}: ` + parts.filter((row) => ns(row, side) > 0)
			.map((row) => `${label(row[5])} ${durationText(row[side])}`).join(', ') });
		bar.style.width = sum / longest * 100 + '%';
		for (const row of parts.filter((its) => ns(its, side) > 0)) {
			const cause = causeWords(index, String(row[4])).text, color = row[4] === 'rest' ? '#999999' : colorOf('account', cause);
			const piece = element('span', { title: `${label(row[5])}: ${durationText(row[side])}` }, ns(row, side) > longest / 12 ? cause : '');
			piece.style.flexGrow = String(ns(row, side));
			piece.style.background = color;
			piece.style.color = inkOn(color);
			bar.append(piece);
		}
		return [element('span', { about: PAIR_ABOUT.bars }, `${'AB'[side]}: ${durationText(sum)}`), element('div', {}, bar)];
	}));
}

export class Pair {
	/** @param {any} a @param {any} b their indexes @param {any} differs */
	constructor(a, b, differs) {
		this.a = new Page(a, 'A');
		this.b = new Page(b, 'B');
		this.sides = [this.a, this.b];
		this.differs = differs && typeof differs === 'object' ? differs : {};
		this.active = this.a;
		this.command = String(this.differs.command ?? 'cuscope diff A B');
		this.tables = list(this.differs.tables).map((table) => ({ key: String(table?.key), of: asChanges(tableOf(table, '',
			`${this.command} ${table?.key === 'verdict' ? 'why' : table?.key}`)) }));
		const first = list(this.differs.first_steps_ns).map(finite);
		this.atSteps = first.length === 2 && first[0] !== null && first[1] !== null ? first[1] - first[0] : null;
		/** @type {HTMLElement[][]} */
		this.made = [];
		this.place = element('div', { class: 'sides' });
		this.moved = element('span', { class: 'count', role: 'status' });
		this.handle = element('span', { class: 'handle', role: 'slider', tabindex: 0, 'aria-label': 'how far B is moved', about: PAIR_ABOUT.shift },
			'⟷ move B');
		this.aligned = [button('begins', () => this.align(0), { 'aria-label': 'align the begins' }), button('first steps',
			() => this.align(this.atSteps ?? 0), { 'aria-label': 'align the first steps', disabled: this.atSteps === null })];
		this.choice = ['Difference', ...this.sides.map((page) => this.nameOf(page))].map((text, i) => button(text, () => this.choose(i)));
	}

	/** @param {Page} page */
	nameOf(page) {
		return `${page.of}: ${label(page.index.title ?? 'recording')}`;
	}

	show() {
		const [a, b] = this.sides, keys = keysDialog();
		b.timeline.view.join(a.timeline.view);
		for (const [page, other] of [[a, b], [b, a]]) {
			page.panel.beside = other.panel;
			page.search.beside = other.search;
			page.onSpan = (begin, end) => this.setSpan(page, begin, end);
			page.timeline.view.onMove = () => this.tellMoved();
		}
		fill(/** @type {HTMLElement} */ (document.getElementById('page')),
			element('header', {}, element('h1', {}, `${this.nameOf(a)}, ${this.nameOf(b)}`), navOf([['changes', 'What differs'],
				['timeline', 'Timelines'], ['tables', 'Tables']]), ...this.sides.map((page) => element('p', { class: 'facts' },
				`${page.of}: ` + factsOf(page.index.run ?? {}, page.index.made_by).join(' · ')))),
			element('main', {}, ...this.sides.flatMap((page) => [page.missed, page.wrong]), this.changes(),
				element('section', { id: 'timeline', 'aria-labelledby': 'timeline-head' }, element('h2', { id: 'timeline-head' }, 'Timelines'),
					a.toolbar(keys, this.shiftBar()), ...this.sides.map((page) => this.side(page))),
				element('section', { id: 'tables', 'aria-labelledby': 'tables-head' }, element('h2', { id: 'tables-head' }, 'Tables'),
					element('div', { class: 'bar', role: 'group', 'aria-label': 'tables of' }, ...this.choice), this.place), keys));
		showDefinitions();
		this.listenToHandle();
		for (const page of this.sides)
			page.begin(() => this.active.search.input.focus());
		this.align(this.atSteps ?? 0);
		a.timeline.view.all();
		this.setSpan(a, 0, Infinity);
		this.choose(0);
	}

	changes() {
		const verdict = this.tables.find(({ key }) => key === 'verdict'), steps = this.tables.find(({ key }) => key === 'why');
		return element('section', { id: 'changes', 'aria-labelledby': 'changes-head' }, element('h2', { id: 'changes-head' }, 'What differs'),
			...(verdict?.of.rows ?? [[this.tables.length ? 'Neither recording has an account of its time, so what a step costs is not known.' :
				'What differs is damaged or cut.']]).map((row) => element('p', { class: 'verdict' }, String(row[0] ?? ''))),
			steps?.of.rows.length ? stepBars(this.a.index, steps.of) : null, steps?.of.rows.length ? new Table(steps.of).element : null);
	}

	shiftBar() {
		return element('span', { class: 'shift' }, element('span', {}, 'aligned at'), ...this.aligned, this.handle, this.moved);
	}

	/** @param {Page} page */
	side(page) {
		const { look, search } = { look: page.look(), search: page.search.element };
		return element('div', { class: 'side', onfocusin: () => this.active = page, onpointerdown: () => this.active = page },
			element('div', { class: 'bar' }, element('h3', {}, this.nameOf(page)), search), look);
	}

	listenToHandle() {
		const { handle } = this, { timeline } = this.b;
		/** @type {number | null} */
		let held = null;
		handle.addEventListener('pointerdown', (event) => {
			held = event.clientX;
			handle.setPointerCapture(event.pointerId);
		});
		handle.addEventListener('pointermove', (event) => {
			if (held !== null)
				moveAlone(timeline, event.clientX - held);
			held = held === null ? null : event.clientX;
		});
		for (const end of ['pointerup', 'pointercancel'])
			handle.addEventListener(end, () => held = null);
		handle.addEventListener('keydown', (event) => {
			const pixels = { ArrowLeft: -4, ArrowDown: -4, ArrowRight: 4, ArrowUp: 4 }[event.key];
			if (!pixels)
				return;
			event.preventDefault();
			moveAlone(timeline, event.shiftKey ? pixels * 10 : pixels);
		});
	}

	/**
	 * Of A's times, those of B are so much later.
	 * @param {number} ns
	 */
	align(ns) {
		this.a.timeline.view.moveTo(0);
		this.b.timeline.view.moveTo(ns);
		this.tellMoved();
	}

	get shift() {
		return this.b.timeline.view.shift - this.a.timeline.view.shift;
	}

	tellMoved() {
		const text = `B is moved by ${durationText(Math.round(-this.shift))}`;
		this.moved.textContent = this.shift ? text : '';
		this.handle.setAttribute('aria-valuenow', String(Math.round(-this.shift)));
		this.handle.setAttribute('aria-valuetext', text);
		this.aligned.forEach((its, i) => its.setAttribute('aria-pressed', String(this.shift === (i ? this.atSteps : 0))));
	}

	/**
	 * The same part of both, as they are beside each other.
	 * @param {Page} of whose times these are @param {number} begin @param {number} end Infinity: the whole recordings
	 */
	setSpan(of, begin, end) {
		for (const page of this.sides) {
			const later = page.timeline.view.shift - of.timeline.view.shift;
			page.setSpan(end === Infinity ? 0 : Math.max(0, begin + later), end === Infinity ? end : Math.max(0, end + later));
		}
	}

	/** @param {number} number 0: what differs; then A and B */
	choose(number) {
		this.made[number] ??= number ? this.tablesOf(this.sides[number - 1]) : this.tables.filter(({ key }) => key !== 'verdict' &&
			key !== 'why').map(({ of }) => new Table(of).element);
		this.choice.forEach((its, i) => its.setAttribute('aria-pressed', String(i === number)));
		fill(this.place, ...this.made[number]);
	}

	/** @param {Page} page */
	tablesOf(page) {
		return [page.whySection(), page.sums.section, page.reportsSection(), page.flame.section];
	}
}
