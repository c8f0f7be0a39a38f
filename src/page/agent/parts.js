// SPDX-License-Identifier: MIT
// Which part of the page a family of metrics is in, and the tables of a part: by the names of labels, so that new ones need no line here.

import { countText, finite } from '../js/units.js';

/**
 * @typedef {import('./exposition.js').Family} Family @typedef {import('./exposition.js').Sample} Sample
 * @typedef {{id: string, title: string, of: (name: string, labels: Set<string>) => boolean, folded?: boolean}} Part
 * @typedef {{name: string, type: string, about: string}} Shown
 */

/**
 * The first that a family is of has it.
 * @type {Part[]}
 */
export const PARTS = [
	{ id: 'processes', title: 'Processes', of: (name, labels) => /^cuscope_process_/.test(name) ||
		(labels.has('pid') && !labels.has('communicator') && !/leak/.test(name)) },
	{ id: 'leaks', title: 'Suspected leaks', of: (name) => /leak/.test(name) && !/^cuscope_recorder_/.test(name) },
	{ id: 'ranks', title: 'Ranks', of: (name) => /^cuscope_ranks?_/.test(name) },
	{ id: 'recorder', title: 'Flight recorder', of: (name) => /^cuscope_(recorder_|recordings|spool_|gpu_windows)/.test(name) },
	{ id: 'gpus', title: 'GPUs', of: (name, labels) => labels.has('gpu') || /^cuscope_gpus?(_|$)/.test(name) },
	{ id: 'agent', title: 'The agent itself', of: (name) => /^cuscope_(agent_|build_|lost_|unseen_)/.test(name), folded: true },
	{ id: 'total', title: 'All processes', of: (name) => /^cuscope_/.test(name) },
	{ id: 'more', title: 'More', of: () => true },
];

export const PART_ORDER = ['total', 'gpus', 'processes', 'ranks', 'leaks', 'recorder', 'more', 'agent'];

const MISSED = /lost_events|unseen|left_out|over_share|unmatched|_failed|refused_files|bypassed|without_room/;
const UNITS = /** @type {[RegExp, string, string, string, number][]} */ ([ // ending, type of a value, of a rate, unit in the name, factor
	[/_bytes$/, 'bytes', 'rate', '', 1],
	[/_bytes_per_second$/, 'rate', '', '', 1],
	[/_start_time_seconds$/, 'text', '', '', 1],
	[/_seconds$/, 'duration', 'percent', '', 1e9],
	[/_ratio$/, 'percent', 'percent', '', 100],
	[/_watts$/, 'real', 'real', ' (W)', 1],
	[/_joules$/, 'real', 'real', ' (W)', 1],
	[/_celsius$/, 'real', 'real', ' (°C)', 1],
	[/_hertz$/, 'real', 'real', ' (MHz)', 1e-6],
]);

/** @param {Family} family @returns {Part} */
export function partOf(family) {
	const labels = new Set(family.samples.slice(0, 1).flatMap((sample) => sample.labels.map(([name]) => name)));
	return /** @type {Part} */ (PARTS.find((part) => part.of(family.name, labels)));
}

/**
 * How a family is shown: "launches/s" of cuscope_process_launches_total. Scale: by which its numbers are multiplied.
 * @param {Family} family @param {boolean} [total] of a counter its sum, not its rate
 * @returns {Shown & {scale: number}}
 */
export function shownAs(family, total) {
	const counter = family.type === 'counter', bare = family.name.replace(/_total$|_info$/, ''), [ending, value, rate, unit, factor] =
		UNITS.find(([end]) => end.test(bare)) ?? [/$^/, 'real', 'real', '', 1];
	const words = bare.replace(/^cuscope_(process_|gpu_|ranks?_|agent_|recorder_)?/, '').replace(counter && value === 'bytes' ? '' : ending, '').replace(/_/g, ' ') || 'all';
	const type = counter && !total ? rate || value : value, perSecond = counter && !total && type !== 'percent' && !unit;
	return { name: words + unit + (counter && type === 'percent' ? ' time' : '') + (perSecond ? '/s' : ''), type,
		about: `${family.help}${counter && !total ? type === 'percent' ? ': share of the last interval' : ': in the last interval, a second' : ''} (${family.name})`,
		scale: counter && type === 'percent' ? 100 : counter && !total && type === 'rate' ? 1 : factor };
}

