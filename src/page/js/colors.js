// SPDX-License-Identifier: MIT
// Colours: those of Okabe and Ito, which colour-blind people tell apart, each in three tones. What they mean stands beside them as text.

const BASE = ['#e69f00', '#56b4e9', '#009e73', '#f0e442', '#0072b2', '#d55e00', '#cc79a7'];
const FRAME_KINDS = ['#e69f00', '#56b4e9', '#009e73', '#f0e442', '#d55e00', '#cc79a7', '#0072b2'];
export const FRAME_KIND_NAMES = ['native', 'python', 'jit', 'cuda', 'kernel mode', 'driver', 'gpu'];
const ON_CPU = '#009e73', READY = '#d55e00', BLOCKED = '#93a1b1';

/** @param {string} color @returns {[number, number, number]} */
function rgb(color) {
	const value = parseInt(color.slice(1), 16);
	return [value >> 16, value >> 8 & 255, value & 255];
}

/** @param {string} color @param {number} by above 0 lighter, below darker @returns {string} */
function toned(color, by) {
	const to = by > 0 ? 255 : 0, part = Math.abs(by);
	return '#' + rgb(color).map((c) => Math.round(c + (to - c) * part).toString(16).padStart(2, '0')).join('');
}

const TONES = BASE.flatMap((color) => [color, toned(color, 0.25), toned(color, -0.12)]);

/** @param {string} text @returns {number} */
function hash(text) {
	let value = 2166136261;
	for (let i = 0; i < text.length && i < 400; i++)
		value = Math.imul(value ^ text.charCodeAt(i), 16777619);
	return value >>> 0;
}

/** @param {string} name of a state @returns {'cpu' | 'ready' | 'blocked'} */
export function stateClass(name) {
	return /^on a CPU/i.test(name) ? 'cpu' : /^ready/i.test(name) ? 'ready' : 'blocked';
}

/** @type {Map<string, string>} */
const causes = new Map();

/**
 * Each its own, in the order in which they are asked for: those with most time first.
 * @param {string} name @returns {string}
 */
function causeColor(name) {
	let color = causes.get(name);
	if (!color)
		causes.set(name, color = TONES[causes.size % BASE.length * 3 + Math.floor(causes.size / BASE.length) % 3]);
	return color;
}

/** @param {string} kind of a track @param {string} name of a row @returns {string} */
export function colorOf(kind, name) {
	if (kind === 'state') {
		const state = stateClass(name);
		return state === 'cpu' ? ON_CPU : state === 'ready' ? READY : toned(BLOCKED, hash(name) % 5 / 10 - 0.1);
	}
	if (kind === 'account')
		return causeColor(name);
	return TONES[hash(name) % TONES.length];
}

/** @param {number} kind of a frame @param {string} name @returns {string} */
export function frameColor(kind, name) {
	return toned(FRAME_KINDS[kind] ?? '#999999', hash(name) % 4 / 10);
}

/** @param {number} value 0xrrggbb, of a range @returns {string} */
export function rangeColor(value) {
	return '#' + (value & 0xffffff).toString(16).padStart(6, '0');
}

/**
 * Black or white, whichever is read better on it.
 * @param {string} color @returns {string}
 */
export function inkOn(color) {
	const [r, g, b] = rgb(color).map((c) => (c / 255) ** 2.2);
	return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.18 ? '#111' : '#fff';
}

/**
 * What the canvas takes from the style sheet, light or dark.
 * @returns {{[name: string]: string}}
 */
export function theme() {
	const style = getComputedStyle(document.documentElement), names = ['back', 'ink', 'faint', 'line', 'head', 'accent', 'lane'];
	return Object.fromEntries(names.map((name) => [name, style.getPropertyValue('--' + name).trim() || '#888888']));
}
