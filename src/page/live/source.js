// SPDX-License-Identifier: MIT
// Where top's figures come from: /live alone, an event each time, and how long ago the last one came.

const AGAIN_MS = 2000;

/** The browser comes again by itself where a connection ends; where it gives up, this does. */
export class Source {
	/** @param {string} url @param {(data: string, id: string) => void} onFigures @param {(data: string) => void} onAccount */
	constructor(url, onFigures, onAccount) {
		this.url = url;
		this.onFigures = onFigures;
		this.account = '';
		this.onAccount = onAccount;
		this.id = '';
		this.cameMs = performance.now();
		this.open();
	}

	open() {
		const events = new EventSource(this.url);
		events.addEventListener('message', (event) => this.take(event));
		events.addEventListener('why', (event) => this.takeAccount(event.data));
		events.addEventListener('error', () => {
			if (events.readyState === EventSource.CLOSED)
				setTimeout(() => this.open(), AGAIN_MS);
		});
	}

	/** @param {MessageEvent} event the same number again: the same figures */
	take(event) {
		if (event.lastEventId && event.lastEventId === this.id)
			return;
		this.id = event.lastEventId;
		this.cameMs = performance.now();
		this.onFigures(event.data, event.lastEventId);
	}

	/** @param {string} data the same again: nothing new */
	takeAccount(data) {
		if (data === this.account)
			return;
		this.account = data;
		this.onAccount(data);
	}

	/** @returns {number} since the last figures came, or since the page is there */
	silentMs() {
		return performance.now() - this.cameMs;
	}
}
