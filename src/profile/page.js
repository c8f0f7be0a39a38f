/* SPDX-License-Identifier: MIT */
/* The tables beside a flame graph: sorted by their headings, filtered, and a way into the graph. */
(function () {
	'use strict';

	function valueOf(row, column) {
		const cell = row.cells[column], number = cell.dataset.v;

		return number === undefined ? cell.textContent : Number(number);
	}

	/* Numbers begin with the largest, names with the first. */
	function sort(heading) {
		const column = heading.cellIndex, body = heading.closest('table').tBodies[0];
		const rows = Array.from(body.rows), before = heading.getAttribute('aria-sort');
		const text = rows.length && typeof valueOf(rows[0], column) === 'string';
		const way = before ? (before === 'descending' ? 'ascending' : 'descending') :
			text ? 'ascending' : 'descending';
		const sign = way === 'descending' ? -1 : 1;

		for (const other of heading.parentNode.cells)
			other.removeAttribute('aria-sort');
		heading.setAttribute('aria-sort', way);
		rows.sort((a, b) => {
			const x = valueOf(a, column), y = valueOf(b, column);

			return sign * (text ? x.localeCompare(y) : x - y);
		});
		body.append(...rows);
	}

	function filter(input) {
		const wanted = input.value.toLowerCase();

		for (const row of input.closest('section').querySelector('tbody').rows)
			row.hidden = !row.lastElementChild.textContent.toLowerCase().includes(wanted);
	}

	function find(name) {
		const search = document.querySelector('.bar input');

		search.value = '^' + name.replace(/[.*+?^${}()|[\]\\\/]/g, '\\$&') + '$';
		search.dispatchEvent(new Event('input'));
		document.querySelector('.picture').scrollIntoView();
	}

	document.addEventListener('click', event => {
		const button = event.target.closest('button');

		if (!button)
			return;
		if (button.parentNode.tagName === 'TH')
			sort(button.parentNode);
		else if (button.parentNode.tagName === 'TD')
			find(button.textContent);
	});
	for (const input of document.querySelectorAll('section input'))
		input.addEventListener('input', () => filter(input));
})();
