// SPDX-License-Identifier: MIT
// What was missed, and the account of time: what a step consists of, and what to change first.

import { colorOf, inkOn } from './colors.js';
import { element, link } from './elements.js';
import { cut, label } from './text.js';
import { countText, durationText, finite, list, percentText } from './units.js';

const ABOUT_WHY = {
	share: 'Share of the measured time that has this cause. The shares of an account add up to 100 %.',
	ns: 'The time that the account is of: from the first to the last GPU work that was measured, without the time in which nothing was.',
	step: 'The length of a step, the mean of all of them. Steps are found by ranges, by launches that recur, or by pauses.',
	perStep: 'What this costs in each step: its time divided by the number of steps.',
	gain: 'About how many times as fast the program would be without this cause: by what bounds a step next.',
	most: 'The most that can be gained: as fast as what the GPU does by itself.',
	sure: 'How many observations this rests on.',
	then: 'The cause of most of the time that is left then.',
	phase: 'Time that is none of the usual steps: before the first, after the last, steps of warm-up, with other launches in them, or much longer ones.',
};

/** @param {unknown} value @returns {any[]} its objects: whatever else is in it is none of ours */
function objects(value) {
	return list(value).filter((its) => its && typeof its === 'object');
}

/** @param {string[]} sentences @param {string} id @param {string} title */
export function box(sentences, id, title) {
	return element('section', { id, class: 'box', role: 'status', hidden: !sentences.length }, element('h2', {}, title),
		element('ul', {}, ...sentences.map((sentence) => element('li', {}, cut(String(sentence), 2000)))));
}

/** @param {any} index @param {string} code @returns {{text: string, about: string}} */
export function causeWords(index, code) {
	const causes = index.causes, words = causes && Object.hasOwn(causes, code) ? causes[code] : null;
	return { text: label(words?.text ?? (code === 'rest' ? 'all else' : String(code).replace(/_/g, ' '))),
		about: String(words?.about ?? '') };
}

/** @param {any} place frames, outermost first @returns {string} */
function placeText(place) {
	return objects(place).map((frame) => `${frame?.file ? String(frame.file).replace(/.*\//, '') + (frame.line ? ':' + frame.line : '') + ' ' : ''}${frame?.function ?? ''}`).join(' > ');
}

/**
 * @typedef {{label: string, about: string, share: number, text: string, whole?: string, cause: string, act?: () => void}} CausePart
 * A bar of parts of 100 and their list; each is a button where it leads somewhere.
 * @param {CausePart[]} parts @param {string} title @returns {HTMLElement}
 */
export function barOf(parts, title) {
	const bar = element('div', { class: 'stack', role: 'img',
		'aria-label': `${title}: ` + parts.map((part) => `${part.label} ${percentText(part.share)}`).join(', ') });
	const rows = element('ul', { class: 'legend' });
	for (const part of parts) {
		const color = part.cause === 'rest' ? '#999999' : colorOf('account', part.label);
		const piece = element('span', { title: `${part.label} ${percentText(part.share)}` }, part.share > 6 ? percentText(part.share) : '');
		piece.style.flexGrow = String(Math.max(part.share, 0.05));
		piece.style.background = color;
		piece.style.color = inkOn(color);
		bar.append(piece);
		const mark = element('i', { 'aria-hidden': true });
		mark.style.background = color;
		rows.append(element('li', {}, mark, element('span', { class: 'share', about: ABOUT_WHY.share }, percentText(part.share)),
			part.act ? link(part.label, part.act, { about: part.about || null }) : element('span', { about: part.about || null },
				part.label),
			part.text ? element('span', { class: 'place', title: part.whole ? cut(part.whole, 1000) : null }, cut(part.text, 300)) : null));
	}
	return element('div', { class: 'account' }, bar, rows);
}

/**
 * Its two innermost frames: those that a line has room for.
 * @param {any} place
 */
function shortPlace(place) {
	const frames = objects(place);
	return (frames.length > 2 ? '… > ' : '') + placeText(frames.slice(-2));
}

/**
 * Whose time it is, where that is another thread or process than the account's.
 * @param {any} part @param {number} pid of the account @param {number} [tid]
 */
