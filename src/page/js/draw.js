// SPDX-License-Identifier: MIT
// Rows of tracks onto the canvas. What is narrower than a pixel is added up by pixel, and drawn as an image of one line a lane.

import { columnsOf, partsOf, sharesOf } from './account.js';
import { firstAfter } from './decode.js';
import { colorOf, inkOn, rangeColor } from './colors.js';
import { laneHeight, lanesOf } from './layout.js';

/**
 * @typedef {import('./store.js').Store} Store
 * @typedef {import('./store.js').Track} Track
 * @typedef {import('./store.js').Block} Block
 * @typedef {import('./store.js').Rows} Rows
 * @typedef {{context: CanvasRenderingContext2D, x: number, width: number, begin: number, end: number, ratio: number,
 *   colors: {[name: string]: string}, selected: {block: Block, row: number} | null, found: number}} Frame
 *   x and width of the lanes in pixels of the canvas; found: the name that is searched for, -1 none
 */

const WIDE = 256; // pixels: of blocks that are wider rows are drawn, of others their 64 parts
const FEW_ROWS = 128; // rows of a block that are drawn in any case
const MOST_ROWS = 300000; // that a picture looks at
const FONT = 11;
const OTHER = 0xa0a7b0; // of rows of other names than the one that is searched for

/** Pixels of a lane: how much of each is covered, and which colour has most of it. */
class Strip {
	/** @param {number} width */
	constructor(width) {
		this.cover = new Float32Array(width);
		this.most = new Float32Array(width);
		this.color = new Int32Array(width);
		this.used = false;
	}

	clear() {
		if (this.used) {
			this.cover.fill(0);
			this.most.fill(0);
		}
		this.used = false;
	}

	/**
	 * @param {number} from in pixels, not whole @param {number} to @param {number} part of it that is covered @param {number} color
	 * @param {boolean} [first] whatever else is there
	 */
	add(from, to, part, color, first) {
		const { cover, most } = this, last = Math.min(Math.floor(to), cover.length - 1);
		this.used = true;
		for (let x = Math.max(0, Math.floor(from)); x <= last; x++) {
			const share = (Math.min(to, x + 1) - Math.max(from, x)) * part;
			cover[x] += share;
			if (first || share > most[x]) {
				most[x] = first ? Infinity : share;
				this.color[x] = color;
			}
		}
	}
}

export class Painter {
	/** @param {Store} store */
	constructor(store) {
		this.store = store;
		/** @type {Map<string, Int32Array>} by kind of track: colours of names, -1 not known yet */
		this.byName = new Map();
		/** @type {Strip[]} */
		this.strips = [];
		this.image = document.createElement('canvas');
		this.rowsLeft = 0;
		/** @type {Map<string, number>} */
		this.widths = new Map();
		this.missing = false;
	}

	/** @param {Frame} frame */
	begin(frame) {
		const width = Math.max(1, Math.ceil(frame.width));
		this.rowsLeft = MOST_ROWS;
		this.missing = false;
		if (this.image.width !== width) {
			this.image.width = width;
			this.image.height = 1;
			this.strips = [];
		}
		this.scale = frame.width / (frame.end - frame.begin);
		frame.context.font = `${FONT * frame.ratio}px system-ui, sans-serif`;
		frame.context.textBaseline = 'middle';
	}

	/** @param {number} lane @returns {Strip} */
	strip(lane) {
		const strip = this.strips[lane] ??= new Strip(this.image.width);
		strip.clear();
		return strip;
	}

	/**
	 * Of a row in a strip: grey, where another name is searched for.
	 * @param {Frame} frame @param {string} kind @param {number} name @param {number} own 0: none @returns {number}
	 */
	tint(frame, kind, name, own) {
		return frame.found >= 0 && name !== frame.found ? OTHER : own ? own & 0xffffff : this.color(kind, name);
	}

	/** @param {string} kind @param {number} name @returns {number} 0xrrggbb */
	color(kind, name) {
		let colors = this.byName.get(kind);
		if (!colors)
			this.byName.set(kind, colors = new Int32Array(this.store.names.length).fill(-1));
		if (!(name < colors.length))
			return 0x999999;
		if (colors[name] < 0)
			colors[name] = parseInt(colorOf(kind, String(this.store.names[name])).slice(1), 16);
		return colors[name];
	}

