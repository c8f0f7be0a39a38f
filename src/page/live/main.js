// SPDX-License-Identifier: MIT
// The live page: what `cuscope top` counts, each second.

import { button, element, fill, showDefinitions } from '../js/elements.js';
import { label } from '../js/text.js';
import { countText, finite, percentText } from '../js/units.js';
import { clockText, PROCESS_COLUMNS, PROCESS_SERIES, rowsOf } from './figures.js';
import { Gpus } from './gpus.js';
import { missedSentences } from './missed.js';
import { Model } from './model.js';
import { OpenProcess } from './process.js';
import { LiveTable } from './rows.js';
import { Source, patienceMs } from './source.js';
import { Chart, Spark } from './spark.js';

const KEYS = [['p, blank', 'pauses the page; counting goes on'], ['/', 'to the filter of processes'],
	['Enter', 'opens a process, on its name'], ['Esc', 'closes the process'], ['?', 'keys']];
const CALLS = 0; // of PROCESS_SERIES

class LivePage {
	constructor() {
		this.model = new Model();
		this.paused = false;
		this.missed = element('section', { id: 'missed', class: 'box', hidden: true, 'aria-label': 'What was missed' },
			element('h2', {}, 'What was missed'), element('ul'));
		this.silent = element('p', { class: 'box', role: 'status', hidden: true });
		this.facts = element('p', { class: 'facts' }, 'waiting for the first figures');
		this.title = element('h1', {}, 'cuscope top');
		this.pause = button('pause (p)', () => this.setPaused(!this.paused), { 'aria-pressed': 'false' });
		this.charts = PROCESS_SERIES.map((series) => new Chart(series));
		this.gpus = new Gpus();
		this.process = new OpenProcess(() => this.open(''));
		this.table = new LiveTable('Processes', 'no process has called CUDA yet', PROCESS_COLUMNS, 'CALLS/s', {
			open: (key) => this.open(key),
			spark: { column: 'CALLS/s', make: () => new Spark(PROCESS_SERIES[CALLS], true) },
			after: (key, line) => this.finishRow(key, line),
		});
		this.keys = element('dialog', { 'aria-label': 'keys' }, element('h3', {}, 'Keys'),
			element('dl', {}, ...KEYS.flatMap(([key, does]) => [element('dt', {}, key), element('dd', {}, does)])),
			element('form', { method: 'dialog' }, element('button', {}, 'close')));
	}

	start() {
		fill(/** @type {HTMLElement} */ (document.getElementById('page')),
			element('header', {}, this.title, element('div', { class: 'steps' }, this.pause,
				button('?', () => this.keys.showModal(), { 'aria-label': 'keys' })), this.facts),
			element('main', { class: 'live' }, this.silent, this.missed,
				element('section', { id: 'total', 'aria-labelledby': 'total-head' }, element('h2', { id: 'total-head' }, 'All processes'),
					element('div', { class: 'figures' }, ...this.charts.map((chart) => chart.element))),
				this.gpus.element, element('section', { id: 'processes' }, this.table.element), this.process.element, this.keys));
		showDefinitions();
		document.addEventListener('keydown', (event) => this.key(event));
		for (const [of, what] of /** @type {[EventTarget, string][]} */ ([[document, 'visibilitychange'], [window, 'resize'],
			[matchMedia('(prefers-color-scheme: dark)'), 'change']]))
			of.addEventListener(what, () => this.show());
		window.addEventListener('hashchange', () => this.openFromAddress());
		this.openFromAddress();
		this.source = new Source('/live', (data) => {
			this.model.take(data, this.process.key);
			if (!this.paused)
				this.show();
			this.tellSilence();
		});
		setInterval(() => this.tellSilence(), 1000);
	}

	/** @param {KeyboardEvent} event */
	key(event) {
		const at = event.target instanceof Element ? event.target : null, typing = at?.matches('input, select, textarea');
		if (event.ctrlKey || event.altKey || event.metaKey || this.keys.open)
			return;
		if (event.key === 'Escape' && typing)
			/** @type {HTMLElement} */ (at).blur();
		else if (event.key === 'Escape' && this.process.key)
			this.open('');
		else if (typing || (event.key === ' ' && at?.closest('button, a, summary, [tabindex]')))
			return;
		else if (event.key === 'p' || event.key === ' ')
			this.setPaused(!this.paused);
		else if (event.key === '/')
			/** @type {HTMLElement} */ (this.table.element.querySelector('input')).focus();
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
			this.show();
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

	/** Since when there are no figures, where that is longer than it should be. */
	tellSilence() {
		const ms = this.source?.silentMs() ?? 0, silent = ms > patienceMs(this.model.page ? this.model.intervalNs : 0),
			{ unreadable } = this.model;
		const text = [silent ? `No figures since ${Math.round(ms / 1000)} s.` : '',
			this.paused ? 'Paused: figures below stand still, counting goes on.' : '',
			unreadable ? `${countText(unreadable)} ${unreadable === 1 ? 'event' : 'events'} could not be read.` : ''].filter(Boolean).join(' ');
		this.silent.hidden = !text;
		if (this.silent.textContent !== text)
			this.silent.textContent = text;
		document.documentElement.classList.toggle('stale', silent);
	}

	show() {
		const { model } = this, { page } = model;
		if (!page || document.hidden)
			return;
		this.showHead(page);
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
		const gone = finite(page.gone?.processes) ?? 0, sentences = missedSentences(page),
			list = /** @type {Element} */ (this.missed.lastElementChild);
		this.title.textContent = document.title = label(`cuscope top: ${page.target ?? ''}`);
		this.facts.textContent = [`rates over ${((finite(page.interval_ns) ?? 0) / 1e9).toFixed(1)} s`,
			`counting for ${clockText(page.counting_ns)}`,
			`tracing costs ${percentText(page.overhead_percent)} of a thread's time, cuscope ${percentText(page.own_cpu_percent)} of a CPU`,
			gone ? `${countText(gone)} ${gone === 1 ? 'process' : 'processes'} gone` : '',
			page.missed?.complete === true ? 'nothing lost' : ''].filter(Boolean).join(' · ');
		this.missed.hidden = !sentences.length;
		if (list.children.length !== sentences.length || sentences.some((text, i) => list.children[i].textContent !== label(text)))
			fill(list, ...sentences.map((text) => element('li', {}, label(text))));
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
