// SPDX-License-Identifier: MIT
// The picture of a flame graph: boxes that can be zoomed, searched, gone through by keys, with words for each. A profile's has its boxes as elements
// already and is a document of its own or stands in one of html; that of a page is filled with what is added up there.

/**
 * x and w are percents of all; they come as a tree is written: each before what is in it. `g` is NULL until it is shown.
 * @typedef {{name: string, label: string, about: string, x: number, w: number, depth: number, fill?: string, ink?: string, index: number,
 *   g: SVGGElement | null, rect: SVGRectElement | null, text: SVGTextElement | null, visible: boolean, hit?: boolean}} Box
 */

const SVG_SPACE = 'http://www.w3.org/2000/svg', HTML_SPACE = 'http://www.w3.org/1999/xhtml';
const BOX_HEIGHT = 18, PICTURE_SIDE = 10, PICTURE_BAR = 36, PICTURE_FOOTER = 12, LEAST_TEXT = 20, LEAST_BOX = 0.4, NO_DIFFERENCE = 1e-6;

/**
 * Not by its document, which may be none of html.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name @param {Element} parent @param {{[property: string]: unknown}} [properties] @returns {HTMLElementTagNameMap[K]}
 */
function htmlIn(name, parent, properties = {}) {
	const made = /** @type {HTMLElementTagNameMap[K]} */ (document.createElementNS(HTML_SPACE, name));
	Object.assign(made, properties);
	parent.append(made);
	return made;
}

/**
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} name @param {{[attribute: string]: string | number}} [attributes] @returns {SVGElementTagNameMap[K]}
 */
export function svgElement(name, attributes = {}) {
	const made = document.createElementNS(SVG_SPACE, name);
	for (const [attribute, value] of Object.entries(attributes))
		made.setAttribute(attribute, String(value));
	return made;
}

/** @param {string} name @returns {string} the colour says what it is of */
function boxLabel(name) {
	return name.replace(/^\[GPU_Kernel\]/, '').replace(/^\[GPU_(\w+)\]/, (_, what) => what.toLowerCase() + ' ') || name;
}

/** @param {string} c @returns {number} pixels */
function letterWidth(c) {
	if ("iljtfrI.,:;'|!()[]{} ".includes(c))
		return 4.2;
	if ('mwMW@%'.includes(c))
		return 11;
	return c >= 'A' && c <= 'Z' ? 8.4 : c > '~' ? 12 : 7.3;
}

/** @param {string} text @returns {number} pixels */
function wordsWidth(text) {
	let sum = 0;
	for (const c of text)
		sum += letterWidth(c);
	return sum;
}

/**
 * The insides of brackets give way first, then namespaces, then the end.
 * @param {string} name @param {number} room @returns {string}
 */
function shortened(name, room) {
	let text = name.slice(0, 600);
	if (wordsWidth(text) > room)
		text = text.replace(/ \([^ ,()]*\.[^ ,()]*\)$/, ''); // the file of a function of Python
	for (let i = 0; i < 8 && wordsWidth(text) > room; i++) {
		const shorter = text.replace(/<[^<>]*>|\([^()]*\)/g, '');
		if (shorter === text || !shorter)
			break;
		text = shorter;
	}
	while (wordsWidth(text) > room && text[0] !== '[' && /^[^()]*?(?:::|\w )[\w~]/.test(text))
		text = text.replace(/^[^()]*?(?:::|\w )(?=[\w~])/, '');
	if (wordsWidth(text) <= room)
		return text;
	while (text && wordsWidth(text) + 7 > room)
		text = text.slice(0, -1);
	return text.length > 1 ? text + '…' : '';
}

/** @param {Box} outer @param {Box} inner */
function boxHas(outer, inner) {
	return outer.depth <= inner.depth && outer.x <= inner.x + NO_DIFFERENCE && outer.x + outer.w >= inner.x + inner.w - NO_DIFFERENCE;
}

