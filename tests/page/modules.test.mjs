// SPDX-License-Identifier: MIT
// Modules of the page that need no page, against the generator's truth.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import test from 'node:test';
import { deflateSync } from 'node:zlib';

import { columnsOf, partsOf, sharesOf } from '../../src/page/js/account.js';
import { bytesOfBlock, firstAfter, inflate, readBins, readBits, readColumn, readRows, readStacks, readVarint } from '../../src/page/js/decode.js';
import { longestOf, namesWith, peersOf, stepTo, sumsOfNames } from '../../src/page/js/find.js';
import { addStack, boxesOf, weigh } from '../../src/page/js/flame.js';
import { Layout } from '../../src/page/js/layout.js';
import { classesOf } from '../../src/page/js/panel.js';
import { sumTrack } from '../../src/page/js/span.js';
import { Store } from '../../src/page/js/store.js';
import { filtered, headText, shortWords, sorted } from '../../src/page/js/tables.js';
import { csvText, cut, shown } from '../../src/page/js/text.js';
import { bytesText, cellText, countText, durationText, niceStep, readTime } from '../../src/page/js/units.js';
import { View } from '../../src/page/js/view.js';
import { Bytes, COLUMNS, encodeRows, keepRows, PageMaker, setBlockRows, sumsWithin, training } from './make_page.mjs';

setBlockRows(512);

const cursor = (bytes) => ({ data: Uint8Array.from(bytes), at: 0, end: bytes.length });
const always = () => true;

/** The store of a page that is not in a browser. */
function storeOf(page) {
	page.index.tracks.forEach((_, track) => page.close(track));
	return new Store(JSON.parse(JSON.stringify(page.index)), async (id) => page.packed[Number(id.slice(1))]);
}

test('varints: up to 2^53, and no further', () => {
	for (const value of [0, 1, 127, 128, 300, 2 ** 31, 2 ** 32 + 5, Number.MAX_SAFE_INTEGER]) {
		const bytes = new Bytes();
		bytes.varint(value);
		assert.equal(readVarint(cursor(bytes.get())), value);
	}
	assert.throws(() => readVarint(cursor([128, 128])));
	assert.throws(() => readVarint(cursor([255, 255, 255, 255, 255, 255, 255, 127])));
	assert.throws(() => readVarint(cursor(Array(20).fill(255))));
});

test('columns: deltas of both kinds', () => {
	assert.deepEqual([...readColumn(cursor([5, 0, 3]), 'delta', 3, 100)], [105, 105, 108]);
	assert.deepEqual([...readColumn(cursor([4, 1, 3]), 'sdelta', 3, 100)], [2, 1, -1]);
});

test('columns: bits of numbers of any size, and none that are more than there are', () => {
	assert.deepEqual([...readBits(cursor([0, 1, 2, 9, 0b00101010, 0b1]), 4)], [0, 1, 2, 256 + 0b10010101]);
	const largest = [53, 255, 255, 255, 255, 255, 255, 15];
	assert.deepEqual([...readBits(cursor(largest), 1)], [Number.MAX_SAFE_INTEGER]);
	for (let length = 0; length < largest.length; length++)
		assert.throws(() => readBits(cursor(largest.slice(0, length)), 1));
	assert.throws(() => readBits(cursor([54, ...largest]), 1));
	assert.throws(() => readBits(cursor([1, 1]), 3));
});

test('rows: all columns come back, and the latest ends with them', () => {
	const rows = Array.from({ length: 1000 }, (_, i) => ({ begin: 500 + i * 10, dur: i === 3 ? 4000 : 7, name: i % 5, depth: i % 3, flags: i % 32, correlation: 1e6 - i * 3, detail: i % 2 ? `text ${i % 7}` : 0, stack: i % 4 }));
	const read = readRows(encodeRows('call', rows, 500), COLUMNS.call, { begin: 500, end: 20000 }), gaps = readRows(encodeRows('range', rows, 500), COLUMNS.range, { begin: 500, end: 20000 });
	assert.deepEqual(gaps.begin, read.begin);
	rows.forEach((row, i) => {
		for (const name of ['begin', 'dur', 'name', 'depth', 'flags', 'correlation', 'stack'])
			assert.equal(read.columns[name][i], row[name]);
		assert.equal(read.columns.detail[i] ? read.texts[read.columns.detail[i] - 1] : 0, row.detail);
	});
	assert.equal(firstAfter(read, 0), 0);
	assert.equal(firstAfter(read, 4529), 0); // row 3 lasts until 4530
	assert.equal(firstAfter(read, 4530), 384);
	assert.equal(firstAfter(read, 1e9), 1000);
});

