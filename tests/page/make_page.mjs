// SPDX-License-Identifier: MIT
// Made-up pages of the format that src/page reads, with what is true of them: for tests, and of ten million rows for measurements.
//
//	node tests/page/make_page.mjs BUILD OUT.html [--rows N] [--gpus N] [--streams N] [--damage] [--empty] [--one]
//
// Beside OUT.html it writes OUT.json: what a test asks for.

import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync, openSync, writeSync, closeSync } from 'node:fs';
import { deflateSync } from 'node:zlib';
import { pathToFileURL } from 'node:url';

export const COLUMNS = {
	call: [['begin', 'bits delta'], ['dur', 'bits'], ['name', 'name'], ['depth', 'u'], ['flags', 'u'], ['correlation', 'sdelta'], ['detail', 'text'], ['stack', 'stack']],
	work: [['begin', 'gap'], ['dur', 'bits'], ['name', 'name'], ['what', 'u'], ['correlation', 'sdelta'], ['bytes', 'u'], ['detail', 'text'], ['asked', 'u']],
	state: [['begin', 'gap'], ['dur', 'bits'], ['name', 'name'], ['thread', 'u'], ['detail', 'text'], ['stack', 'stack']],
	range: [['begin', 'gap'], ['dur', 'bits'], ['name', 'name'], ['depth', 'u'], ['color', 'u'], ['detail', 'text']],
	counter: [['begin', 'bits delta'], ['milli', 'sdelta']],
	account: [['begin', 'gap'], ['dur', 'bits'], ['name', 'name'], ['detail', 'text'], ['stack', 'stack']],
};
let blockRows = 8192;

/** @param {number} rows of each block from now on */
export function setBlockRows(rows) {
	blockRows = rows;
}

/** Bytes that grow. */
export class Bytes {
	constructor() {
		this.data = new Uint8Array(1 << 16);
		this.length = 0;
	}

	room(n) {
		if (this.length + n > this.data.length) {
			const data = new Uint8Array(Math.max(2 * this.data.length, this.length + n));
			data.set(this.data.subarray(0, this.length));
			this.data = data;
		}
	}

	varint(value) {
		this.room(8);
		while (value > 127) {
			this.data[this.length++] = value % 128 | 128;
			value = Math.floor(value / 128);
		}
		this.data[this.length++] = value;
	}

	bytes(bytes) {
		this.room(bytes.length);
		this.data.set(bytes, this.length);
		this.length += bytes.length;
	}

	text(text) {
		const bytes = new TextEncoder().encode(text);
		this.varint(bytes.length);
		this.bytes(bytes);
	}

	get() {
		return this.data.subarray(0, this.length);
	}
}

/** All bits of numbers but the highest ones. */
class Bits {
	constructor() {
		this.out = new Bytes();
		this.byte = this.n = 0;
	}

	/** How many bits the number has. */
	add(value) {
		const length = value ? value.toString(2).length : 0;
		for (let i = 1; i < length; i++, value = Math.floor(value / 2)) {
			this.byte |= value % 2 << this.n++;
			if (this.n === 8) {
				this.out.bytes([this.byte]);
				this.byte = this.n = 0;
			}
		}
		return length;
	}

	end() {
		if (this.n)
			this.out.bytes([this.byte]);
		this.byte = this.n = 0;
		return this.out.get();
	}
}

/** A block's bytes. `rows` have members by the names of columns; detail is text. */
export function encodeRows(kind, rows, begin) {
	const out = new Bytes(), texts = [], numbers = new Map();
	out.varint(rows.length);
	for (const [name, type] of COLUMNS[kind]) {
		const column = new Bytes(), bits = new Bits();
		let before = type === 'bits delta' || type === 'gap' ? begin : 0;
		for (const row of rows) {
			let value = row[name] ?? 0;
			if (type === 'text' && value !== 0) {
				if (!numbers.has(value)) {
					texts.push(value);
					numbers.set(value, texts.length);
				}
				value = numbers.get(value);
			}
			if (type === 'bits delta' || type === 'sdelta' || type === 'gap') {
				const by = value - before;
				before = type === 'gap' ? value + row.dur : value;
				value = type === 'bits delta' ? by : by < 0 ? -2 * by - 1 : 2 * by;
			}
			if (type.startsWith('bits'))
				column.bytes([bits.add(value)]);
			else
				column.varint(value);
		}
		out.varint(column.length + bits.end().length);
		out.bytes(column.get());
		out.bytes(bits.end());
	}
	out.varint(texts.length);
	texts.forEach((text) => out.text(text));
	return out.get();
}