/**
 * A number as its column shows it; a time since 1970 is text.
 * @param {Shown & {scale: number}} shown @param {number | null} number @returns {unknown}
 */
export function cellOf(shown, number) {
	if (number === null)
		return null;
	return shown.type === 'text' ? new Date(1000 * number).toISOString().replace(/\..*/, ' UTC').replace('T', ' ') : scaled(shown, number);
}

/**
 * As it is read: no fraction where it says nothing.
 * @param {{type: string, scale: number}} shown @param {number} number @returns {number}
 */
export function scaled(shown, number) {
	const value = shown.scale * number;
	return shown.type === 'real' && Math.abs(value) >= 10 ? Math.round(value) : value;
}

/**
 * A table: rows are told apart by these labels.
 * @typedef {{labels: string[], families: Family[]}} Grouped
 */

/**
 * Families with the same names of labels belong together.
 * @param {Family[]} families @returns {Grouped[]} those with the fewest labels first
 */
export function grouped(families) {
	const groups = /** @type {Map<string, Grouped>} */ (new Map());
	for (const family of families) {
		if (/_info$/.test(family.name))
			continue;
		const labels = [...new Set(family.samples.flatMap((sample) => sample.labels.map(([name]) => name)))];
		if (labels.includes('process') && !labels.includes('pid')) // of all others
			labels.unshift('pid');
		const key = labels.join();
		const group = groups.get(key) ?? { labels, families: [] };
		groups.set(key, group);
		group.families.push(family);
	}
	return [...groups.values()].sort((a, b) => a.labels.length - b.labels.length);
}

/** @param {Sample} sample @param {string[]} labels @returns {string[]} */
function valuesOf(sample, labels) {
	const of = new Map(sample.labels);
	return labels.map((label) => of.get(label) ?? '');
}

/**
 * @typedef {{shown: Shown & {scale: number}, numbers: Map<string, {key: string, number: number | null}>}} Numbers
 * @typedef {{columns: Shown[], rows: unknown[][], keys: string[], samples: string[], failing: boolean[]}} Rows
 *   Samples: of each row the key of its first figure; failing: it had errors in the last interval
 */

/** @param {string[]} values @returns {string} */
export function keyOf(values) {
	return values.join(' ');
}

/**
 * Numbers of a family by the row that they are in; of one with more labels than the table these are in the column's name.
 * @param {Family} family @param {string[]} labels @param {(type: string, sample: Sample) => number | null} numberOf @param {boolean} [total]
 * @returns {Numbers[]}
 */
function numbersOf(family, labels, numberOf, total) {
	const shown = shownAs(family, total), columns = /** @type {Map<string, Numbers>} */ (new Map());
	for (const sample of family.samples) {
		const more = sample.labels.filter(([name]) => !labels.includes(name)).map(([, value]) => value).join(' '), column = columns.get(more) ??
			{ shown: more ? { ...shown, name: `${more} ${shown.name}` } : shown, numbers: new Map() };
		columns.set(more, column);
		column.numbers.set(keyOf(valuesOf(sample, labels)), { key: sample.key, number: total ? finite(sample.value) : numberOf(family.type, sample) });
	}
	return [...columns.values()];
}

const MOST_PIVOTED = 8, LAST = 'UUID'; // a label that nobody reads first

/**
 * Rows of a table: its labels, a column for each family (of a counter that counts, not measures, its sum as well), those of bytes of families
 * with one label more, and what info families say of the same labels.
 * @param {Grouped} group @param {Family[]} all families of the part @param {(type: string, sample: Sample) => number | null} numberOf
 * @param {boolean} whole rows of nothing but 0 are there, too
 * @returns {Rows}
 */
