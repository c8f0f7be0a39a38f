// SPDX-License-Identifier: MIT
// A history as a line over two minutes, the last figure at the right.

import { theme } from '../js/colors.js';
import { element } from '../js/elements.js';
import { shown } from '../js/text.js';
import { cellText } from '../js/units.js';
import { HISTORY_NS, linesOf } from './history.js';

const GAP_INTERVALS = 3, LEAST_GAP_NS = 3.5e9;

/**
 * A number with the unit of its type: those of tables, and what GPUs have besides.
 * @param {string} type @param {number | null} value @returns {string}
 */
export function figureText(type, value) {
	if (value === null || Number.isNaN(value))
		return '–';
	return type === 'watts' ? `${Math.round(value / 1000)} W` : type === 'celsius' ? `${value} °C` :
		type === 'percent' ? `${value < 10 ? Math.round(10 * value) / 10 : Math.round(value)} %` : cellText(type, value);
}

/**
 * @typedef {{points: import('./history.js').Point[], nowNs: number, gapNs: number, top: number}} Drawing
 * @type {Map<Spark, Drawing>}
 */
const drawings = new Map();

function drawAll() {
	const colors = theme(), sizes = [...drawings].map(([spark, of]) => ({ spark, of, width: spark.canvas.clientWidth,
		height: spark.canvas.clientHeight }));
	drawings.clear();
	for (const { spark, of, width, height } of sizes)
		spark.drawNow(of, width, height, colors);
}

export class Spark {
	/** @param {import('./figures.js').Series} series @param {boolean} [plain] no axis, no words: beside a number in a table */
	constructor(series, plain = false) {
		this.series = series;
		this.plain = plain;
		this.canvas = element('canvas', plain ? { class: 'spark', 'aria-hidden': 'true' } : { class: 'chart', role: 'img' });
	}

	/**
	 * With all others, in the next frame: that asks for sizes once, after all text has changed.
	 * @param {import('./history.js').Point[]} points @param {number} nowNs @param {number} intervalNs
	 * @param {number} [most] the top of the axis
	 */
	draw(points, nowNs, intervalNs, most = this.series.most ?? 0) {
		const greatest = points.reduce((top, point) => point.value > top ? point.value : top, 0);
		if (!this.plain)
			this.describe(points, greatest);
		if (!drawings.size)
			requestAnimationFrame(drawAll);
		drawings.set(this, { points, nowNs, gapNs: Math.max(LEAST_GAP_NS, GAP_INTERVALS * intervalNs), top: Math.max(most, greatest) || 1 });
	}

	/** @param {Drawing} of @param {number} width @param {number} height @param {{[name: string]: string}} colors */
	drawNow({ points, nowNs, gapNs, top }, width, height, colors) {
		const { canvas } = this, scale = window.devicePixelRatio || 1, c = canvas.getContext('2d');
		if (!width || !height || !c)
			return;
		if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
			canvas.width = Math.round(width * scale);
			canvas.height = Math.round(height * scale);
		}
		c.setTransform(scale, 0, 0, scale, 0, 0);
		c.clearRect(0, 0, width, height);
		const x = (/** @type {number} */ ns) => width - 1 - (nowNs - ns) / HISTORY_NS * (width - 2),
			y = (/** @type {number} */ value) => height - 1.5 - Math.max(0, value) / top * (height - 3);
		if (!this.plain)
			this.drawAxis(c, width, height, colors);
		for (const line of linesOf(points, gapNs))
			this.drawLine(c, line.map((point) => [x(point.ns), y(point.value)]), height, colors.accent);
	}

	/** @param {CanvasRenderingContext2D} c @param {number} width @param {number} height @param {{[name: string]: string}} colors */
	drawAxis(c, width, height, colors) {
		c.strokeStyle = colors.line;
		c.lineWidth = 1;
		c.beginPath();
		for (const part of [0, 0.25, 0.5, 0.75]) { // each half a minute
			const x = Math.round(1 + part * (width - 2)) + 0.5;
			c.moveTo(x, 0);
			c.lineTo(x, height);
		}
		c.moveTo(0, height - 0.5);
		c.lineTo(width, height - 0.5);
		c.stroke();
	}

	/** @param {CanvasRenderingContext2D} c @param {number[][]} line @param {number} height @param {string} color */
	drawLine(c, line, height, color) {
		c.strokeStyle = c.fillStyle = color;
		if (line.length === 1) {
			c.fillRect(line[0][0] - 1, line[0][1] - 1, 2, 2);
			return;
		}
		c.lineWidth = this.plain ? 1.2 : 1.6;
		c.lineJoin = 'round';
		c.beginPath();
		line.forEach(([x, y], i) => i ? c.lineTo(x, y) : c.moveTo(x, y));
		c.stroke();
		c.lineTo(line[line.length - 1][0], height);
		c.lineTo(line[0][0], height);
		c.closePath();
		c.globalAlpha = 0.14;
		c.fill();
		c.globalAlpha = 1;
	}

	/** @param {import('./history.js').Point[]} points @param {number} greatest */
	describe(points, greatest) {
		const { name, type } = this.series, last = points[points.length - 1]?.value ?? null;
		const figures = `now ${figureText(type, last)}, at most ${figureText(type, points.length ? greatest : null)}`;
		this.canvas.setAttribute('aria-label', shown(`${name}, last two minutes: ${figures}`));
	}
}

/** A figure in large, with its history; series that are known of nothing hide. */
export class Chart {
	/** @param {import('./figures.js').Series} series */
	constructor(series) {
		this.series = series;
		this.spark = new Spark(series);
		this.value = element('b');
		this.most = element('span', { class: 'count' });
		this.element = element('div', { class: 'figure' }, element('div', { class: 'head' },
			element('span', { about: series.about }, series.name), this.value), this.spark.canvas, this.most);
	}

	/**
	 * @param {number | null} value the last one
	 * @param {import('./history.js').Point[]} points @param {number} nowNs @param {number} intervalNs
	 * @param {number | null} [limit] what it can be at most
	 */
	show(value, points, nowNs, intervalNs, limit) {
		const { type, optional, most } = this.series, known = points.filter((point) => !Number.isNaN(point.value)), top = limit ?? most ?? 0;
		this.element.hidden = Boolean(optional) && value === null && !known.length;
		if (this.element.hidden)
			return;
		this.value.textContent = figureText(type, value);
		this.most.textContent = limit ? `of ${figureText(type, limit)}` :
			known.length ? `at most ${figureText(type, Math.max(...known.map((point) => point.value)))}` : '';
		this.spark.draw(points, nowNs, intervalNs, top);
	}
}