test('rows: a block that is cut anywhere, or changed, ends with an error or with rows', () => {
	const rows = Array.from({ length: 30 }, (_, i) => ({ begin: i * 1000, dur: 500, name: 1, detail: `t${i}` }));
	const whole = encodeRows('range', rows, 0);
	for (let length = 0; length < whole.length; length++)
		assert.throws(() => readRows(whole.subarray(0, length), COLUMNS.range, { begin: 0, end: 1 }), Error);
	for (let i = 0; i < whole.length; i++) {
		const changed = Uint8Array.from(whole);
		changed[i] ^= 0xff;
		try {
			assert.ok(readRows(changed, COLUMNS.range, { begin: 0, end: 1 }).n <= whole.length);
		} catch (error) {
			assert.ok(error instanceof Error && !(error instanceof assert.AssertionError), String(error));
		}
	}
	assert.throws(() => readStacks(Uint8Array.from([255, 255, 3])));
});

test('inflate: what the generator packs', async () => {
	const bytes = Uint8Array.from({ length: 100000 }, (_, i) => i * 7);
	assert.deepEqual(await inflate(deflateSync(bytes)), bytes);
	await assert.rejects(inflate(Uint8Array.from([1, 2, 3])));
});

test('bins: of half a block, and none where they are damaged', () => {
	const page = new PageMaker(), track = page.track({ kind: 'work', title: '', group: '' });
	page.add(track, { begin: 0, dur: 3200, name: page.name('a') });
	page.add(track, { begin: 3200, dur: 0, name: page.name('b') });
	page.add(track, { begin: 6350, dur: 50, name: page.name('b') });
	page.close(track);
	const bins = readBins(page.index.blocks[0].bins);
	assert.deepEqual([...bins.busy].map((part) => Math.round(part * 10) / 10), [...Array(32).fill(1), ...Array(31).fill(0), 0.5]);
	assert.deepEqual([bins.name[0], bins.name[63]], [0, 1]);
	assert.equal(readBins('!!'), null);
	assert.equal(readBins('AAAA'), null);
});

test('text: nothing in it moves what is around it', () => {
	assert.equal(shown('a\u202eb\u0007\u200f\ufeff\ud800x\n'), 'a\\u{202e}b\\u{7}\\u{200f}\\u{feff}\\u{d800}x\\u{a}');
	assert.equal(shown('a\n\tb', true), 'a\n\tb');
	assert.equal(shown('plain é 你 😀'), 'plain é 你 😀');
	assert.equal(cut('😀😀😀', 4), '😀…');
	assert.equal(cut('abc', 3), 'abc');
});

test('csv: quotes, and nothing that is a formula', () => {
	assert.equal(csvText([['a,b', 'say "x"', null, 1.5, -3, 'two\nlines'], ['=1+1', '-x', '-3.5', '@a', '+1', '']]),
		'"a,b","say ""x""",,1.5,-3,"two\nlines"\r\n\'=1+1,\'-x,-3.5,\'@a,+1,\r\n');
});

test('units: of what there is, and of what is none', () => {
	assert.deepEqual([0, 999, 1234, 5e6, 1.5e9, 7.2e12, -2000, NaN, 'x'].map(durationText), ['0 ns', '999 ns', '1.234 us', '5 ms', '1.5 s', '2 h', '-2 us', 'not known', 'not known']);
	assert.deepEqual([0, 1536, 3 * 2 ** 30].map(bytesText), ['0 B', '1.5 KiB', '3 GiB']);
	assert.deepEqual([1234567, 12, -1000, 0.5].map(countText), ['1,234,567', '12', '-1,000', '0.5']);
	assert.equal(cellText('time', 1234567891), '1.234567891 s');
	assert.equal(cellText('number', '7'), '7');
	assert.deepEqual(['PID', 'Calls', 'Correlation ID', 'Paid'].map((column) => cellText('number', 12345, column)), ['12345', '12,345', '12345', '12,345']);
	assert.deepEqual(['1.5s', '20 ms', '3', '7us', 'x', ''].map(readTime), [1.5e9, 2e7, 3e9, 7000, null, null]);
	assert.deepEqual([1, 3, 7, 12, 4e5].map(niceStep), [1, 5, 10, 20, 5e5]);
});

