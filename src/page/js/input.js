// SPDX-License-Identifier: MIT
// What the pointer, the wheel and the keyboard do to the timeline.

import { RULER } from './timeline.js';

/** @typedef {import('./timeline.js').Timeline} Timeline */

const CLICK = 4; // pixels that a pointer may move within a click
const LINE = 40; // pixels that a wheel's line stands for

export const KEYS_HELP = [
	['W, S, +, −, Ctrl and wheel, wheel over the ruler', 'zoom in and out'],
	['A, D, ←, →, drag, Shift and wheel', 'move in time'],
	['↑, ↓, wheel', 'move through the tracks'],
	['0, Home', 'the whole trace'],
	['click, Enter', 'select a row; Enter: the first one in view of the track that is selected, or of the first track'],
	[', and .', 'the row before and after the selected one'],
	['J, K', 'the selected row’s neighbour in the track below and above'],
	['F, double click', 'zoom to the selected row'],
	['Shift and drag, drag on the ruler', 'select a span: the account, the tables and the flame graph are of it'],
	['Alt and drag, [ and ]', 'where two recordings are beside each other: move this one alone'],
	['X', 'the span is what is in view; Escape takes it back'],
	['/', 'search for a name; N and P: its next and previous occurrence'],
];

/** @param {Timeline} timeline @param {{span: (begin: number, end: number) => void, clear: () => void, search: () => void, step: (by: number) => void}} act */
export function listen(timeline, act) {
	listenToWheel(timeline);
	listenToPointer(timeline, act);
	listenToKeys(timeline, act);
}

/** @param {Timeline} timeline @param {PointerEvent | WheelEvent | MouseEvent} event */
function place(timeline, event) {
	const box = timeline.canvas.getBoundingClientRect();
	return { x: event.clientX - box.left, y: event.clientY - box.top };
}

/** @param {Timeline} timeline */
function listenToWheel(timeline) {
	timeline.scroller.addEventListener('wheel', (event) => {
		const { x, y } = place(timeline, event), unit = event.deltaMode ? LINE : 1;
		const across = event.shiftKey && !event.deltaX ? event.deltaY : event.deltaX;
		if (event.ctrlKey || event.metaKey || y < RULER) {
			event.preventDefault();
			timeline.view.zoom(Math.exp(Math.max(-200, Math.min(200, event.deltaY * unit)) * 0.0035), timeline.timeAt(Math.max(x,
				timeline.gutter)));
		} else if (event.shiftKey || Math.abs(across) > Math.abs(event.deltaY)) {
			event.preventDefault();
			timeline.view.pan(across * unit / timeline.lanesWidth);
		}
	}, { passive: false });
}

/** @param {Timeline} timeline @param {Parameters<typeof listen>[1]} act */
function listenToPointer(timeline, act) {
	const { canvas, view } = timeline;
	/** @type {{x: number, y: number, left: number, shift: number, scroll: number, time: number, span: boolean, alone: boolean, moved: boolean} | null} */
	let held = null;
	canvas.addEventListener('pointerdown', (event) => {
		if (event.button)
			return;
		const { x, y } = place(timeline, event);
		held = { x, y, left: view.begin, shift: view.shift, alone: event.altKey && view.frame.views.length > 1, scroll: timeline.scroller.scrollTop, time: timeline.timeAt(x), span: x >= timeline.gutter &&
			(event.shiftKey || y < RULER), moved: false };
		canvas.setPointerCapture(event.pointerId);
		timeline.tip.hidden = true;
	});
	canvas.addEventListener('pointermove', (event) => {
		const { x, y } = place(timeline, event);
		if (!held) {
			timeline.hover(x, y, event.clientX, event.clientY);
			return;
		}
		held.moved ||= Math.hypot(x - held.x, y - held.y) > CLICK;
		if (!held.moved)
			return;
		if (held.span) {
			timeline.span = inOrder(held.time, timeline.timeAt(Math.max(x, timeline.gutter)));
			timeline.redraw();
		} else if (held.alone) {
			view.moveTo(held.shift - (x - held.x) / timeline.lanesWidth * view.length);
		} else {
			const begin = held.left - (x - held.x) / timeline.lanesWidth * view.length;
			view.show(begin, begin + view.length);
			timeline.scroller.scrollTop = held.scroll - (y - held.y);
		}
	});
	canvas.addEventListener('pointerup', (event) => {
		const was = held, { x, y } = place(timeline, event);
		held = null;
		if (was?.moved && was.span && timeline.span)
			act.span(timeline.span.begin, timeline.span.end);
		else if (was && !was.moved)
			click(timeline, x, y);
	});
	canvas.addEventListener('pointercancel', () => held = null);
	canvas.addEventListener('pointerleave', () => timeline.tip.hidden = true);
	canvas.addEventListener('dblclick', () => zoomToSelected(timeline));
}

/** @param {number} one @param {number} other */
function inOrder(one, other) {
	return { begin: Math.max(0, Math.min(one, other)), end: Math.max(one, other, 0) };
}