export class Picture {
	/** @param {SVGSVGElement} svg with the graph in it, and words above it */
	constructor(svg) {
		this.svg = svg;
		this.graph = /** @type {SVGSVGElement} */ (svg.querySelector('svg.graph'));
		this.around = /** @type {HTMLElement | null} */ (svg.parentNode === document ? null : svg.parentNode);
		/** @type {Map<Element, Box>} */
		this.boxOf = new Map();
		this.boxes = [...this.graph.children].map((g, index) => this.read(/** @type {SVGGElement} */ (g), index));
		this.filled = !this.boxes.length;
		this.side = this.filled ? 0 : PICTURE_SIDE; // a page has one around it
		this.zoomed = this.focused = this.boxes[0];
		/** @type {Box[]} */
		this.hits = [];
		this.width = 0;
		this.head = this.makeHead();
		this.controls = this.makeControls();
		this.tip = this.makeTip();
		this.listen();
		this.fit();
		this.showPath();
	}

	/* ---- boxes ---- */

	/** @param {SVGGElement} g @param {number} index @returns {Box} */
	read(g, index) {
		const rect = /** @type {SVGRectElement} */ (g.querySelector('rect')), title = g.querySelector('title');
		const [name, ...about] = (title?.textContent ?? '').split('\n');
		/** @type {Box} */
		const box = { name, label: boxLabel(name), about: about.join('\n'), x: rect.x.baseVal.valueInSpecifiedUnits,
			w: rect.width.baseVal.valueInSpecifiedUnits, depth: Math.round(rect.y.baseVal.value / BOX_HEIGHT), index, g, rect,
			text: g.querySelector('text'), visible: true };
		title?.remove();
		this.adopt(g, box);
		return box;
	}

	/** @param {SVGGElement} g @param {Box} box */
	adopt(g, box) {
		g.setAttribute('tabindex', box.index ? '-1' : '0');
		g.setAttribute('role', 'button');
		g.setAttribute('aria-label', box.name);
		/** @type {any} */ (g).flameFrame = box;
		this.boxOf.set(g, box);
	}

	/**
	 * Others than before.
	 * @param {{name: string, about: string, x: number, w: number, depth: number, fill: string, ink: string}[]} boxes
	 */
	set(boxes) {
		this.graph.replaceChildren();
		this.boxOf.clear();
		this.boxes = boxes.map((box, index) => ({ ...box, label: box.name, index, g: null, rect: null, text: null, visible: false }));
		this.zoomed = this.focused = this.boxes[0];
		this.search();
		this.fit();
		this.showPath();
	}

	/** @param {Box} box @returns {SVGGElement} */
	make(box) {
		const g = svgElement('g'), rect = svgElement('rect', { y: box.depth * BOX_HEIGHT, height: BOX_HEIGHT });
		rect.setAttribute('fill', box.fill ?? ''); // of which the style of what was found is stronger
		g.append(rect);
		g.classList.toggle('dim', this.hits.length > 0 && !box.hit);
		g.classList.toggle('hit', !!box.hit);
		box.g = g;
		box.rect = rect;
		this.adopt(g, box);
		this.graph.append(g);
		return g;
	}

	/** @param {Box} box @returns {Box | null} */
	parentOf(box) {
		for (let i = box.index - 1; i >= 0; i--) {
			if (this.boxes[i].depth === box.depth - 1)
				return this.boxes[i];
		}
		return null;
	}

	/** @param {Box} box @param {number} x @param {number} w percents of the graph */
	place(box, x, w) {
		const pixels = w / 100 * this.graphWidth();
		box.visible = w > 0 && pixels >= LEAST_BOX;
		if (!box.visible) {
			box.g?.classList.add('off');
			return;
		}
		const g = box.g ?? this.make(box);
		g.classList.remove('off');
		box.rect?.setAttribute('x', x + '%');
		box.rect?.setAttribute('width', w + '%');
		if (pixels < LEAST_TEXT) {
			if (box.text)
				box.text.textContent = '';
			return;
		}
		if (!box.text) {
			box.text = svgElement('text', { y: box.depth * BOX_HEIGHT + 13, dx: 4 });
			box.text.style.fill = box.ink ?? '';
			g.append(box.text);
		}
		box.text.setAttribute('x', x + '%');
		box.text.textContent = shortened(box.label, pixels - 8);
	}

