// A plan, drawn as a tree of nodes with what each was expected to give and what it gave.

import { h, count, button, fact } from '../dom.js';
import { copy } from '../parts/dialog.js';

/** @param {any} p the explanation of a query: of SQL, Mongo or Gremlin */
export function planView(p) {
	if (p.profile) return profile(p.profile);
	const t = p.tree,
		most = t ? Math.max(1, ...all(t.plan).map((s) => Math.max(s.entries || 0, s.given || 0, s.rows || 0))) : 1;
	const figure = (/** @type {string} */ k, /** @type {number|undefined} */ v) =>
		v === undefined ? null : fact(count(v), k);
	return h(
		'div',
		{ class: 'planview' },
		h(
			'div',
			{ class: 'facts' },
			figure('index entries read', p.entries),
			figure('items read', p.items),
			figure('matched', p.matched),
			figure('rows', p.rows),
			p.ru && figure('RU', p.ru.total),
		),
		p.plan && h('p', { class: 'why' }, p.plan),
		p.ru && charge(p.ru),
		p.advice && p.advice.length
			? h(
					'div',
					{ class: 'advice' },
					h('h2', null, 'This would make it cheaper'),
					p.advice.map((/** @type {string} */ a) =>
						h(
							'div',
							{ class: 'inline' },
							h('code', null, a),
							button('Copy', () => copy(a), { icon: 'copy', only: true, class: 'quiet' }),
						),
					),
					h('p', { class: 'dim small' }, 'The indexing policy is in Settings.'),
				)
			: null,
		t && h('h2', null, 'Plan'),
		t && h('ul', { class: 'plan', 'aria-label': 'Plan' }, node(t.plan, most)),
		t && t.rejected && t.rejected.length
			? [
					h('h2', null, 'Considered and not chosen'),
					h(
						'ul',
						{ class: 'rejected' },
						t.rejected.map((/** @type {any} */ s) =>
							h(
								'li',
								null,
								h('b', null, s.op),
								' ',
								h('span', { class: 'mono' }, s.what || ''),
								s.rows !== undefined &&
									h('span', { class: 'dim' }, ` about ${count(s.rows)} rows, cost ${count(s.cost)}`),
							),
						),
					),
				]
			: null,
	);
}

/** @param {any} s @returns {any[]} */
function all(s) {
	return [s, ...(s.steps || []).flatMap(all)];
}

/** @param {any} s @param {number} most @returns {any} */
function node(s, most) {
	const width = (/** @type {number} */ n) => Math.max(1, Math.round((100 * n) / most)) + '%';
	const off =
		s.rows !== undefined &&
		s.given !== undefined &&
		!s.atLeast &&
		Math.max(s.rows, s.given) > 10 &&
		(s.given > 10 * (s.rows + 1) || s.rows > 10 * (s.given + 1));
	return h(
		'li',
		null,
		h(
			'div',
			{ class: 'node', tabindex: '0' },
			h('div', { class: 'op' }, h('b', null, s.op), s.what && h('code', null, s.what)),
			s.why && h('div', { class: 'dim small' }, s.why),
			s.rows !== undefined || s.given !== undefined
				? h(
						'div',
						{ class: 'est' },
						s.rows !== undefined &&
							h(
								'span',
								null,
								h('span', { class: 'gauge est', style: { width: width(s.rows) } }),
								h('span', null, (s.atLeast ? 'at least ' : '') + count(s.rows) + ' expected'),
							),
						s.given !== undefined &&
							s.given !== null &&
							h(
								'span',
								null,
								h('span', { class: 'gauge', style: { width: width(s.given) } }),
								h('span', null, count(s.given) + ' rows'),
							),
						s.entries !== undefined &&
							s.entries !== null &&
							h(
								'span',
								null,
								h('span', { class: 'gauge ent', style: { width: width(s.entries) } }),
								h('span', null, count(s.entries) + ' entries'),
							),
					)
				: null,
			off && h('span', { class: 'tag warn' }, 'the estimate is far off'),
		),
		s.steps && s.steps.length
			? h(
					'ul',
					null,
					s.steps.map((/** @type {any} */ k) => node(k, most)),
				)
			: null,
	);
}

/** @param {any} ru */
function charge(ru) {
	const parts = [
		['fixed', ru.base],
		['index entries', ru.entries],
		['items', ru.items],
		['bytes', ru.bytes],
	].filter((x) => x[1] > 0);
	return h(
		'div',
		{ class: 'stack', role: 'img', 'aria-label': 'Charge: ' + parts.map(([k, v]) => `${v} RU ${k}`).join(', ') },
		parts.map(([k, v], i) =>
			h('span', { class: 'part p' + i, style: { 'flex-grow': String(v) }, title: `${v} RU ${k}` }, `${k} ${v}`),
		),
	);
}

/** @param {any} p the result of profile() */
function profile(p) {
	const list = p.metrics || [],
		most = Math.max(1e-9, ...list.map((/** @type {any} */ m) => m.dur));
	return h(
		'div',
		{ class: 'planview' },
		h('div', { class: 'facts' }, fact(p.dur.toFixed(3) + ' ms', 'in the steps')),
		h('h2', null, 'Steps'),
		h(
			'ul',
			{ class: 'plan' },
			list.map((/** @type {any} */ m) =>
				h(
					'li',
					null,
					h(
						'div',
						{ class: 'node', tabindex: '0' },
						h('div', { class: 'op' }, h('b', { class: 'mono' }, m.name)),
						h(
							'div',
							{ class: 'est' },
							h(
								'span',
								null,
								h('span', {
									class: 'gauge',
									style: { width: Math.max(1, (100 * m.dur) / most) + '%' },
								}),
								h('span', null, m.dur.toFixed(3) + ' ms'),
							),
							m.counts &&
								h('span', null, h('span', null, count(m.counts.elementCount || 0) + ' elements')),
						),
						m.annotations && m.annotations.plan && h('pre', { class: 'small mono' }, m.annotations.plan),
					),
				),
			),
		),
	);
}