/** @param {Timeline} timeline @param {number} x @param {number} y */
async function click(timeline, x, y) {
	const { line, spot } = timeline.pick(x, y);
	if (line && !line.track) {
		timeline.layout.toggle(line.group);
		timeline.redraw();
	} else if (spot || !line?.track || x < timeline.gutter) {
		timeline.select(spot);
	} else {
		const time = timeline.timeAt(x), slack = timeline.view.length / timeline.lanesWidth * 2; // of blocks that were not decoded, 64 parts of each are drawn
		const near = line.track.blocks.filter((block) => block.begin <= time + slack && block.end >= time - slack).slice(0, 4);
		for (const block of near)
			await timeline.store.load(block);
		timeline.select(timeline.pick(x, y).spot);
	}
}

/** @param {Timeline} timeline */
function zoomToSelected(timeline) {
	const spot = timeline.selected;
	if (spot)
		timeline.view.show(spot.rows.begin[spot.row] - spot.rows.dur[spot.row] * 0.5 - 20,
			spot.rows.begin[spot.row] + spot.rows.dur[spot.row] * 1.5 + 20);
}

/**
 * The row before or after, of the same depth.
 * @param {Timeline} timeline @param {number} by 1 or -1
 */
async function stepRow(timeline, by) {
	const spot = timeline.selected;
	if (!spot)
		return;
	const depth = (/** @type {import('./store.js').Rows} */ rows, /** @type {number} */ row) => rows.columns.depth?.[row] ?? 0,
		wanted = depth(spot.rows, spot.row);
	let { block, rows, row } = spot;
	for (;;) {
		for (row += by; row >= 0 && row < rows.n; row += by) {
			if (depth(rows, row) === wanted) {
				timeline.select({ track: spot.track, block, row, rows }, true);
				return;
			}
		}
		const next = spot.track.blocks[spot.track.blocks.indexOf(block) + by], loaded = next && await timeline.store.load(next);
		if (!loaded)
			return;
		block = next;
		rows = loaded;
		row = by > 0 ? -1 : rows.n;
	}
}

/**
 * To a track's row nearest to the selected one, or to the middle of the view.
 * @param {Timeline} timeline @param {number} by 0: of the same track
 */
async function stepTrack(timeline, by) {
	const lines = timeline.layout.lines.filter((line) => line.track), spot = timeline.selected;
	const at = spot ? lines.findIndex((line) => line.track === spot.track) + by : 0;
	const time = spot && by ? spot.rows.begin[spot.row] : Math.max(timeline.view.begin, 0);
	for (let i = at; i >= 0 && i < lines.length; i += by || 1) {
		const track = /** @type {import('./store.js').Track} */ (lines[i].track);
		const near = track.blocks.filter((block) => block.end >= time);
		if (near.length && await timeline.store.load(near[0])) {
			const found = timeline.spotAt(track, 0, time, Infinity, time);
			if (found) {
				timeline.select(found, true);
				return;
			}
		}
	}
}

/** @param {Timeline} timeline @param {number} pixels to the right */
export function moveAlone({ view, lanesWidth }, pixels) {
	if (view.frame.views.length > 1)
		view.moveTo(view.shift - pixels / lanesWidth * view.length);
}

/** @param {Timeline} timeline @param {Parameters<typeof listen>[1]} act */
function listenToKeys(timeline, act) {
	const { view, scroller } = timeline;
	/** @type {{[key: string]: () => void}} */
	const keys = {
		w: () => view.zoom(0.7), s: () => view.zoom(1 / 0.7), '+': () => view.zoom(0.7), '=': () => view.zoom(0.7),
			'-': () => view.zoom(1 / 0.7),
		a: () => view.pan(-0.15), d: () => view.pan(0.15), ArrowLeft: () => view.pan(-0.15), ArrowRight: () => view.pan(0.15),
		ArrowUp: () => scroller.scrollTop -= LINE, ArrowDown: () => scroller.scrollTop += LINE,
		PageUp: () => scroller.scrollTop -= scroller.clientHeight, PageDown: () => scroller.scrollTop += scroller.clientHeight,
		0: () => view.all(), Home: () => view.all(), f: () => zoomToSelected(timeline),
		',': () => stepRow(timeline, -1), '.': () => stepRow(timeline, 1), j: () => stepTrack(timeline, 1), k: () => stepTrack(timeline,
			-1),
		Enter: () => stepTrack(timeline, 0), x: () => act.span(Math.max(0, view.begin), Math.min(view.limit, view.end)),
		'[': () => moveAlone(timeline, -4), ']': () => moveAlone(timeline, 4),
		n: () => act.step(1), p: () => act.step(-1), Escape: () => act.clear(),
	};
	timeline.canvas.addEventListener('keydown', (event) => {
		const key = event.key.length === 1 ? event.key.toLowerCase() : event.key, does = Object.hasOwn(keys, key) ? keys[key] : null;
		if (!does || event.ctrlKey || event.metaKey || event.altKey)
			return;
		event.preventDefault();
		does();
	});
	document.addEventListener('keydown', (event) => {
		const typing = event.target instanceof Element && event.target.closest('input, textarea, select');
		if (event.key === '/' && !typing && !event.ctrlKey && !event.metaKey) {
			event.preventDefault();
			act.search();
		}
	});
}
