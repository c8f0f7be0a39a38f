// SPDX-License-Identifier: MIT
// Modules of the live page that need no page.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import test from 'node:test';

import { accountOf, timeOf } from '../../src/page/live/account.js';
import { PROCESS_COLUMNS, PROCESS_SERIES, PROCESS_TABLES, processName, rowsOf } from '../../src/page/live/figures.js';
import { History, HISTORY_NS, linesOf } from '../../src/page/live/history.js';
import { missedSentences } from '../../src/page/live/missed.js';
import { keyed, Model, MOST_HISTORIES } from '../../src/page/live/model.js';
import { patienceMs } from '../../src/page/live/frame.js';
import { figureText } from '../../src/page/live/spark.js';
import { clockText } from '../../src/page/js/units.js';

const SECOND = 1e9;
const process = (pid, more = {}) => ({ pid, name: 'python3', calls: 10, calls_per_second: 5, memory: { all: { bytes: 1 } }, ...more });
const page = (second, processes, more = {}) => JSON.stringify({ counting_ns: second * SECOND, interval_ns: SECOND, processes, gpus: [],
	total: { calls_per_second: 7 }, ...more });
const values = (history, series) => history.points(series).map((point) => point.value);

test('history: two minutes, in a bound, and what is not known', () => {
	const history = new History(2);
	for (let second = 1; second <= 1000; second++)
		history.add(second * SECOND, [second, second % 2 ? null : 1]);
	const points = history.points(0);
	assert.deepEqual([points[0].ns, points.at(-1).value, points.length], [880 * SECOND, 1000, HISTORY_NS / SECOND + 1]);
	assert.ok(Number.isNaN(history.points(1)[1].value));
	for (let i = 0; i < 100000; i++)
		history.add(1000 * SECOND + i, [i, 0]);
	assert.equal(history.points(0).length, 256);
	assert.equal(history.points(0).at(-1).value, 99999);
	history.clear();
	assert.deepEqual(history.points(0), []);
});

test('history: a line ends where a figure is not known, and where figures stayed away', () => {
	const points = [[0, 1], [1, 2], [2, NaN], [3, 3], [4, 4], [14, 5]].map(([second, value]) => ({ ns: second * SECOND, value }));
	assert.deepEqual(linesOf(points, 3.5 * SECOND).map((line) => line.map((point) => point.value)), [[1, 2], [3, 4], [5]]);
	assert.deepEqual(linesOf([], 1), []);
});

test('processes: a key for each, also of two with one pid', () => {
	const keys = keyed([process(5, { ended: true }), process(5), process(6, { ended: true }),
		process(5, { ended: true })]).map(({ key }) => key);
	assert.deepEqual(keys, ['5 ended', '5', '6', '5 ended 1']);
});

test('model: histories of what is there, of the open process, and no more than the bound', () => {
	const model = new Model(), many = Array.from({ length: 500 }, (_, i) => process(i + 1));
	assert.ok(model.take(page(1, many)));
	assert.equal(model.histories.size, MOST_HISTORIES);
	assert.ok(model.take(page(2, [process(1), process(900)]), '2'));
	assert.deepEqual([...model.histories.keys()], ['1', '2', '900']);
	assert.deepEqual(values(model.historyOf('1'), 0), [5, 5]);
	assert.deepEqual([model.historyOf('2').points(0).length, model.processOf('2'), model.historyOf('3')], [1, null, null]);
	assert.deepEqual(values(model.total, 0), [7, 7]);
});

test('model: another process with its pid, and counting that begins anew, begin another history', () => {
	const model = new Model();
	model.take(page(1, [process(1, { calls: 100 })]));
	model.take(page(2, [process(1, { calls: 3, calls_per_second: 3 })]));
	assert.deepEqual(values(model.historyOf('1'), 0), [3]);
	model.take(page(3, [process(1, { calls: 4, ended: true })]));
	assert.equal(model.historyOf('1').points(0).length, 1);
	model.take(page(1, [process(1, { calls: 9, calls_per_second: 9 })]));
	assert.deepEqual([values(model.historyOf('1'), 0), values(model.total, 0)], [[9], [7]]);
});

test('model: what is no figures is counted, and leaves those that are there', () => {
	const model = new Model();
	model.take(page(1, [process(1)]));
	for (const text of ['', '{', '7', 'null', '[]', '{"counting_ns":"1"}', '{"counting_ns":1e999}'])
		assert.equal(model.take(text), false);
	assert.deepEqual([model.unreadable, model.processes.length], [7, 1]);
	for (const odd of [{ processes: 7, gpus: { 0: 1 }, total: null }, { processes: [null, 3, { pid: {} }], gpus: [null, {}] }])
		assert.ok(model.take(JSON.stringify({ counting_ns: 2e9, ...odd })));
});

test('model: GPUs have histories', () => {
	const model = new Model(), gpus = [{ name: 'a', busy_percent: 40, power_mw: null }, { name: 'b', busy_percent: 0 }];
	model.take(page(1, [], { gpus }));
	assert.deepEqual(model.gpus.map((history) => values(history, 0)), [[40], [0]]);
	assert.ok(Number.isNaN(values(model.gpus[0], 2)[0]));
});

test('figures: names as top has them', () => {
	assert.equal(processName({ name: 'python3', command: 'python3 /srv/a/train.py', rank: '3' }), 'train.py #3');
	assert.equal(processName({ name: 'python3', command: 'python3.11 x', ended: true }), 'python3 (ended)');
	assert.equal(processName({}), '');
});