	/* ---- zoom ---- */

	graphWidth() {
		return this.width - 2 * this.side;
	}

	layOut() {
		const { zoomed } = this;
		let deepest = 0;
		for (const box of this.boxes) {
			const above = box.depth < zoomed.depth;
			if (above)
				this.place(box, 0, boxHas(box, zoomed) ? 100 : 0);
			else if (boxHas(zoomed, box))
				this.place(box, (box.x - zoomed.x) / zoomed.w * 100, box.w / zoomed.w * 100);
			else
				this.place(box, 0, 0);
			box.g?.classList.toggle('up', above && box.visible);
			deepest = box.visible ? Math.max(deepest, box.depth) : deepest;
		}
		if (this.filled)
			this.graph.setAttribute('height', String(this.boxes.length ? (deepest + 1) * BOX_HEIGHT : 0));
	}

	/** @param {Box} box */
	zoom(box) {
		this.zoomed = box;
		this.layOut();
		this.fitHead();
		this.showPath();
		this.hideTip();
	}

	fit() {
		const width = this.around ? this.around.clientWidth : document.documentElement.clientWidth || innerWidth;
		this.width = Math.max(width, 320);
		this.svg.removeAttribute('viewBox');
		this.svg.setAttribute('width', String(this.width));
		this.graph.setAttribute('width', String(this.graphWidth()));
		this.controls.place.setAttribute('width', String(this.graphWidth()));
		this.layOut();
		this.fitHead();
	}

	/* ---- the words above, which the picture has in lines of its own width ---- */

	makeHead() {
		const place = svgElement('foreignObject', { x: this.side, y: this.around ? 0 : PICTURE_SIDE });
		const box = htmlIn('div', place, { className: 'head' });
		/** @type {HTMLElement | null} */
		let kinds = null;
		for (const text of [...this.svg.querySelectorAll(':scope > text')]) {
			const said = text.textContent ?? '', kind = text.getAttribute('class') ?? '';
			if (kind === 'legend') {
				kinds = kinds ?? htmlIn('div', box, { className: 'kinds' });
				this.addKind(kinds, text.previousElementSibling, said);
			} else if (said.startsWith('  ') && box.lastElementChild) {
				box.lastElementChild.append(said.slice(1)); // the rest of a line
			} else {
				htmlIn('div', box, { className: kind, textContent: said });
			}
			text.remove();
		}
		this.svg.insertBefore(place, this.graph);
		return { place, box };
	}

	/** @param {HTMLElement} kinds @param {Element | null} rect @param {string} said */
	addKind(kinds, rect, said) {
		const span = htmlIn('span', kinds), mark = htmlIn('i', span);
		if (rect)
			mark.style.background = getComputedStyle(rect).fill;
		span.append(said);
		rect?.remove();
	}

	/* The graph stands below what the words take at this width. */
	fitHead() {
		const { head, controls, graph } = this;
		head.place.setAttribute('width', String(this.graphWidth()));
		head.place.setAttribute('height', '10000');
		const words = head.box.offsetHeight, top = words + head.place.y.baseVal.value + PICTURE_BAR;
		head.place.setAttribute('height', String(words));
		controls.place.setAttribute('y', String(top - PICTURE_BAR + 4));
		graph.setAttribute('y', String(top));
		this.svg.setAttribute('height', String(top + graph.height.baseVal.value + PICTURE_FOOTER));
	}

	/* ---- the bar: where one is, and the search ---- */

	makeControls() {
		const place = svgElement('foreignObject', { x: this.side, height: 30 }), bar = htmlIn('div', place, { className: 'bar' });
		const path = htmlIn('nav', bar), found = htmlIn('output', bar);
		const input = htmlIn('input', bar, { type: 'search', placeholder: 'Search: a regular expression',
			title: 'Ctrl-F or /; Enter: the next match; Escape: none' });
		path.setAttribute('aria-label', 'Where in the flame graph');
		input.setAttribute('aria-label', 'Search the flame graph');
		if (this.around) // the page may have another search
			input.title = 'Enter: the next match; Escape: none';
		this.svg.append(place);
		return { place, path, found, input };
	}

