// SPDX-License-Identifier: MIT
// Tables that sort, filter and are copied as csv; any columns, any rows.

import { button, copyText, element, fill } from './elements.js';
import { csvText, cut, LONGEST_LABEL, shown } from './text.js';
import { cellText, countText } from './units.js';

/**
 * @typedef {{name: string, type: string, about?: string}} Column
 * @typedef {{title: string, columns: Column[], rows: unknown[][], notes?: string[], more?: number, command?: string, about?: string,
 *   sort?: number, textOf?: (row: unknown[], column: number) => string, onRow?: (row: unknown[]) => void, onTime?: (ns: number) => void}} TableOf  onRow: what its first cell does; textOf: what cells are shown as
 */

const FIRST_ROWS = 50, MORE_ROWS = 500;
const WORDS = new Set(['text', 'triple', 'word']);
const UNIT = { duration: / \(ns\)$/, time: / \(ns\)$/, bytes: / \(bytes\)$/, rate: / \(bytes\/s\)$/, percent: / \(%\)$/ };
const SHORT = 20; /* such words are not broken, and take no more room than they need */
let tables = 0;

/** @param {unknown} a @param {unknown} b @returns {number} what is not known last */
function compare(a, b) {
	if (a === b)
		return 0;
	if (a === null || a === undefined)
		return 1;
	if (b === null || b === undefined)
		return -1;
	return typeof a === 'number' && typeof b === 'number' ? a - b : String(a).localeCompare(String(b), 'en', { numeric: true });
}

/**
 * Without the unit that its values have as a csv has them, where cells say theirs.
 * @param {Column} column @returns {string}
 */
export function headText({ name, type }) {
	return name.replace(UNIT[/** @type {keyof typeof UNIT} */ (type)] ?? '', '');
}

/**
 * Which columns have short words alone; the last one of words takes what room is left all the same.
 * @param {Column[]} columns @param {unknown[][]} rows @returns {boolean[]}
 */
export function shortWords(columns, rows) {
	const words = columns.map(({ type }) => WORDS.has(type));
	return words.map((is, i) => is && i < words.lastIndexOf(true) && rows.every((row) => String(row[i] ?? '').length <= SHORT));
}

/**
 * Rows in order of a column; those that are equal stay in their order, those without a value are last.
 * @param {unknown[][]} rows @param {number} column @param {boolean} falling @returns {unknown[][]}
 */
export function sorted(rows, column, falling) {
	const none = (/** @type {unknown[]} */ row) => row[column] === null || row[column] === undefined;
	return [...rows].sort((a, b) => none(a) || none(b) ? compare(a[column], b[column]) : compare(a[column], b[column]) * (falling ? -1 :
		1));
}

/**
 * Rows with all of some words in any of their cells, as shown or as they are.
 * @param {unknown[][]} rows @param {Column[]} columns @param {string} text @returns {unknown[][]}
 */
export function filtered(rows, columns, text) {
	const words = text.toLowerCase().split(/\s+/).filter(Boolean);
	if (!words.length)
		return rows;
	return rows.filter((row) => {
		const all = row.map((cell, i) => `${cell ?? ''} ${cellText(columns[i]?.type ?? 'text', cell, columns[i]?.name)}`).join(' ').toLowerCase();
		return words.every((word) => all.includes(word));
	});
}

export class Table {
	/** @param {TableOf} of */
	constructor(of) {
		this.of = of;
		this.column = of.sort ?? -1;
		this.falling = true;
		this.short = shortWords(of.columns, of.rows);
		this.filter = '';
		this.shownRows = FIRST_ROWS;
		this.number = ++tables;
		this.head = element('tr');
		this.body = element('tbody');
		this.count = element('span', { class: 'count', role: 'status' });
		this.more = button('', () => this.showMore(), { class: 'more' });
		this.element = element('section', { class: 'table' }, this.bar(),
			element('div', { class: 'rows', tabindex: 0, role: 'region', 'aria-label': of.title },
				element('table', {}, element('caption', { class: 'off' }, of.title), element('thead', {}, this.head), this.body)),
			this.more, ...(of.notes ?? []).map((note) => element('p', { class: 'note' }, cut(String(note), 2000))));
		this.makeHead();
		this.fill();
	}

