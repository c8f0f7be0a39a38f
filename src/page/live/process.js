// SPDX-License-Identifier: MIT
// One process: who it is, its rates in the last two minutes, and its tables.

import { button, element, fill } from '../js/elements.js';
import { label } from '../js/text.js';
import { listOf, processName, PROCESS_SERIES, PROCESS_TABLES, rowsOf, WHO } from './figures.js';
import { LiveTable } from './rows.js';
import { Chart } from './spark.js';

/**
 * Whether top left its details out: it has calls, but of no function.
 * @param {any} its @returns {boolean}
 */
export function isBrief(its) {
	return Boolean(its) && its.calls > 0 && !listOf(its.functions).length;
}

export class OpenProcess {
	/** @param {() => void} close */
	constructor(close) {
		this.key = '';
		this.last = /** @type {any} */ (null);
		this.name = element('h2', { id: 'process-head', tabindex: -1 });
		this.state = element('p', { class: 'note', role: 'status' });
		this.facts = element('p', { class: 'facts' });
		this.charts = /** @type {Chart[]} */ ([]);
		this.tables = /** @type {LiveTable[]} */ ([]);
		this.figures = element('div', { class: 'figures' });
		this.parts = element('div', { class: 'parts' });
		this.element = element('section', { id: 'process', 'aria-labelledby': 'process-head', hidden: true },
			element('div', { class: 'bar' }, this.name, button('close (Esc)', close)), this.facts, this.state, this.figures, this.parts);
	}

	/** @param {string} key "": none */
	open(key) {
		this.key = key;
		this.last = null;
		this.element.hidden = !key;
		this.charts = PROCESS_SERIES.map((series) => new Chart(series));
		this.tables = PROCESS_TABLES.map(({ title, none, columns, sort }) => new LiveTable(title, none, columns, sort));
		fill(this.figures, ...(key ? this.charts.map((chart) => chart.element) : []));
		fill(this.parts, ...(key ? this.tables.map((table) => table.element) : []));
	}

	/** @param {any} now @param {any} its as it is now, or was last @param {boolean} brief @returns {string} */
	stateOf(now, its, brief) {
		return [!its ? `No process ${this.key} is there.` : !now || its.ended ? 'It has ended: these are its last figures.' : '',
			its?.entries_only ? 'Entries alone are hooked: durations, errors and memory are not known.' : '',
			brief ? 'Of so many processes kernels, functions and streams are left out: choose some with -p or --name.' : '',
		].filter(Boolean).join(' ');
	}

	/** @param {import('./model.js').Model} model */
	show(model) {
		if (!this.key)
			return;
		const now = model.processOf(this.key), its = now ?? this.last, history = model.historyOf(this.key), brief = isBrief(its),
			state = this.stateOf(now, its, brief);
		if (this.state.textContent !== state)
			this.state.textContent = label(state);
		this.state.hidden = !state;
		this.last = its;
		this.figures.hidden = this.parts.hidden = !its;
		this.name.textContent = its ? `${label(processName(its))} · process ${its.pid}` : `process ${label(this.key)}`;
		if (!its)
			return;
		this.facts.textContent = WHO.filter(([key]) => its[key]).map(([key, text]) => `${text} ${label(its[key])}`).join(' · ');
		this.charts.forEach((chart, i) => chart.show(now && !its.ended ? PROCESS_SERIES[i].of(its) : null, history?.points(i) ?? [],
			model.page.counting_ns, model.intervalNs));
		PROCESS_TABLES.forEach(({ columns, rows, title }, i) => {
			const of = rows(its), cells = rowsOf(columns, of, its);
			this.tables[i].show(of.length ? cells.columns : this.tables[i].of.columns, cells.rows, undefined,
				its[title.toLowerCase() + '_left_out']);
			this.tables[i].element.hidden = !of.length && (brief || title === 'Hooks');
		});
	}
}
