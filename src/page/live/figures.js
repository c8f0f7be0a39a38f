// SPDX-License-Identifier: MIT
// What top's figures are: name, type, definition, and where they are in its JSON. Tables and histories follow from this.

import { finite } from '../js/units.js';

/**
 * Optional: a column, or a chart, only where it is known of any. Most: the top of its axis.
 * @typedef {{name: string, type: string, about: string, of: (its: any, within?: any) => unknown, optional?: boolean}} Figure
 * @typedef {{name: string, type: string, about: string, of: (its: any) => number | null, most?: number, optional?: boolean}} Series
 */

/** @param {unknown} value @returns {any} an object, to look into */
export function objectOf(value) {
	return value && typeof value === 'object' ? value : {};
}

/** @param {unknown} value @returns {any[]} */
export function listOf(value) {
	return Array.isArray(value) ? value.filter((its) => its && typeof its === 'object') : [];
}

/**
 * Members of an object as a list, each with its key.
 * @param {unknown} value @returns {any[]}
 */
function membersOf(value) {
	return Object.entries(objectOf(value)).filter(([, its]) => its && typeof its === 'object').map(([key, its]) => ({ ...its, key }));
}

/** @param {unknown} value @returns {string | null} */
function word(value) {
	return typeof value === 'string' && value ? value : null;
}

/** @param {unknown} share of 1 @returns {number | null} of 100 */
function percent(share) {
	const number = finite(share);
	return number === null ? null : 100 * number;
}

/**
 * As it is read: no fraction where it says nothing.
 * @param {unknown} value @returns {number | null}
 */
function rate(value) {
	const number = finite(value);
	return number === null ? null : number < 10 ? number : Math.round(number);
}

/**
 * "train.py #3" of python3: an interpreter's script, and the rank in its job.
 * @param {any} process @returns {string}
 */