	/** @param {Box} box */
	addStep(box) {
		const step = htmlIn('button', this.controls.path, { type: 'button', textContent: box.name, title: 'Zoom to ' + box.name });
		step.addEventListener('click', () => this.zoom(box));
	}

	/* "all > train > step", with what is between left out where there is much. */
	showPath() {
		const path = [], nav = this.controls.path;
		nav.textContent = '';
		if (this.zoomed === this.boxes[0]) {
			nav.textContent = this.zoomed ? 'Click a frame to zoom. Arrows, Enter and Escape work as well.' : '';
			return;
		}
		for (let at = /** @type {Box | null} */ (this.zoomed); at; at = this.parentOf(at))
			path.unshift(at);
		path.forEach((box, i) => {
			if (i && i < path.length - 3) {
				if (i === 1)
					nav.append(' › …');
				return;
			}
			if (i)
				nav.append(' › ');
			this.addStep(box);
		});
	}

	/* The share of all that is in frames that match: what lies in another match counts once. */
	search() {
		const { input, found } = this.controls, wanted = input.value;
		let pattern = /** @type {RegExp | null} */ (null), sum = 0, end = -1;
		input.classList.remove('bad');
		try {
			pattern = wanted ? new RegExp(wanted) : null;
		} catch (e) {
			input.classList.add('bad');
		}
		const matches = pattern;
		for (const box of this.boxes)
			box.hit = matches !== null && box.index > 0 && matches.test(box.name);
		this.hits = this.boxes.filter((box) => box.hit);
		for (const box of this.boxes) {
			box.g?.classList.toggle('hit', !!box.hit);
			box.g?.classList.toggle('dim', this.hits.length > 0 && !box.hit);
		}
		for (const box of this.hits) {
			if (box.x < end - NO_DIFFERENCE)
				continue;
			sum += box.w;
			end = box.x + box.w;
		}
		found.textContent = !wanted ? '' : !matches ? 'no regular expression' : !this.hits.length ? 'no match' : `matched: ${sum.toFixed(1)} %`;
	}

	nextHit() {
		const seen = this.hits.filter((box) => box.visible), next = seen.find((box) => box.index > this.focused.index) ?? seen[0];
		if (next)
			this.focus(next);
	}

	/* ---- tooltips ---- */

	makeTip() {
		const place = svgElement('foreignObject', { class: 'words off', width: 600, height: 400 });
		const box = htmlIn('div', place, { className: 'tip' });
		const name = htmlIn('b', box), about = htmlIn('div', box);
		this.svg.append(place);
		return { place, box, name, about };
	}

	hideTip() {
		this.tip.place.classList.add('off');
	}

	/**
	 * Beside a point of the window, inside of it.
	 * @param {Box} box @param {number} x @param {number} y
	 */
	showTip(box, x, y) {
		const { tip } = this, origin = this.svg.getBoundingClientRect();
		tip.name.textContent = box.name.length > 1200 ? box.name.slice(0, 1200) + '…' : box.name;
		tip.about.textContent = box.about;
		tip.place.classList.remove('off');
		const left = Math.min(x + 14, innerWidth - tip.box.offsetWidth - 6);
		const top = y + 18 + tip.box.offsetHeight > innerHeight ? y - tip.box.offsetHeight - 10 : y + 18;
		tip.place.setAttribute('x', String(Math.max(left, 0) - origin.left));
		tip.place.setAttribute('y', String(Math.max(top, 0) - origin.top));
	}

	/** @param {Event} event @returns {Box | undefined} */
	boxAt(event) {
		const g = event.target instanceof Element ? event.target.closest('.graph g') : null;
		return g ? this.boxOf.get(g) : undefined;
	}

	/* ---- keys ---- */

	/** @param {Box} box */
	attend(box) {
		this.focused.g?.setAttribute('tabindex', '-1');
		box.g?.setAttribute('tabindex', '0');
		this.focused = box;
	}

