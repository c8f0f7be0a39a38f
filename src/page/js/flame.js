// SPDX-License-Identifier: MIT
// The flame graph of a span, added up to a tree: stacks of states, or of the calls that asked for work or were captured for it.

import { FRAME_KIND_NAMES, frameColor, inkOn, stateClass } from './colors.js';
import { element } from './elements.js';
import { pause, Turn } from './pace.js';
import { Picture, svgElement } from './picture.js';
import { rowsWithin } from './span.js';
import { label } from './text.js';
import { durationText, percentText } from './units.js';

/**
 * @typedef {import('./store.js').Store} Store
 * @typedef {import('./decode.js').Frame} Frame
 * @typedef {{frame: Frame | null, label: string, ns: number, children: Map<string, FlameNode>, parent: FlameNode | null, depth: number}} FlameNode
 */

const MOST_DEPTH = 96, MOST_NODES = 200000, ALL_COLOR = '#bbbbbb';
const MODES = /** @type {{[mode: string]: string}} */ ({ cpu: 'on a CPU', blocked: 'blocked or ready',
	work: 'GPU work, by the call that asked for it' });

/** @param {Frame | null} frame @param {FlameNode | null} parent @returns {FlameNode} */
function newNode(frame, parent) {
	return { frame, label: frame ? label(frame.name) || '(no name)' : 'all', ns: 0, children: new Map(), parent, depth: parent ?
		parent.depth + 1 : 0 };
}

/**
 * Weights of a stack into the tree, outermost first.
 * @param {FlameNode} root @param {Frame[]} frames innermost first @param {number} ns @param {{n: number}} nodes
 */
export function addStack(root, frames, ns, nodes) {
	let node = root;
	root.ns += ns;
	for (let i = frames.length - 1; i >= 0 && node.depth < MOST_DEPTH; i--) {
		const frame = frames[i], key = frame.kind + '\0' + frame.name;
		let child = node.children.get(key);
		if (!child) {
			if (nodes.n++ > MOST_NODES)
				return;
			node.children.set(key, child = newNode(frame, node));
		}
		child.ns += ns;
		node = child;
	}
}

/**
 * Nanoseconds by stack.
 * @param {Store} store @param {number} begin @param {number} end @param {string} mode @param {() => boolean} mine @param {(part: number) => void} progress
 * @returns {Promise<Map<number, number>>} 0: those without a stack
 */
export async function weigh(store, begin, end, mode, mine, progress) {
	/** @type {Map<number, number>} */
	const weights = new Map();
	const add = (/** @type {number} */ stack, /** @type {number} */ ns) => weights.set(stack, (weights.get(stack) ?? 0) + ns);
	const blocks = store.tracks.filter((track) => track.kind === (mode === 'work' ? 'work' : 'state')).flatMap((track) => track.blocks)
		.filter((block) => block.end >= begin && block.begin <= end);
	let done = 0;
	for (const block of blocks) {
		const rows = await store.load(block);
		if (!mine())
			break;
		if (rows && mode === 'work') {
			const stacks = await stacksOfCalls(store, block, rows);
			rowsWithin(rows, begin, end, 'work', (row, within) => add(
				rows.columns.stack?.[row] || (stacks.get(rows.columns.correlation?.[row] ?? 0) ?? 0), within));
		} else if (rows) {
			rowsWithin(rows, begin, end, 'state', (row,
				within) => (stateClass(String(store.names[rows.name[row]])) === 'cpu') === (mode === 'cpu') &&
				add(rows.columns.stack?.[row] ?? 0, within));
		}
		progress(++done / blocks.length);
		await pause();
	}
	return weights;
}

/**
 * Of the calls that asked for a block's work: their stacks by correlation.
 * @param {Store} store @param {import('./store.js').Block} block @param {import('./store.js').Rows} rows
 */