	/** @param {Frame} frame @param {Block} block @param {boolean} [always] however narrow it is @returns {Rows | null} */
	rowsFor(frame, block, always) {
		const width = (block.end - block.begin) * /** @type {number} */ (this.scale);
		if (!always && width < WIDE && block.rows > FEW_ROWS || this.rowsLeft <= 0)
			return null;
		const rows = this.store.rows(block, true);
		this.rowsLeft -= Math.min(block.rows, block.rows * (frame.end - frame.begin) / (block.end - block.begin || 1));
		this.missing ||= !rows && !block.damaged;
		return rows;
	}

	/** @param {Frame} frame @param {Track} track @param {number} y @returns {boolean} whether its height has become another */
	track(frame, track, y) {
		if (track.kind === 'counter') {
			this.counter(frame, track, y);
			return false;
		}
		if (track.kind === 'account') {
			this.account(frame, track, y);
			return false;
		}
		const lanes = lanesOf(track), height = laneHeight(track), strips = Array.from({ length: lanes }, (_, lane) => this.strip(lane));
		/** @type {number[]} */
		const wide = [];
		/** @type {Rows[]} */
		const wideRows = [];
		let deepest = track.depth;
		for (const block of track.blocks) {
			if (block.begin > frame.end)
				break;
			if (block.end < frame.begin)
				continue;
			const rows = this.rowsFor(frame, block);
			if (rows)
				deepest = Math.max(deepest, this.addRows(frame, track, rows, strips, wide, wideRows));
			else
				this.addBins(frame, track, block, strips[0]);
		}
		for (let lane = 0; lane < lanes; lane++)
			this.drawStrip(frame, strips[lane], y + lane * height, height - 1);
		for (let i = 0; i < wide.length; i++)
			this.drawRow(frame, track, wideRows[i], wide[i], y, lanes, height);
		const grown = deepest > track.depth;
		track.depth = Math.min(deepest, 64);
		return grown;
	}

	/** @param {Frame} frame @param {Track} track @param {Block} block @param {Strip} strip */
	addBins(frame, track, block, strip) {
		const bins = this.store.bins(block), scale = /** @type {number} */ (this.scale);
		const x = (block.begin - frame.begin) * scale, step = (block.end - block.begin) * scale / 64;
		if (!bins) {
			strip.add(x, x + Math.max(step * 64, 1), 0.5, 0x999999);
			return;
		}
		for (let i = 0; i < 64; i++) {
			const from = x + i * step;
			if (bins.busy[i] > 0 && from < strip.cover.length && from + step >= 0)
				strip.add(from, from + Math.max(step, 0.01), bins.busy[i], this.tint(frame, track.kind, bins.name[i], 0));
		}
	}

	/**
	 * @param {Frame} frame @param {Track} track @param {Rows} rows @param {Strip[]} strips
	 * @param {number[]} wide rows that are drawn by themselves @param {Rows[]} wideRows and of which block
	 * @returns {number} the deepest of them
	 */
	addRows(frame, track, rows, strips, wide, wideRows) {
		const scale = /** @type {number} */ (this.scale), { begin, dur, name } = rows, depths = rows.columns.depth,
			tints = rows.columns.color;
		const last = strips.length - 1, least = 1.5 * frame.ratio;
		let deepest = 0;
		for (let i = firstAfter(rows, frame.begin); i < rows.n && begin[i] <= frame.end; i++) {
			const x = (begin[i] - frame.begin) * scale, width = dur[i] * scale;
			if (x + width < 0)
				continue;
			const depth = depths ? depths[i] : 0;
			if (depth > deepest)
				deepest = depth;
			if (width >= least) {
				wide.push(i);
				wideRows.push(rows);
			} else {
				strips[depth < last ? depth : last].add(x, x + (width > 0.02 ? width : 0.02), 1,
					this.tint(frame, track.kind, name[i], tints ? tints[i] : 0), name[i] === frame.found);
			}
		}
		return deepest;
	}