function whoText(part, pid, tid) {
	if (finite(part.pid) === null)
		return '';
	return part.pid !== pid ? ` of ${label(part.thread ?? 'process')} (pid ${part.pid})` : tid && part.tid !== tid ?
		` of thread ${part.tid}` : '';
}

/** @param {any} account */
function titleOfAccount(account) {
	return label(`${account.process ?? ''} (pid ${account.pid ?? '?'})${finite(account.gpu) === null ? '' : `, GPU ${account.gpu}`}`);
}

/** @typedef {((cause: any) => void) | null} Go to the place in the timeline; null: there is none */

/** @param {any} index @param {any} account @param {Go} go */
function accountElement(index, account, go) {
	const steps = account.steps ?? {}, title = titleOfAccount(account);
	const parts = objects(account.account).map((part) => ({
		label: causeWords(index, part.cause).text, about: causeWords(index, part.cause).about, share: Number(part.percent) || 0,
		text: shortPlace(part.place) + whoText(part, account.pid, account.tid), whole: placeText(part.place), cause: String(part.cause),
		act: part.cause === 'rest' || !go ? undefined : () => go({ of_pid: account.pid, ...part }),
	}));
	return element('article', {}, element('h3', {}, title, ': ', element('span', { about: ABOUT_WHY.ns }, durationText(account.ns)),
		steps.count ? element('span', {}, `, ${countText(steps.count)} steps of `, element('span', { about: ABOUT_WHY.step },
			durationText(steps.ns))) : null),
	barOf(parts, title), ...phaseLines(index, account));
}

/**
 * Of time that is none of the usual steps.
 * @param {any} index @param {any} account
 */
function phaseLines(index, account) {
	return objects(account.phases).filter((phase) => phase?.phase !== 'steps' && phase.percent >= 5).map((phase) => element('p',
		{ class: 'note', about: ABOUT_WHY.phase },
		`Apart: ${durationText(phase.ns)}, ${percentText(phase.percent)}, ${label(phase.phase).replace(/_/g, ' ')}` +
		(phase.cause ? `: mostly ${causeWords(index, phase.cause).text} ${placeText(phase.place)}${whoText(phase, account.pid)}` : '')));
}

/** @param {any} change @param {any[]} accounts */
function costElement(change, accounts) {
	const account = accounts.find((its) => its.gpu === change.gpu && its.pid === change.of_pid), share = account?.ns ?
		change.ns / account.ns * 100 : null;
	return element('span', {}, share === null ? durationText(change.ns) : element('span', { about: ABOUT_WHY.share },
		`${share.toFixed(0)} % of the time`),
		account && accounts.length > 1 ? ` of ${titleOfAccount(account)}` : '',
		finite(change.ns_per_step) === null ? '' : element('span', { about: ABOUT_WHY.perStep },
			`, ${durationText(change.ns_per_step)} of a step`));
}

/** @param {any} index @param {any} gain */
function gainElement(index, gain) {
	return element('span', {}, element('span', { class: 'gain', about: ABOUT_WHY.gain },
		`About ${Number(gain.factor).toFixed(2)} times as fast`), ' without it',
		finite(gain.step_ns) === null ? '' : ` (${durationText(gain.step_ns)} a step)`, finite(gain.at_most) === null ? '' : element('span',
			{ about: ABOUT_WHY.most }, `, ${Number(gain.at_most).toFixed(2)} at most`),
		gain.then ? element('span', { about: ABOUT_WHY.then }, `; then most is: ${causeWords(index, gain.then).text}`) : '', '.');
}