/** 64 parts of a block. */
function binsOf(kind, rows, begin, end, peak) {
	const bytes = Buffer.alloc(192), step = (end - begin) / 64 || 1, busy = new Float64Array(64), most = new Float64Array(64), name = new Uint16Array(64);
	rows.forEach((row, r) => {
		const to = kind === 'counter' ? rows[r + 1]?.begin ?? end : row.begin + row.dur;
		if (row.depth)
			return;
		for (let i = Math.max(0, Math.floor((row.begin - begin) / step)); i < 64 && begin + i * step < to; i++) {
			const part = Math.max(0, Math.min(to, begin + (i + 1) * step) - Math.max(row.begin, begin + i * step));
			busy[i] += kind === 'counter' ? part * row.milli / peak : part;
			if (part > most[i]) {
				most[i] = part;
				name[i] = row.name ?? 0;
			}
		}
	});
	for (let i = 0; i < 64; i++) {
		bytes[i] = Math.min(255, Math.ceil(busy[i] / step * 255));
		bytes.writeUInt16LE(name[i], 64 + 2 * i);
	}
	return bytes.toString('base64');
}

function sumsOf(kind, rows) {
	const sums = new Map();
	for (const row of kind === 'counter' ? [] : rows) {
		const sum = sums.get(row.name) ?? [row.name, 0, 0, 0];
		sums.set(row.name, sum);
		if (row.depth && kind === 'call')
			continue;
		sum[1]++;
		sum[2] += row.dur;
		sum[3] = Math.max(sum[3], row.dur);
	}
	return [...sums.values()];
}

/** A page in the making: tracks get their rows in order of begin, blocks are packed as they fill. */
export class PageMaker {
	constructor() {
		this.index = { version: 1, made_by: 'make_page', title: 'made up.cuscope', run: {}, missed: [], why: null, why_text: '', reports: [], names: [], processes: [], columns: COLUMNS, tracks: [], blocks: [], stacks: [], frames: [] };
		this.packed = [];
		this.numbers = new Map();
		this.open = [];
	}

	name(text) {
		if (!this.numbers.has(text)) {
			this.numbers.set(text, this.index.names.length);
			this.index.names.push(text);
		}
		return this.numbers.get(text);
	}

	track(track) {
		this.index.tracks.push({ tid: 0, unit: '', process: 0, rows: 0, blocks: [], ...track });
		this.open.push([]);
		return this.index.tracks.length - 1;
	}

	add(track, row) {
		this.open[track].push(row);
		if (this.open[track].length >= blockRows)
			this.close(track);
	}

	close(track) {
		const rows = this.open[track], of = this.index.tracks[track];
		if (!rows.length)
			return;
		rows.sort((a, b) => a.begin - b.begin || (b.dur ?? 0) - (a.dur ?? 0));
		let end = 0, c0 = 0, c1 = 0;
		for (const row of rows) {
			end = Math.max(end, row.begin + (row.dur ?? 0));
			c0 = row.correlation ? c0 ? Math.min(c0, row.correlation) : row.correlation : c0;
			c1 = Math.max(c1, row.correlation ?? 0);
		}
		const begin = rows[0].begin, id = this.pack(encodeRows(of.kind, rows, begin));
		this.index.blocks.push({ id, track, begin, end, rows: rows.length, c0, c1, bins: binsOf(of.kind, rows, begin, end, of.peak), sums: sumsOf(of.kind, rows) });
		of.blocks.push(id);
		of.rows += rows.length;
		this.open[track] = [];
	}