export function processName(process) {
	const comm = String(process.name ?? ''), command = word(process.command) ?? '';
	const script = command.startsWith(comm + ' ') ? command.slice(comm.length + 1).replace(/^.*\//s, '') : '';
	return (script || comm) + (process.rank !== undefined && process.rank !== null ? ' #' + process.rank : '') +
		(process.ended ? ' (ended)' : '');
}

/**
 * Nothing that takes results is known of one whose entries alone are hooked.
 * @param {any} process @param {unknown} value @returns {unknown}
 */
function withReturns(process, value) {
	return process.entries_only ? null : value;
}

/** @param {any} process @param {string} direction */
function transferRate(process, direction) {
	return finite(objectOf(process.transfers)[direction]?.bytes_per_second) ?? 0;
}

const ABOUT = {
	calls: 'CUDA calls, without nested calls (cuMemAlloc in cudaMalloc)',
	perSecond: 'in the last interval',
	launches: 'kernels launched, not those of graphs',
	memory: 'memory allocated since tracing began and not freed',
	peak: 'greatest amount of memory at one time since tracing began',
	h2d: 'bytes a second copied to the device',
	d2h: 'bytes a second copied from the device',
	errors: 'failed calls; the row is marked where the last interval had some',
	sync: 'share of the last interval that calling threads spent in calls that wait for the GPU (cudaStreamSynchronize, not blocking copies)',
	gpu: 'share of the time in which a GPU ran work of the process (with --gpu); known up to seconds late',
};

/** @type {Figure[]} */
export const PROCESS_COLUMNS = [
	{ name: 'NAME', type: 'text', about: 'of an interpreter its script; #N is the rank in its job', of: processName },
	{ name: 'PID', type: 'number', about: 'process id in the initial namespace', of: (its) => its.pid },
	{ name: 'CALLS/s', type: 'number', about: `${ABOUT.calls}, a second, ${ABOUT.perSecond}; the line is their last two minutes`,
		of: (its) => rate(its.calls_per_second) },
	{ name: 'LAUNCH/s', type: 'number', about: `${ABOUT.launches}, a second, ${ABOUT.perSecond}`, of: (its) => rate(its.launches_per_second) },
	{ name: 'GRAPH/s', type: 'number', about: `launches of graphs a second, ${ABOUT.perSecond}`,
		of: (its) => its.graph_launches ? rate(its.graph_launches_per_second) : null, optional: true },
	{ name: 'MEMORY', type: 'bytes', about: ABOUT.memory, of: (its) => withReturns(its, its.memory?.all?.bytes) },
	{ name: 'PEAK', type: 'bytes', about: ABOUT.peak, of: (its) => withReturns(its, its.memory?.all?.peak_bytes) },
	{ name: 'GPUMEM', type: 'bytes', about: 'device memory of the process as the driver tells it, contexts and code included',
		of: (its) => its.gpu_memory_bytes, optional: true },
	{ name: 'H2D/s', type: 'rate', about: ABOUT.h2d, of: (its) => transferRate(its, 'H2D') },
	{ name: 'D2H/s', type: 'rate', about: ABOUT.d2h, of: (its) => transferRate(its, 'D2H') },
	{ name: 'ERRORS', type: 'number', about: ABOUT.errors, of: (its) => withReturns(its, its.errors) },
	{ name: 'SYNC', type: 'percent', about: ABOUT.sync, of: (its) => percent(its.sync_share) },
	{ name: 'GPU', type: 'percent', about: ABOUT.gpu, of: (its) => percent(its.gpu_share), optional: true },
	{ name: 'THREADS', type: 'number', about: 'threads that made calls', of: (its) => its.threads },
	{ name: 'USER', type: 'word', about: 'who it runs as', of: (its) => word(its.user), optional: true },
	{ name: 'JOB', type: 'word', about: 'the Slurm job', of: (its) => word(its.slurm_job), optional: true },
	{ name: 'RANK', type: 'word', about: 'the rank in its job', of: (its) => word(its.rank), optional: true },
	{ name: 'POD', type: 'word', about: "the pod's name, or the container's outside pods", of: (its) => word(its.pod) ?? word(its.container),
		optional: true },
];

/** @type {Series[]} */
export const PROCESS_SERIES = [
	{ name: 'calls/s', type: 'number', about: `${ABOUT.calls}, a second`, of: (its) => rate(its.calls_per_second) },
	{ name: 'launches/s', type: 'number', about: `${ABOUT.launches}, a second`, of: (its) => rate(its.launches_per_second) },
	{ name: 'graph launches/s', type: 'number', about: 'launches of graphs a second',
		of: (its) => its.graph_launches ? rate(its.graph_launches_per_second) : null, optional: true },
	{ name: 'errors/s', type: 'number', about: 'failed calls a second', of: (its) => its.entries_only ? null : rate(its.errors_per_second) },
	{ name: 'memory', type: 'bytes', about: ABOUT.memory, of: (its) => its.entries_only ? null : finite(its.memory?.all?.bytes) },
	{ name: 'to device', type: 'rate', about: ABOUT.h2d, of: (its) => transferRate(its, 'H2D') },
	{ name: 'from device', type: 'rate', about: ABOUT.d2h, of: (its) => transferRate(its, 'D2H') },
	{ name: 'waiting for GPU', type: 'percent', about: ABOUT.sync, of: (its) => percent(its.sync_share), most: 100, optional: true },
	{ name: 'GPU use', type: 'percent', about: ABOUT.gpu, of: (its) => percent(its.gpu_share), most: 100, optional: true },
];

/** @type {Series[]} */
export const GPU_SERIES = [
	{ name: 'busy', type: 'percent', about: 'share of the last sample period in which a kernel ran', of: (its) => finite(its.busy_percent),
		most: 100 },
	{ name: 'memory', type: 'bytes', about: 'device memory in use, of all processes', of: (its) => finite(its.memory_used_bytes) },
	{ name: 'power', type: 'watts', about: 'power draw', of: (its) => finite(its.power_mw) },
	{ name: 'temperature', type: 'celsius', about: "the chip's temperature", of: (its) => finite(its.temperature_c), optional: true },
	{ name: 'SMs', type: 'percent', about: 'use of the multiprocessors (GPM)', of: (its) => finite(its.sm_percent), most: 100,
		optional: true },
	{ name: 'tensor cores', type: 'percent', about: 'use of the tensor cores (GPM)', of: (its) => finite(its.tensor_percent), most: 100,
		optional: true },
	{ name: 'bandwidth', type: 'percent', about: "use of the device memory's bandwidth (GPM)", of: (its) => finite(its.dram_percent),
		most: 100, optional: true },
];

/** @param {any} stream handles 1 and 2 are CU_STREAM_LEGACY and CU_STREAM_PER_THREAD */
function streamName(stream) {
	const names = /** @type {{[handle: string]: string}} */ ({ 'others': '(others)', '0x0': '0 (default)', '0x1': '1 (legacy)' });
	return stream.tid ? `of thread ${stream.tid}` : names[stream.stream] ?? stream.stream;
}

const TIME_ABOUT = 'of all calls since the beginning, within 0.8 %';

/**
 * Tables of an open process, as top has them.
 * @type {{title: string, none: string, sort: string, rows: (process: any) => any[], columns: Figure[]}[]}
 */
export const PROCESS_TABLES = [
	{
		title: 'Kernels', none: 'no kernel was launched yet', sort: 'LAUNCHES', rows: (its) => listOf(its.kernels),
		columns: [
			{ name: 'KERNEL', type: 'text', about: 'its name; a handle where the name is not known', of: (its) => its.name },
			{ name: 'LAUNCHES', type: 'number', about: 'since the beginning', of: (its) => its.launches },
			{ name: 'LAUNCH/s', type: 'number', about: ABOUT.perSecond, of: (its) => rate(its.launches_per_second) },
			{ name: 'SHARE', type: 'percent', about: 'of all launches of the process',
				of: (its, process) => process.launches ? 100 * its.launches / process.launches : null },
			{ name: 'GPU TIME', type: 'duration', about: 'time on the GPU since the beginning (with --gpu)',
				of: (its) => its.gpu_runs ? its.gpu_time_ns : null, optional: true },
			{ name: 'AVERAGE', type: 'duration', about: 'time on the GPU of a run (with --gpu)',
				of: (its) => its.gpu_runs ? its.gpu_time_ns / its.gpu_runs : null, optional: true },
		],
	},
	{
		title: 'Functions', none: 'no call yet', sort: 'TIME', rows: (its) => listOf(its.functions),
		columns: [
			{ name: 'FUNCTION', type: 'text', about: '+: some of its calls were counted inside of the process, and have no times',
				of: (its) => its.counted ? `${its.name} +` : its.name },
			{ name: 'CALLS', type: 'number', about: 'since the beginning', of: (its) => its.calls },
			{ name: 'CALLS/s', type: 'number', about: ABOUT.perSecond, of: (its) => rate(its.calls_per_second) },
			{ name: 'ERRORS', type: 'number', about: 'failed calls', of: (its) => its.errors },
			{ name: 'P50', type: 'duration', about: `half of the calls were shorter: ${TIME_ABOUT}`, of: (its) => its.p50_ns },
			{ name: 'P99', type: 'duration', about: `99 of 100 calls were shorter: ${TIME_ABOUT}`, of: (its) => its.p99_ns },
			{ name: 'TIME', type: 'duration', about: 'sum of all calls since the beginning', of: (its) => its.time_ns },
		],
	},
	{
		title: 'Streams', none: 'no launch and no copy yet', sort: 'LAUNCHES', rows: (its) => listOf(its.streams),
		columns: [
			{ name: 'STREAM', type: 'text', about: "its handle; 256 of a process have rows, (others) has the rest", of: streamName },
			{ name: 'LAUNCHES', type: 'number', about: 'since the beginning', of: (its) => its.launches },
			{ name: 'LAUNCH/s', type: 'number', about: ABOUT.perSecond, of: (its) => rate(its.launches_per_second) },
			{ name: 'COPIES', type: 'number', about: 'since the beginning', of: (its) => its.copies },
			{ name: 'COPIED', type: 'bytes', about: 'bytes of its copies since the beginning', of: (its) => its.copy_bytes },
			{ name: 'COPIED/s', type: 'rate', about: ABOUT.perSecond, of: (its) => finite(its.copy_bytes_per_second) },
		],
	},
	{
		title: 'Memory by kind', none: 'no memory was allocated yet', sort: 'MEMORY',
		rows: (its) => its.entries_only ? [] : membersOf(its.memory),
		columns: [
			{ name: 'KIND', type: 'text', about: 'all: without what only reserves addresses',
				of: (its) => its.key === 'vmm-va' ? 'vmm-va (addresses only)' : its.key },
			{ name: 'ALLOCATIONS', type: 'number', about: 'that are not freed', of: (its) => its.allocations },
			{ name: 'MEMORY', type: 'bytes', about: ABOUT.memory, of: (its) => its.bytes },
			{ name: 'PEAK', type: 'bytes', about: ABOUT.peak, of: (its) => its.peak_bytes },
		],
	},
	{
		title: 'Transfers', none: 'nothing was copied yet', sort: 'COPIED/s', rows: (its) => membersOf(its.transfers),
		columns: [
			{ name: 'DIRECTION', type: 'text', about: 'H: host, D: device, P: peer', of: (its) => its.key === 'unknown' ? 'not known' : its.key },
			{ name: 'COPIES', type: 'number', about: 'since the beginning', of: (its) => its.copies },
			{ name: 'COPIES/s', type: 'number', about: ABOUT.perSecond, of: (its) => rate(its.copies_per_second) },
			{ name: 'COPIED', type: 'bytes', about: 'bytes since the beginning', of: (its) => its.bytes },
			{ name: 'COPIED/s', type: 'rate', about: ABOUT.perSecond, of: (its) => finite(its.bytes_per_second) },
		],
	},
	{
		title: 'Hooks', none: '', sort: 'CALLS', rows: (its) => listOf(its.hooks),
		columns: [
			{ name: 'HOOK', type: 'text', about: 'functions and tracepoints of --hook', of: (its) => its.name },
			{ name: 'CALLS', type: 'number', about: 'calls that the filter let through', of: (its) => its.calls },
			{ name: 'CALLS/s', type: 'number', about: ABOUT.perSecond, of: (its) => rate(its.calls_per_second) },
			{ name: 'BYTES', type: 'bytes', about: 'sum of the first argument of type bytes', of: (its) => its.bytes, optional: true },
			{ name: 'BYTES/s', type: 'rate', about: ABOUT.perSecond, of: (its) => finite(its.bytes_per_second), optional: true },
			{ name: 'MEAN', type: 'duration', about: 'of calls that returned', of: (its) => its.mean_ns, optional: true },
			{ name: 'MAX', type: 'duration', about: 'of calls that returned', of: (its) => its.max_ns, optional: true },
			{ name: 'TIME', type: 'duration', about: 'sum of calls that returned', of: (its) => its.time_ns, optional: true },
		],
	},
];

/** @type {[string, string][]} */
export const WHO = [['command', 'command'], ['user', 'user'], ['unit', 'unit'], ['container', 'container'], ['pod', 'pod'],
	['namespace', 'namespace'], ['slurm_job', 'Slurm job'],
	['slurm_step', 'Slurm step'], ['rank', 'rank'], ['local_rank', 'local rank'], ['world_size', 'ranks of the job']];

/**
 * Columns that any of the rows has something for, and the rows' cells.
 * @param {Figure[]} figures @param {any[]} of @param {any} [within] @returns {{columns: Figure[], rows: unknown[][]}}
 */
export function rowsOf(figures, of, within) {
	const all = of.map((its) => figures.map((figure) => figure.of(its, within) ?? null));
	const kept = figures.map((figure, i) => !figure.optional || all.some((row) => row[i] !== null));
	return { columns: figures.filter((_, i) => kept[i]), rows: all.map((row) => row.filter((_, i) => kept[i])) };
}
