// SPDX-License-Identifier: MIT
// Where the agent's figures come from: /metrics, once for each of its snapshots, and /live; each second at most, and not while nobody looks.

const LEAST_MS = 1000, AFTER_MS = 60, PATIENCE_MS = 10000;

export class Poll {
	/**
	 * @param {string} url @param {(text: string, nowMs: number) => void} onText
	 * @param {() => number} dueMs by performance.now(), when there will be something new
	 * @param {() => Record<string, string>} [headers]
	 */
	constructor(url, onText, dueMs, headers) {
		this.url = url;
		this.onText = onText;
		this.dueMs = dueMs;
		this.headers = headers ?? (() => ({ Accept: 'text/plain' }));
		this.cameMs = performance.now();
		this.refused = ''; // what it says instead
		this.timer = 0;
		this.asking = false;
		document.addEventListener('visibilitychange', () => {
			if (!document.hidden)
				this.ask();
		});
		this.ask();
	}

	async ask() {
		const beganMs = performance.now();
		clearTimeout(this.timer);
		if (document.hidden || this.asking)
			return;
		this.asking = true;
		const ended = new AbortController(), patience = setTimeout(() => ended.abort(), PATIENCE_MS);
		try {
			const answer = await fetch(this.url, { cache: 'no-store', redirect: 'error', headers: this.headers(),
				signal: ended.signal }), text = await answer.text();
			this.refused = answer.ok ? '' : text.slice(0, 200).trim() || `status ${answer.status}`;
			if (answer.ok) {
				this.cameMs = performance.now();
				this.onText(text, this.cameMs);
			}
		} catch {
			this.refused = 'The agent does not answer.';
		}
		this.asking = false;
		clearTimeout(patience);
		clearTimeout(this.timer);
		this.timer = setTimeout(() => this.ask(), Math.max(this.dueMs() + AFTER_MS - performance.now(), LEAST_MS - (performance.now() - beganMs), 100));
	}
}
