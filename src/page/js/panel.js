// SPDX-License-Identifier: MIT
// All that is known of the selected row.

import { FRAME_KIND_NAMES } from './colors.js';
import { button, element, fill, link } from './elements.js';
import { durationsOf, peersOf } from './find.js';
import { Turn } from './pace.js';
import { cut, shown } from './text.js';
import { valueText } from './timeline.js';
import { bytesText, countText, durationText, finite, timeText } from './units.js';

/**
 * @typedef {import('./timeline.js').Timeline} Timeline
 * @typedef {import('./store.js').Spot} Spot
 */

const FLAGS = /** @type {[number, string][]} */ ([[1, 'failed'], [2, 'never returned'], [4, 'no return recorded'], [8,
	'captured into a graph'], [16, 'nested in another call']]);
const WORK = ['kernel', 'copy', 'set', 'graph launch as a whole'];
const KINDS = /** @type {{[kind: string]: string}} */ ({ call: 'Call', work: 'GPU work', state: 'State of a thread', range: 'Range',
	counter: 'Value', account: 'Cause of time' });
const TOLD = new Set(['begin', 'dur', 'name', 'depth', 'flags', 'what', 'detail', 'stack', 'thread', 'asked', 'bytes', 'color', 'milli',
	'correlation']);
const MOST_FRAMES = 200, BINS = 24, WIDEST_FIELD = 40000;

export class Panel {
	/** @param {Timeline} timeline @param {(name: number) => void} onName @param {string} [of] which of two recordings */
	constructor(timeline, onName, of = '') {
		this.of = of;
		/** @type {Panel | null} of the other recording */
		this.beside = null;
		this.timeline = timeline;
		this.store = timeline.store;
		this.onName = onName;
		this.turn = new Turn();
		this.element = element('section', { class: 'panel', 'aria-label': 'the selected row' + (of && ` of ${of}`), tabindex: 0 });
		this.show(null);
	}

	/** @param {Spot | null} spot */
	async show(spot) {
		const mine = this.turn.begin();
		if (!spot) {
			fill(this.element, element('p', { class: 'note' }, this.store.tracks.length ?
				'Click on a call, on GPU work or on a wait to see all of it here. Keys: ? in the toolbar.' :
				'Nothing was recorded that has a time.'));
			return;
		}
		this.makeRoom();
		const { track, rows, row } = spot, peers = element('div'), stack = element('div'), others = element('div');
		const title = track.kind === 'counter' ? track.title : this.store.label(rows.name[row]);
		fill(this.element, element('h3', {}, title), this.beside && others, this.fields(spot), peers, stack, this.beside ? null : others);
		if (track.kind !== 'counter')
			await Promise.all([this.addPeers(peers, spot, mine), this.addStack(stack, spot, mine), this.addOthers(others, spot, mine)]);
	}

	/** It is narrow until there is something to show. */
	makeRoom() {
		const look = this.element.parentElement;
		if (look && !look.classList.contains('used'))
			this.timeline.keepScale(() => [look, this.beside?.element.parentElement].forEach((its) => its?.classList.add('used')));
	}

	/** @param {Spot} spot */
	fields(spot) {
		const { track, rows, row } = spot, { columns } = rows, value = (/** @type {string} */ name) => columns[name]?.[row] ?? 0,
			begin = rows.begin[row];
		const fields = /** @type {[string, string | Node | null][]} */ ([
			['', KINDS[track.kind] ?? track.kind],
			['name', track.kind === 'counter' ? null : cut(this.store.name(rows.name[row]), WIDEST_FIELD)],
			['of', track.title + (track.process >= 0 ? `, ${this.store.processTitle(track)}` : '')],
			['begin', timeText(begin)],
			[track.kind === 'counter' ? 'holds for' : 'duration', durationText(rows.dur[row]) + (rows.dur[row] >= 1000 ?
				` (${countText(rows.dur[row])} ns)` : '')],
			['value', columns.milli ? valueText(value('milli'), track.unit) : null],
			['arguments', this.detail(spot)],
			['', FLAGS.filter(([bit]) => value('flags') & bit).map(([, text]) => text).join(', ') || null],
			['what', columns.what ? WORK[value('what')] ?? countText(value('what')) : null],
			['bytes', value('bytes') ? bytesText(value('bytes')) + (rows.dur[row] && value('what') ?
				`, ${bytesText(value('bytes') / rows.dur[row] * 1e9)}/s` : '') : null],
			['asked for by', value('asked') ? this.threadLink(value('asked'), begin) : null],
			['ended by', value('thread') ? this.threadLink(value('thread'), begin + rows.dur[row]) : null],
			['correlation', columns.correlation ? countText(value('correlation')) : null],
			...Object.keys(columns).filter((name) => !TOLD.has(name)).map((name) => [name, countText(value(name))]),
		]);
		return element('dl', {}, ...fields.filter(([, text]) => text).flatMap(([name, text]) => [element('dt', {}, name), element('dd', {},
			text)]));
	}

