// SPDX-License-Identifier: MIT
// What was missed, in sentences.

import { countText, finite } from '../js/units.js';
import { listOf, objectOf } from './figures.js';

const MOST_SENTENCES = 40;

const LOST = /** @type {{[reason: string]: string}} */ ({
	ring_full: 'calls lost: cuscope did not keep up',
	threads_full: 'calls lost: no room for more threads',
	no_entry: 'calls lost: returns without a seen entry',
	too_deep: 'calls lost: nested too deep',
	unreadable: 'calls whose arguments could not be read',
	late: 'calls out of order',
	gpu_ring_full: 'records of GPU work lost: cuscope did not keep up',
	gpu_buffers: 'records of GPU work lost: CUPTI had no buffer',
	gpu_bad_times: 'records of GPU work left out: impossible times',
	records: 'news of processes, threads, names or libraries lost',
	processes_full: 'processes not traced: no room for more',
	texts: 'texts cut or unreadable',
	not_run: 'times that the kernel did not run a program',
	gpu_no_call: 'pieces of GPU work whose call is not known',
	gpu_bad_records: 'records of an agent left out: they made no sense',
	no_room: 'events lost: no room for a sum',
	no_answer: 'without an answer',
	over_budget: 'events left out: beyond their budget',
	gpu_not_recorded: 'pieces of GPU work not recorded',
	calls_over_budget: 'calls lost: beyond their budget',
	moments: 'samples, switches and interrupts left out by the kernel',
});

const HOOKS = /** @type {{[kind: string]: string}} */ ({
	not_hooked: 'not hooked',
	hooked_late: 'hooked late',
	unhooked: 'unhooked',
	entry_only: 'entries only, without results and durations',
	estimated: 'estimated',
	no_gpu_times: 'without GPU times',
	no_answer: 'given up',
	over_budget: 'not all kept',
	unseen: 'not looked into',
	counted: 'counted inside of the process',
	failed: 'not whole',
	gpu_windows: 'GPU times in windows',
	not_looked_at: 'not looked at',
});

/**
 * Sentences, the gravest first; none where nothing was missed.
 * @param {any} page @returns {string[]}
 */
export function missedSentences(page) {
	const missed = objectOf(page.missed), sentences = [], scale = finite(page.estimate_scale) ?? 1;
	for (const [reason, n] of Object.entries(objectOf(missed.lost))) {
		if (finite(n))
			sentences.push(`${countText(n)} ${LOST[reason] ?? reason}`);
	}
	if (scale > 1)
		sentences.push(`Tracing gives up detail to stay cheap: counts are too low by a factor of ${countText(scale)}.`);
	for (const hook of listOf(missed.hooks)) {
		const of = [hook.name, hook.lib && (hook.name ? `of ${hook.lib}` : hook.lib),
			hook.pid ? `in process ${hook.pid}` : hook.processes ? `in ${countText(hook.processes)} processes` : null,
			hook.calls ? `${countText(hook.calls)} calls` : null].filter(Boolean).join(' ');
		sentences.push(`${HOOKS[hook.kind] ?? hook.kind}${of ? ': ' + of : ''}${hook.why ? ': ' + hook.why : ''}`);
	}
	for (const [what, n] of Object.entries(objectOf(missed.stacks))) {
		if (finite(n))
			sentences.push(`stacks: ${countText(n)} ${what.replace(/_/g, ' ')}`);
	}
	if (missed.complete === false && !sentences.length)
		sentences.push('Not all was seen.');
	const more = sentences.length - MOST_SENTENCES;
	return more > 0 ? [...sentences.slice(0, MOST_SENTENCES), `and ${countText(more)} more`] : sentences;
}
