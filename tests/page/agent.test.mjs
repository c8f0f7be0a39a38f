// SPDX-License-Identifier: MIT
// Modules of the agent's page that need no page.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import test from 'node:test';

import { eventsOf } from '../../src/page/agent/account.js';
import { readExposition } from '../../src/page/agent/exposition.js';
import { grouped, lackedSentences, PART_ORDER, partOf, PARTS, rowsOfGroup, shownAs } from '../../src/page/agent/parts.js';
import { Readings } from '../../src/page/agent/readings.js';

const SECOND = 1e9;
const text = (snapshots, lines) => `# TYPE cuscope_agent_snapshots_total counter\ncuscope_agent_snapshots_total ${snapshots}\n` +
	'# TYPE cuscope_agent_figures_age_seconds gauge\ncuscope_agent_figures_age_seconds 0.25\n' + lines;
const counter = (name, value, labels = '') => `# TYPE ${name} counter\n# HELP ${name} About ${name}\n${name}${labels} ${value}\n`;
const tableOf = (lines, labels, whole = false, rates = {}) => {
	const { families } = readExposition(lines), group = grouped(families).find((its) => its.labels.join() === labels);
	return rowsOfGroup(group, families, (type, { key, value }) => type === 'counter' ? rates[key] ?? null : value, whole);
};

test('exposition: families with what they mean, and every label as it was', () => {
	const { families, unreadable } = readExposition('# TYPE a_total counter\n# HELP a_total so\\nmany\na_total{x="a\\"b\\\\\\n",y=""} 7\n' +
		'a_total 1e3\n# odd\n# TYPE empty gauge\nb{z="}"} NaN\nc +Inf\n');
	assert.deepEqual(families.map(({ name, type, help }) => [name, type, help]), [['a_total', 'counter', 'so\nmany'], ['b', 'untyped', ''], ['c', 'untyped', '']]);
	assert.deepEqual(families[0].samples, [{ name: 'a_total', labels: [['x', 'a"b\\\n'], ['y', '']], key: 'a_total{x="a\\"b\\\\\\n",y=""}', value: 7 },
		{ name: 'a_total', labels: [], key: 'a_total', value: 1000 }]);
	assert.ok(Number.isNaN(families[1].samples[0].value));
	assert.deepEqual([families[1].samples[0].labels, families[2].samples[0].value, unreadable], [[['z', '}']], Infinity, 0]);
});

test('events: each with its data, and the last number', () => {
	assert.deepEqual(eventsOf('retry: 1000\nevent: why\ndata: {"a: b":1}\n\nretry: 1000\nid: 4.2\ndata: {}\n\n'),
		{ id: '4.2', of: new Map([['why', '{"a: b":1}'], ['message', '{}']]) });
	assert.deepEqual(eventsOf('retry: 300\n\n'), { id: '', of: new Map() });
	assert.deepEqual(eventsOf('\n\n:\nid\ndata'), { id: '', of: new Map() });
});

test('exposition: what is none is counted, in a time that goes by its length', () => {
	const odd = ['a{', 'a{x="1" 3', 'a{x="1"', 'a{x=1} 3', '{} 3', 'a', 'a x', '7 7', 'a{x="\\', `a{${'x="1",'.repeat(70)}} 3`];
	assert.equal(readExposition(odd.join('\n')).unreadable, odd.length);
	const began = performance.now(), long = 'x'.repeat(1 << 20);
	readExposition(`a{${'x="1",'.repeat(100000)}`);
	readExposition(`a{x="${'\\'.repeat(1 << 20)}`);
	readExposition(`# HELP ${long} ${long}\n# TYPE ${long}\n${long}`);
	assert.equal(readExposition('a 1\n'.repeat(60000)).unreadable, 10000);
	assert.ok(performance.now() - began < 2000);
});

test('exposition: names of an object are names of metrics', () => {
	const { families } = readExposition('constructor 1\n__proto__ 2\ntoString{__proto__="3"} 4\n');
	assert.deepEqual(families.map(({ name, samples }) => [name, samples[0].value]), [['constructor', 1], ['__proto__', 2], ['toString', 4]]);
});