	pack(bytes) {
		this.packed.push(deflateSync(bytes, { level: 6 }).toString('base64'));
		return this.packed.length - 1;
	}

	/** Stacks of frames, innermost first; a frame is [kind, function, place]. The number of the first is 1. */
	stacks(stacks) {
		const frames = new Bytes(), numbers = new Map(), list = new Bytes();
		for (const frame of stacks.flat()) {
			if (!numbers.has(frame.join('\0')))
				numbers.set(frame.join('\0'), [numbers.size, frame]);
		}
		frames.varint(numbers.size);
		for (const [, [kind, name, place]] of numbers.values()) {
			frames.varint(kind);
			frames.text(name);
			frames.text(place);
		}
		list.varint(stacks.length);
		for (const stack of stacks) {
			list.varint(stack.length);
			stack.forEach((frame) => list.varint(numbers.get(frame.join('\0'))[0]));
		}
		for (const [what, bytes, n] of [['frames', frames, numbers.size], ['stacks', list, stacks.length]])
			this.index[what].push({ block: this.part(bytes.get()), first: 0, n });
	}

	part(bytes) {
		const id = this.pack(bytes);
		this.index.blocks.push({ id, track: -1, begin: 0, end: 0, rows: 0, c0: 0, c1: 0, bins: '', sums: [] });
		return id;
	}

	/** The whole file. `cut` leaves out what is behind that part of its blocks. */
	write(build, path, cut = 1) {
		this.index.tracks.forEach((_, track) => this.close(track));
		const script = readFileSync(`${build}/page/page.js`, 'utf8'), style = readFileSync(`${build}/page/page.css`, 'utf8');
		const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
		const file = openSync(path, 'w'), put = (text) => writeSync(file, text);
		put(`<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src ${hash(style)}; script-src ${hash(script)}">
<title>why made up.cuscope</title><style>${style}</style></head>
<body><div id="page"><noscript>This page needs a browser that runs its script.</noscript></div>
<script type="application/json" id="index">${JSON.stringify(this.index).replace(/</g, '\\u003c')}</script>
<script>${script}</script>
`);
		this.packed.slice(0, Math.ceil(this.packed.length * cut)).forEach((text, i) => put(`<script type="text/plain" id="b${i}">${text}</script>\n`));
		if (cut === 1)
			put('</body></html>\n');
		closeSync(file);
	}
}

/** The same numbers each time. */
export function random(seed) {
	return () => {
		seed = Math.imul(seed ^ seed >>> 15, 0x2c1b3c6d) + 0x9e3779b9 | 0;
		return ((seed ^ seed >>> 13) >>> 0) / 4294967296;
	};
}

export const HOSTILE = ['</script><img src=x onerror=alert(1)>', 'quotes " and \' and <b>', 'right \u202e to left', 'x'.repeat(10000), 'bell \u0007 and \ud800 half', '=HYPERLINK("http://x")'];

