// How programs connect: connection strings, and a short program for each client.

import { h, fill, button } from '../dom.js';
import { call, file } from '../api.js';
import { copy, problem } from '../parts/dialog.js';
import { load, keep } from '../state.js';

/** @param {HTMLElement} el */
export function mount(el) {
	const page = h('div', { class: 'page' });
	fill(el, page);
	Promise.all([
		call('admin', 'GET', '/orrery/connect', { quiet: true }),
		file('panes/programs.txt'),
	])
		.then(([r, text]) => draw(JSON.parse(r.text), text))
		.catch((e) => fill(page, problem(e)));

	/** @param {any} c @param {string} text */
	function draw(c, text) {
		const line = (/** @type {string} */ title, /** @type {string} */ text, more = '') =>
			h(
				'div',
				{ class: 'card' },
				h('h3', null, title),
				h('pre', { class: 'code wrap', tabindex: '0', 'aria-label': title }, text),
				more && h('p', { class: 'dim small' }, more),
				button('Copy', () => copy(text), { icon: 'copy' }),
			);
		const all = programs(text, c),
			names = Object.keys(all);
		let name = load('program', names[0]);
		if (!all[name]) name = names[0];
		const code = h('pre', { class: 'code', tabindex: '0', 'aria-label': 'Program' }),
			list = h('div', { class: 'seg wrap', role: 'group', 'aria-label': 'Clients' });
		const pick = (/** @type {string} */ n) => {
			name = n;
			keep('program', n);
			fill(code, all[n]);
			fill(
				list,
				names.map((x) =>
					h(
						'button',
						{
							type: 'button',
							'aria-pressed': String(x === n),
							onclick: () => {
								pick(x);
								/** @type {HTMLElement} */ (list.querySelector('[aria-pressed=true]')).focus();
							},
						},
						x,
					),
				),
			);
		};
		fill(
			page,
			h('h2', null, 'Connection strings'),
			h('p', { class: 'dim' }, 'Data: ' + c.data + (c.auth ? '' : '. No API asks for credentials.')),
			h(
				'div',
				{ class: 'cards' },
				c.nosql && line('NoSQL', c.nosql.connectionString),
				c.mongo && line('MongoDB', c.mongo.connectionString),
				c.table && line('Table', c.table.connectionString),
				c.gremlin &&
					line(
						'Gremlin',
						c.gremlin.endpoint + '\nuser ' + c.gremlin.username + '\nkey  ' + (c.key || '<key>'),
					),
			),
			names.length
				? [
						h('h2', null, 'Programs'),
						list,
						h('div', { class: 'gap' }),
						code,
						h(
							'div',
							{ class: 'buttons left' },
							button('Copy the program', () => copy(all[name]), { icon: 'copy' }),
						),
					]
				: null,
		);
		if (names.length) pick(name);
	}
}

/**
 * The programs of the doors that are there, by name. The text has a line "== DOOR, LANGUAGE" before each, and {places}
 * for what the server says about itself.
 * @param {string} text @param {any} c @returns {Record<string, string>}
 */
function programs(text, c) {
	/** @type {Record<string, any>} */ const places = { key: c.key || '<key>' };
	for (const door of ['nosql', 'mongo', 'table', 'gremlin'])
		if (c[door]) Object.assign(places, { [door]: c[door].endpoint, [door + 'String']: c[door].connectionString });
	const url = c.gremlin && new URL(c.gremlin.endpoint.replace(/^ws/, 'http'));
	if (url) Object.assign(places, { host: url.hostname, port: url.port });
	/** @type {Record<string, string>} */ const out = {};
	for (const [, door, name, program] of text.matchAll(/^== (\w+)(.*)\n([^]*?)(?=^== |$(?![^]))/gm))
		if (c[door === 'MongoDB' ? 'mongo' : door.toLowerCase()])
			out[door + name] = program.replace(/\{(\w+)\}/g, (all, p) => places[p] ?? all);
	return out;
}
