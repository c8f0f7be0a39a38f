// SPDX-License-Identifier: MIT
// The page of `cuscope top --web`: what it counts, each second.

import { element } from '../js/elements.js';
import { clockText, countText, finite, percentText } from '../js/units.js';
import { LiveAccount } from './account.js';
import { PROCESS_COLUMNS, PROCESS_SERIES, rowsOf } from './figures.js';
import { Frame } from './frame.js';
import { Gpus } from './gpus.js';
import { missedSentences } from './missed.js';
import { Model } from './model.js';
import { OpenProcess } from './process.js';
import { LiveTable } from './rows.js';
import { Source } from './source.js';
import { Chart, Spark } from './spark.js';

const KEYS = [['Enter', 'opens a process, on its name'], ['Esc', 'closes the process']];
const CALLS = 0; // of PROCESS_SERIES

class LivePage {
	constructor() {
		this.model = new Model();
		this.frame = new Frame('cuscope top', KEYS, {
			show: () => this.show(),
			escape: () => this.close(),
			filter: () => this.table.element.querySelector('input'),
			silence: () => this.silence(),
		});
		this.charts = PROCESS_SERIES.map((series) => new Chart(series));
		this.account = new LiveAccount();
		this.gpus = new Gpus();
		this.process = new OpenProcess(() => this.open(''));
		this.table = new LiveTable('Processes', 'no process has called CUDA yet', PROCESS_COLUMNS, 'CALLS/s', {
			open: (key) => this.open(key),
			spark: { column: 'CALLS/s', make: () => new Spark(PROCESS_SERIES[CALLS], true) },
			after: (key, line) => this.finishRow(key, line),
		});
	}

	start() {
		this.frame.start(this.account.element, element('section', { id: 'total', 'aria-labelledby': 'total-head' }, element('h2', { id: 'total-head' }, 'All processes'),
			element('div', { class: 'figures' }, ...this.charts.map((chart) => chart.element))), this.gpus.element,
			element('section', { id: 'processes' }, this.table.element), this.process.element);
		window.addEventListener('hashchange', () => this.openFromAddress());
		this.openFromAddress();
		this.source = new Source('/live', (data) => {
			this.model.take(data, this.process.key);
			if (!this.frame.paused)
				this.show();
			this.frame.tellSilence();
		}, (data) => {
			this.model.unreadable += this.account.take(data) ? 0 : 1;
			if (!this.frame.paused)
				this.show();
		});
	}

	silence() {
		const { unreadable, page, intervalNs } = this.model;
		return { ms: this.source?.silentMs() ?? 0, intervalNs: page ? intervalNs : 0,
			more: unreadable ? `${countText(unreadable)} ${unreadable === 1 ? 'event' : 'events'} could not be read.` : '' };
	}

	/** @returns {boolean} */
	close() {
		const was = this.process.key;
		if (was)
			this.open('');
		return Boolean(was);
	}

	/** The address has the open process, so that it can be sent and comes back. */
	openFromAddress() {
		const key = /^#process-([\w ]{1,40})$/.exec(decodeURIComponent(location.hash.replace(/%(?![\da-f]{2})/gi, '')))?.[1] ?? '';
		if (key !== this.process.key)
			this.open(key);
	}

	/** @param {string} key "": none */
	open(key) {
		const from = this.process.key;
		this.process.open(key);
		history.replaceState(null, '', key ? '#process-' + encodeURIComponent(key) : location.pathname);
		this.show();
		if (key && this.model.page) {
			this.process.element.scrollIntoView({ block: 'start' });
			this.process.name.focus({ preventScroll: true });
		} else if (from)
			this.table.lines.get(from)?.texts[0].focus();
	}

	show() {
		const { model } = this, { page } = model;
		if (!page || document.hidden)
			return;
		this.showHead(page);
		this.account.show(finite(page.counting_ns));
		this.charts.forEach((chart, i) => chart.show(PROCESS_SERIES[i].of(page.total ?? {}), model.total.points(i), page.counting_ns,
			model.intervalNs));
		this.gpus.show(model);
		const { columns, rows } = rowsOf(PROCESS_COLUMNS, model.processes.map(({ its }) => its));
		this.table.show(rows.length ? columns : this.table.of.columns, rows, model.processes.map(({ key }) => key),
			page.processes_left_out);
		this.process.show(model);
	}

	/** @param {any} page */
	showHead(page) {
		const gone = finite(page.gone?.processes) ?? 0;
		this.frame.tell(page.target ?? '', [`rates over ${((finite(page.interval_ns) ?? 0) / 1e9).toFixed(1)} s`,
			`counting for ${clockText(page.counting_ns)}`,
			`tracing costs ${percentText(page.overhead_percent)} of a thread's time, cuscope ${percentText(page.own_cpu_percent)} of a CPU`,
			gone ? `${countText(gone)} ${gone === 1 ? 'process' : 'processes'} gone` : '',
			page.missed?.complete === true ? 'nothing lost' : ''], missedSentences(page));
	}

	/** @param {string} key @param {import('./rows.js').Line} line */
	finishRow(key, line) {
		const { model } = this, its = model.processOf(key);
		line.row.classList.toggle('failing', Boolean(its && its.errors_per_second > 0));
		line.row.classList.toggle('ended', Boolean(its?.ended));
		line.row.classList.toggle('open', key === this.process.key);
		line.spark?.draw(model.historyOf(key)?.points(CALLS) ?? [], model.page.counting_ns, model.intervalNs);
	}
}

const livePage = new LivePage();
/** @type {any} */ (globalThis).cuscopeLive = livePage;
livePage.start();
