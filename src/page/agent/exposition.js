// SPDX-License-Identifier: MIT
// Prometheus' text format as families, in a bound. It is the agent's own; values of labels are anybody's words.

/**
 * @typedef {{labels: [string, string][], key: string, value: number}} Sample  Key: name and labels, as they stand there
 * @typedef {{name: string, type: string, help: string, samples: Sample[]}} Family
 */

const MOST_BYTES = 32 << 20, MOST_SAMPLES = 50000, MOST_LABELS = 64;
const ESCAPES = /** @type {{[letter: string]: string}} */ ({ n: '\n' });

/** @param {string} text @returns {string} */
function unescaped(text) {
	return text.replace(/\\(.)/gs, (_, letter) => ESCAPES[letter] ?? letter);
}

/**
 * name{label="value",...} value
 * @param {string} line @returns {Sample & {name: string} | null} null: it is none
 */
function readSample(line) {
	const name = /^[a-zA-Z_:][\w:]*/.exec(line)?.[0] ?? '', labels = /** @type {[string, string][]} */ ([]),
		pair = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"(,?)/gy;
	let at = name.length;
	if (line[at] === '{') {
		for (at++; line[at] !== '}'; at = pair.lastIndex) {
			pair.lastIndex = at;
			const found = labels.length < MOST_LABELS ? pair.exec(line) : null;
			if (!found)
				return null;
			labels.push([found[1], unescaped(found[2])]);
		}
		at++;
	}
	const word = line.slice(at).trim().split(' ')[0], value = Number(word.replace(/Inf$/, 'Infinity'));
	return name && word && (word === 'NaN' || !Number.isNaN(value)) ? { name, labels, key: line.slice(0, at), value } : null;
}

/**
 * @param {string} text @returns {{families: Family[], unreadable: number}} unreadable: lines, and what is beyond the bound
 */
export function readExposition(text) {
	const families = /** @type {Map<string, Family>} */ (new Map());
	let unreadable = text.length > MOST_BYTES ? 1 : 0, samples = 0;
	const familyOf = (/** @type {string} */ name) => {
		let family = families.get(name);
		if (!family)
			families.set(name, family = { name, type: 'untyped', help: '', samples: [] });
		return family;
	};
	for (const line of text.slice(0, MOST_BYTES).split('\n')) {
		const about = /^# (TYPE|HELP) ([a-zA-Z_:][\w:]*) (.*)$/.exec(line);
		if (about)
			familyOf(about[2])[about[1] === 'TYPE' ? 'type' : 'help'] = unescaped(about[3]);
		if (!line || line[0] === '#')
			continue;
		const sample = samples < MOST_SAMPLES ? readSample(line) : null;
		samples++;
		if (sample)
			familyOf(sample.name).samples.push(sample);
		else
			unreadable++;
	}
	return { families: [...families.values()].filter((family) => family.samples.length), unreadable };
}