/** A training of a few processes, each with a GPU of its own, as many rows as are wanted. What is planted is in what it returns. */
export function training({ rows = 20000, gpus = 2, streams = 2 } = {}) {
	const page = new PageMaker(), next = random(7), truth = { slow: null, calls: {}, span: null };
	const calls = ['cudaLaunchKernel', 'cudaMemcpyAsync', 'cudaStreamSynchronize', 'cudaEventRecord'].map((name) => page.name(name));
	const kernels = ['volta_sgemm_128x64_nn', 'void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>', 'ncclDevKernel_AllReduce_Sum_f32_RING_LL', 'softmax_warp_forward'].map((name) => page.name(name));
	const [copy, inner, onCpu, ready, disk, lock] = ['memcpy HtoD', 'cuLaunchKernel', 'on a CPU', 'ready, without a CPU', 'blocked on a disk', 'blocked on a lock'].map((name) => page.name(name));
	const causes = ['GPU runs kernels', 'waiting for a disk', 'launching', 'computing'].map((name) => page.name(name));
	const stacks = Array.from({ length: 40 }, (_, i) => [[i % 3 ? 0 : 3, ['cudaLaunchKernel', 'at::empty_cuda', 'read'][i % 3], 'libtorch_cuda.so'], [1, `layer_${i % 8}`, `model.py:${20 + i % 8}`], [1, 'step', 'train.py:88'], [1, 'main', 'train.py:120']]);
	page.stacks(stacks);
	const hostile = HOSTILE.map((name) => page.name(name));
	const steps = Math.max(4, Math.round(rows / gpus / (10 + 6.75 * streams)));
	let correlation = 0, last = 0;
	for (let gpu = 0; gpu < gpus; gpu++) {
		page.index.processes.push({ pid: 4242 + gpu, title: `train.py (${4242 + gpu}), rank ${gpu}`, rank: String(gpu) });
		const of = { process: gpu }, onGpu = { process: gpu, group: `GPU ${gpu}: NVIDIA H200` };
		const thread = page.track({ kind: 'call', title: `python3 ${4242 + gpu}`, tid: 4242 + gpu, depth: 1, ...of }), state = page.track({ kind: 'state', title: `python3 ${4242 + gpu}`, tid: 4242 + gpu, ...of });
		const worker = page.track({ kind: 'state', title: `loader ${5000 + gpu}`, tid: 5000 + gpu, ...of }), range = page.track({ kind: 'range', title: `python3 ${4242 + gpu}`, tid: 4242 + gpu, depth: 1, ...of });
		const account = page.track({ kind: 'account', title: 'account of time', ...onGpu }), work = Array.from({ length: streams }, (_, i) => page.track({ kind: 'work', title: `stream ${7 + i}`, ...onGpu }));
		const busy = page.track({ kind: 'counter', title: 'SM active', unit: '%', peak: 100000, ...onGpu });
		const free = work.map(() => 0);
		let t = 1000 + gpu * 300;
		for (let step = 0; step < steps; step++) {
			const begin = t, slow = gpu === 0 && step === steps >> 1;
			const wait = 8000 + Math.floor(next() * 4000) + (slow ? 2000 : 0);
			page.add(state, { begin: t, dur: wait, name: step % 5 ? disk : lock, thread: 5000 + gpu, stack: 1 + step % 40, detail: 'read of a file' });
			page.add(worker, { begin: t, dur: wait, name: onCpu, stack: 1 + (step * 7) % 40 });
			page.add(account, { begin: t, dur: wait, name: causes[1], stack: 1 + step % 40, detail: 'train.py:88 step' });
			t += wait;
			page.add(state, { begin: t, dur: 900, name: ready });
			t += 900;
			const ran = t;
			for (let i = 0; i < streams * 3; i++) {
				const dur = slow && i === 1 ? 777777 : 1500 + Math.floor(next() * 1500), name = calls[i % 5 === 4 ? 1 : 0], stream = i % streams;
				correlation++;
				const kind = slow && i === 2 ? hostile[step % hostile.length] : i % 5 === 4 ? copy : kernels[(step + i) % 4];
				page.add(thread, { begin: t, dur, name: slow && i === 1 ? page.name('cudaLaunchCooperativeKernel') : name, depth: 0, flags: i === 3 && step % 50 === 0 ? 1 : 0, correlation, stack: 1 + (step + i) % 40, detail: `kernel ${page.index.names[kind].slice(0, 40)}\ngrid (${i + 1}, 2, 1), block (256, 1, 1), stream ${7 + stream}` });
				if (i % 4 === 0)
					page.add(thread, { begin: t + 200, dur: dur - 400, name: inner, depth: 1, flags: 16, correlation: 0 });
				const start = Math.max(free[stream], t + 900), length = 1200 + Math.floor(next() * 5000);
				page.add(work[stream], { begin: start, dur: length, name: kind, what: kind === copy ? 1 : 0, correlation, bytes: kind === copy ? 1 << 20 : 0, asked: 4242 + gpu, detail: 'grid (1, 2, 1), 32 registers' });
				if (slow && i === 1)
					truth.slow = { name: 'cudaLaunchCooperativeKernel', begin: t, dur, correlation, work: page.index.names[kind], workBegin: start };
				free[stream] = start + length;
				t += dur + 100;
			}
			page.add(state, { begin: ran, dur: t - ran, name: onCpu, stack: 1 + (step * 3) % 40 });
			page.add(account, { begin: ran, dur: t - ran, name: causes[step % 3 ? 0 : 2 + step % 2] });
			page.add(thread, { begin: t, dur: 3000, name: calls[2], depth: 0, correlation: ++correlation, flags: 0, stack: 1 + step % 40 });
			page.add(range, { begin, dur: t + 3000 - begin, name: page.name(`step`), depth: 0, color: 0, detail: `step ${step}` });
			page.add(range, { begin: ran, dur: t - ran, name: page.name('forward'), depth: 1, color: 0xcc79a7 });
			page.add(busy, { begin: ran, milli: Math.floor(next() * 100000) });
			t += 3000 + Math.floor(next() * 3000);
		}
		last = Math.max(last, t, ...free);
	}
	const odd = page.track({ kind: 'work', title: 'stream 99', group: 'odd names' });
	hostile.forEach((name, i) => page.add(odd, { begin: 100 * i, dur: 50, name, what: 0, correlation: 0, bytes: 0, asked: 0, detail: HOSTILE[i] }));
	fillIndex(page, last);
	return { page, truth };
}