	/** @param {Frame} frame @param {Strip} strip @param {number} y @param {number} height */
	drawStrip(frame, strip, y, height) {
		if (!strip.used)
			return;
		const width = strip.cover.length, image = /** @type {CanvasRenderingContext2D} */ (this.image.getContext('2d'));
		const pixels = image.createImageData(width, 1), data = new Uint32Array(pixels.data.buffer);
		for (let x = 0; x < width; x++) {
			if (strip.most[x] > 0) {
				const c = strip.color[x], alpha = 70 + 185 * Math.min(1, strip.cover[x]);
				data[x] = alpha << 24 | (c & 255) << 16 | c & 0xff00 | c >> 16;
			}
		}
		image.putImageData(pixels, 0, 0);
		frame.context.imageSmoothingEnabled = false;
		frame.context.drawImage(this.image, 0, 0, width, 1, Math.round(frame.x), Math.round(y * frame.ratio), width,
			Math.round(height * frame.ratio));
	}

	/** @param {Frame} frame @param {Track} track @param {Rows} rows @param {number} row @param {number} y @param {number} lanes @param {number} height */
	drawRow(frame, track, rows, row, y, lanes, height) {
		const { context, ratio } = frame, depth = rows.columns.depth ? rows.columns.depth[row] : 0,
			scale = /** @type {number} */ (this.scale);
		const from = Math.max(0, (rows.begin[row] - frame.begin) * scale), to = Math.min(frame.width,
			(rows.begin[row] + rows.dur[row] - frame.begin) * scale);
		const top = (y + Math.min(depth, lanes - 1) * height) * ratio, tall = (height - 1) * ratio, tint = rows.columns.color?.[row];
		const color = tint ? rangeColor(tint) : '#' + this.color(track.kind, rows.name[row]).toString(16).padStart(6, '0');
		const width = Math.max(1, to - from - (to - from > 4 ? 1 : 0));
		context.globalAlpha = frame.found >= 0 && frame.found !== rows.name[row] ? 0.3 : 1;
		context.fillStyle = color;
		context.fillRect(frame.x + from, top, width, tall);
		const flags = rows.columns.flags?.[row] ?? 0;
		if (flags & 3) {
			context.fillStyle = '#d00000';
			context.fillRect(frame.x + from, top + tall - 3 * ratio, width, 3 * ratio);
		}
		if (width > 26 * ratio)
			this.text(frame, (flags & 1 ? '✗ ' : '') + this.store.label(rows.name[row]), frame.x + from + 3 * ratio, top + tall / 2,
				width - 6 * ratio, inkOn(color));
		context.globalAlpha = 1;
	}

	/**
	 * Text that is cut to its room.
	 * @param {Frame} frame @param {string} text @param {number} x @param {number} y @param {number} room @param {string} ink
	 */
	text(frame, text, x, y, room, ink) {
		const { context } = frame;
		let fits = text;
		if (text.length * 4 * frame.ratio > room || this.width(frame, text) > room) {
			const each = this.width(frame, text) / text.length;
			const n = Math.floor(room / each) - 1;
			if (n < 2)
				return;
			fits = text.slice(0, n) + '…';
		}
		context.fillStyle = ink;
		context.fillText(fits, x, y, room);
	}

	/** @param {Frame} frame @param {string} text @returns {number} */
	width(frame, text) {
		const key = frame.ratio + text;
		let width = this.widths.get(key);
		if (width === undefined) {
			if (this.widths.size > 5000)
				this.widths.clear();
			this.widths.set(key, width = Math.max(1, frame.context.measureText(text).width));
		}
		return width;
	}

	/**
	 * Shares of causes upon each other.
	 * @param {Frame} frame @param {Track} track @param {number} y
	 */
	account(frame, track, y) {
		const tall = Math.round((laneHeight(track) - 2) * frame.ratio), width = this.image.width;
		for (const block of track.blocks) {
			const rows = block.end >= frame.begin && block.begin <= frame.end ? this.rowsFor(frame, block, true) : null;
			if (!rows)
				continue;
			const { names, shares, cover } = columnsOf(rows, frame.begin, frame.end, width);
			this.image.height = tall;
			const image = /** @type {CanvasRenderingContext2D} */ (this.image.getContext('2d')), pixels = image.createImageData(width,
				tall), data = new Uint32Array(pixels.data.buffer);
			const level = new Float32Array(width);
			for (const name of names) {
				const c = this.tint(frame, 'account', name, 0), color = 255 << 24 | (c & 255) << 16 | c & 0xff00 | c >> 16,
					of = /** @type {Float32Array} */ (shares.get(name));
				for (let x = 0; x < width; x++) {
					const from = Math.round(level[x] * tall);
					level[x] += cover[x] > 0.05 ? of[x] / cover[x] : 0;
					for (let at = from; at < Math.round(level[x] * tall) && at < tall; at++)
						data[(tall - 1 - at) * width + x] = color;
				}
			}
			image.putImageData(pixels, 0, 0);
			frame.context.drawImage(this.image, Math.round(frame.x), Math.round(y * frame.ratio));
			this.image.height = 1;
			this.accountLabels(frame, rows, y, tall);
		}
	}

