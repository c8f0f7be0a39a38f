// SPDX-License-Identifier: MIT
// Why there is no account of the last ten seconds here, and the commands that make one of what runs now.

import { button, copyText, element, fill } from '../js/elements.js';
import { label } from '../js/text.js';

/** @typedef {import('./exposition.js').Sample} Sample @typedef {import('./readings.js').Readings} Readings */

const BUSIEST = 3, GPUS_TOLD = 4, LACKS = 'Figures do not say it. The agent counts calls, and the flight recorder keeps calls alone: an account of the ' +
	'last ten seconds needs stacks, what threads wait for, and GPU times as well. They cost a process what nobody asked it to pay, so they are recorded ' +
	'where somebody asks for them. On this machine these make one:';

/** @param {Sample} sample @param {string} name @returns {string} */
function labelOf(sample, name) {
	return sample.labels.find(([own]) => own === name)?.[1] ?? '';
}

/**
 * Commands, each with what it is of: the processes that launch most now, and the GPUs.
 * @param {Readings} readings @returns {[string, string][]}
 */
export function commandsOf(readings) {
	const launches = readings.byName.get('cuscope_process_launches_total'), gpus = readings.byName.get('cuscope_gpu_busy_ratio') ??
		readings.byName.get('cuscope_gpu_info');
	const busy = (launches?.samples ?? []).map((sample) => ({ sample, rate: readings.rates.get(sample.key) ?? 0, pid: labelOf(sample, 'pid') }))
		.filter(({ rate, pid }) => rate > 0 && /^[1-9]\d{0,9}$/.test(pid)).sort((a, b) => b.rate - a.rate).slice(0, BUSIEST);
	const numbers = [...new Set((gpus?.samples ?? []).map((sample) => labelOf(sample, 'gpu')).filter((gpu) => /^\d{1,4}$/.test(gpu)))];
	return [...busy.map(({ sample, pid }) => /** @type {[string, string]} */ ([`sudo cuscope why -p ${pid}`, label(labelOf(sample, 'process'))])),
		...numbers.slice(0, GPUS_TOLD).map((gpu) => /** @type {[string, string]} */ ([`sudo cuscope why --gpu-of ${gpu}`, `processes that use GPU ${gpu}`])),
		['sudo cuscope top --web --why', 'all processes, each second anew, on a page as this one']];
}

export class Ask {
	constructor() {
		this.told = '';
		this.said = element('p', { class: 'note', role: 'status' });
		this.list = element('ul', { class: 'commands' });
		this.element = element('section', { id: 'why', 'aria-labelledby': 'why-head' }, element('h2', { id: 'why-head' }, 'Where the time goes'),
			element('p', { class: 'note' }, LACKS), this.list, this.said);
	}

	/** @param {Readings} readings */
	show(readings) {
		const commands = commandsOf(readings), told = JSON.stringify(commands);
		if (told === this.told) // what is selected stays
			return;
		this.told = told;
		fill(this.list, ...commands.map(([command, of]) => element('li', { class: 'bar' }, element('code', {}, command),
			button('copy', () => this.copy(command), { 'aria-label': `copy ${command}` }), element('span', { class: 'note' }, of))));
	}

	/** @param {string} command */
	async copy(command) {
		fill(this.said, await copyText(command) ? `Copied: ${command}` : 'The browser refuses to copy.');
	}
}
