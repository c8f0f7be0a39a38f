// SPDX-License-Identifier: MIT
// The page of `cuscope agent`: the account of the last ten seconds, and whatever its metrics are, each second.

import { element, fill } from '../js/elements.js';
import { label } from '../js/text.js';
import { clockText, countText, finite, percentText } from '../js/units.js';
import { Frame } from '../live/frame.js';
import { LiveTable } from '../live/rows.js';
import { Chart, Spark } from '../live/spark.js';
import { AgentAccount } from './account.js';
import { Ask } from './ask.js';
import { grouped, lackedSentences, PART_ORDER, partOf, PARTS, rowsOfGroup, scaled, shownAs } from './parts.js';
import { Readings } from './readings.js';
import { Poll } from './source.js';

/** @typedef {import('./exposition.js').Family} Family @typedef {import('./exposition.js').Sample} Sample */

const MOST_GPUS = 64;

/** Of each GPU a chart, with the family that has what it can be at most. */
const GPU_CHARTS = /** @type {[string, string?][]} */ ([['cuscope_gpu_busy_ratio'], ['cuscope_gpu_memory_used_bytes', 'cuscope_gpu_memory_total_bytes'],
	['cuscope_gpu_power_watts', 'cuscope_gpu_power_limit_watts'], ['cuscope_gpu_temperature_celsius'], ['cuscope_gpu_sm_active_ratio'],
	['cuscope_gpu_tensor_active_ratio'], ['cuscope_gpu_dram_active_ratio']]);

/** A chart of one series. */
class Reading {
	/** @param {Family} family */
	constructor(family) {
		const { name, type, about } = this.as = shownAs(family);
		this.chart = new Chart({ name, type, about, of: () => null, most: type === 'percent' ? 100 : undefined });
	}

	/** @param {Readings} readings @param {Family} family @param {Sample} sample @param {number | null} [limit] */
	show(readings, family, sample, limit) {
		const number = readings.numberOf(family.type, sample), points = readings.pointsOf(sample.key);
		this.chart.show(number === null ? null : scaled(this.as, number), points.map(({ ns, value }) => ({ ns, value: scaled(this.as, value) })), readings.ns,
			readings.intervalNs, limit);
	}
}

/** One part of the page: charts of what has no labels, tables of what has some. */
class PartOfPage {
	/** @param {import('./parts.js').Part} part */
	constructor(part) {
		this.part = part;
		this.charts = /** @type {Map<string, Reading>} */ (new Map());
		this.tables = /** @type {Map<string, LiveTable>} */ (new Map());
		this.drawn = /** @type {Map<string, string>} */ (new Map()); // of each process the series of its line
		this.base = /** @type {string[]} */ ([]); // labels of what has a row each
		this.failing = /** @type {Set<string>} */ (new Set());
		this.figures = element('div', { class: 'figures' });
		this.cards = element('div', { class: 'gpus' });
		this.parts = element('div', { class: 'part' });
		const all = [this.figures, this.cards, this.parts];
		this.element = element('section', { id: part.id, hidden: true }, element('h2', {}, part.title),
			...(part.folded ? [element('details', {}, element('summary', {}, 'what it takes, and what it did'), ...all)] : all));
	}

	/** @param {Readings} readings @param {Family[]} families */
	show(readings, families) {
		const groups = grouped(families), bare = groups.filter((group) => !group.labels.length).flatMap((group) => group.families);
		this.element.hidden = !families.length;
		if (this.element.querySelector('details')?.open === false)
			return;
		this.showCharts(readings, bare.filter((family) => shownAs(family).type !== 'text'));
		if (this.part.id === 'gpus')
			this.showGpus(readings, families);
		const tables = groups.filter((group) => group.labels.length), base = tables.filter(({ labels }) => labels.includes('pid') || labels.includes('gpu'))
			.sort((a, b) => b.families.length - a.families.length)[0];
		this.base = base?.labels ?? [];
		for (const group of tables)
			this.showTable(readings, group, families, group === base);
	}

	/** @param {Readings} readings @param {Family[]} families */
	showCharts(readings, families) {
		for (const family of families) {
			let reading = this.charts.get(family.name);
			if (!reading) {
				this.charts.set(family.name, reading = new Reading(family));
				this.figures.append(reading.chart.element);
			}
			reading.show(readings, family, family.samples[0]);
		}
	}

	/** @param {Readings} readings @param {Family[]} families */
	showGpus(readings, families) {
		const byName = new Map(families.map((family) => [family.name, family])), gpus = new Map();
		for (const [name, most] of GPU_CHARTS) {
			const family = byName.get(name);
			for (const sample of family?.samples.slice(0, MOST_GPUS) ?? []) {
				const id = sample.labels.map(([, value]) => value).join(' '), key = `${name} ${id}`, limit = most && byName.get(most)?.samples.find((its) =>
					its.labels.map(([, value]) => value).join(' ') === id)?.value;
				let reading = this.charts.get(key);
				if (!reading)
					this.charts.set(key, reading = new Reading(/** @type {Family} */ (family)));
				reading.show(readings, /** @type {Family} */ (family), sample, finite(limit) === null ? null : Number(limit));
				gpus.set(id, { name: sample.labels, charts: [...(gpus.get(id)?.charts ?? []), reading.chart.element] });
			}
		}
		const of = [...gpus].map(([id, { charts }]) => `${id} ${charts.length}`).join();
		if (this.cards.dataset.of === of)
			return;
		this.cards.dataset.of = of;
		fill(this.cards, ...[...gpus.values()].map(({ name, charts }) => {
			const labels = new Map(name);
			return element('article', { class: 'gpu' }, element('h3', {}, `GPU${label(labels.get('gpu'))} ${label(labels.get('modelName'))}`),
				element('div', { class: 'figures' }, ...charts));
		}));
	}