function fillIndex(page, end) {
	const { index } = page, place = [{ file: '/home/ann/app/train.py', line: 88, function: 'step' }, { file: '/home/ann/app/data.py', line: 31, function: 'collate' }];
	index.run = { command: 'python3 train.py', hostname: 'node7', begin_ns_unix: '1764400000000000000', duration_ns: end, cpus: 64, kernel: '6.8', driver: '580.1', gpu_times: true, gpus: [{ name: 'NVIDIA H200', uuid: 'GPU-1', memory_bytes: 150754820096 }] };
	index.missed = ['12 events were lost: a ring buffer was full.'];
	index.causes = { disk: { text: 'waiting for a disk', about: 'A thread that the GPU waits for is blocked on a disk.' }, kernels: { text: 'GPU runs kernels', about: 'The GPU runs kernels.' }, computing: { text: 'computing', about: 'A thread that the GPU waits for runs on a CPU, outside of CUDA.' }, launching: { text: 'launching', about: 'The host is in calls that launch.' } };
	const account = [['disk', 38.4, place], ['kernels', 31.1, []], ['computing', 18.2, [{ file: 'train.py', line: 40, function: 'augment' }]], ['launching', 9.3, []], ['rest', 3.0, []]];
	index.why = {
		gpus: index.processes.map((process, gpu) => ({ gpu, pid: process.pid, process: process.title, tid: process.pid, start_ns: 1000, ns: end, steps: { count: 120, ns: 51200 }, account: account.map(([cause, percent, where]) => ({ cause, percent, ns: end * percent / 100, place: where, pid: process.pid, tid: process.pid })) })),
		first: { gpu: 0, of_pid: 4242, cause: 'disk', ns: end * 0.384, place, pid: 4242, tid: 4242, thread: 'python3', gain_ns: 1, ns_per_step: 19660, gain: { factor: 1.62, at_most: 3.2, step_ns: 31540, then: 'kernels' }, sure: 'yes', why: 'Sure: 120 waits.', try: 'read ahead of its use, in other threads, or from memory' },
		next: [{ gpu: 0, of_pid: 4242, cause: 'computing', ns: end * 0.18, place: account[2][2], pid: 4242, ns_per_step: 9318, gain: { factor: 1.22, at_most: 3.2, step_ns: 42000, then: 'disk' } }],
		not_known: ['whether other ranks were late: one process alone was recorded'],
	};
	index.why_text = 'train.py (pid 4242), GPU 0: 10 ms\n   38.4 %  waiting for a disk\n';
	index.reports = [
		{ name: 'cuda_api_sum', help: 'CUDA calls by total time', command: "cuscope report 'made up.cuscope' cuda_api_sum", tables: [{ key: 'api', title: 'CUDA calls', columns: [{ name: 'Time', type: 'percent' }, { name: 'Total Time', type: 'duration' }, { name: 'Num Calls', type: 'number' }, { name: 'Name', type: 'text' }], rows: [[61.5, 7654321, 900, 'cudaLaunchKernel'], [30.1, 3999999, 12, '=cudaMemcpyAsync'], [8.4, null, 40, 'cuda, "quoted"']], notes: ['rows left out by --top: 8'], more: 8 }] },
		{ name: 'slowest', help: 'the slowest calls', command: "cuscope report 'made up.cuscope' slowest", tables: [{ key: 's', title: 'Slowest', columns: [{ name: 'Start', type: 'time' }, { name: 'Duration', type: 'duration' }, { name: 'Bytes', type: 'bytes' }, { name: 'Rate', type: 'rate' }, { name: 'Name', type: 'text' }], rows: [[50000, 123456, 1 << 20, 1e9, 'cudaMalloc']], notes: [], more: 0 }] },
	];
}

