// SPDX-License-Identifier: MIT
// The timeline: a canvas of ruler, names of tracks and lanes, as high as its frame; the frame scrolls through all tracks.

import { partAt, shareOfRow, sharesOf } from './account.js';
import { theme } from './colors.js';
import { firstAfter } from './decode.js';
import { Painter } from './draw.js';
import { element, placeBeside } from './elements.js';
import { HEAD, Layout, laneHeight, lanesOf } from './layout.js';
import { bytesText, countText, durationText, niceStep, percentText } from './units.js';
import { View } from './view.js';

/**
 * @typedef {import('./store.js').Store} Store
 * @typedef {import('./store.js').Track} Track
 * @typedef {import('./store.js').Spot} Spot
 * @typedef {{begin: number, end: number}} Span
 */

export const RULER = 30;
const LEAST_GUTTER = 130, MOST_GUTTER = 300, PICK = 3;

/**
 * As it stands beside the lanes: a thread has up to three tracks of one title.
 * @param {Track} track @returns {string}
 */
function titleOf(track) {
	switch (track.kind) {
	case 'counter': return track.peak ? `${track.title}, up to ${valueText(track.peak, track.unit)}` : track.title;
	case 'state': return `${track.title}: states`;
	case 'range': return `${track.title}: ranges`;
	default: return track.title;
	}
}

/** @param {number} milli @param {string} unit @returns {string} */
export function valueText(milli, unit) {
	return unit === 'B' || unit === 'B/s' ? bytesText(milli / 1000) + unit.slice(1) : `${countText(milli / 1000)} ${unit}`;
}