test('figures: columns that nothing is known for are left out, and what takes returns is not known without', () => {
	const { columns, rows } = rowsOf(PROCESS_COLUMNS, [process(1, { errors: 2 }), process(2, { entries_only: true, errors: 0, rank: '0' })]);
	const at = (name) => columns.findIndex((column) => column.name === name);
	assert.equal(at('GPU'), -1);
	assert.deepEqual([rows[0][at('RANK')], rows[1][at('RANK')]], [null, '0']);
	assert.deepEqual(['ERRORS', 'MEMORY', 'PEAK'].map((name) => rows[1][at(name)]), [null, null, null]);
	assert.equal(rows[0][at('ERRORS')], 2);
	assert.ok(PROCESS_SERIES.every((series) => series.of({}) === null || series.of({}) === 0));
});

test('figures: tables of a process', () => {
	const its = { launches: 10, kernels: [{ name: 'k', launches: 5, gpu_runs: 2, gpu_time_ns: 8 }],
		streams: [{ stream: '0x0' }, { stream: '0x2', tid: 7 }, { stream: 'others' }],
		memory: { all: { bytes: 3 }, 'vmm-va': { bytes: 9 }, odd: 7 }, transfers: { unknown: { bytes: 4 } },
			functions: [{ name: 'f', counted: 3 }] };
	const of = (title) => {
		const { rows, columns } = PROCESS_TABLES.find((table) => table.title === title);
		return rowsOf(columns, rows(its), its).rows;
	};
	assert.deepEqual(of('Kernels'), [['k', 5, null, 50, 8, 4]]);
	assert.deepEqual(of('Streams').map((row) => row[0]), ['0 (default)', 'of thread 7', '(others)']);
	assert.deepEqual(of('Memory by kind').map((row) => row[0]), ['all', 'vmm-va (addresses only)']);
	assert.deepEqual(of('Transfers')[0].slice(0, 1), ['not known']);
	assert.equal(of('Functions')[0][0], 'f +');
	for (const { rows, columns } of PROCESS_TABLES)
		assert.deepEqual(rowsOf(columns, rows({ kernels: 3, memory: null, transfers: 'x' }), {}).rows, []);
});

test('missed: sentences, in a bound; none where nothing was', () => {
	assert.deepEqual(missedSentences({ estimate_scale: 1, missed: { complete: true, lost: { ring_full: 0 }, hooks: [] } }), []);
	assert.deepEqual(missedSentences({ estimate_scale: 2.5, missed: { complete: false, lost: { ring_full: 1234, odd: 1 },
		stacks: { not_walked: 2 }, hooks: [
		{ kind: 'unhooked', name: 'cuEventQuery', lib: 'libcuda.so.1', pid: 7, why: 'too often' },
			{ kind: 'counted', lib: 'x', processes: 3, calls: 10, why: '' }] } }), [
		'1,234 calls lost: cuscope did not keep up', '1 odd', 'Tracing gives up detail to stay cheap: counts are too low by a factor of 2.5.',
		'unhooked: cuEventQuery of libcuda.so.1 in process 7: too often', 'counted inside of the process: x in 3 processes 10 calls',
			'stacks: 2 not walked']);
	assert.deepEqual(missedSentences({ missed: { complete: false } }), ['Not all was seen.']);
	assert.equal(missedSentences({ missed: { hooks: Array(100).fill({ kind: 'failed' }) } }).length, 41);
	assert.deepEqual(missedSentences({ missed: 7 }), []);
});

test('account: what can be read, and which seconds it is of', () => {
	for (const text of ['', '{', '7', 'null', '[]', '{"state":7}'])
		assert.equal(accountOf(text), null);
	const it = accountOf('{"state":"answer","from_ns":10000000000,"until_ns":20000000000,"why":{}}');
	assert.equal(timeOf(it, 23.4e9), 'Of 10 s, until 3 s ago.');
	assert.equal(timeOf(it, null), 'Of 10 s, until 0 s ago.');
	assert.equal(timeOf({ state: 'answer', from_ns: 'x', until_ns: {} }, 1e9), 'Of 0 ns, until 1 s ago.');
	assert.equal(timeOf({ state: 'failed', sentence: 'no room' }, 1e9), 'no room');
	assert.equal(timeOf({ state: 'recording' }, 1e9), '');
});

test('text: spans, figures, and how long figures may stay away', () => {
	assert.deepEqual([0, 5e9, 245e9, 3600e9, 90061e9].map(clockText), ['0 s', '5 s', '4 min 5 s', '1 h 0 min', '25 h 1 min']);
	assert.deepEqual([figureText('watts', 412345), figureText('celsius', 52), figureText('percent', 9.96), figureText('percent', 55.5),
		figureText('bytes', null)], ['412 W', '52 °C', '10 %', '56 %', '–']);
	assert.deepEqual([0, 1e9, 10e9].map(patienceMs), [3000, 3000, 30000]);
});

for (const [script, modules] of [['live', ['text', 'units', 'elements', 'tables', 'colors', 'why']], ['profile', ['text', 'units', 'elements', 'tables', 'reports']]]) {
	test(`modules: no two of the script ${script} have something of one name`, () => {
		const folder = new URL('../../src/page/', import.meta.url), names = new Map(), files = modules.map((name) => `js/${name}.js`);
		for (const file of [...files, ...readdirSync(new URL(script + '/', folder)).map((name) => `${script}/${name}`)]) {
			for (const [, name] of readFileSync(new URL(file, folder), 'utf8').matchAll(/^(?:export )?(?:async )?(?:function|class|const|let) (\w+|[{[][^=]*)/gm)) {
				assert.ok(!names.has(name), `${name} is in ${file} and in ${names.get(name)}`);
				names.set(name, file);
			}
		}
		assert.ok(names.size > 40);
	});
}
