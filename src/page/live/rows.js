// SPDX-License-Identifier: MIT
// A table whose rows change each second: what does not change stays as it is, with the focus and what is selected.

import { button, element, fill } from '../js/elements.js';
import { Table } from '../js/tables.js';
import { cut, LONGEST_LABEL, shown } from '../js/text.js';
import { cellText, countText, finite } from '../js/units.js';

/**
 * @typedef {{row: HTMLTableRowElement, cells: HTMLTableCellElement[], texts: HTMLElement[], spark: import('./spark.js').Spark | null}} Line
 * After: once the cells of a line have their text.
 * @typedef {{open?: (key: string) => void, spark?: {column: string, make: () => import('./spark.js').Spark},
 *   after?: (key: string, line: Line) => void}} Ways
 */

export class LiveTable extends Table {
	/**
	 * @param {string} title @param {string} none what is said where it has no rows @param {import('../js/tables.js').Column[]} columns
	 * @param {string} sort @param {Ways} [ways]
	 */
	constructor(title, none, columns, sort, ways = {}) {
		super({ title, columns, rows: [], sort: columns.findIndex((column) => column.name === sort) });
		this.ways = ways;
		this.keys = /** @type {Map<unknown[], string>} */ (new Map());
		this.lines = /** @type {Map<string, Line>} */ (new Map());
		this.none = element('p', { class: 'note' }, none);
		this.element.append(this.none);
	}

	/**
	 * @param {import('../js/tables.js').Column[]} columns @param {unknown[][]} rows
	 * @param {string[]} [keys] of the rows; without: their first cells
	 * @param {unknown} [more] how many there are besides, that do less
	 */
	show(columns, rows, keys, more) {
		this.of.more = finite(more) ?? 0;
		if (columns.map((column) => column.name).join() !== this.of.columns.map((column) => column.name).join()) {
			const /** @type {string | undefined} */ sort = this.of.columns[this.column]?.name;
			this.of.columns = columns;
			/** @type {Table} */ (this).column = columns.findIndex((column) => column.name === sort);
			this.lines.clear();
			this.makeHead();
		}
		/** @type {Map<string, number>} */
		const times = new Map();
		this.keys = new Map(rows.map((row, i) => {
			const key = keys?.[i] ?? String(row[0]), n = times.get(key) ?? 0;
			times.set(key, n + 1);
			return [row, n ? `${key} ${n}` : key];
		}));
		this.none.hidden = rows.length > 0;
		this.setRows(rows);
	}

	/** Rows are moved only where their order is another. */
	fill() {
		if (!this.lines) // while the table is made
			return;
		const rows = this.rows(), wanted = rows.slice(0, this.shownRows), there = new Set(), focused = document.activeElement;
		wanted.forEach((row, i) => {
			const key = this.keys.get(row) ?? '', line = this.lineOf(key);
			there.add(key);
			this.setCells(line, row);
			if (this.body.children[i] !== line.row)
				this.body.insertBefore(line.row, this.body.children[i] ?? null);
			this.ways.after?.(key, line);
		});
		for (const [key, line] of this.lines) {
			if (!there.has(key)) {
				line.row.remove();
				this.lines.delete(key);
			}
		}
		while (this.body.children.length > wanted.length)
			this.body.lastElementChild?.remove();
		if (focused instanceof HTMLElement && focused !== document.activeElement && this.body.contains(focused))
			focused.focus({ preventScroll: true });
		this.tell(rows.length);
	}

	/** @param {number} matching */
	tell(matching) {
		const all = this.of.rows.length, left = matching - this.shownRows,
			{ more = 0 } = this.of, count = `${matching < all ? `${matching} of ` : ''}${all} ${all === 1 ? 'row' : 'rows'}` +
				(more > 0 ? `, ${countText(more)} more that do less are left out` : '');
		if (this.count.textContent !== count)
			this.count.textContent = count;
		this.more.hidden = left <= 0;
		this.more.textContent = `show ${left} more`;
	}

	/** @param {string} key @returns {Line} */
	lineOf(key) {
		let line = this.lines.get(key);
		if (!line)
			this.lines.set(key, line = this.makeLine(key));
		return line;
	}

	/** @param {string} key @returns {Line} */
	makeLine(key) {
		const { columns } = this.of, { open, spark } = this.ways;
		const line = /** @type {Line} */ ({ row: element('tr'), cells: [], texts: [], spark: null });
		columns.forEach((column, i) => {
			const words = column.type === 'text' || column.type === 'word',
				text = i === 0 && open ? button('', () => open(key), { class: 'link' }) : element('span'),
				cell = element('td', { class: column.type === 'text' ? 'words' : words ? 'words word' : null });
			if (column.name === spark?.column) {
				line.spark = spark.make();
				cell.append(line.spark.canvas);
			}
			cell.append(text);
			line.cells.push(cell);
			line.texts.push(text);
		});
		fill(line.row, ...line.cells);
		return line;
	}

	/** @param {Line} line @param {unknown[]} row */
	setCells(line, row) {
		this.of.columns.forEach((column, i) => {
			const value = row[i], whole = value === null || value === undefined ? '–' : shown(cellText(column.type, value, column.name)),
				text = cut(whole, column.type === 'text' ? 3 * LONGEST_LABEL : LONGEST_LABEL);
			if (line.texts[i].textContent !== text)
				line.texts[i].textContent = text;
			const title = whole.length > text.length ? cut(whole, 2000) : value === null || value === undefined ? 'not known' :
				column.type === 'duration' || column.type === 'bytes' ? String(value) : '';
			if (line.cells[i].title !== title)
				line.cells[i].title = title;
		});
	}
}
