/* SPDX-License-Identifier: MIT */
/*
 * What makes the picture of a flame graph answer: zoom, search, keys, tooltips. All data is in the
 * picture. Names are only ever set as text.
 */
(function () {
	'use strict';
	const SVG = 'http://www.w3.org/2000/svg', XHTML = 'http://www.w3.org/1999/xhtml';
	const ROW = 18, SIDE = 10, BAR = 36, FOOTER = 12, LEAST_TEXT = 20, EPSILON = 1e-6;
	const svg = document.querySelector('svg.flame'), graph = svg.querySelector('svg.graph');
	const page = svg.parentNode === document ? null : svg.parentNode;
	const frames = Array.from(graph.children, readFrame);
	const head = makeHead(), controls = makeControls(), tip = makeTip();
	let zoomed = frames[0], focused = frames[0], width = 0, hits = [];

	/* ---- the frames, as the picture has them ---- */

	function readFrame(g, index) {
		const [title, rect, text] = g.children, lines = title.textContent.split('\n');
		const frame = { g, rect, text, index, name: lines[0], about: lines.slice(1).join('\n') };

		title.remove();
		frame.x = rect.x.baseVal.valueInSpecifiedUnits;
		frame.w = rect.width.baseVal.valueInSpecifiedUnits;
		frame.depth = Math.round(rect.y.baseVal.value / ROW);
		frame.label = labelOf(frame.name);
		g.setAttribute('tabindex', index ? '-1' : '0');
		g.setAttribute('role', 'button');
		g.setAttribute('aria-label', frame.name);
		g.flameFrame = frame;
		return frame;
	}

	/* The colour says what it is of. */
	function labelOf(name) {
		return name.replace(/^\[GPU_Kernel\]/, '').replace(/^\[GPU_(\w+)\]/, (all, what) =>
			what.toLowerCase() + ' ') || name;
	}

	function contains(outer, inner) {
		return outer.depth <= inner.depth && outer.x <= inner.x + EPSILON &&
			outer.x + outer.w >= inner.x + inner.w - EPSILON;
	}

	function parentOf(frame) {
		for (let i = frame.index - 1; i >= 0; i--) {
			if (frames[i].depth === frame.depth - 1)
				return frames[i];
		}
		return null;
	}

	/* ---- text that fits ---- */

	function charWidth(c) {
		if ("iljtfrI.,:;'|!()[]{} ".includes(c))
			return 4.2;
		if ('mwMW@%'.includes(c))
			return 11;
		return c >= 'A' && c <= 'Z' ? 8.4 : c > '~' ? 12 : 7.3;
	}

	function textWidth(text) {
		let sum = 0;

		for (const c of text)
			sum += charWidth(c);
		return sum;
	}

	/* The insides of brackets give way first, then namespaces, then the end. */
	function shorten(name, room) {
		let text = name.slice(0, 600);

		if (textWidth(text) > room)
			text = text.replace(/ \([^ ,()]*\.[^ ,()]*\)$/, ''); // the file of a function of Python
		for (let i = 0; i < 8 && textWidth(text) > room; i++) {
			const shorter = text.replace(/<[^<>]*>|\([^()]*\)/g, '');

			if (shorter === text || !shorter)
				break;
			text = shorter;
		}
		while (textWidth(text) > room && text[0] !== '[' && /^[^()]*?(?:::|\w )[\w~]/.test(text))
			text = text.replace(/^[^()]*?(?:::|\w )(?=[\w~])/, '');
		if (textWidth(text) <= room)
			return text;
		while (text && textWidth(text) + 7 > room)
			text = text.slice(0, -1);
		return text.length > 1 ? text + '\u2026' : '';
	}

	function place(frame, x, w) {
		const pixels = w / 100 * graphWidth();

		frame.shown = w > 0 && pixels >= 0.4;
		frame.g.classList.toggle('off', !frame.shown);
		if (!frame.shown)
			return;
		frame.rect.setAttribute('x', x + '%');
		frame.rect.setAttribute('width', w + '%');
		if (pixels < LEAST_TEXT) {
			if (frame.text)
				frame.text.textContent = '';
			return;
		}
		if (!frame.text) {
			frame.text = document.createElementNS(SVG, 'text');
			frame.text.setAttribute('y', frame.depth * ROW + 13);
			frame.text.setAttribute('dx', '4');
			frame.g.appendChild(frame.text);
		}
		frame.text.setAttribute('x', x + '%');
		frame.text.textContent = shorten(frame.label, pixels - 8);
	}

	/* ---- zoom ---- */

	function graphWidth() {
		return width - 2 * SIDE;
	}

	function layOut() {
		for (const frame of frames) {
			const above = frame.depth < zoomed.depth;

			frame.g.classList.toggle('up', above && contains(frame, zoomed));
			if (above)
				place(frame, 0, contains(frame, zoomed) ? 100 : 0);
			else if (contains(zoomed, frame))
				place(frame, (frame.x - zoomed.x) / zoomed.w * 100,
				      frame.w / zoomed.w * 100);
			else
				place(frame, 0, 0);
		}
	}

	function zoom(frame) {
		zoomed = frame;
		layOut();
		showPath();
		hideTip();
	}

	function fit() {
		width = page ? page.clientWidth : document.documentElement.clientWidth || innerWidth;
		width = Math.max(width, 320);
		svg.removeAttribute('viewBox');
		svg.setAttribute('width', width);
		graph.setAttribute('width', graphWidth());
		fitHead();
		controls.place.setAttribute('width', graphWidth());
		layOut();
	}

	/* ---- the words above, which the picture has in lines of its own width ---- */

	function makeHead() {
		const place = document.createElementNS(SVG, 'foreignObject');
		const box = element('div', place, { className: 'head' });
		let kinds = null;

		for (const text of Array.from(svg.querySelectorAll(':scope > text'))) {
			const said = text.textContent, kind = text.getAttribute('class');

			if (kind === 'legend') {
				kinds = kinds || element('div', box, { className: 'kinds' });
				addKind(kinds, text.previousElementSibling, said);
			} else if (said.startsWith('  ') && box.lastChild) {
				box.lastChild.append(said.slice(1)); // the rest of a line
			} else {
				element('div', box, { className: kind, textContent: said });
			}
			text.remove();
		}
		place.setAttribute('x', SIDE);
		place.setAttribute('y', page ? 0 : SIDE);
		svg.insertBefore(place, graph);
		return { place, box };
	}

	function addKind(kinds, rect, said) {
		const span = element('span', kinds, {});

		element('i', span, {}).style.background = getComputedStyle(rect).fill;
		span.append(said);
		rect.remove();
	}

	/* The graph stands below what the words take at this width. */
	function fitHead() {
		let top;

		head.place.setAttribute('width', graphWidth());
		head.place.setAttribute('height', 10000);
		top = head.box.offsetHeight;
		head.place.setAttribute('height', top);
		top += head.place.y.baseVal.value + BAR;
		controls.place.setAttribute('y', top - BAR + 4);
		graph.setAttribute('y', top);
		svg.setAttribute('height', top + graph.height.baseVal.value + FOOTER);
	}

	/* ---- the bar: where one is, and the search ---- */

	function element(name, parent, options) {
		const made = document.createElementNS(XHTML, name);

		Object.assign(made, options);
		parent.appendChild(made);
		return made;
	}

	function makeControls() {
		const place = document.createElementNS(SVG, 'foreignObject');
		const bar = element('div', place, { className: 'bar' });
		const path = element('nav', bar, {});
		const found = element('output', bar, {});
		const input = element('input', bar, {
			type: 'search',
			placeholder: 'Search: a regular expression',
			title: 'Ctrl-F or /; Enter: the next match; Escape: none',
		});

		input.setAttribute('aria-label', 'Search');
		place.setAttribute('x', SIDE);
		place.setAttribute('height', 30);
		svg.appendChild(place);
		return { place, path, found, input };
	}

	function addStep(frame) {
		const button = element('button', controls.path, { textContent: frame.name,
			title: 'Zoom to ' + frame.name });

		button.addEventListener('click', () => zoom(frame));
	}

	/* "all > train > step", with what is between left out where there is much. */
	function showPath() {
		const path = [];

		controls.path.textContent = '';
		if (zoomed === frames[0]) {
			controls.path.textContent = 'Click a frame to zoom. Arrows, Enter and Escape work as well.';
			return;
		}
		for (let at = zoomed; at; at = parentOf(at))
			path.unshift(at);
		path.forEach((frame, i) => {
			if (i && i < path.length - 3) {
				if (i === 1)
					controls.path.append(' \u203a \u2026');
				return;
			}
			if (i)
				controls.path.append(' \u203a ');
			addStep(frame);
		});
	}

	/* The share of all that is in frames that match: what lies in another match counts once. */
	function search() {
		const wanted = controls.input.value;
		let pattern = null, sum = 0, end = -1;

		controls.input.classList.remove('bad');
		try {
			pattern = wanted ? new RegExp(wanted) : null;
		} catch (e) {
			controls.input.classList.add('bad');
		}
		hits = pattern ? frames.filter(frame => frame.index && pattern.test(frame.name)) : [];
		for (const frame of frames) {
			frame.g.classList.remove('hit');
			frame.g.classList.toggle('dim', hits.length > 0);
		}
		for (const frame of hits) {
			frame.g.classList.remove('dim');
			frame.g.classList.add('hit');
			if (frame.x < end - EPSILON)
				continue;
			sum += frame.w;
			end = frame.x + frame.w;
		}
		controls.found.textContent = !wanted ? '' : !pattern ? 'no regular expression' :
			!hits.length ? 'no match' : 'matched: ' + sum.toFixed(1) + ' %';
	}

	function nextHit() {
		const shown = hits.filter(frame => frame.shown);
		const next = shown.find(frame => frame.index > focused.index) || shown[0];

		if (next)
			focus(next);
	}

	/* ---- tooltips ---- */

	function makeTip() {
		const place = document.createElementNS(SVG, 'foreignObject');
		const box = element('div', place, { className: 'tip' });
		const name = element('b', box, {}), about = element('div', box, {});

		place.setAttribute('class', 'off');
		place.setAttribute('style', 'pointer-events:none;overflow:visible');
		place.setAttribute('width', 600);
		place.setAttribute('height', 400);
		svg.appendChild(place);
		return { place, box, name, about };
	}

	function hideTip() {
		tip.place.setAttribute('class', 'off');
	}

	/* Beside a point of the window, inside of it. */
	function showTip(frame, x, y) {
		const origin = svg.getBoundingClientRect(), most = frame.name.length > 1200;

		tip.name.textContent = most ? frame.name.slice(0, 1200) + '\u2026' : frame.name;
		tip.about.textContent = frame.about;
		tip.place.setAttribute('class', '');
		x = Math.min(x + 14, innerWidth - tip.box.offsetWidth - 6);
		y = y + 18 + tip.box.offsetHeight > innerHeight ? y - tip.box.offsetHeight - 10 : y + 18;
		tip.place.setAttribute('x', Math.max(x, 0) - origin.left);
		tip.place.setAttribute('y', Math.max(y, 0) - origin.top);
	}

	function frameAt(event) {
		const g = event.target.closest ? event.target.closest('.graph g') : null;

		return g && g.flameFrame;
	}

	/* ---- keys ---- */

	function focus(frame) {
		const box = frame.rect.getBoundingClientRect();

		focused.g.setAttribute('tabindex', '-1');
		frame.g.setAttribute('tabindex', '0');
		focused = frame;
		frame.g.focus();
		showTip(frame, box.left, box.bottom - 14);
	}

	function childOf(frame) {
		let widest = null;

		for (let i = frame.index + 1; i < frames.length && frames[i].depth > frame.depth; i++) {
			if (frames[i].depth === frame.depth + 1 && frames[i].shown &&
			    (!widest || frames[i].w > widest.w))
				widest = frames[i];
		}
		return widest;
	}

	/* The next frame that is shown in the same row. */
	function beside(frame, step) {
		for (let i = frame.index + step; i > 0 && i < frames.length; i += step) {
			if (frames[i].depth === frame.depth && frames[i].shown)
				return frames[i];
		}
		return null;
	}

	function moveTo(key) {
		switch (key) {
		case 'ArrowDown': return childOf(focused);
		case 'ArrowUp': return parentOf(focused);
		case 'ArrowLeft': return beside(focused, -1);
		case 'ArrowRight': return beside(focused, 1);
		case 'Home': return frames[0];
		}
		return null;
	}

	function escape() {
		hideTip();
		if (zoomed !== frames[0]) {
			zoom(frames[0]);
			return;
		}
		controls.input.value = '';
		search();
	}

	function keyInSearch(event) {
		if (event.key === 'Enter') {
			nextHit();
		} else if (event.key === 'Escape') {
			controls.input.value = '';
			search();
			focused.g.focus();
		} else {
			return;
		}
		event.preventDefault();
	}

	function keyInGraph(event) {
		const next = moveTo(event.key);

		if (event.ctrlKey || event.altKey || event.metaKey)
			return;
		if (next)
			focus(next);
		else if (event.key === 'Enter' || event.key === ' ')
			zoom(focused);
		else if (event.key === 'n')
			nextHit();
		else if (!event.key.startsWith('Arrow'))
			return;
		event.preventDefault();
	}

	addEventListener('keydown', event => {
		const inSearch = event.target === controls.input;
		const find = (event.ctrlKey || event.metaKey) && event.key === 'f';

		if (!inSearch && (find || event.key === '/')) {
			controls.input.focus();
			controls.input.select();
			event.preventDefault();
		} else if (inSearch) {
			keyInSearch(event);
		} else if (event.key === 'Escape') {
			escape();
		} else if (event.target.flameFrame) {
			keyInGraph(event);
		}
	});
	controls.input.addEventListener('input', search);
	graph.addEventListener('click', event => {
		const frame = frameAt(event);

		if (!frame)
			return;
		focused.g.setAttribute('tabindex', '-1');
		frame.g.setAttribute('tabindex', '0');
		focused = frame;
		zoom(frame);
	});
	graph.addEventListener('mousemove', event => {
		const frame = frameAt(event);

		if (frame)
			showTip(frame, event.clientX, event.clientY);
		else
			hideTip();
	});
	graph.addEventListener('mouseleave', hideTip);
	graph.addEventListener('focusin', event => {
		if (event.target.flameFrame)
			focused = event.target.flameFrame;
	});
	addEventListener('resize', fit);
	fit();
	showPath();
})();
