// SPDX-License-Identifier: MIT
// Long work in short pieces: between them the page is drawn and answers.

const PIECE_MS = 8;
let began = 0;
/** @type {(() => void)[]} */
const waiting = [];
const channel = typeof document === 'undefined' ? null : new MessageChannel(); // modules can be tested without a page
if (channel)
	channel.port1.onmessage = () => {
		began = performance.now();
		waiting.shift()?.();
	};

/**
 * Goes on at once, or after the page had its turn where this piece was long enough.
 * @returns {Promise<void> | undefined}
 */
export function pause() {
	if (!channel || performance.now() - began < PIECE_MS)
		return undefined;
	return new Promise((resolve) => {
		waiting.push(() => resolve(undefined));
		requestIdle(() => channel.port2.postMessage(0));
	});
}

/** @param {() => void} then */
function requestIdle(then) {
	if (document.visibilityState === 'visible')
		requestAnimationFrame(then);
	else
		setTimeout(then);
}

/** Work that is given up when the same is begun anew: `const mine = turn.begin(); ... if (!mine()) return;` */
export class Turn {
	constructor() {
		this.number = 0;
	}

	/** @returns {() => boolean} whether it is still wanted */
	begin() {
		const mine = ++this.number;
		return () => mine === this.number;
	}
}
