// Procedures, triggers and functions of a container: an editor, and a run of a procedure.

import { h, fill, button } from '../dom.js';
import { call, feed, link, enc } from '../api.js';
import { ascii } from '../json.js';
import { offer, rove } from '../keys.js';
import { editor } from '../parts/editor.js';
import { painter } from '../lang/words.js';
import { confirm, dialog, note, problem } from '../parts/dialog.js';
import { pretty } from '../parts/exchange.js';

const paint = painter(
	'function return var let const if else for while do break continue new throw try catch finally typeof in of true false null undefined this'.split(
		' ',
	),
	{ comment: '//[^\\n]*' },
);

/** @type {Record<string, {title: string, one: string, feed: string, template: (id: string) => string}>} */
const kinds = {
	sprocs: {
		title: 'Stored procedures',
		one: 'procedure',
		feed: 'StoredProcedures',
		template: (id) =>
			`function ${id}(name) {\n  var response = getContext().getResponse();\n  response.setBody("Hello, " + name);\n}\n`,
	},
	triggers: {
		title: 'Triggers',
		one: 'trigger',
		feed: 'Triggers',
		template: (id) =>
			`function ${id}() {\n  var request = getContext().getRequest();\n  var item = request.getBody();\n  item.changed = new Date().toISOString();\n  request.setBody(item);\n}\n`,
	},
	udfs: {
		title: 'Functions',
		one: 'function',
		feed: 'UserDefinedFunctions',
		template: (id) => `function ${id}(x) {\n  return x;\n}\n`,
	},
};