	bar() {
		const { title, command, about } = this.of;
		return element('div', { class: 'bar' }, element('h3', { about }, title), this.count,
			element('input', { type: 'search', placeholder: 'filter', 'aria-label': `filter ${title}`,
				oninput: (event) => this.setFilter(event.target.value) }),
			command ? element('code', { tabindex: 0, about: 'the command that prints this table' }, cut(command, 300)) : null,
			button('copy as csv', () => this.copy(), { 'aria-label': `copy ${title} as csv` }));
	}

	/** @param {number} column @returns {string | null} its class */
	kind(column) {
		return this.short[column] ? 'words word' : WORDS.has(this.of.columns[column].type) ? 'words' : null;
	}

	makeHead() {
		fill(this.head, ...this.of.columns.map((column, i) => {
			const sort = i !== this.column ? null : this.falling ? 'descending' : 'ascending';
			return element('th', { scope: 'col', 'aria-sort': sort, class: WORDS.has(column.type) ? 'words' : null },
				button(cut(headText(column)), () => this.sortBy(i), { about: column.about }));
		}));
	}

	/** @param {number} column */
	sortBy(column) {
		const focused = this.head.contains(document.activeElement);
		this.falling = this.column === column ? !this.falling : !WORDS.has(this.of.columns[column].type);
		this.column = column;
		this.makeHead();
		if (focused)
			this.head.children[column].querySelector('button')?.focus();
		this.fill();
	}

	/** @param {string} text */
	setFilter(text) {
		this.filter = text;
		this.shownRows = FIRST_ROWS;
		this.fill();
	}

	/** All that match, in the order that is shown. */
	rows() {
		const rows = filtered(this.of.rows, this.of.columns, this.filter);
		return this.column < 0 ? rows : sorted(rows, this.column, this.falling);
	}

	/** @param {unknown[][]} rows */
	setRows(rows) {
		this.of.rows = rows;
		this.short = shortWords(this.of.columns, rows);
		this.fill();
	}

	fill() {
		const rows = this.rows(), left = rows.length - this.shownRows, { more = 0 } = this.of;
		fill(this.body, ...rows.slice(0, this.shownRows).map((row) => this.row(row)));
		this.count.textContent = `${countText(rows.length)}${rows.length < this.of.rows.length ? ' of ' + countText(this.of.rows.length) : ''} ${rows.length === 1 ? 'row' : 'rows'}` +
			(more > 0 ? `, ${countText(more)} more in the recording` : '');
		this.more.hidden = left <= 0;
		this.more.textContent = `show ${countText(Math.min(left, MORE_ROWS))} more`;
	}

	showMore() {
		this.shownRows += MORE_ROWS;
		this.fill();
	}

	/** @param {unknown[]} row */
	row(row) {
		const { columns, textOf, onRow, onTime } = this.of;
		return element('tr', {}, ...columns.map((column, i) => {
			const value = row[i], whole = shown(textOf?.(row, i) ?? cellText(column.type, value, column.name)), text = cut(whole, WORDS.has(column.type) ?
				3 * LONGEST_LABEL : LONGEST_LABEL);
			const goes = i === 0 && onRow ? () => onRow(row) : column.type === 'time' && onTime && typeof value === 'number' ?
				() => onTime(value) : null;
			return element('td', { class: this.kind(i), title: typeof value === 'number' ? String(value) :
				whole.length > text.length ? cut(whole, 2000) : null },
				goes ? button(text, goes, { class: 'link' }) : text);
		}));
	}

	csv() {
		return csvText([this.of.columns.map((column) => column.name), ...this.rows()]);
	}

	async copy() {
		this.count.textContent = await copyText(this.csv()) ? `${countText(this.rows().length)} rows are copied` :
			'the browser refuses to copy';
	}
}