test('readings: rates are over the time between two snapshots, as the agent made them', () => {
	const readings = new Readings();
	assert.ok(readings.take(text(1, counter('n_total', 10)), 10 * SECOND));
	assert.deepEqual([readings.one('n_total'), readings.spanNs], [null, 0]);
	assert.equal(readings.take(text(1, counter('n_total', 10)), 11 * SECOND), false);
	assert.ok(readings.take(text(3, counter('n_total', 30)), 14 * SECOND));
	assert.deepEqual([readings.one('n_total'), readings.spanNs, readings.intervalNs], [5, 4 * SECOND, 2 * SECOND]);
	assert.equal(readings.ns, 13.75 * SECOND);
});

test('readings: an agent that began again has no rates from before, and a counter that fell none', () => {
	const readings = new Readings();
	readings.take(text(5, counter('n_total', 10)), 10 * SECOND);
	readings.take(text(6, counter('n_total', 4)), 11 * SECOND);
	assert.equal(readings.one('n_total'), null);
	readings.take(text(1, counter('n_total', 400)), 12 * SECOND);
	assert.equal(readings.one('n_total'), null);
	readings.take(text(2, counter('n_total', 401)), 13 * SECOND);
	assert.equal(readings.one('n_total'), 1);
	assert.equal(readings.take('nothing', 14 * SECOND), false);
	assert.equal(readings.one('n_total'), 1);
});

test('readings: only what is drawn has a history, in a bound', () => {
	const readings = new Readings(), many = Array.from({ length: 3000 }, (_, i) => `g{pid="${i}"} ${i}\n`).join('');
	readings.take(text(1, many), SECOND);
	assert.equal(readings.histories.size, 0);
	for (let i = 0; i < 3000; i++)
		readings.pointsOf(`g{pid="${i}"}`);
	readings.take(text(2, many), 2 * SECOND);
	assert.equal(readings.histories.size, 1200);
	assert.deepEqual(readings.pointsOf('g{pid="7"}').map(({ value }) => value), [7]);
	readings.take(text(3, ''), 3 * SECOND);
	assert.equal(readings.histories.size, 0);
});

test('parts: each family is in one, also one that nobody has heard of', () => {
	const of = (line) => partOf(readExposition(line).families[0]).id;
	assert.deepEqual(['cuscope_launches_total 1', 'cuscope_process_errors_total{pid="1",process="x"} 1', 'cuscope_process_copies_total{process="other"} 1',
		'cuscope_gpu_busy_ratio{gpu="0"} 1', 'cuscope_gpus 1', 'cuscope_gpu_windows_total 1', 'cuscope_rank_late_seconds_total{pid="1",communicator="a"} 1',
		'cuscope_recordings_total 1', 'cuscope_spool_bytes 1', 'cuscope_agent_cpu_seconds_total 1', 'cuscope_suspected_leak_bytes{pid="1"} 1',
		'cuscope_process_new_total{pid="1"} 1', 'cuscope_new 1', 'new 1', 'new{pid="1"} 1'].map(of), ['total', 'processes', 'processes', 'gpus', 'gpus', 'recorder',
		'ranks', 'recorder', 'recorder', 'agent', 'leaks', 'processes', 'total', 'more', 'processes']);
	assert.deepEqual([...PART_ORDER].sort(), PARTS.map(({ id }) => id).sort());
});