	/** @param {Box} box */
	focus(box) {
		this.attend(box);
		box.g?.focus();
		const place = box.rect?.getBoundingClientRect();
		if (place)
			this.showTip(box, place.left, place.bottom - 14);
	}

	/** @param {Box} box @returns {Box | null} */
	childOf(box) {
		let widest = /** @type {Box | null} */ (null);
		for (let i = box.index + 1; i < this.boxes.length && this.boxes[i].depth > box.depth; i++) {
			const its = this.boxes[i];
			if (its.depth === box.depth + 1 && its.visible && (!widest || its.w > widest.w))
				widest = its;
		}
		return widest;
	}

	/**
	 * The next one that is shown in the same row.
	 * @param {Box} box @param {number} step @returns {Box | null}
	 */
	beside(box, step) {
		for (let i = box.index + step; i > 0 && i < this.boxes.length; i += step) {
			if (this.boxes[i].depth === box.depth && this.boxes[i].visible)
				return this.boxes[i];
		}
		return null;
	}

	/** @param {string} key @returns {Box | null} */
	moveTo(key) {
		switch (key) {
		case 'ArrowDown': return this.childOf(this.focused);
		case 'ArrowUp': return this.parentOf(this.focused);
		case 'ArrowLeft': return this.beside(this.focused, -1);
		case 'ArrowRight': return this.beside(this.focused, 1);
		case 'Home': return this.boxes[0];
		}
		return null;
	}

	clearSearch() {
		this.controls.input.value = '';
		this.search();
	}

	escape() {
		this.hideTip();
		if (this.zoomed !== this.boxes[0])
			this.zoom(this.boxes[0]);
		else
			this.clearSearch();
	}

	/** @param {KeyboardEvent} event */
	keyInSearch(event) {
		if (event.key === 'Enter') {
			this.nextHit();
		} else if (event.key === 'Escape') {
			this.clearSearch();
			this.focused?.g?.focus();
		} else {
			return;
		}
		event.preventDefault();
		event.stopPropagation();
	}

	/** @param {KeyboardEvent} event */
	keyInGraph(event) {
		const next = this.moveTo(event.key);
		if (event.ctrlKey || event.altKey || event.metaKey)
			return;
		if (next)
			this.focus(next);
		else if (event.key === 'Enter' || event.key === ' ')
			this.zoom(this.focused);
		else if (event.key === 'Escape')
			this.escape();
		else if (event.key === 'n')
			this.nextHit();
		else if (!event.key.startsWith('Arrow'))
			return;
		event.preventDefault();
		event.stopPropagation();
	}

	/* What the picture alone answers to, where it is all that there is. */
	listenToAll() {
		addEventListener('keydown', (event) => {
			const find = (event.ctrlKey || event.metaKey) && event.key === 'f';
			if (event.target === this.controls.input)
				return;
			if (find || event.key === '/') {
				this.controls.input.focus();
				this.controls.input.select();
				event.preventDefault();
			} else if (event.key === 'Escape') {
				this.escape();
			}
		});
	}

	listen() {
		const { graph, controls } = this;
		controls.input.addEventListener('input', () => this.search());
		controls.input.addEventListener('keydown', (event) => this.keyInSearch(event));
		graph.addEventListener('keydown', (event) => this.boxAt(event) && this.keyInGraph(event));
		graph.addEventListener('click', (event) => {
			const box = this.boxAt(event);
			if (!box)
				return;
			this.attend(box);
			this.zoom(box);
		});
		graph.addEventListener('mousemove', (event) => {
			const box = this.boxAt(event);
			if (box)
				this.showTip(box, event.clientX, event.clientY);
			else
				this.hideTip();
		});
		graph.addEventListener('mouseleave', () => this.hideTip());
		graph.addEventListener('focusin', (event) => this.focused = this.boxAt(event) ?? this.focused);
		graph.addEventListener('focusout', () => this.hideTip());
		addEventListener('resize', () => this.fit());
	}
}