test('tables: order, with what is not known last, and filter', () => {
	const rows = [['b', 2], ['a', null], ['c', 10]], columns = [{ name: 'n', type: 'text' }, { name: 'v', type: 'duration' }];
	assert.deepEqual(sorted(rows, 1, true).map((row) => row[0]), ['c', 'b', 'a']);
	assert.deepEqual(sorted(rows, 1, false).map((row) => row[0]), ['b', 'c', 'a']);
	assert.deepEqual(filtered(rows, columns, '10 ns c'), [['c', 10]]);
	assert.deepEqual(filtered(rows, columns, ' '), rows);
});

test('view: stays within the trace and keeps the time under the pointer', () => {
	const view = new View(1e9, () => {});
	view.zoom(0.1, 2e8);
	assert.ok(Math.abs((2e8 - view.begin) / view.length - 0.2) < 1e-9);
	view.zoom(1e-12, 2e8);
	assert.equal(Math.round(view.length), 100);
	for (let i = 0; i < 100; i++)
		view.pan(1e6);
	assert.ok(view.end < 2e9 && view.begin > 0);
	view.zoom(1e20);
	assert.ok(view.length <= 1.05e9);
	view.show(NaN, 5);
	assert.ok(view.length > 0);
});

test('view: two that move as one, each by its own times, and one alone', () => {
	let drawn = 0;
	const a = new View(1e9, () => drawn++), b = new View(3e9, () => drawn++);
	b.join(a);
	b.moveTo(5e8); // 0.5 s of B is where 0 of A is
	assert.equal(drawn, 2);
	a.show(1e8, 2e8);
	assert.deepEqual([b.begin, b.end], [6e8, 7e8]);
	b.zoom(0.5, 6e8);
	assert.ok(Math.abs(a.begin - 1e8) < 1 && Math.abs(a.end - 1.5e8) < 1);
	a.all();
	assert.ok(b.begin < 0 && b.end > 3e9 && a.length < 3.1e9);
	a.moveTo(1e8);
	assert.ok(b.begin < -9e6 && a.begin - b.begin === 1e8 - 5e8);
	b.moveTo(NaN);
	assert.equal(b.shift, 0);
});

test('layout: groups open and close, and what is within a height', () => {
	let number = 0;
	const track = (group, kind, tid = 0, waits = { all: 1, blocked: 0 }) => ({ group, kind, depth: 0, number: number++, tid, process: 0, waits });
	const layout = new Layout([track('a', 'call'), track('b', 'work'), track('a', 'state')]);
	assert.deepEqual(layout.lines.map((line) => line.track?.kind ?? line.group), ['a', 'call', 'state', 'b', 'work']);
	layout.toggle('a');
	assert.equal(layout.lines.length, 3);
	assert.deepEqual(layout.within(0, 1).map((line) => line.group), ['a']);
	assert.equal(layout.lineOf(layout.tracks[2])?.track?.kind, 'state');
	assert.equal(layout.lines.length, 5);
	const idle = { all: 100, blocked: 96 };
	const many = new Layout([track('a', 'call', 1), track('gpu', 'counter'), track('a', 'state', 2, idle), track('a', 'state', 1, idle), track('a', 'state', 3, idle), track('a', 'account'), track('a', 'state', 4, idle)]);
	assert.deepEqual(many.lines.map((line) => line.track ? `${line.track.kind} ${line.track.tid}` : line.group),
		['a', 'account 0', 'call 1', 'state 1', 'a: more threads, blocked nearly all the time', 'gpu', 'counter 0']);
	assert.equal(many.lineOf(many.tracks[2])?.track?.tid, 2);
});

test('account: rows that stand side by side are shares of parts', () => {
	const rows = [[100, 60, 0], [160, 40, 1], [200, 100, 1], [300, 70, 1], [370, 30, 0], [500, 50, 2]].map(([begin, dur, name]) => ({ begin, dur, name }));
	const read = readRows(encodeRows('account', rows, 100), COLUMNS.account, { begin: 100, end: 550 });
	assert.deepEqual(partsOf(read).map((part) => [part.begin_ns, part.end_ns, part.end - part.first]), [[100, 200, 2], [200, 300, 1], [300, 400, 2], [500, 550, 1]]);
	assert.deepEqual(sharesOf(read, partsOf(read)[2]), [{ row: 4, low: 0, high: 0.3 }, { row: 3, low: 0.3, high: 1 }]);
	const { names, shares, cover } = columnsOf(read, 100, 500, 4);
	assert.deepEqual([names, [...shares.get(0)].map((part) => Math.round(part * 10) / 10), [...cover]], [[0, 1], [0.6, 0, 0.3, 0], [1, 1, 1, 0]]);
});

