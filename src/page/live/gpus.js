// SPDX-License-Identifier: MIT
// GPUs: each with what it is used for, now and in the last two minutes.

import { element, fill } from '../js/elements.js';
import { label } from '../js/text.js';
import { finite } from '../js/units.js';
import { GPU_SERIES, listOf } from './figures.js';
import { Chart } from './spark.js';

const LIMITS = /** @type {{[series: string]: string}} */ ({ memory: 'memory_total_bytes', power: 'power_limit_mw' });

class GpuCard {
	/** @param {number} index */
	constructor(index) {
		this.index = index;
		this.name = element('h3');
		this.charts = GPU_SERIES.map((series) => new Chart(series));
		this.element = element('article', { class: 'gpu' }, this.name,
			element('div', { class: 'figures' }, ...this.charts.map((chart) => chart.element)));
	}

	/** @param {any} gpu @param {import('./history.js').History | undefined} history @param {number} nowNs @param {number} intervalNs */
	show(gpu, history, nowNs, intervalNs) {
		this.name.textContent = `GPU${this.index} ${label(gpu.name)}`;
		this.charts.forEach((chart, i) => chart.show(GPU_SERIES[i].of(gpu), history?.points(i) ?? [], nowNs, intervalNs,
			finite(gpu[LIMITS[GPU_SERIES[i].name]])));
	}
}

export class Gpus {
	constructor() {
		this.cards = /** @type {GpuCard[]} */ ([]);
		this.note = element('p', { class: 'note' });
		this.grid = element('div', { class: 'gpus' });
		this.element = element('section', { id: 'gpus', 'aria-labelledby': 'gpus-head' }, element('h2', { id: 'gpus-head' }, 'GPUs'), this.note,
			this.grid);
	}

	/** @param {import('./model.js').Model} model */
	show(model) {
		const { page } = model, gpus = listOf(page.gpus), note = label(page.gpus_note ?? '');
		while (this.cards.length < gpus.length)
			this.cards.push(new GpuCard(this.cards.length));
		if (this.grid.children.length !== gpus.length)
			fill(this.grid, ...this.cards.slice(0, gpus.length).map((card) => card.element));
		gpus.forEach((gpu, i) => this.cards[i].show(gpu, model.gpus[i], page.counting_ns, model.intervalNs));
		this.note.hidden = !note;
		if (this.note.textContent !== note)
			this.note.textContent = note;
		this.element.hidden = !gpus.length && !note;
	}
}
