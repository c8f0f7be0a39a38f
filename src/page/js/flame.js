// SPDX-License-Identifier: MIT
// The flame graph of a span, added up to a tree, on a canvas: stacks of states, or of the calls that asked for work or were captured for it.

import { FRAME_KIND_NAMES, frameColor, inkOn, stateClass, theme } from './colors.js';
import { button, element, placeBeside } from './elements.js';
import { pause, Turn } from './pace.js';
import { rowsWithin } from './span.js';
import { cut, label } from './text.js';
import { countText, durationText, percentText } from './units.js';

/**
 * @typedef {import('./store.js').Store} Store
 * @typedef {import('./decode.js').Frame} Frame
 * @typedef {{frame: Frame | null, label: string, ns: number, children: Map<string, FlameNode>, parent: FlameNode | null, depth: number}} FlameNode
 */

const ROW = 18, MOST_DEPTH = 96, MOST_NODES = 200000;
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

export class Flame {
	/** @param {Store} store */
	constructor(store) {
		this.store = store;
		this.span = { begin: 0, end: Infinity };
		this.mode = 'cpu';
		this.turn = new Turn();
		this.root = newNode(null, null);
		this.zoomed = this.focused = this.root;
		/** @type {{node: FlameNode, x: number, width: number, y: number}[]} */
		this.boxes = [];
		this.search = '';
		this.seen = this.stale = false;
		this.status = element('p', { role: 'status', class: 'note' });
		this.canvas = element('canvas', { tabindex: 0, role: 'application', 'aria-label': 'Flame graph', class: 'flame' });
		this.tip = element('div', { class: 'tip', hidden: true });
		document.body.append(this.tip);
		this.section = element('section', { id: 'flame', 'aria-labelledby': 'flame-head' }, element('h2', { id: 'flame-head' },
			'Flame graph'), this.bar(), this.status, this.canvas);
		this.listen();
		new IntersectionObserver((entries) => {
			this.seen = entries[entries.length - 1].isIntersecting;
			if (this.seen && this.stale)
				this.make();
		}).observe(this.section);
		new ResizeObserver(() => this.draw()).observe(this.section);
		matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.draw());
	}

	bar() {
		const choice = element('select', { 'aria-label': 'what the flame graph adds up',
			onchange: (event) => this.setMode(event.target.value) },
			...Object.entries(MODES).map(([mode, text]) => element('option', { value: mode }, text)));
		return element('div', { class: 'bar' }, element('label', {}, 'Time ', choice),
			element('input', { type: 'search', placeholder: 'search frames', 'aria-label': 'search frames',
				oninput: (event) => this.setSearch(event.target.value) }),
			button('whole graph', () => this.zoom(this.root)));
	}

	/** @param {string} mode */
	setMode(mode) {
		this.mode = mode;
		this.make();
	}

	/** @param {string} text */
	setSearch(text) {
		this.search = text.toLowerCase();
		this.draw();
		this.tell();
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
		this.root = this.zoomed = this.focused = root;
		this.tell();
		this.draw();
	}

	tell() {
		const { focused, root } = this, found = this.search ? this.matched(root) : 0;
		this.status.textContent = !root.ns ? 'Nothing was recorded of this in the span.' :
			`${focused.label}: ${durationText(focused.ns)}, ${percentText(focused.ns / root.ns * 100)} of all` +
			(focused.frame ? `, ${FRAME_KIND_NAMES[focused.frame.kind] ?? ''} ${label(focused.frame.place)}` : '') + (this.search ?
				`; found: ${percentText(found / root.ns * 100)}` : '');
		this.canvas.setAttribute('aria-label', `Flame graph, time ${MODES[this.mode]}. ${this.status.textContent}`);
	}

	/**
	 * Time in frames with the searched text, none twice.
	 * @param {FlameNode} node @returns {number}
	 */
	matched(node) {
		if (this.isFound(node))
			return node.ns;
		let ns = 0;
		for (const child of node.children.values())
			ns += this.matched(child);
		return ns;
	}

	/** @param {FlameNode} node */
	isFound(node) {
		return this.search !== '' && node.frame !== null && (node.frame.name + ' ' + node.frame.place).toLowerCase().includes(this.search);
	}

	/** @param {FlameNode} node */
	zoom(node) {
		this.zoomed = this.focused = node;
		this.tell();
		this.draw();
	}

	/**
	 * Boxes of what is wide enough to be seen.
	 * @param {number} width
	 */
	place(width) {
		const boxes = this.boxes = /** @type {typeof this.boxes} */ ([]), path = [];
		for (let up = /** @type {FlameNode | null} */ (this.zoomed); up; up = up.parent)
			path.unshift(up);
		for (const node of path)
			boxes.push({ node, x: 0, width, y: node.depth });
		const spread = (/** @type {FlameNode} */ node, /** @type {number} */ x, /** @type {number} */ each) => {
			for (const child of [...node.children.values()].sort((a, b) => b.ns - a.ns)) {
				const size = child.ns * each;
				if (size < 0.7)
					break;
				boxes.push({ node: child, x, width: size, y: child.depth });
				spread(child, x, each);
				x += size;
			}
		};
		if (this.zoomed.ns > 0)
			spread(this.zoomed, 0, width / this.zoomed.ns);
	}

	draw() {
		const width = this.section.clientWidth, ratio = window.devicePixelRatio || 1, context = this.canvas.getContext('2d');
		if (!context || !width)
			return;
		this.place(width);
		const height = this.root.ns ? (Math.max(...this.boxes.map((box) => box.y)) + 1) * ROW : 0, colors = theme();
		this.canvas.width = Math.round(width * ratio);
		this.canvas.height = Math.round(height * ratio);
		this.canvas.style.width = width + 'px';
		this.canvas.style.height = height + 'px';
		context.scale(ratio, ratio);
		context.font = '12px system-ui, sans-serif';
		context.textBaseline = 'middle';
		for (const box of this.root.ns ? this.boxes : [])
			this.drawBox(context, box, colors);
	}

	/** @param {CanvasRenderingContext2D} context @param {typeof this.boxes[0]} box @param {{[name: string]: string}} colors */
	drawBox(context, { node, x, width, y }, colors) {
		const color = node.frame ? frameColor(node.frame.kind, node.frame.name) : '#bbbbbb';
		context.globalAlpha = this.search && !this.isFound(node) ? 0.3 : 1;
		context.fillStyle = color;
		context.fillRect(x, y * ROW, Math.max(0.5, width - 0.7), ROW - 1);
		context.globalAlpha = 1;
		if (width > 30) {
			context.fillStyle = this.search && !this.isFound(node) ? colors.ink : inkOn(color);
			context.fillText(cut(node.label, Math.floor((width - 6) / 6.2)), x + 3, y * ROW + ROW / 2, width - 6);
		}
		if (node === this.focused && document.activeElement === this.canvas) {
			context.strokeStyle = colors.ink;
			context.lineWidth = 2;
			context.strokeRect(x + 1, y * ROW + 1, Math.max(1, width - 2), ROW - 3);
		}
	}

	/** @param {MouseEvent} event */
	at(event) {
		const box = this.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = Math.floor((event.clientY - box.top) / ROW);
		return this.boxes.find((its) => its.y === y && x >= its.x && x < its.x + its.width)?.node ?? null;
	}

	listen() {
		const { canvas } = this;
		canvas.addEventListener('click', (event) => this.zoom(this.at(event) ?? this.zoomed));
		canvas.addEventListener('pointerleave', () => this.tip.hidden = true);
		canvas.addEventListener('pointermove', (event) => {
			const node = this.at(event);
			this.tip.hidden = !node;
			if (node) {
				this.tip.textContent = `${node.label}\n${durationText(node.ns)}, ${percentText(node.ns / this.root.ns * 100)}\n${node.frame ? label(node.frame.place) : countText(node.children.size) + ' roots'}`;
				placeBeside(this.tip, { left: event.clientX + 8, top: event.clientY, bottom: event.clientY + 8 });
			}
		});
		canvas.addEventListener('focus', () => this.draw());
		canvas.addEventListener('blur', () => this.draw());
		canvas.addEventListener('keydown', (event) => this.onKey(event));
	}

	/** @param {KeyboardEvent} event */
	onKey(event) {
		const { focused } = this, byTime = (/** @type {FlameNode | null} */ node) => [...node?.children.values() ?? []].sort((a,
			b) => b.ns - a.ns);
		const beside = byTime(focused.parent), at = beside.indexOf(focused);
		const to = { ArrowDown: byTime(focused)[0], ArrowUp: focused.parent, ArrowLeft: beside[at - 1], ArrowRight: beside[at + 1],
			Home: this.root }[event.key];
		if (event.key === 'Enter')
			this.zoom(focused);
		else if (event.key === 'Escape')
			this.zoom(this.root);
		else if (to)
			this.focused = to;
		else
			return;
		event.preventDefault();
		this.tell();
		this.draw();
	}
}
