// SPDX-License-Identifier: MIT
// The tables beside the flame graph of a profile: functions and stacks, each a way into the graph.

import { element, showDefinitions } from '../js/elements.js';
import { Picture } from '../js/picture.js';
import { tableOf } from '../js/reports.js';
import { Table } from '../js/tables.js';
import { list } from '../js/units.js';

/**
 * Shows where a function is in the graph, whose search takes regular expressions.
 * @param {string} name
 */
function findInGraph(name) {
	const search = /** @type {HTMLInputElement} */ (document.querySelector('svg.flame input'));
	search.value = '^' + name.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&') + '$';
	search.dispatchEvent(new Event('input'));
	document.querySelector('.picture')?.scrollIntoView();
}

new Picture(/** @type {SVGSVGElement} */ (document.querySelector('svg.flame'))).listenToAll();

const profileTables = list(JSON.parse(document.getElementById('index')?.textContent ?? '{}').tables);
document.querySelector('aside')?.append(...profileTables.map((table) => new Table({ ...tableOf(table, '', ''), sort: 1,
	onRow: (row) => findInGraph(String(row[0])) }).element), element('p', { class: 'note' }, 'A name leads to where it is in the graph.'));
showDefinitions();
