// SPDX-License-Identifier: MIT
// All reports of the index, as they are there: a new one appears without a line here.

import { element, fill } from './elements.js';
import { Table } from './tables.js';
import { cut } from './text.js';
import { list } from './units.js';

/**
 * @param {any} table as the index has it @param {string} title @param {string} command @returns {import('./tables.js').TableOf}
 */
export function tableOf(table, title, command) {
	const columns = list(table?.columns).map((column) => ({ name: String(column?.name ?? ''), type: String(column?.type ?? 'text') }));
	return { title: String(table?.title || title), columns, rows: list(table?.rows).filter(Array.isArray),
		notes: list(table?.notes).map(String), more: Number(table?.more) || 0, command };
}

/**
 * A list of reports; the tables of the one that is chosen are made when it is.
 * @param {any} index @param {(ns: number) => void} onTime @returns {HTMLElement}
 */
export function reportsSection(index, onTime) {
	const place = element('div', { class: 'report' }), reports = list(index.reports).map((report) => ({ ...report,
		has: report?.tables ?? index.tables?.[report?.name] }))
		.filter(({ has }) => Array.isArray(has) ? has.length : has);
	const choice = element('select', { 'aria-label': 'report', onchange: (event) => show(Number(event.target.value)) },
		...reports.map((report, i) => element('option', { value: i }, cut(`${report.name}: ${report.help ?? ''}`, 120))));
	const show = (/** @type {number} */ number) => {
		const report = reports[number];
		fill(place, ...Array.isArray(report.has) ? report.has.map((/** @type {any} */ table) => new Table({ ...tableOf(table,
			String(report.name), String(report.command ?? '')), onTime }).element) :
			[element('p', { class: 'help' }, String(report.help ?? '')),
				element('pre', { tabindex: 0, lines: cut(JSON.stringify(report.has, null, 2), 200000) })]);
	};
	if (reports.length)
		show(0);
	return element('section', { id: 'reports', 'aria-labelledby': 'reports-head' }, element('h2', { id: 'reports-head' }, 'Reports'),
		reports.length ? element('div', { class: 'bar' }, element('label', {}, 'Report ', choice)) : element('p', {},
			'This page has no reports.'), place);
}
