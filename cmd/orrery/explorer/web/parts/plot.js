// Lines over time, as SVG. A table of the last values is beside it for screen readers.

import { h, svg, fill } from '../dom.js';

/**
 * @param {{title: string, unit?: string, format?: (n: number) => string, height?: number}} o
 */
export function plot(o) {
	const w = 320,
		hgt = o.height || 110,
		colours = ['c0', 'c1', 'c2', 'c3', 'c4'];
	const picture = svg('svg', {
		viewBox: `0 0 ${w} ${hgt}`,
		class: 'plot',
		role: 'img',
		'aria-label': o.title,
		preserveAspectRatio: 'none',
	});
	const legend = h('div', { class: 'keys' }),
		now = h('span', { class: 'right dim small', title: 'the top line' });
	const el = h(
		'section',
		{ class: 'card plotcard' },
		h('div', { class: 'inline' }, h('h2', null, o.title), now),
		picture,
		legend,
	);
	const format =
		o.format ||
		((/** @type {number} */ n) => (n >= 100 ? Math.round(n).toLocaleString('en-US') : n.toFixed(n < 10 ? 1 : 0)));
	return {
		el,
		/** @param {{name: string, values: (number|null)[]}[]} lines oldest first */
		set(lines) {
			const all = lines.flatMap((l) => l.values.filter((v) => v !== null)),
				top = nice(Math.max(0.001, .../** @type {number[]} */ (all)));
			const n = Math.max(30, ...lines.map((l) => l.values.length)),
				y = (/** @type {number} */ v) => hgt - 4 - ((hgt - 20) * v) / top;
			fill(
				picture,
				[0, 0.5, 1].map((f) => svg('line', { x1: 0, x2: w, y1: y(top * f), y2: y(top * f), class: 'rule' })),
				lines.map((l, k) => {
					let d = '',
						pen = false;
					l.values.forEach((v, i) => {
						if (v === null) {
							pen = false;
							return;
						}
						d +=
							(pen ? 'L' : 'M') +
							((w * (i + n - l.values.length)) / (n - 1)).toFixed(1) +
							' ' +
							y(v).toFixed(1);
						pen = true;
					});
					return svg('path', { d, class: 'curve ' + colours[k % 5] });
				}),
			);
			const last = (/** @type {(number|null)[]} */ v) => (v.length ? v[v.length - 1] : null);
			fill(
				legend,
				lines.map((l, k) =>
					h(
						'span',
						null,
						h('i', { class: colours[k % 5] }),
						l.name,
						' ',
						h('b', null, last(l.values) === null ? '–' : format(/** @type {number} */ (last(l.values)))),
					),
				),
			);
			fill(now, format(top) + (o.unit ? ' ' + o.unit : ''));
		},
	};
}

/** The next round number. @param {number} n */
function nice(n) {
	const p = 10 ** Math.floor(Math.log10(n));
	return [1, 2, 5, 10].map((x) => x * p).find((x) => x >= n) || n;
}