test('spans: blocks by their sums and edges by their rows give what the rows give', async () => {
	const watch = keepRows('call'), { page } = training({ rows: 60000, gpus: 1 });
	watch.stop();
	const store = storeOf(page), end = page.index.run.duration_ns, track = store.tracks[0];
	assert.ok(track.blocks.length > 2);
	for (const [from, to] of [[0.1, 0.9], [0.45, 0.46], [0, 0.5]]) {
		const seen = await sumTrack(store, track, Math.round(from * end), Math.round(to * end), always), truth = sumsWithin(watch.kept, Math.round(from * end), Math.round(to * end));
		assert.equal(seen.size, truth.size);
		for (const [name, { n, ns, within }] of truth)
			assert.deepEqual([name, seen.get(name).n, seen.get(name).ns, seen.get(name).within], [name, n, ns, within]);
	}
	const whole = await sumTrack(store, track, -1, Infinity, always);
	assert.equal([...whole.values()].reduce((n, sum) => n + sum.n, 0), watch.kept.filter((row) => !row.depth).length);
});

test('search: by name to the longest, the next and the previous one, and to its work', async () => {
	const { page, truth } = training({ rows: 60000, gpus: 2 }), store = storeOf(page);
	const [found] = namesWith(store, sumsOfNames(store), 'COOPERATIVE');
	assert.equal(store.names[found.name], truth.slow.name);
	const spot = await longestOf(store, found.name);
	assert.equal(spot.rows.begin[spot.row], truth.slow.begin);
	const peers = await peersOf(store, spot);
	assert.deepEqual(peers.map((peer) => [store.names[peer.rows.name[peer.row]], peer.rows.begin[peer.row]]), [[truth.slow.work, truth.slow.workBegin]]);
	assert.equal((await peersOf(store, peers[0]))[0].row, spot.row);
	const launch = store.names.indexOf('cudaLaunchKernel'), after = await stepTo(store, launch, truth.slow.begin, 1), before = await stepTo(store, launch, truth.slow.begin, -1);
	assert.ok(after.rows.begin[after.row] > truth.slow.begin && before.rows.begin[before.row] < truth.slow.begin);
	assert.equal((await stepTo(store, launch, before.rows.begin[before.row], 1)).rows.begin[after.row] > truth.slow.begin, true);
	assert.equal(await stepTo(store, found.name, truth.slow.begin, 1), null);
});

test('store: what is impossible is said and left out, what is damaged is told once', async () => {
	const { page } = training({ rows: 5000, gpus: 1 });
	page.index.tracks.forEach((_, track) => page.close(track));
	const index = JSON.parse(JSON.stringify(page.index)), packed = page.packed.slice();
	index.blocks.push({ id: 1, track: 0, begin: 9, end: 3, rows: 1 }, { id: 'x', track: 0, begin: 0, end: 1 }, null, 7);
	packed[index.tracks[0].blocks[0]] = 'AAAA';
	const store = new Store(index, async (id) => packed[Number(id.slice(1))]), [block] = store.tracks[0].blocks;
	assert.match(store.troubles[0], /^2 blocks/);
	assert.equal(await store.load(block), null);
	assert.equal(await store.load(block), null);
	assert.equal(store.damaged, 1);
	assert.equal(store.troubles.length, 2);
	for (const nothing of [null, 5, {}, { tracks: 7, blocks: {}, names: 'x' }])
		assert.equal(new Store(nothing).tracks.length, 0);
});

test('store: decoded blocks have a bound', async () => {
	const { page } = training({ rows: 60000, gpus: 1 }), store = storeOf(page), blocks = store.tracks.flatMap((track) => track.blocks);
	for (const block of blocks)
		await store.load(block);
	const bytes = [...store.decoded.values()].reduce((sum, rows) => sum + rows.bytes, 0);
	assert.equal(store.decodedBytes, bytes);
	store.decodedBytes += 160 << 20;
	store.decoded.delete(blocks[0]);
	await store.load(blocks[0]);
	assert.ok(store.decoded.size < blocks.length);
});