/** What a span has, of a page's rows: the sums that the page is to show. */
export function sumsWithin(pageRows, begin, end) {
	const sums = new Map();
	for (const row of pageRows) {
		const to = row.begin + row.dur;
		if (row.depth || to <= begin || row.begin >= end)
			continue;
		const sum = sums.get(row.name) ?? { n: 0, ns: 0, within: 0 };
		sums.set(row.name, sum);
		sum.within += Math.min(to, end) - Math.max(row.begin, begin);
		if (to < end) {
			sum.n++;
			sum.ns += row.dur;
		}
	}
	return sums;
}

/** Keeps rows of the tracks of one kind, as they are added. */
export function keepRows(kind) {
	const kept = [], add = PageMaker.prototype.add;
	PageMaker.prototype.add = function (track, row) {
		if (this.index.tracks[track].kind === kind && kept.length < 200000)
			kept.push(row);
		add.call(this, track, row);
	};
	return { kept, stop: () => PageMaker.prototype.add = add };
}

function number(name, otherwise) {
	const at = process.argv.indexOf('--' + name);
	return at < 0 ? otherwise : Number(process.argv[at + 1]);
}

function main() {
	const [build, path] = process.argv.slice(2), has = (name) => process.argv.includes('--' + name), watch = keepRows('call');
	const empty = has('empty') || has('one');
	const { page, truth } = empty ? { page: new PageMaker(), truth: {} } : training({ rows: number('rows', 20000), gpus: number('gpus', 2), streams: number('streams', 2) });
	watch.stop();
	if (has('one'))
		page.add(page.track({ kind: 'call', title: 'one', group: 'alone' }), { begin: 5, dur: 0, name: page.name('cuInit'), depth: 0, flags: 2, correlation: 1 });
	if (has('damage')) {
		page.index.tracks.forEach((_, track) => page.close(track));
		page.packed[2] = 'AAAA' + page.packed[2].slice(4);
		page.packed[3] = page.packed[3].slice(0, 40);
		page.index.blocks.push({ id: 9, track: 0, begin: -5, end: 2 ** 60, rows: -1, c0: 0, c1: 0, bins: '!', sums: 7 });
	}
	if (!empty && number('rows', 20000) <= 100000) {
		const end = page.index.run.duration_ns, begin = Math.round(end * 0.31), to = Math.round(end * 0.74);
		truth.span = { begin, end: to, sums: Object.fromEntries([...sumsWithin(watch.kept, begin, to)].map(([name, sum]) => [page.index.names[name], sum])) };
	}
	page.write(build, path, has('damage') ? 0.8 : 1);
	writeFileSync(path.replace(/\.html$/, '.json'), JSON.stringify(truth));
}

if (import.meta.url === pathToFileURL(process.argv[1]).href)
	main();
