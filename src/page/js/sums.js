// SPDX-License-Identifier: MIT
// The section of what is in the span, or in the whole trace: accounts, and tables of functions, work, ranges and states.

import { element, fill } from './elements.js';
import { Turn } from './pace.js';
import { sumTrack, together } from './span.js';
import { Table } from './tables.js';
import { timeOption, timeText, durationText } from './units.js';
import { barOf } from './why.js';

/**
 * @typedef {import('./store.js').Store} Store
 * @typedef {import('./store.js').Track} Track
 * @typedef {import('./span.js').Sum} Sum
 */

const SUMS_ABOUT = { n: 'Those that ended in the span.', ns: 'Their whole time.',
	within: 'Time of all that is in the span, cut at its ends.', share: 'Of the time of all rows of this table that is in the span.',
	max: 'The longest of those that ended in the span.' };
const TABLES = /** @type {[string, string, string | null][]} */ ([['call', 'Functions', 'cuda_api_sum'], ['work', 'Kernels and copies',
	'cuda_gpu_sum'], ['range', 'Ranges', 'nvtx_sum']]);

export class Sums {
	/** @param {Store} store @param {(name: string, kind: string) => void} onName */
	constructor(store, onName) {
		this.store = store;
		this.onName = onName;
		this.turn = new Turn();
		this.status = element('p', { role: 'status' });
		this.place = element('div', { class: 'sums' });
		this.section = element('section', { id: 'span', 'aria-labelledby': 'span-head' }, element('h2', { id: 'span-head' }, 'Sums'),
			this.status, this.place);
		/** @type {Map<Track, Map<number, Sum>>} */
		this.byTrack = new Map();
	}

	/** @param {number} begin @param {number} end Infinity: the whole trace */
	async show(begin, end) {
		const mine = this.turn.begin(), whole = end === Infinity, byTrack = new Map();
		this.status.textContent = 'adding up';
		for (const track of this.store.tracks) {
			if (track.kind !== 'counter')
				byTrack.set(track, await sumTrack(this.store, track, whole ? -1 : begin, end, mine));
			if (!mine())
				return;
		}
		this.byTrack = byTrack;
		this.status.textContent = whole ? 'Of the whole recording.' :
			`Of the span from ${timeText(begin)} to ${timeText(end)}: ${durationText(end - begin)}.`;
		fill(this.place, element('div', { class: 'accounts' }, ...this.accounts()), ...TABLES.map(([kind, title,
			report]) => this.table(kind, title, report, begin, end)), this.states());
	}

	accounts() {
		return [...this.byTrack].filter(([track, sums]) => track.kind === 'account' && sums.size).map(([track, sums]) => {
			const all = total(sums), parts = [...sums.values()].sort((a, b) => b.within - a.within).filter((sum) => sum.within > 0)
				.map((sum) => ({ label: this.store.label(sum.name), about: '', share: sum.within / all * 100,
					text: durationText(sum.within), cause: '' }));
			return element('article', {}, element('h3', {},
				`${track.title}${track.group ? ', ' + track.group : ''}: ${durationText(all)} that have a cause`), barOf(parts,
				track.title));
		});
	}

	/** @param {string} kind @param {string} title @param {string | null} report @param {number} begin @param {number} end */
	table(kind, title, report, begin, end) {
		const sums = together(this.byTrack, (track) => track.kind === kind), all = total(sums);
		if (!sums.size)
			return null;
		const known = report && (this.store.index.reports ?? []).find?.((/** @type {any} */ its) => its?.name === report);
		return new Table({
			title, sort: 1, command: known ? `${known.command}${end === Infinity ? '' : ` --from ${timeOption(begin)} --to ${timeOption(end)}`}` : undefined,
			columns: [{ name: 'Name', type: 'text' }, { name: 'In the span', type: 'duration', about: SUMS_ABOUT.within }, { name: 'Share',
				type: 'percent', about: SUMS_ABOUT.share }, { name: 'Count', type: 'number', about: SUMS_ABOUT.n },
				{ name: 'Total', type: 'duration', about: SUMS_ABOUT.ns }, { name: 'Mean', type: 'duration' }, { name: 'Longest',
					type: 'duration', about: SUMS_ABOUT.max }],
			rows: [...sums.values()].map((sum) => [this.store.names[sum.name] ?? '(not known)', sum.within, all ? sum.within / all * 100 :
				null, sum.n, sum.ns, sum.n ? sum.ns / sum.n : null, sum.n ? sum.max : null]),
			onRow: (row) => this.onName(String(row[0]), kind),
		}).element;
	}

	states() {
		const rows = [];
		for (const [track, sums] of this.byTrack) {
			const all = track.kind === 'state' ? total(sums) : 0;
			for (const sum of track.kind === 'state' ? sums.values() : [])
				rows.push([this.store.names[sum.name] ?? '(not known)', track.title, sum.within, all ? sum.within / all * 100 : null,
					sum.n]);
		}
		return rows.length ? new Table({
			title: 'States of threads', sort: 2, rows, onRow: (row) => this.onName(String(row[0]), 'state'),
			columns: [{ name: 'State', type: 'text' }, { name: 'Thread', type: 'text' }, { name: 'In the span', type: 'duration',
				about: SUMS_ABOUT.within }, { name: 'Share of the thread', type: 'percent' }, { name: 'Count', type: 'number',
				about: SUMS_ABOUT.n }],
		}).element : null;
	}
}

/** @param {Map<number, Sum>} sums @returns {number} */
function total(sums) {
	let ns = 0;
	for (const sum of sums.values())
		ns += sum.within;
	return ns;
}