/** @param {any} index @param {any} change @param {any[]} accounts @param {Go} go @param {boolean} first */
function changeElement(index, change, accounts, go, first) {
	const words = causeWords(index, change.cause), place = placeText(change.place) + whoText(change, change.of_pid),
		through = objects(change.through);
	const text = cut(words.text + (placeText(change.place) ? ' in ' : '') + place, 500), about = [words.about,
		go ? 'Shows its longest occurrence in the timeline.' : ''].filter(Boolean).join(' ');
	return element('div', { class: first ? 'change first' : 'change' },
		element('p', { class: 'what' }, first ? 'Change first: ' : 'Next: ', go ? link(text, () => go(change), { about }) : element('span', { about: about || null }, text)),
		element('p', {}, costElement(change, accounts), '. ', finite(change.gain?.factor) === null ? null : gainElement(index,
			change.gain)),
		first && through.length ? element('p', {}, 'The GPU waits for it through: ' + through.map((wait) => `${causeWords(index, wait?.wait).text} ${placeText(wait?.place)}`).join(', ')) : null,
		change.why && first ? element('p', {}, element('span', { about: ABOUT_WHY.sure }, cut(String(change.why), 500))) : null,
		change.try && first ? element('p', {}, `Try: ${cut(String(change.try), 500)}.`) : null);
}

/**
 * For whom others wait, and who stands still.
 * @param {any} why @returns {HTMLElement[]}
 */
function rankLines(why) {
	const { late } = why, lines = objects(why.standing).map((its) => `Communicator ${label(its?.communicator)} stands still for ${durationText(its?.still_ns)}: ` +
		`${label(its?.function)} ${countText(its?.number)} is missing of ${objects(its?.ranks).filter((rank) => rank?.behind).map((rank) => `rank ${label(rank.rank)}`).join(', ')}.`);
	if (late && typeof late === 'object')
		lines.push(`Rank ${label(late.rank)} (pid ${label(late.pid)}) came late to ${countText(late.late)} of ${countText(late.collectives)} collectives, by ${durationText(late.late_ns)} (median); ` +
			`${late.others === 1 ? '1 other waits' : `${countText(late.others)} others wait`} for it, ${percentText(late.held_percent)} of the time.`);
	return lines.map((text) => element('p', { class: 'what' }, text));
}

/**
 * What is said where there is nothing to change first.
 * @param {any} index @param {any} why
 */
function nothingElement(index, why) {
	return why.bound_by ? element('p', { class: 'what' },
		`Nothing is to be changed first. Most of the time is: ${causeWords(index, why.bound_by).text}.`) : null;
}

/** @param {string} text @param {HTMLElement[]} folded */
function more(text, folded) {
	return folded.length ? element('details', {}, element('summary', {},
		`${countText(folded.length)} more ${text}${folded.length > 1 ? 's' : ''}`), element('div', { class: 'accounts' }, ...folded)) :
		null;
}

/**
 * Of an answer: the account, what to change, the other accounts, and the words.
 * @param {any} index @param {any} why @param {Go} go @returns {HTMLElement[]}
 */
export function whyParts(index, why, go) {
	const accounts = objects(why.gpus), main = accounts.find((its) => its.gpu === why.first?.gpu &&
		its.pid === why.first?.of_pid) ?? accounts[0];
	const shown = main ? accountElement(index, main, go) : null; // before the others, so that its causes have the plainest colours
	const next = objects(why.next).map((change) => changeElement(index, change, accounts, go, false)),
		unknown = list(why.not_known).map((text) => cut(String(text), 300));
	const answer = element('div', { class: 'answer' }, ...rankLines(why), why.first ? changeElement(index, why.first, accounts, go, true) :
		nothingElement(index, why), ...next.slice(0, 2), more('change', next.slice(2)),
		unknown.length ? element('p', { class: 'note' }, `Not known: ${unknown.join('; ')}.`) : null);
	return /** @type {HTMLElement[]} */ ([element('div', { class: 'columns' }, shown, answer),
		more('account', accounts.filter((its) => its !== main).map((account) => accountElement(index, account, go))),
		index.why_text ? element('details', {}, element('summary', {}, 'In words, as cuscope why prints it'), element('pre', { tabindex: 0,
			lines: cut(String(index.why_text), 20000) })) : null].filter((part) => part !== null));
}

/** @param {any} index @param {Go} go */
export function whySection(index, go) {
	const section = element('section', { id: 'why', 'aria-labelledby': 'why-head' }, element('h2', { id: 'why-head' },
		'Where the time goes')), why = index.why ?? index.tables?.why;
	if (!why || typeof why !== 'object')
		section.append(element('p', {}, 'This recording has no account of its time.'));
	else
		section.append(...whyParts(index, why, go));
	return section;
}