export class Timeline {
	/** @param {Store} store @param {(spot: Spot | null) => void} onSelect @param {string} [title] */
	constructor(store, onSelect, title = 'Timeline') {
		this.title = title;
		this.store = store;
		this.onSelect = onSelect;
		this.layout = new Layout(store.tracks);
		this.painter = new Painter(store);
		this.view = new View(store.end, () => this.redraw());
		this.canvas = element('canvas', { tabindex: 0, role: 'application', 'aria-label': title });
		this.content = element('div', { class: 'content' }, this.canvas);
		this.scroller = element('div', { class: 'scroller' }, this.content);
		this.tip = element('div', { class: 'tip', hidden: true });
		this.context = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext('2d', { alpha: false }));
		/** @type {Spot | null} */
		this.selected = null;
		/** @type {Spot[]} what arrows lead to, from the selected one */
		this.peers = [];
		/** @type {Span | null} */
		this.span = null;
		this.found = -1;
		this.dirty = false;
		this.frames = 0;
		this.colors = theme();
		document.body.append(this.tip);
		this.scroller.addEventListener('scroll', () => this.redraw(), { passive: true });
		matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.readColors());
		new ResizeObserver(() => this.redraw()).observe(this.scroller);
		store.onChange = () => this.redraw();
	}

	readColors() {
		this.colors = theme();
		this.redraw();
	}

	redraw() {
		if (this.dirty)
			return;
		this.dirty = true;
		requestAnimationFrame(() => {
			this.dirty = false;
			this.draw();
		});
	}

	get gutter() {
		return Math.round(Math.min(MOST_GUTTER, Math.max(LEAST_GUTTER, (this.scroller.parentElement?.clientWidth ?? 0) * 0.17)));
	}

	get lanesWidth() {
		return Math.max(10, this.scroller.clientWidth - this.gutter);
	}

	/** @param {number} x of the canvas, in CSS pixels @returns {number} */
	timeAt(x) {
		return this.view.begin + (x - this.gutter) / this.lanesWidth * this.view.length;
	}

	/** @param {number} time @returns {number} */
	xOf(time) {
		return this.gutter + (time - this.view.begin) / this.view.length * this.lanesWidth;
	}

	/**
	 * What makes the lanes narrower or wider: what is in view stays where it is.
	 * @param {() => void} change
	 */
	keepScale(change) {
		const width = this.lanesWidth;
		change();
		this.view.show(this.view.begin, this.view.begin + this.view.length * this.lanesWidth / width);
	}

	draw() {
		const ratio = window.devicePixelRatio || 1, { clientWidth, clientHeight } = this.scroller, { context, canvas } = this;
		if (!clientWidth || !clientHeight)
			return;
		const width = Math.round(clientWidth * ratio), height = Math.round(clientHeight * ratio);
		if (canvas.width !== width || canvas.height !== height) {
			canvas.width = width;
			canvas.height = height;
			canvas.style.width = clientWidth + 'px';
			canvas.style.height = clientHeight + 'px';
		}
		this.content.style.height = Math.max(clientHeight, this.layout.height + RULER) + 'px';
		this.scroller.parentElement?.style.setProperty('--tall', this.layout.height + RULER + 12 + 'px');
		context.fillStyle = this.colors.back;
		context.fillRect(0, 0, width, height);
		this.store.wanted.length = 0;
		const frame = {
			context, ratio, x: Math.round(this.gutter * ratio), width: Math.round(this.lanesWidth * ratio), begin: this.view.begin,
				end: this.view.end,
			colors: this.colors, selected: this.selected, found: this.found,
		};
		this.painter.begin(frame);
		this.drawTracks(frame);
		this.drawSpan(ratio);
		this.drawRuler(frame);
		this.store.fetchWanted();
		this.frames++;
	}

	/** @param {import('./draw.js').Frame} frame */
	drawTracks(frame) {
		const top = this.scroller.scrollTop, lines = this.layout.within(top, this.scroller.clientHeight);
		let grown = false;
		for (const line of lines) {
			const y = line.y - top + RULER;
			if (line.track)
				grown = this.drawTrack(frame, line.track, y, line.height) || grown;
			else
				this.drawHead(frame, line, y);
		}
		this.drawSelected(frame);
		if (grown) {
			this.layout.arrange();
			this.redraw();
		}
	}

	/** @param {import('./draw.js').Frame} frame @param {import('./layout.js').Line} line @param {number} y */
	drawHead(frame, line, y) {
		const { context, ratio } = frame, closed = this.layout.closed.has(line.group);
		context.fillStyle = this.colors.head;
		context.fillRect(0, y * ratio, this.canvas.width, (HEAD - 1) * ratio);
		this.painter.text(frame, `${closed ? '▸' : '▾'} ${line.group} (${countText(line.count)})`, 6 * ratio, (y + HEAD / 2) * ratio,
			frame.x + frame.width - 12 * ratio, this.colors.ink);
	}

	/** @param {import('./draw.js').Frame} frame @param {Track} track @param {number} y @param {number} height @returns {boolean} */
	drawTrack(frame, track, y, height) {
		const { context, ratio } = frame;
		const grown = this.painter.track(frame, track, y + 1);
		context.fillStyle = this.colors.back;
		context.fillRect(0, y * ratio, frame.x, height * ratio);
		this.painter.text(frame, titleOf(track), 12 * ratio, (y + 1 + laneHeight(track) / 2) * ratio, frame.x - 18 * ratio,
			this.colors.ink);
		context.fillStyle = this.colors.line;
		context.fillRect(0, Math.round((y + height) * ratio) - 1, this.canvas.width, 1);
		return grown;
	}

	/**
	 * Of a row: where it is on the canvas, in its pixels.
	 * @param {Spot} spot @param {number} ratio
	 */
	boxOf(spot, ratio) {
		const line = this.layout.lines.find((its) => its.track === spot.track);
		if (!line)
			return null;
		const { rows, row, track } = spot, share = track.kind === 'account' ? shareOfRow(rows, row) : null;
		if (share) {
			const tall = laneHeight(track) - 2, bottom = line.y - this.scroller.scrollTop + RULER + 1 + tall,
				left = this.xOf(share.part.begin_ns);
			return { left: left * ratio, right: Math.max(this.xOf(share.part.end_ns), left + 2) * ratio,
				top: (bottom - share.share.high * tall) * ratio, height: (share.share.high - share.share.low) * tall * ratio };
		}
		const depth = Math.min(rows.columns.depth?.[row] ?? 0, lanesOf(track) - 1);
		const left = this.xOf(rows.begin[row]), right = this.xOf(rows.begin[row] + rows.dur[row]);
		const y = line.y - this.scroller.scrollTop + RULER + 1 + depth * laneHeight(track);
		return { left: left * ratio, right: Math.max(right, left + 2) * ratio, top: y * ratio, height: (laneHeight(track) - 1) * ratio };
	}

	/** @param {import('./draw.js').Frame} frame */
	drawSelected(frame) {
		const { context, ratio } = frame, from = this.selected && this.boxOf(this.selected, ratio);
		if (!from)
			return;
		context.save();
		context.beginPath();
		context.rect(frame.x, RULER * ratio, frame.width, this.canvas.height);
		context.clip();
		context.strokeStyle = this.colors.ink;
		context.lineWidth = 2 * ratio;
		context.strokeRect(from.left, from.top, from.right - from.left, from.height);
		for (const peer of this.peers)
			this.drawArrow(frame, from, this.boxOf(peer, ratio), this.selected?.track.kind === 'call');
		context.restore();
	}

	/**
	 * From the call to its work.
	 * @param {import('./draw.js').Frame} frame @param {any} one @param {any} other @param {boolean} forth
	 */
	drawArrow(frame, one, other, forth) {
		if (!other)
			return;
		const { context, ratio } = frame, [from, to] = forth ? [one, other] : [other, one];
		const x1 = Math.min(from.right, Math.max(from.left, to.left)), y1 = from.top + from.height / 2, x2 = to.left,
			y2 = to.top + to.height / 2;
		const bend = Math.max(30 * ratio, Math.abs(x2 - x1) / 2);
		context.strokeStyle = context.fillStyle = this.colors.accent;
		context.beginPath();
		context.moveTo(x1, y1);
		context.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2);
		context.stroke();
		context.beginPath();
		context.moveTo(x2, y2);
		context.lineTo(x2 - 8 * ratio, y2 - 4 * ratio);
		context.lineTo(x2 - 8 * ratio, y2 + 4 * ratio);
		context.fill();
		context.strokeRect(other.left, other.top, other.right - other.left, other.height);
	}

	/** @param {number} ratio */
	drawSpan(ratio) {
		if (!this.span)
			return;
		const { context } = this, from = Math.max(this.gutter, this.xOf(this.span.begin)), to = Math.min(this.xOf(this.span.end),
			this.scroller.clientWidth);
		context.fillStyle = this.colors.accent;
		context.globalAlpha = 0.16;
		if (to > from)
			context.fillRect(from * ratio, 0, (to - from) * ratio, this.canvas.height);
		context.globalAlpha = 1;
		for (const x of [this.xOf(this.span.begin), this.xOf(this.span.end)]) {
			if (x >= this.gutter)
				context.fillRect(x * ratio, 0, ratio, this.canvas.height);
		}
	}

	/** @param {import('./draw.js').Frame} frame */
	drawRuler(frame) {
		const { context, ratio } = frame, step = niceStep(this.view.length / (this.lanesWidth / 110)), tall = RULER * ratio;
		context.fillStyle = this.colors.head;
		context.fillRect(0, 0, this.canvas.width, tall);
		this.painter.text(frame, durationText(this.view.length) + ' in view', 12 * ratio, tall / 2, frame.x - 16 * ratio,
			this.colors.faint);
		for (let i = Math.ceil(this.view.begin / step); i * step <= this.view.end && i < 1e15; i++) {
			const x = this.xOf(i * step) * ratio;
			if (x < frame.x)
				continue;
			context.fillStyle = this.colors.faint;
			context.fillRect(x, tall - 7 * ratio, ratio, 7 * ratio);
			context.fillText(i === 0 ? '0' : this.rulerText(i * step, step), x + 3 * ratio, tall / 2);
		}
		if (this.span) {
			context.fillStyle = this.colors.accent;
			const from = Math.max(this.gutter, this.xOf(this.span.begin)), to = this.xOf(this.span.end);
			if (to > from)
				context.fillRect(from * ratio, 0, (to - from) * ratio, 5 * ratio);
		}
	}

	/**
	 * With as many digits as tell the marks apart.
	 * @param {number} time @param {number} step @returns {string}
	 */
	rulerText(time, step) {
		const [scale, unit] = time >= 1e9 ? [1e9, 's'] : time >= 1e6 ? [1e6, 'ms'] : time >= 1e3 ? [1e3, 'us'] : [1, 'ns'];
		return (time / Number(scale)).toFixed(Math.max(0, Math.ceil(Math.log10(Number(scale) / step)))) + ' ' + unit;
	}

	/**
	 * What is at a place of the canvas.
	 * @param {number} x @param {number} y in CSS pixels @returns {{line: import('./layout.js').Line | null, spot: Spot | null}}
	 */
	pick(x, y) {
		const at = y - RULER + this.scroller.scrollTop, line = y < RULER ? null : this.layout.lines[this.layout.at(at)] ?? null;
		if (!line?.track || x < this.gutter || at > line.y + line.height)
			return { line, spot: null };
		if (line.track.kind === 'account')
			return { line, spot: this.shareAt(line.track, this.timeAt(x), 1 - (at - line.y - 1) / (laneHeight(line.track) - 2)) };
		const lane = Math.floor((at - line.y - 1) / laneHeight(line.track)), slack = this.view.length / this.lanesWidth * PICK,
			time = this.timeAt(x);
		return { line, spot: this.spotAt(line.track, lane, time - slack, time + slack, time) };
	}

	/**
	 * @param {Track} track of an account @param {number} time @param {number} height from below, of 1
	 * @returns {Spot | null}
	 */
	shareAt(track, time, height) {
		for (const block of track.blocks) {
			const rows = this.store.rows(block), part = rows && partAt(rows, time);
			const share = rows && part ? sharesOf(rows, part).find((its) => height <= its.high) : null;
			if (rows && share)
				return { track, block, row: share.row, rows };
		}
		return null;
	}

	/**
	 * The row of a lane nearest to a time, the longest of those.
	 * @param {Track} track @param {number} lane @param {number} begin @param {number} end @param {number} time @returns {Spot | null}
	 */
	spotAt(track, lane, begin, end, time) {
		let best = /** @type {Spot | null} */ (null), distance = Infinity;
		const last = lanesOf(track) - 1;
		for (const block of track.blocks) {
			const rows = block.end >= begin && block.begin <= end ? this.store.rows(block) : null;
			for (let i = rows ? firstAfter(rows, begin) : 0; rows && i < rows.n && rows.begin[i] <= end; i++) {
				const to = rows.begin[i] + rows.dur[i], off = to < time ? time - to : Math.max(0, rows.begin[i] - time);
				if (to < begin || Math.min(rows.columns.depth?.[i] ?? 0, last) !== lane)
					continue;
				if (off < distance || off === distance && best && rows.dur[i] > best.rows.dur[best.row]) {
					distance = off;
					best = { track, block, row: i, rows };
				}
			}
		}
		return best;
	}

	/** @param {Spot | null} spot @param {boolean} [move] the view to it */
	select(spot, move) {
		this.selected = spot;
		this.peers = [];
		if (spot && move)
			this.reveal(spot);
		this.describe();
		this.onSelect(spot);
		this.redraw();
	}

	/** @param {Spot} spot */
	reveal(spot) {
		const begin = spot.rows.begin[spot.row];
		this.view.reveal(begin, begin + spot.rows.dur[spot.row]);
		this.revealTrack(spot.track);
	}

	/** @param {Track} track */
	revealTrack(track) {
		const line = this.layout.lineOf(track);
		if (!line)
			return;
		this.content.style.height = Math.max(this.scroller.clientHeight, this.layout.height + RULER) + 'px';
		const { scrollTop, clientHeight } = this.scroller;
		if (line.y < scrollTop || line.y + line.height > scrollTop + clientHeight - RULER)
			this.scroller.scrollTop = Math.max(0, line.y - (clientHeight - RULER) / 3);
		this.redraw();
	}

	describe() {
		const spot = this.selected;
		this.canvas.setAttribute('aria-label', `${this.title}. ` + (spot ? `Selected: ${this.textOf(spot)}` : 'Nothing is selected.'));
	}

	/**
	 * Of rows that are drawn by the 64 parts of their block.
	 * @param {Track} track @param {number} time @returns {string}
	 */
	partText(track, time) {
		const block = track.blocks.find((its) => its.begin <= time && its.end > time && !this.store.rows(its)), bins = block &&
			this.store.bins(block);
		const at = block ? Math.floor((time - block.begin) / (block.end - block.begin) * 64) : 0;
		return bins && bins.busy[at] > 0 ? `mostly ${this.store.label(bins.name[at])}; in rows for ${percentText(bins.busy[at] * 100)} of ${durationText((block.end - block.begin) / 64)}` : '';
	}

	/** @param {Spot} spot @returns {string} */
	textOf({ track, rows, row }) {
		if (track.kind === 'counter')
			return `${track.title}: ${valueText(rows.columns.milli?.[row] ?? 0, track.unit)}`;
		return `${this.store.label(rows.name[row])}, ${durationText(rows.dur[row])}, at ${durationText(rows.begin[row])}, of ${track.title}`;
	}

	/** @param {number} x @param {number} y of the canvas @param {number} clientX @param {number} clientY */
	hover(x, y, clientX, clientY) {
		const { line, spot } = this.pick(x, y);
		const text = spot ? this.textOf(spot) : line?.track && x >= this.gutter ? this.partText(line.track, this.timeAt(x)) :
			x < this.gutter && line?.track ? `${line.track.title}: ${countText(line.track.rows)} ${line.track.kind === 'counter' ? 'values' : 'rows'}` : '';
		this.tip.hidden = !text;
		this.tip.textContent = text;
		if (text)
			placeBeside(this.tip, { left: clientX + 10, top: clientY - 4, bottom: clientY + 10 });
	}
}