export function rowsOfGroup(group, all, numberOf, whole) {
	const { labels, families } = group, entities = /** @type {Map<string, string[]>} */ (new Map());
	for (const sample of families.flatMap((family) => family.samples)) {
		const values = valuesOf(sample, labels);
		entities.set(keyOf(values), values);
	}
	const pivoted = all.filter(({ name, samples }) => /_bytes(_total)?$/.test(name) && samples[0].labels.length === labels.length + 1 &&
		labels.every((label) => samples[0].labels.some(([own]) => own === label)));
	const columns = [...families.flatMap((family) => [...numbersOf(family, labels, numberOf),
		...(family.type === 'counter' && shownAs(family).type === 'real' && !/joules/.test(family.name) ? numbersOf(family, labels, numberOf, true) : [])]),
		...pivoted.map((family) => numbersOf(family, labels, numberOf)).filter((made) => made.length <= MOST_PIVOTED).flat()];
	const told = toldBy(all.filter((family) => /_info$/.test(family.name)), labels);
	for (const [key, values] of told.entities)
		entities.set(key, values);
	const keys = [...entities.keys()].filter((key) => whole || columns.some((column) => column.numbers.get(key)?.number)),
		front = labels.filter((name) => name !== LAST), words = [...labels.filter((name) => name === LAST), ...told.names],
		failing = families.filter(({ name }) => /_errors_total$/.test(name)).flatMap((family) => numbersOf(family, labels, numberOf));
	const wordOf = (/** @type {string} */ key, /** @type {string} */ name) => labels.includes(name) ? entities.get(key)?.[labels.indexOf(name)] || null :
		told.of.get(key)?.get(name) ?? null;
	return {
		columns: [...front.map((name) => ({ name: headOf(name), type: isNumber(name) ? 'number' : 'word', about: `label ${name}` })),
			...columns.map(({ shown }) => ({ ...shown, name: headOf(shown.name) })),
			...words.map((name) => ({ name: headOf(name), type: 'word', about: `label ${name}` }))],
		rows: keys.map((key) => [...front.map((name) => isNumber(name) && /^\d{1,15}$/.test(wordOf(key, name) ?? '') ? Number(wordOf(key, name)) :
			wordOf(key, name)), ...columns.map(({ shown, numbers }) => cellOf(shown, numbers.get(key)?.number ?? null)), ...words.map((name) => wordOf(key, name))]),
		keys,
		samples: keys.map((key) => columns[0]?.numbers.get(key)?.key ?? ''),
		failing: keys.map((key) => failing.some(({ numbers }) => (numbers.get(key)?.number ?? 0) > 0)),
	};
}

/** @param {string} name of a label @returns {boolean} */
function isNumber(name) {
	return name === 'pid' || name === 'gpu';
}

/** @param {string} name @returns {string} as tables of top have it: LAUNCHES/s */
function headOf(name) {
	return name.replace(/_/g, ' ').replace(/^[^/(]+/, (words) => words.toUpperCase());
}

/**
 * What info families say of entities with these labels.
 * @param {Family[]} infos @param {string[]} labels
 */
function toldBy(infos, labels) {
	const of = /** @type {Map<string, Map<string, string>>} */ (new Map()), names = /** @type {Set<string>} */ (new Set()),
		entities = /** @type {Map<string, string[]>} */ (new Map());
	for (const sample of infos.flatMap((family) => family.samples)) {
		const own = new Map(sample.labels), values = valuesOf(sample, labels), key = keyOf(values);
		if (!labels.length || !labels.every((label) => own.has(label)))
			continue;
		for (const label of labels)
			own.delete(label);
		for (const name of own.keys())
			names.add(name);
		of.set(key, own);
		entities.set(key, values);
	}
	return { of, names: [...names], entities };
}

/**
 * Sentences of what the figures lack, the greatest first.
 * @param {Family[]} families @returns {string[]}
 */
export function lackedSentences(families) {
	const lacked = families.filter((family) => MISSED.test(family.name) && !family.samples.some((sample) => sample.labels.some(([name]) => name === 'gpu')))
		.flatMap((family) => family.samples.map((sample) => ({ family, sample }))).filter(({ sample }) => sample.value > 0);
	lacked.sort((a, b) => b.sample.value - a.sample.value);
	return lacked.slice(0, 40).map(({ family, sample }) => {
		const words = family.name.replace(/^cuscope_/, '').replace(/_total$/, '').replace(/_/g, ' '), of = sample.labels.map(([, value]) => value).join(', ');
		return `${countText(sample.value)} ${words}${of ? ` (${of})` : ''}: ${family.help}`;
	});
}