test('parts: names and units go by the ending', () => {
	const as = (name, type, total) => {
		const { name: shown, type: unit, scale } = shownAs({ name, type, help: '', samples: [] }, total);
		return [shown, unit, scale];
	};
	assert.deepEqual(as('cuscope_process_launches_total', 'counter'), ['launches/s', 'real', 1]);
	assert.deepEqual(as('cuscope_process_launches_total', 'counter', true), ['launches', 'real', 1]);
	assert.deepEqual(as('cuscope_launch_seconds_total', 'counter'), ['launch time', 'percent', 100]);
	assert.deepEqual(as('cuscope_copy_bytes_total', 'counter'), ['copy bytes/s', 'rate', 1]);
	assert.deepEqual(as('cuscope_live_bytes', 'gauge'), ['live', 'bytes', 1]);
	assert.deepEqual(as('cuscope_rank_missing_seconds', 'gauge'), ['missing', 'duration', 1e9]);
	assert.deepEqual(as('cuscope_gpu_busy_ratio', 'gauge'), ['busy', 'percent', 100]);
	assert.deepEqual(as('cuscope_gpu_sm_clock_hertz', 'gauge'), ['sm clock (MHz)', 'real', 1e-6]);
	assert.deepEqual(as('cuscope_gpu_energy_joules_total', 'counter'), ['energy (W)', 'real', 1]);
});

test('parts: a table has a row for each process, with memory by kind and who it is', () => {
	const lines = '# TYPE cuscope_process_info gauge\ncuscope_process_info{pid="7",process="a",user="root"} 1\ncuscope_process_info{pid="9",process="c",user="me"} 1\n' +
		counter('cuscope_process_launches_total', 5, '{pid="7",process="a"}') + 'cuscope_process_launches_total{process="other"} 2\n' +
		'# TYPE cuscope_process_live_bytes gauge\ncuscope_process_live_bytes{pid="7",process="a",kind="device"} 64\n';
	const { columns, rows } = tableOf(lines, 'pid,process', true, { 'cuscope_process_launches_total{pid="7",process="a"}': 123.4 });
	assert.deepEqual(columns.map(({ name }) => name), ['PID', 'PROCESS', 'LAUNCHES/s', 'LAUNCHES', 'DEVICE LIVE', 'USER']);
	assert.deepEqual(rows, [[7, 'a', 123, 5, 64, 'root'], [null, 'other', null, 2, null, null], [9, 'c', null, null, null, 'me']]);
	assert.deepEqual(tableOf(lines, 'pid,process,kind').rows, [[7, 'a', 'device', 64]]);
});

test('parts: rows of nothing but 0 are left out where they say nothing, and rows that fail are marked', () => {
	const lines = counter('cuscope_process_errors_total', 3, '{pid="7",process="a"}') + 'cuscope_process_errors_total{pid="8",process="b"} 3\n' +
		'# TYPE cuscope_gpu_throttled gauge\ncuscope_gpu_throttled{gpu="0",reason="x"} 0\ncuscope_gpu_throttled{gpu="0",reason="y"} 1\n';
	assert.deepEqual(tableOf(lines, 'gpu,reason').rows, [[0, 'y', 1]]);
	assert.deepEqual(tableOf(lines, 'pid,process', true, { 'cuscope_process_errors_total{pid="8",process="b"}': 1 }).failing, [false, true]);
});

test('parts: what the figures lack, in sentences', () => {
	const { families } = readExposition(counter('cuscope_lost_events_total', 3, '{reason="late"}') + 'cuscope_lost_events_total{reason="texts"} 0\n' +
		'cuscope_suspected_leaks_left_out 9\ncuscope_gpu_remapped_rows_failed{gpu="0"} 1\ncuscope_launches_total 5\n');
	assert.deepEqual(lackedSentences(families), ['9 suspected leaks left out: ', '3 lost events (late): About cuscope_lost_events_total']);
});

test('modules: no two of the script have something of one name', () => {
	const folder = new URL('../../src/page/', import.meta.url), names = new Map(), shared = ['history', 'spark', 'rows', 'frame'].map((name) => `live/${name}.js`),
		files = ['text', 'units', 'elements', 'tables', 'colors'].map((name) => `js/${name}.js`);
	for (const file of [...files, ...shared, ...readdirSync(new URL('agent/', folder)).map((name) => `agent/${name}`)]) {
		for (const [, name] of readFileSync(new URL(file, folder), 'utf8').matchAll(/^(?:export )?(?:async )?(?:function|class|const|let) (\w+|[{[][^=]*)/gm)) {
			assert.ok(!names.has(name), `${name} is in ${file} and in ${names.get(name)}`);
			names.set(name, file);
		}
	}
	assert.ok(names.size > 60);
});
