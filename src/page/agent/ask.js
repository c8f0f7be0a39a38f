// SPDX-License-Identifier: MIT
// What the account of the last ten seconds is made of and lacks, and the commands that make one of what runs now.

import { button, copyText, element, fill } from '../js/elements.js';
import { label } from '../js/text.js';
import { list } from '../js/units.js';
import { objectOf } from '../live/figures.js';

/** @typedef {import('./exposition.js').Sample} Sample @typedef {import('./readings.js').Readings} Readings */

const BUSIEST = 3, GPUS_TOLD = 4, MOST_NAMES = 64, ASKED = 'They cost a process what nobody asked it to pay, so they are recorded where somebody asks ' +
	'for them: with [account] in the settings of the agent, while this page is looked at, or by a command. On this machine these make one:';

/** By what the account is made of: a title, and what there is to say. */
const TELLS = /** @type {Record<string, [string, string]>} */ ({
	none: ['Where the time goes', 'Figures do not say it. The agent counts calls: an account of the last ten seconds needs each call, stacks, what threads wait ' +
		'for, and GPU times. ' + ASKED],
	calls: ['What would tell more', 'The account is of the calls that the flight recorder holds, so of all processes. Stacks, what threads wait for, and GPU times ' +
		'are not among them. ' + ASKED],
});

/** @param {any} of what the agent says of its account @returns {string} */
function ofProcesses(of) {
	const names = list(of.processes).slice(0, MOST_NAMES).map((its) => `${label(String(objectOf(its).name))} (pid ${label(String(objectOf(its).pid))})`);
	return `The account is of those that ask for most work of a GPU${names.length ? `: ${names.join(', ')}` : ''}. It is recorded while somebody looks at this page.`;
}

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
		this.title = element('h2', { id: 'ask-head' });
		this.note = element('p', { class: 'note' });
		this.element = element('section', { id: 'ask', 'aria-labelledby': 'ask-head' }, this.title, this.note, this.list, this.said);
	}

	/** @param {Readings} readings @param {any} of what the agent says of its account */
	show(readings, of) {
		const whole = of.account === 'whole', [title, note] = whole ? ['What the account is of', ofProcesses(of)] : TELLS[of.account === 'calls' ? 'calls' : 'none'],
			commands = whole ? [] : commandsOf(readings), told = JSON.stringify([title, note, commands]);
		if (told === this.told) // what is selected stays
			return;
		this.told = told;
		fill(this.title, title);
		fill(this.note, note);
		fill(this.list, ...commands.map(([command, of]) => element('li', { class: 'bar' }, element('code', {}, command),
			button('copy', () => this.copy(command), { 'aria-label': `copy ${command}` }), element('span', { class: 'note' }, of))));
	}

	/** @param {string} command */
	async copy(command) {
		fill(this.said, await copyText(command) ? `Copied: ${command}` : 'The browser refuses to copy.');
	}
}