/** @param {HTMLElement} el @param {Context} ctx */
export function mount(el, ctx) {
	const base = link(ctx.db, ctx.coll);
	/** @type {Record<string, any[]>} */ const all = {};
	/** @type {{kind: string, p: any}|null} */ let on = null;
	let left = false;
	const list = h('nav', { class: 'programs scroll', 'aria-label': 'Programs' }),
		body = h('div', { class: 'pane' });
	fill(el, h('div', { class: 'programsview' }, list, body));
	rove(list, 'button.glink');
	fill(list, h('p', { class: 'empty' }, 'Reading …'));
	read();
	return offerAll();

	function offerAll() {
		const back = offer('pane', () =>
			Object.entries(kinds).map(([k, x]) => ({ name: 'New ' + x.one, group: 'Scripts', act: () => create(k) })),
		);
		return () => {
			left = true;
			back();
		};
	}

	/** @param {string} [id] @param {string} [kind] the program to open */
	async function read(id = ctx.params.program, kind = ctx.params.kind) {
		try {
			await Promise.all(
				Object.keys(kinds).map(async (k) => {
					all[k] = (await feed(`${base}/${k}`, kinds[k].feed, { quiet: true })).sort((a, b) =>
						a.id < b.id ? -1 : 1,
					);
				}),
			);
		} catch (e) {
			return fill(body, problem(e));
		}
		if (left) return;
		const p = kind && id && all[kind]?.find((x) => x.id === id);
		if (p) open(/** @type {string} */ (kind), p);
		else {
			on = null;
			fill(
				body,
				h(
					'div',
					{ class: 'empty' },
					h('p', null, 'Programs in JavaScript that run in the server, in one partition key’s transaction.'),
				),
			);
			drawList();
		}
	}

	function drawList() {
		let first = true;
		fill(
			list,
			Object.entries(kinds).map(([k, x]) =>
				h(
					'section',
					null,
					h(
						'div',
						{ class: 'inline pad' },
						h('h2', null, x.title),
						!ctx.readOnly &&
							button('New ' + x.one, () => create(k), { icon: 'plus', only: true, class: 'quiet right' }),
					),
					all[k].length
						? all[k].map((p) => {
								const b = h(
									'button',
									{
										type: 'button',
										class: 'glink' + (on && on.p.id === p.id && on.kind === k ? ' on' : ''),
										tabindex: first ? '0' : '-1',
										onclick: () => open(k, p),
									},
									h('span', { class: 'mono ellipsis' }, p.id),
									k === 'triggers' &&
										h('span', { class: 'dim small' }, `${p.triggerType} ${p.triggerOperation}`),
								);
								first = false;
								return b;
							})
						: h('p', { class: 'dim small pad' }, 'none'),
				),
			),
		);
	}

	/** @param {string} kind @param {any} p */
	function open(kind, p) {
		on = { kind, p };
		ctx.setParams({ kind, program: p.id });
		drawList();
		const ed = editor({
			label: 'Source of ' + p.id,
			value: p.body,
			readOnly: ctx.readOnly,
			paint,
			change: () => edited(),
		});
		const save = button('Save', write, { icon: 'save', class: 'primary', disabled: true, title: 'Save (Ctrl+S)' }),
			trouble = h('div', { role: 'alert' });
		const type = h(
			'select',
			{ 'aria-label': 'When', onchange: () => edited() },
			['Pre', 'Post'].map((x) =>
				h('option', { value: x, selected: p.triggerType === x }, x === 'Pre' ? 'before' : 'after'),
			),
		);
		const operation = h(
			'select',
			{ 'aria-label': 'Operation', onchange: () => edited() },
			['All', 'Create', 'Replace', 'Delete', 'Update'].map((x) =>
				h('option', { value: x, selected: p.triggerOperation === x }, x),
			),
		);
		fill(
			body,
			h(
				'div',
				{ class: 'toolbar' },
				h('b', { class: 'mono' }, p.id),
				kind === 'triggers' && [type, operation],
				h('span', { class: 'grow' }),
				!ctx.readOnly && save,
				!ctx.readOnly && button('Delete', drop, { icon: 'trash', only: true, class: 'quiet' }),
			),
			trouble,
			ed.el,
			kind === 'sprocs' && !ctx.readOnly
				? runner(p.id)
				: kind === 'udfs'
					? h('p', { class: 'dim pad' }, 'In a query: ', h('code', null, `SELECT udf.${p.id}(c.id) FROM c`))
					: null,
		);
		ed.draw();
		ed.el.addEventListener('keydown', (/** @type {KeyboardEvent} */ e) => {
			if (e.key.toLowerCase() === 's' && (e.ctrlKey || e.metaKey)) {
				e.preventDefault();
				if (!save.disabled) write();
			}
		});
		function edited() {
			save.disabled =
				ed.value === p.body &&
				(kind !== 'triggers' || (type.value === p.triggerType && operation.value === p.triggerOperation));
		}

		async function write() {
			fill(trouble);
			try {
				const r = await call('nosql', 'PUT', `${base}/${kind}/${enc(p.id)}`, {
					headers: { 'if-match': p._etag },
					body: JSON.stringify({
						id: p.id,
						body: ed.value,
						...(kind === 'triggers' ? { triggerType: type.value, triggerOperation: operation.value } : {}),
					}),
				});
				Object.assign(p, JSON.parse(r.text));
				edited();
				drawList();
				note(`Saved ${p.id}.`, 'ok');
			} catch (e) {
				fill(
					trouble,
					problem(
						/** @type {any} */ (e).status === 412
							? Object.assign(/** @type {any} */ (e), {
									next: 'Copy your text, open the program again, and put it in.',
								})
							: e,
					),
				);
			}
		}
		async function drop() {
			if (!(await confirm(`Delete ${kinds[kind].one}`, `${p.id} will be deleted.`, 'Delete ' + p.id))) return;
			try {
				await call('nosql', 'DELETE', `${base}/${kind}/${enc(p.id)}`);
				note(`${p.id} is deleted.`, 'ok');
				ctx.setParams({ kind: undefined, program: undefined });
				read('', '');
			} catch (e) {
				fill(trouble, problem(e));
			}
		}
	}

	/** @param {string} id */
	function runner(id) {
		const key = h('input', {
			type: 'text',
			class: 'mono',
			value: '["a"]',
			'aria-label': 'Partition key, a JSON array',
			spellcheck: 'false',
		});
		const args = h('input', {
			type: 'text',
			class: 'mono grow',
			value: '["world"]',
			'aria-label': 'Arguments, a JSON array',
			spellcheck: 'false',
			onkeydown: (e) => {
				if (e.key === 'Enter') run();
			},
		});
		const out = h('div', { role: 'status', class: 'runout' });
		async function run() {
			fill(out, h('p', { class: 'dim' }, 'Running …'));
			/** @param {Headers} hs */
			const told = (hs) => {
				const t = hs.get('x-ms-documentdb-script-log-results');
				return t
					? [
							h('h3', null, 'console.log'),
							h(
								'pre',
								{ class: 'code', tabindex: '0', 'aria-label': 'console.log' },
								decodeURIComponent(t),
							),
						]
					: [];
			};
			try {
				JSON.parse(args.value);
				JSON.parse(key.value);
				const r = await call('nosql', 'POST', `${base}/sprocs/${enc(id)}`, {
					headers: {
						'x-ms-documentdb-partitionkey': ascii(key.value),
						'x-ms-documentdb-script-enable-logging': 'true',
					},
					body: args.value,
				});
				fill(
					out,
					h(
						'p',
						null,
						h('span', { class: 'tag ok' }, 'committed'),
						` ${r.charge} RU, ${Math.round(r.ms)} ms`,
					),
					h(
						'pre',
						{ class: 'code', tabindex: '0', 'aria-label': 'Result' },
						r.text ? pretty(r.text) : '(no body)',
					),
					told(r.headers),
				);
			} catch (e) {
				fill(
					out,
					problem(
						e instanceof SyntaxError
							? { message: 'The key and the arguments are JSON arrays: ' + e.message + '.' }
							: e,
					),
				);
			}
		}
		return h(
			'div',
			{ class: 'runner' },
			h(
				'div',
				{ class: 'inline' },
				h('span', { class: 'dim' }, 'Key'),
				key,
				h('span', { class: 'dim' }, 'Arguments'),
				args,
				button('Run', run, { icon: 'play' }),
			),
			out,
		);
	}

	/** @param {string} kind */
	async function create(kind) {
		const id = await dialog('New ' + kinds[kind].one, (done) => {
			const name = h('input', {
				type: 'text',
				class: 'wide mono',
				required: true,
				pattern: '[A-Za-z_$][\\w$]*',
				'aria-label': 'Name',
				autocomplete: 'off',
				spellcheck: 'false',
			});
			return h(
				'form',
				{
					onsubmit: (e) => {
						e.preventDefault();
						done(name.value);
					},
				},
				h('label', { class: 'field' }, h('span', null, 'Name'), name),
				h(
					'div',
					{ class: 'buttons' },
					button('Cancel', () => done()),
					h('button', { type: 'submit', class: 'button primary' }, 'Create'),
				),
			);
		});
		if (!id) return;
		try {
			await call('nosql', 'POST', `${base}/${kind}`, {
				body: JSON.stringify({
					id,
					body: kinds[kind].template(id),
					...(kind === 'triggers' ? { triggerType: 'Pre', triggerOperation: 'All' } : {}),
				}),
			});
			read(id, kind);
		} catch (e) {
			note(/** @type {Error} */ (e));
		}
	}
}
