// SPDX-License-Identifier: MIT
// What the file holds: a recording, or two beside each other.

import { Page } from './page.js';
import { Pair } from './pair.js';

/** @param {string} id @returns {any} what an element has; null where it is damaged, or not there */
function readIndex(id) {
	try {
		return JSON.parse(document.getElementById(id)?.textContent ?? '');
	} catch {
		return null;
	}
}

const index = readIndex('index'), two = index?.pair === true || document.getElementById('index-other');
const page = two ? new Pair(index, readIndex('index-other'), readIndex('pair')) : new Page(index);
/** @type {any} */ (globalThis).cuscopePage = page;
page.show();
