// Two versions of a text, side by side.

import { h } from '../dom.js';

const mostLines = 1500;

/**
 * The common lines of two lists as pairs of positions, and what is only in one of them.
 * @param {string[]} a @param {string[]} b @returns {['='|'-'|'+', string, string][]}
 */
export function compare(a, b) {
	/** @type {['='|'-'|'+', string, string][]} */ const out = [];
	let start = 0,
		ends = 0;
	while (start < a.length && start < b.length && a[start] === b[start]) {
		out.push(['=', a[start], b[start]]);
		start++;
	}
	while (ends < a.length - start && ends < b.length - start && a[a.length - 1 - ends] === b[b.length - 1 - ends])
		ends++;
	const x = a.slice(start, a.length - ends),
		y = b.slice(start, b.length - ends);
	if (x.length > mostLines || y.length > mostLines) {
		for (const l of x) out.push(['-', l, '']);
		for (const l of y) out.push(['+', '', l]);
	} else {
		const w = y.length + 1,
			t = new Uint16Array((x.length + 1) * w);
		for (let i = x.length - 1; i >= 0; i--)
			for (let j = y.length - 1; j >= 0; j--)
				t[i * w + j] =
					x[i] === y[j] ? t[(i + 1) * w + j + 1] + 1 : Math.max(t[(i + 1) * w + j], t[i * w + j + 1]);
		for (let i = 0, j = 0; i < x.length || j < y.length; ) {
			if (i < x.length && j < y.length && x[i] === y[j]) out.push(['=', x[i++], y[j++]]);
			else if (j >= y.length || (i < x.length && t[(i + 1) * w + j] >= t[i * w + j + 1]))
				out.push(['-', x[i++], '']);
			else out.push(['+', '', y[j++]]);
		}
	}
	for (let i = ends; i > 0; i--) out.push(['=', a[a.length - i], b[b.length - i]]);
	return out;
}

/** @param {string} left @param {string} a @param {string} right @param {string} b */
export function diff(left, a, right, b) {
	/** @type {[string|null, string|null, boolean][]} */ const rows = []; // both sides, and whether they are equal
	let free = 0; // the first row of a change whose right side is empty
	for (const [kind, x, y] of compare(a.split('\n'), b.split('\n'))) {
		if (kind === '+' && free < rows.length) rows[free++][1] = y;
		else {
			rows.push([kind === '+' ? null : x, kind === '-' ? null : y, kind === '=']);
			if (kind !== '-') free = rows.length;
		}
	}
	const side = (/** @type {string} */ title, /** @type {0|1} */ i, /** @type {string} */ cls) =>
		h(
			'div',
			null,
			h('h3', null, title),
			h(
				'pre',
				{ tabindex: '0', 'aria-label': title },
				rows.map((r) => h('div', { class: r[2] || r[i] === null ? '' : cls }, r[i] || '')),
			),
		);
	return h('div', { class: 'diff' }, side(left, 0, 'del'), side(right, 1, 'ins'));
}
