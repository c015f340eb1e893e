// The container as a graph: some vertices and their edges, and more by a click.

import { h, fill, button } from '../dom.js';
import { evaluate } from '../lang/gremlin.js';
import { offer } from '../keys.js';
import { graphView, elementsOf, edgesOf } from '../draw/graph.js';
import { problem } from '../parts/dialog.js';

/** @param {HTMLElement} el @param {Context} ctx */
export function mount(el, ctx) {
	/** @type {any} */ let view = null;
	let turn = 0;
	const box = h('input', {
		type: 'text',
		class: 'mono',
		'aria-label': 'Traversal that gives vertices, edges or paths',
		spellcheck: 'false',
		autocomplete: 'off',
		value: ctx.params.g || 'g.V().limit(100)',
		onkeydown: (e) => {
			if (e.key === 'Enter') {
				e.preventDefault();
				read();
			}
		},
	});
	const body = h('div', { class: 'results' }),
		status = h('div', { class: 'status', role: 'status' });
	fill(
		el,
		h(
			'div',
			{ class: 'toolbar' },
			h('div', { class: 'filter' }, h('span', null, 'Show'), box),
			button('Draw', read, { class: 'primary', icon: 'play' }),
		),
		body,
		status,
	);
	read();

	async function read() {
		const mine = ++turn;
		ctx.setParams({ g: box.value === 'g.V().limit(100)' ? undefined : box.value });
		view?.close();
		view = null;
		fill(body, h('p', { class: 'empty' }, 'Reading …'));
		try {
			const r = await evaluate(ctx, box.value.trim());
			const found = await elementsOf(ctx, r.rows);
			let charge = r.charge + found.charge;
			if (found.vertices.size && !found.edges.size) {
				const more = await edgesOf(ctx, found);
				charge += more.charge;
				for (const [k, x] of more.edges)
					if (found.vertices.has(x.from) && found.vertices.has(x.to)) found.edges.set(k, x);
			}
			if (mine !== turn) return;
			if (!found.vertices.size) {
				fill(
					body,
					h('div', { class: 'empty' }, h('p', null, 'The traversal gives no vertices, edges or paths.')),
				);
				return;
			}
			view = graphView(body, ctx, found);
			/** @type {any} */ (el).graph = view;
			fill(
				status,
				h('span', null, charge.toFixed(2) + ' RU'),
				h(
					'span',
					{ class: 'right wideonly' },
					'Click shows properties, double click expands, drag moves, the wheel zooms',
				),
			);
		} catch (e) {
			if (mine === turn) fill(body, problem(e));
		}
	}

	const takeBack = offer('pane', () => [
		{ name: 'Traversal', group: 'Graph', keys: '/', act: () => box.focus() },
		{ name: 'Draw again', group: 'Graph', keys: 'R', act: read },
	]);
	return () => {
		turn++;
		takeBack();
		view?.close();
	};
}