	/** @param {Readings} readings @param {import('./parts.js').Grouped} group @param {Family[]} all @param {boolean} base */
	showTable(readings, group, all, base) {
		const { columns, rows, keys, samples, failing } = rowsOfGroup(group, all, (type, sample) => readings.numberOf(type, sample), base),
			name = group.labels.join();
		let table = this.tables.get(name);
		if (!table) {
			table = this.makeTable(readings, group, columns, base);
			this.tables.set(name, table);
			this.parts.append(table.element);
		}
		table.element.hidden = !rows.length;
		if (base) {
			this.failing = new Set(keys.filter((_, i) => failing[i]));
			this.drawn = new Map(keys.map((key, i) => [key, samples[i]]));
		}
		table.show(rows.length ? columns : table.of.columns, rows, keys);
	}

	/** @param {Readings} readings @param {import('./parts.js').Grouped} group @param {import('../js/tables.js').Column[]} columns @param {boolean} base */
	makeTable(readings, group, columns, base) {
		const by = group.labels.filter((name) => !this.base.includes(name)).join(', '), one = group.families.length === 1 ? shownAs(group.families[0], true).name : '',
			title = base ? this.part.title : `${one || this.part.title} by ${by}`,
			first = columns.find(({ about }) => !about?.startsWith('label ')), spark = base && this.part.id === 'processes';
		return new LiveTable(title, '', columns, first?.name ?? '', {
			spark: spark && first ? { column: first.name, make: () => new Spark({ name: first.name, type: first.type, about: '', of: () => null }, true) } : undefined,
			after: (key, line) => {
				line.row.classList.toggle('failing', base && this.failing.has(key));
				line.spark?.draw(readings.pointsOf(this.drawn.get(key) ?? ''), readings.ns, readings.intervalNs);
			},
		});
	}
}

class AgentPage {
	constructor() {
		this.readings = new Readings();
		this.frame = new Frame('cuscope agent', [], {
			show: () => this.show(),
			escape: () => false,
			filter: () => document.querySelector('#processes input'),
			silence: () => this.silence(),
		});
		this.account = new AgentAccount(() => this.frame.paused || this.show());
		this.ask = new Ask();
		this.parts = new Map(PARTS.map((part) => [part, new PartOfPage(part)]));
	}

	start() {
		const parts = PART_ORDER.map((id) => /** @type {PartOfPage} */ ([...this.parts.values()].find(({ part }) => part.id === id)).element);
		this.frame.start(this.account.shown.element, parts[0], this.ask.element, ...parts.slice(1));
		document.addEventListener('toggle', () => this.show(), true);
		this.account.start();
		this.source = new Poll('/metrics', (text, nowMs) => {
			if (this.readings.take(text, 1e6 * nowMs) && !this.frame.paused)
				this.show();
			this.frame.tellSilence();
		}, () => (this.readings.ns + this.readings.intervalNs) / 1e6);
	}

	silence() {
		const { readings } = this, more = [this.source?.refused ?? '', readings.unreadable ? `${countText(readings.unreadable)} lines could not be read.` : ''];
		const lastMs = readings.intervalNs ? readings.ns / 1e6 : this.source?.cameMs ?? performance.now(); // how often there are some, two have told
		return { ms: performance.now() - lastMs, intervalNs: readings.intervalNs,
			more: more.filter(Boolean).join(' ') };
	}

	show() {
		const { readings } = this, of = /** @type {Map<import('./parts.js').Part, Family[]>} */ (new Map());
		if (!readings.ns || document.hidden)
			return;
		for (const family of readings.families) {
			const part = partOf(family);
			of.set(part, [...(of.get(part) ?? []), family]);
		}
		for (const [part, shown] of this.parts)
			shown.show(readings, of.get(part) ?? []);
		this.account.show();
		this.ask.show(readings, this.account.of);
		if (!this.account.shown.element.hidden && this.account.shown.element.nextSibling !== this.ask.element)
			this.account.shown.element.after(this.ask.element); // what it lacks, or is of, is beside it
		this.tell();
	}

	tell() {
		const { readings } = this, version = readings.byName.get('cuscope_build_info')?.samples[0].labels.find(([name]) => name === 'version')?.[1],
			began = finite(readings.one('cuscope_agent_start_time_seconds')), cpu = readings.one('cuscope_agent_cpu_seconds_total');
		this.frame.tell(location.host, [version ? `version ${label(version)}` : '',
			readings.spanNs ? `rates over ${(readings.spanNs / 1e9).toFixed(1)} s` : '',
			began === null ? '' : `counting for ${clockText(1e9 * Math.max(0, Date.now() / 1000 - began))}`,
			cpu === null ? '' : `the agent takes ${percentText(100 * cpu)} of a CPU`], lackedSentences(readings.families));
	}
}

const agentPage = new AgentPage();
/** @type {any} */ (globalThis).cuscopeAgent = agentPage;
agentPage.start();