async function stacksOfCalls(store, block, rows) {
	const wanted = new Set(rows.columns.correlation ?? []), stacks = new Map();
	for (const track of store.tracks) {
		if (track.kind !== 'call' || track.process !== block.track.process)
			continue;
		for (const its of track.blocks.filter((one) => one.c1 >= block.c0 && one.c0 <= block.c1)) {
			const calls = await store.load(its), correlations = calls?.columns.correlation, of = calls?.columns.stack;
			for (let i = 0; calls && correlations && of && i < calls.n; i++) {
				if (of[i] && wanted.has(correlations[i]))
					stacks.set(correlations[i], of[i]);
			}
		}
		await pause();
	}
	return stacks;
}

/** @param {FlameNode} node @param {number} all @returns {string} */
function aboutNode({ frame, ns }, all) {
	const share = `${durationText(ns)}, ${percentText(ns / all * 100)}`;
	return frame ? `${share}\n${[FRAME_KIND_NAMES[frame.kind], label(frame.place)].filter(Boolean).join(' ')}` : share;
}

/**
 * As the picture wants them: a frame before those that it called, of which the one with most time is first.
 * @param {FlameNode} root
 */
export function boxesOf(root) {
	const boxes = /** @type {Parameters<Picture['set']>[0]} */ ([]);
	const add = (/** @type {FlameNode} */ node, /** @type {number} */ x) => {
		const { frame, depth } = node, fill = frame ? frameColor(frame.kind, frame.name) : ALL_COLOR;
		boxes.push({ name: node.label, about: aboutNode(node, root.ns), x, w: node.ns / root.ns * 100, depth, fill, ink: inkOn(fill) });
		for (const child of [...node.children.values()].sort((a, b) => b.ns - a.ns)) {
			add(child, x);
			x += child.ns / root.ns * 100;
		}
	};
	if (root.ns > 0)
		add(root, 0);
	return boxes;
}

export class Flame {
	/** @param {Store} store */
	constructor(store) {
		this.store = store;
		this.span = { begin: 0, end: Infinity };
		this.mode = 'cpu';
		this.turn = new Turn();
		this.root = newNode(null, null);
		this.seen = this.stale = false;
		this.status = element('p', { role: 'status', class: 'note' });
		const svg = svgElement('svg', { class: 'flame', role: 'group', 'aria-label': 'Flame graph' });
		svg.append(svgElement('svg', { class: 'graph' }));
		this.section = element('section', { id: 'flame', 'aria-labelledby': 'flame-head' }, element('h2', { id: 'flame-head' },
			'Flame graph'), this.bar(), this.status, svg);
		this.picture = new Picture(svg);
		new IntersectionObserver((entries) => {
			this.seen = entries[entries.length - 1].isIntersecting;
			if (this.seen && this.stale)
				this.make();
		}).observe(this.section);
		new ResizeObserver(() => this.picture.fit()).observe(this.section);
	}

	bar() {
		const choice = element('select', { 'aria-label': 'what the flame graph adds up',
			onchange: (event) => this.setMode(event.target.value) },
			...Object.entries(MODES).map(([mode, text]) => element('option', { value: mode }, text)));
		return element('div', { class: 'bar' }, element('label', {}, 'Time ', choice));
	}

	/** @param {string} mode */
	setMode(mode) {
		this.mode = mode;
		this.make();
	}

	/** @param {number} begin @param {number} end */
	setSpan(begin, end) {
		this.span = { begin, end };
		this.stale = true;
		if (this.seen)
			this.make();
	}

	async make() {
		const mine = this.turn.begin(), { begin, end } = this.span;
		this.stale = false;
		this.status.textContent = 'reading';
		const weights = await weigh(this.store, begin, end, this.mode, mine, (part) => {
			if (mine())
				this.status.textContent = `reading: ${percentText(part * 100)}`;
		});
		const root = newNode(null, null), nodes = { n: 0 };
		for (const [stack, ns] of weights) {
			const frames = await this.store.stack(stack);
			addStack(root, frames.length ? frames : [{ kind: -1, name: '(without a stack)', place: '' }], ns, nodes);
			if (nodes.n > MOST_NODES)
				break;
			await pause();
		}
		if (!mine())
			return;
		this.root = root;
		this.status.textContent = root.ns ? `all: ${durationText(root.ns)}, time ${MODES[this.mode]}` :
			'Nothing was recorded of this in the span.';
		this.picture.set(boxesOf(root));
	}
}