	/** @param {Spot} spot */
	detail({ rows, row }) {
		const text = this.store.detail(rows, row);
		return text ? element('span', { lines: cut(text, WIDEST_FIELD) }) : null;
	}

	/**
	 * A thread, and a way to its track.
	 * @param {number} tid @param {number} time @returns {Node}
	 */
	threadLink(tid, time) {
		const tracks = this.store.tracks.filter((its) => its.tid === tid), track = tracks.find((its) => its.kind === 'state') ?? tracks[0];
		if (!track)
			return document.createTextNode(`thread ${tid}, which has no track here`);
		return link(`${track.title}, thread ${tid}`, () => this.goToThread(tracks, time));
	}

	/**
	 * What it did then, of the first of its tracks that knows.
	 * @param {import('./store.js').Track[]} tracks @param {number} time
	 */
	async goToThread(tracks, time) {
		for (const track of tracks) {
			for (const block of track.blocks.filter((its) => its.begin <= time && its.end >= time))
				await this.store.load(block);
			const spot = this.timeline.spotAt(track, 0, time - 1, time, time - 1);
			if (spot) {
				this.timeline.select(spot, true);
				return;
			}
		}
		this.timeline.revealTrack(tracks[0]);
	}

	/** @param {HTMLElement} place @param {Spot} spot @param {() => boolean} mine */
	async addPeers(place, spot, mine) {
		if (spot.track.kind !== 'call' && spot.track.kind !== 'work')
			return;
		const peers = await peersOf(this.store, spot), call = spot.track.kind === 'call';
		if (!mine())
			return;
		this.timeline.peers = peers;
		this.timeline.redraw();
		if (peers.length)
			fill(place, element('h4', {}, call ? 'Its work on the GPU' : 'The call that asked for it'), element('ul', {},
				...peers.map((peer) => element('li', {},
				link(`→ ${this.store.label(peer.rows.name[peer.row])}`, () => this.timeline.select(peer, true), { class: 'link arrow' }),
				` ${durationText(peer.rows.dur[peer.row])}, ${peer.track.title}; ${delayText(spot, peer, call)}`))));
		else if (!call)
			fill(place, element('p', { class: 'note' }, 'The call that asked for it was not recorded.'));
	}

	/** @param {HTMLElement} place @param {Spot} spot @param {() => boolean} mine */
	async addStack(place, spot, mine) {
		const frames = await this.store.stack(spot.rows.columns.stack?.[spot.row] ?? 0);
		if (!mine() || !frames.length)
			return;
		fill(place, element('h4', {}, 'Stack, innermost first'), element('ol', { class: 'frames' }, ...frames.slice(0,
			MOST_FRAMES).map((frame) => element('li', {},
			element('span', { class: 'function' }, cut(shown(frame.name), 300)), ' ', element('span', { class: 'place' },
				cut(shown(frame.place), 300)),
			element('span', { class: 'kind' }, FRAME_KIND_NAMES[frame.kind] ?? '')))),
			frames.length > MOST_FRAMES ? element('p', { class: 'note' }, `and ${countText(frames.length - MOST_FRAMES)} more`) : null);
	}