test('block: words of UTF-16 and base64 are the same bytes', () => {
	const bytes = Uint8Array.from({ length: 2 * 65536 + 1 }, (_, i) => i % 2 ? i / 2 >> 8 : i / 2 & 255), kept = (word) => word && word !== 13 &&
		word !== 60 && word !== 0xe000 && (word < 0xd800 || word > 0xdfff);
	let words = '1';
	for (let i = 0; i < bytes.length; i += 2) {
		const word = bytes[i] | (bytes[i + 1] ?? 0) << 8;
		words += kept(word) ? String.fromCharCode(word) : '\ue000' + String.fromCharCode(word ^ 0x4000);
	}
	assert.deepEqual(bytesOfBlock(words), bytes);
	assert.ok(!/[\0\r<]|[\ud800-\udfff]/.test(words));
	const small = [0x78, 0x5e, 3, 0];
	assert.deepEqual(bytesOfBlock(btoa(String.fromCharCode(...small))), Uint8Array.from(small));
	assert.deepEqual(bytesOfBlock('0\u5e78\ue000\u4000'), Uint8Array.from([0x78, 0x5e, 0, 0]));
	for (const cut of ['0', '1', '0\ue000', '1\ue000'])
		assert.ok(bytesOfBlock(cut).length <= 2);
});

test('flame graph: stacks of what is on a CPU, what is blocked, and of work', async () => {
	const { page } = training({ rows: 5000, gpus: 1 }), store = storeOf(page), ns = (weights) => [...weights.values()].reduce((a, b) => a + b, 0);
	const states = new Map();
	for (const track of store.tracks.filter((its) => its.kind === 'state')) {
		for (const sum of (await sumTrack(store, track, -1, Infinity, always)).values())
			states.set(sum.name, (states.get(sum.name) ?? 0) + sum.ns);
	}
	const cpu = states.get(store.names.indexOf('on a CPU')), all = [...states.values()].reduce((a, b) => a + b, 0);
	assert.equal(ns(await weigh(store, 0, Infinity, 'cpu', always, () => {})), cpu);
	assert.equal(ns(await weigh(store, 0, Infinity, 'blocked', always, () => {})), all - cpu);
	const work = await weigh(store, 0, Infinity, 'work', always, () => {});
	assert.ok(work.size > 5);
	assert.equal(work.get(0), 6 * 50); // of odd names, that no call asked for
	const frames = await store.stack([...work.keys()].find((stack) => stack > 0));
	assert.equal(frames.at(-1).name, 'main');
	const root = { frame: null, label: '', ns: 0, children: new Map(), parent: null, depth: 0 };
	addStack(root, frames, 10, { n: 0 });
	addStack(root, frames.slice(1), 5, { n: 0 });
	const [main] = root.children.values();
	assert.deepEqual([root.ns, main.ns, main.frame.name], [15, 15, 'main']);
	const boxes = boxesOf(root);
	assert.deepEqual(boxes.slice(0, 2).map(({ x, w, depth }) => [x, w, depth]), [[0, 100, 0], [0, 100, 1]]);
	assert.ok(boxes.every((box, i) => !i || box.depth <= boxes[i - 1].depth + 1));
	assert.deepEqual(boxesOf({ ...root, ns: 0 }), []);
});

test('modules: no two have something of one name, since they become one script', () => {
	const names = new Map(), folder = new URL('../../src/page/js/', import.meta.url);
	for (const file of readdirSync(folder)) {
		for (const [, name] of readFileSync(new URL(file, folder), 'utf8').matchAll(/^(?:export )?(?:async )?(?:function|class|const|let) (\w+|[{[][^=]*)/gm)) {
			assert.ok(!names.has(name), `${name} is in ${file} and in ${names.get(name)}`);
			names.set(name, file);
		}
	}
	assert.ok(names.size > 100);
});

test('histogram: every duration is in one class', () => {
	for (const durations of [[5, 5, 5], [0, 1, 1e12], [1, 10, 100, 1000]])
		assert.equal(classesOf(durations).reduce((n, its) => n + its.n, 0), durations.length);
});

test('heads of tables: without the unit that cells say', () => {
	const head = (type, name) => headText({ type, name });
	assert.deepEqual(['At', 'Live', 'Rate', 'Time', 'Rate (MB/s)', 'Rows (ns)'], [head('time', 'At (ns)'), head('bytes', 'Live (bytes)'),
		head('rate', 'Rate (bytes/s)'), head('percent', 'Time (%)'), head('real', 'Rate (MB/s)'), head('number', 'Rows (ns)')]);
});

test('columns of short words: all but the last one of words', () => {
	const columns = ['number', 'text', 'text', 'text', 'bytes'].map((type) => ({ name: '', type }));
	assert.deepEqual(shortWords(columns, [[1, 'device', 'a place that is long', 'x', 2], [1, null, 'a place that is longer', 'x', 2]]),
		[false, true, false, false, false]);
});