	/**
	 * Of parts that have room for words.
	 * @param {Frame} frame @param {Rows} rows @param {number} y @param {number} tall
	 */
	accountLabels(frame, rows, y, tall) {
		const scale = /** @type {number} */ (this.scale);
		for (const part of partsOf(rows)) {
			const from = Math.max(0, (part.begin_ns - frame.begin) * scale), to = Math.min(frame.width,
				(part.end_ns - frame.begin) * scale);
			for (const { row, low, high } of to - from > 60 * frame.ratio ? sharesOf(rows, part) : []) {
				if ((high - low) * tall > FONT * frame.ratio)
					this.text(frame, this.store.label(rows.name[row]), frame.x + from + 3 * frame.ratio,
						y * frame.ratio + tall * (1 - (low + high) / 2), to - from - 6 * frame.ratio,
						inkOn('#' + this.color('account', rows.name[row]).toString(16).padStart(6, '0')));
			}
		}
	}

	/**
	 * An area; the highest of each pixel.
	 * @param {Frame} frame @param {Track} track @param {number} y
	 */
	counter(frame, track, y) {
		const tall = laneHeight(track) - 2, width = Math.ceil(frame.width), high = new Float64Array(width).fill(-1),
			scale = /** @type {number} */ (this.scale);
		const raise = (/** @type {number} */ from, /** @type {number} */ to, /** @type {number} */ value) => {
			for (let x = Math.max(0, Math.floor(from)); x < width && x <= to; x++)
				high[x] = Math.max(high[x], value);
		};
		let peak = track.peak;
		for (const block of track.blocks) {
			if (block.begin > frame.end)
				break;
			if (block.end < frame.begin)
				continue;
			const parts = this.store.bins(block), known = track.peak > 0 && parts?.busy.some((part) => part > 0);
			const rows = this.rowsFor(frame, block, !known), bins = rows ? null : parts;
			const milli = rows?.columns.milli;
			for (let i = rows ? Math.max(0, firstAfter(rows, frame.begin) - 1) : 0; rows && milli && i < rows.n &&
				rows.begin[i] <= frame.end; i++) {
				peak = Math.max(peak, milli[i]);
				raise((rows.begin[i] - frame.begin) * scale, (rows.begin[i] + rows.dur[i] - frame.begin) * scale, milli[i]);
			}
			const step = (block.end - block.begin) * scale / 64, x = (block.begin - frame.begin) * scale;
			for (let i = 0; bins && i < 64; i++)
				raise(x + i * step, x + (i + 1) * step, bins.busy[i] * (track.peak || 1));
		}
		track.peak = Math.max(track.peak, peak);
		this.drawArea(frame, high, peak || 1, y, tall);
	}

	/** @param {Frame} frame @param {Float64Array} high @param {number} peak @param {number} y @param {number} tall */
	drawArea(frame, high, peak, y, tall) {
		const { context, ratio } = frame, bottom = (y + tall) * ratio;
		context.fillStyle = frame.colors.accent;
		context.globalAlpha = 0.55;
		for (let x = 0; x < high.length;) {
			let to = x + 1;
			while (to < high.length && high[to] === high[x])
				to++;
			const height = Math.max(0, high[x]) / peak * tall * ratio;
			if (high[x] >= 0)
				context.fillRect(frame.x + x, bottom - Math.max(height, ratio), to - x, Math.max(height, ratio));
			x = to;
		}
		context.globalAlpha = 1;
	}
}