	/** @param {HTMLElement} place @param {Spot} spot @param {() => boolean} mine */
	async addOthers(place, spot, mine) {
		const name = spot.rows.name[spot.row], { durations, looked, blocks } = await durationsOf(this.store, spot.track.kind, name, mine);
		const beside = this.beside && await this.beside.durationsOf(spot.track.kind, this.store.names[name], mine);
		if (!mine() || durations.length + (beside?.durations.length ?? 0) < 2)
			return;
		const own = spot.rows.dur[spot.row], shorter = durations.filter((ns) => ns < own).length;
		const all = beside ? durations.concat(beside.durations) : durations;
		const others = beside ? [element('h4', {}, manyText(this.of, durations)), histogram(durations, own, all), element('h4', {},
			manyText(beside.of, beside.durations)), histogram(beside.durations, NaN, all)] : [histogram(durations, own)];
		fill(place, element('h4', {}, beside ? 'Durations of this name' : `Durations of ${countText(durations.length)} of this name`),
			...(this.of > (beside?.of ?? '') ? [...others.slice(2), ...others.slice(0, 2)] : others),
			element('p', { class: 'note' }, `${countText(shorter)} are shorter than this one (${(shorter / durations.length * 100).toFixed(0)} %)`,
				looked < blocks ? `; of ${countText(looked)} of ${countText(blocks)} parts of the recording` : ''),
			button('others of this name', () => this.onName(name)));
	}

	/**
	 * Of rows of its recording.
	 * @param {string} kind @param {string} name @param {() => boolean} mine
	 */
	async durationsOf(kind, name, mine) {
		const number = this.store.names.indexOf(name), found = number < 0 ? null : await durationsOf(this.store, kind, number, mine);
		return { of: this.of, durations: found?.durations ?? [] };
	}
}

/** @param {string} of which recording @param {number[]} durations */
function manyText(of, durations) {
	const middle = [...durations].sort((a, b) => a - b)[durations.length >> 1];
	return `${of}: ${durations.length ? `${countText(durations.length)}, the median ${durationText(middle)}` : 'none'}`;
}

/** @param {Spot} spot @param {Spot} peer @param {boolean} call */
function delayText(spot, peer, call) {
	const [asked, work] = call ? [spot, peer] : [peer, spot], delay = work.rows.begin[work.row] - asked.rows.begin[asked.row];
	return delay >= 0 ? `it began ${durationText(delay)} after the call did` : `it began ${durationText(-delay)} before the call did`;
}

/**
 * Logarithmic classes of durations, from the least to the largest.
 * @param {number[]} durations @param {number[]} [all] of which they are a part @returns {{from: number, to: number, n: number}[]}
 */
export function classesOf(durations, all = durations) {
	let least = Infinity, most = 0;
	for (const ns of all) {
		least = Math.min(least, ns);
		most = Math.max(most, ns);
	}
	least = Math.max(1, least);
	const ratio = Math.max(most / least, 1.0001), edge = (/** @type {number} */ i) => least * ratio ** (i / BINS);
	const classes = Array.from({ length: BINS }, (_, i) => ({ from: edge(i), to: edge(i + 1), n: 0 }));
	for (const ns of durations)
		classes[Math.max(0, Math.min(BINS - 1, Math.floor(Math.log(Math.max(ns, 1) / least) / Math.log(ratio) * BINS)))].n++;
	return classes;
}

/** @param {number[]} durations @param {number} own @param {number[]} [all] */
function histogram(durations, own, all) {
	const classes = classesOf(durations, all), most = Math.max(...classes.map(({ n }) => n)),
		text = (/** @type {{from: number, to: number, n: number}} */ its) => `${durationText(its.from)} to ${durationText(its.to)}: ${countText(its.n)}`;
	const bars = classes.map((its, i) => {
		const bar = element('span', { title: text(its), class: finite(own) !== null && (own >= its.from || i === 0) && (own < its.to ||
			i === BINS - 1) ? 'own' : null });
		bar.style.height = its.n ? Math.max(3, its.n / most * 56) + 'px' : '0';
		return bar;
	});
	return element('div', {}, element('div', { class: 'histogram', role: 'img',
		'aria-label': `histogram: ${classes.filter(({ n }) => n).map(text).join('; ')}` }, ...bars),
		element('div', { class: 'ends' }, element('span', {}, durationText(classes[0].from)), element('span', {},
			durationText(classes[BINS - 1].to))));
}
