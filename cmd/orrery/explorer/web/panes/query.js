// Queries in four languages: text above, results below.

import { h, fill, button, count, ms } from '../dom.js';
import { query, passes } from '../api.js';
import { show, Obj, Num } from '../json.js';
import { offer } from '../keys.js';
import { session, load, keep, definitions } from '../state.js';
import { editor } from '../parts/editor.js';
import { grid, columnsOf } from '../parts/grid.js';
import { inspect } from '../parts/inspect.js';
import { copy, dialog, note, problem } from '../parts/dialog.js';
import { pretty } from '../parts/exchange.js';
import { sql } from '../lang/sql.js';
import { mongo } from '../lang/mongo.js';
import { gremlin } from '../lang/gremlin.js';
import { odata } from '../lang/odata.js';

/** @param {HTMLElement} el @param {Context} ctx */
export function mount(el, ctx) {
	const { db, coll } = ctx;
	const languages = [sql, mongo, gremlin, odata].filter(
		(l) => session.apis.includes(l.api) && (!l.only || l.only === db),
	);
	/** @type {Language} */ let lang =
		languages.find((l) => l.name === (ctx.params.lang || load('lang.' + db + '/' + coll, 'sql'))) || languages[0];
	/** @type {string[]} */ let names = [];
	const colls = [...definitions.keys()].filter((k) => k.startsWith(db + '/')).map((k) => k.slice(db.length + 1));
	/** @type {AbortController|null} */ let running = null; // the query whose rows are shown or awaited
	let drawn = 0; // how often the results were emptied
	/** @type {AbortController|null} */ let asking = null; // the request for its plan
	/** @type {Row[]} */ let rows = [];
	/** @type {any} */ let plan = null;
	let charge = 0,
		took = 0,
		ran = '',
		by = lang, // the language of what ran
		more = false,
		view = ctx.params.view || 'Table',
		left = false,
		ended = '', // why there is no result
		cut = false, // whether the rows end where the user has stopped
		reading = 0; // pages of the present query that haven't come yet
	/** @type {any} */ let g = null;
	/** @type {{close: () => void}|null} */ let canvas = null;
	const draft = (/** @type {string} */ l) => 'query.' + l + '.' + db + '/' + coll;
	const ed = editor({
		label: 'Query',
		value: ctx.params.q || load(draft(lang.name), '') || lang.sample(coll),
		paint: (t) => lang.paint(t),
		complete: (t, at) => lang.complete(t, at, names, colls),
		change: (t) => keep(draft(lang.name), t),
	});
	const choose = h('div', { class: 'seg', role: 'group', 'aria-label': 'Language' });
	const run = button('Run', () => start(), {
		icon: 'play',
		class: 'primary',
		title: 'Run the selection or all (Ctrl+Enter)',
	});
	const stop = button('Cancel', () => cancel(), { icon: 'stop', title: 'Cancel (Esc)' });
	const results = h('div', { class: 'results' }),
		status = h('div', { class: 'status', role: 'status', 'aria-live': 'polite' });
	const views = h('div', { class: 'seg', role: 'tablist', 'aria-label': 'Results as' });
	const exports = h(
		'div',
		{ class: 'inline tight' },
		button('CSV', () => save('csv'), { icon: 'download', class: 'quiet', title: 'Export all rows as CSV' }),
		button('JSON', () => save('json'), { icon: 'download', class: 'quiet', title: 'Export all rows as JSON' }),
	);
	stop.hidden = true;
	fill(
		el,
		h(
			'div',
			{ class: 'toolbar' },
			choose,
			run,
			stop,
			h('span', { class: 'grow' }),
			button('Code', () => copy(lang.code(ctx, ed.value)), {
				icon: 'code',
				class: 'quiet',
				title: 'Copy as a line of a program',
			}),
			button('History', history, { class: 'quiet' }),
			button('Saved', saved, { icon: 'star', class: 'quiet' }),
		),
		h('div', { class: 'queryedit' }, ed.el),
		h('div', { class: 'toolbar slim' }, views, h('span', { class: 'grow' }), exports),
		results,
		status,
	);
	ed.area.addEventListener('keydown', (/** @type {KeyboardEvent} */ e) => {
		if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) {
			e.preventDefault();
			ed.hide(); // else Esc would close the names instead of cancelling
			start();
		}
	});
	drawLanguages();
	drawViews();
	idle();
	query(db, coll, 'SELECT TOP 20 * FROM c', { quiet: true })
		.then((r) => {
			names = pathsOf(r.rows.map((x) => x.v));
		})
		.catch(() => {});

	function idle() {
		fill(results, h('div', { class: 'empty' }, h('p', null, 'Ctrl+Enter runs the query.')));
		fill(status, '');
		exports.hidden = true;
	}

	function drawLanguages() {
		fill(
			choose,
			languages.map((l) =>
				h(
					'button',
					{
						type: 'button',
						'aria-pressed': String(l === lang),
						onclick: () => {
							lang = l;
							keep('lang.' + db + '/' + coll, l.name);
							ed.value = load(draft(l.name), '') || l.sample(coll);
							drawLanguages();
							drawViews();
							ctx.setParams({ lang: l.name, q: undefined });
						},
					},
					l.title,
				),
			),
		);
	}

	function drawViews() {
		const list = ['Table', 'JSON', 'Graph', 'Plan']
			.filter((v) => v !== 'Graph' || lang.name === 'gremlin')
			.filter((v) => v !== 'Plan' || lang.name !== 'odata');
		if (!list.includes(view)) view = 'Table';
		fill(
			views,
			list.map((v) =>
				h(
					'button',
					{
						type: 'button',
						role: 'tab',
						'aria-selected': String(v === view),
						onclick: () => {
							view = v;
							ctx.setParams({ view: v === 'Table' ? undefined : v });
							drawViews();
							draw();
						},
					},
					v,
				),
			),
		);
	}

	async function start() {
		const text = ed.selected.trim() || ed.value.trim();
		quit();
		const mine = (running = new AbortController());
		reading = 0;
		cut = false;
		rows = [];
		plan = null;
		charge = 0;
		took = 0;
		ran = text;
		by = lang;
		more = false;
		ended = '';
		ctx.setParams({ lang: lang.name, q: ed.value.length < 1500 ? ed.value : undefined });
		remember(text);
		run.disabled = true;
		exports.hidden = true;
		const began = performance.now();
		const clock = setInterval(
			() => fill(status, h('span', null, 'Running … ' + ms(performance.now() - began))),
			100,
		);
		fill(status, h('span', null, 'Running …'));
		const which = lang;
		/** @param {string} next */
		const page = async (next) => {
			busy(1);
			/** @type {Result} */ let r;
			try {
				r = await which.page(ctx, text, { next, size: 100, signal: mine.signal });
			} finally {
				if (mine === running) busy(-1);
			}
			if (mine !== running) {
				if (r.next) which.forget?.(ctx, r.next);
				throw new Error('another query runs');
			}
			forget = r.next ? () => which.forget?.(ctx, r.next) : null;
			charge += r.charge;
			took += r.ms;
			more = !!r.next;
			if (r.plan) plan = r.plan;
			if (!next) rows = r.rows;
			else if (rows.length < 2000) rows = [...rows, ...r.rows];
			return r;
		};
		try {
			const first = await page('');
			if (left) return;
			ended = '';
			close();
			makeGrid(first, page);
			draw();
		} catch (e) {
			if (mine !== running || left) return;
			ended = /** @type {any} */ (e).code === 'Cancelled' ? 'Cancelled' : 'Failed';
			close();
			fill(results, problem(e));
			tell();
		} finally {
			clearInterval(clock);
			if (mine === running) {
				run.disabled = false;
				tell();
			}
		}
	}

	/** Cancel is offered while a page of rows is on its way, the first one or a later one. @param {number} by */
	function busy(by) {
		reading += by;
		stop.hidden = !reading;
		if (rows.length || !run.disabled) tell();
	}

	/** Ends the present query: the request that runs, and the cursor that waits for the next one. */
	function quit() {
		running?.abort();
		asking?.abort();
		forget?.();
		forget = null;
	}

	/** What the user asks for: with nothing to wait for, the rows can still be read on. */
	function cancel() {
		if (asking) asking.abort();
		else if (reading) quit();
	}

	/** @type {(() => any)|null} */ let forget = null; // ends the cursor from which the next page would come
	/** @type {((next: string) => Promise<Result>)|null} */ let pager = null;
	/** @type {Result|null} */ let firstPage = null;
	/** @param {Result} first @param {(next: string) => Promise<Result>} page */
	function makeGrid(first, page) {
		firstPage = first;
		pager = page;
	}

	function close() {
		drawn++;
		g?.close();
		g = null;
		canvas?.close();
		canvas = null;
		fill(results);
	}

	async function draw() {
		if (!firstPage || ended) return;
		close();
		exports.hidden = false;
		if (view === 'Table') {
			g = grid(results, {
				label: 'Rows',
				empty: 'No rows.',
				page: async (next) => {
					if (!next && firstPage) return firstPage;
					const r = await /** @type {any} */ (pager)(next);
					tell();
					return r;
				},
				columns,
				open: (r) => open(r),
				failed: (e) => {
					cut = e.code === 'Cancelled';
					tell();
					if (cut) return;
					const again = () => {
						note1.remove();
						g?.again();
					};
					const note1 = note(e, '', passes(e) ? button('Read on', again, {}) : undefined);
				},
				moved: () => {},
			});
			g.reload();
		} else if (view === 'JSON') {
			const shown = rows.slice(0, 500),
				text = '[\n' + shown.map((r) => pretty(r.text)).join(',\n') + '\n]';
			const out = editor({ label: 'Rows as JSON', value: text, readOnly: true });
			results.appendChild(out.el);
			if (rows.length > shown.length || more)
				results.appendChild(
					h(
						'p',
						{ class: 'dim small pad' },
						`The first ${count(shown.length)} rows. Export has all of them.`,
					),
				);
		} else if (view === 'Graph') {
			const { graphView, elementsOf } = await import('../draw/graph.js');
			const mine = ++drawn;
			let found;
			try {
				found = await elementsOf(ctx, rows);
			} catch (e) {
				if (mine === drawn) fill(results, problem(e));
				return;
			}
			if (mine !== drawn) return;
			if (!found.vertices.size)
				fill(results, h('div', { class: 'empty' }, 'No row is a vertex, an edge or a path.'));
			else canvas = graphView(results, { ...ctx, inspector: ctx.inspector }, found);
		} else if (view === 'Plan') await drawPlan();
		tell();
	}

	async function drawPlan() {
		const { planView } = await import('../draw/plan.js');
		if (!plan && by.explain) {
			fill(results, h('p', { class: 'empty' }, 'Asking for the plan …'));
			const mine = running,
				ask = (asking = new AbortController()),
				still = () => mine === running && view === 'Plan';
			busy(1);
			try {
				const got = await by.explain(ctx, ran, ask.signal);
				if (mine === running) plan = got;
			} catch (e) {
				if (still()) fill(results, problem(e));
				return;
			} finally {
				if (asking === ask) asking = null;
				if (mine === running) busy(-1);
			}
			if (!still()) return;
		}
		fill(results, h('div', { class: 'page scrolls' }, plan ? planView(plan) : 'There is no plan for this.'));
	}

	/** @param {{v: any}[]} list */
	function columns(list) {
		if (list.every((r) => !(r.v instanceof Obj))) return [{ name: 'value', get: (/** @type {any} */ v) => v }];
		return columnsOf(
			list,
			list[0].v instanceof Obj && list[0].v.get('_id') !== undefined ? ['_id'] : [],
			24,
		).concat(
			list.some((r) => !(r.v instanceof Obj))
				? [{ name: 'value', get: (/** @type {any} */ v) => (v instanceof Obj ? undefined : v) }]
				: [],
		);
	}

	/** @param {{text: string}} r */
	function open(r) {
		const row = editor({ label: 'Row', value: pretty(r.text), readOnly: true });
		inspect(ctx.inspector, 'Row', row.el, () => {
			g?.mark('');
			g?.focus();
		});
		ctx.inspector.focus();
	}

	function tell() {
		fill(
			status,
			(ended || cut) && h('span', { class: 'bad' }, ended || 'Cancelled'),
			!ended && ran
				? [
						h(
							'span',
							null,
							h('b', null, count(rows.length) + (more ? '+' : '')),
							rows.length === 1 && !more ? ' row' : ' rows',
						),
						h('span', null, h('b', null, charge.toFixed(2)), ' RU'),
						h('span', null, ms(took)),
						reading && !run.disabled ? h('span', null, 'Reading more …') : '',
					]
				: '',
			h('span', { class: 'right wideonly' }, 'Ctrl+Enter runs, Esc cancels'),
		);
	}

	/** @param {string} text */
	function remember(text) {
		const list = load('history', /** @type {any[]} */ ([])).filter(
			(/** @type {any} */ x) => !(x.text === text && x.lang === lang.name && x.db === db && x.coll === coll),
		);
		keep('history', [{ lang: lang.name, db, coll, text, at: Date.now() }, ...list].slice(0, 60));
	}

	/** @param {string} name @param {string} text */
	function use(name, text) {
		const l = languages.find((x) => x.name === name);
		if (l && l !== lang) {
			lang = l;
			drawLanguages();
			drawViews();
		}
		ed.value = text;
		keep(draft(lang.name), text);
		ed.area.focus();
	}

	function history() {
		const list = load('history', /** @type {any[]} */ ([]));
		return pickText(
			'History',
			list.map((/** @type {any} */ x) => ({
				title: `${x.lang} · ${x.db} / ${x.coll} · ${new Date(x.at).toLocaleString()}`,
				...x,
			})),
		);
	}

	async function saved() {
		const list = load('saved', /** @type {any[]} */ ([]));
		const name = await pickText(
			'Saved queries',
			list.map((/** @type {any} */ x) => ({ title: `${x.name} · ${x.lang}`, ...x })),
			true,
		);
		if (typeof name === 'string' && name) {
			keep('saved', [
				{ name, lang: lang.name, text: ed.value },
				...list.filter((/** @type {any} */ x) => x.name !== name),
			]);
			note(`Saved as ${name}.`, 'ok');
		}
	}

	/** @param {string} title @param {any[]} list @param {boolean} [mayAdd] */
	function pickText(title, list, mayAdd) {
		return dialog(
			title,
			(done) => {
				const input =
					mayAdd &&
					h('input', {
						type: 'text',
						placeholder: 'Name for the present text',
						'aria-label': 'Name',
						class: 'grow',
					});
				return h(
					'div',
					null,
					mayAdd &&
						h(
							'form',
							{
								class: 'inline',
								onsubmit: (e) => {
									e.preventDefault();
									if (input.value.trim()) done(input.value.trim());
								},
							},
							input,
							h('button', { type: 'submit', class: 'button primary' }, 'Save this query'),
						),
					list.length
						? h(
								'ul',
								{ class: 'queries' },
								list.map((x) =>
									h(
										'li',
										null,
										h(
											'button',
											{
												type: 'button',
												class: 'linklike',
												onclick: () => {
													done();
													use(x.lang, x.text);
												},
											},
											h('span', { class: 'dim small' }, x.title),
											h('code', null, x.text.slice(0, 300)),
										),
										mayAdd &&
											button(
												'Forget ' + x.name,
												() => {
													keep(
														'saved',
														load('saved', /** @type {any[]} */ ([])).filter(
															(/** @type {any} */ y) => y.name !== x.name,
														),
													);
													done();
												},
												{ icon: 'trash', only: true, class: 'quiet' },
											),
									),
								),
							)
						: h('p', { class: 'dim' }, 'Nothing yet.'),
					h(
						'div',
						{ class: 'buttons' },
						button('Close', () => done()),
					),
				);
			},
			{ wide: true },
		);
	}

	/** Reads the rows of all pages from the first one on; undefined if the user has cancelled it. */
	async function readAll() {
		/** @type {Row[]} */ const all = [];
		const control = new AbortController();
		const got = await dialog('Export', (done) => {
			const told = h('p', { role: 'status' }, 'Reading …');
			(async () => {
				for (let next = ''; ; ) {
					const r = await by.page(ctx, ran, { next, size: 1000, signal: control.signal });
					all.push(...r.rows);
					fill(told, count(all.length) + ' rows read');
					next = r.next;
					if (!next) break;
				}
				done(true);
			})().catch((e) => {
				fill(told, problem(e));
			});
			return h(
				'div',
				null,
				told,
				h(
					'div',
					{ class: 'buttons' },
					button('Cancel', () => {
						control.abort();
						done();
					}),
				),
			);
		});
		return got ? all : undefined;
	}

	/** All rows as a file. What has one page isn't run again: it may have written. @param {'csv'|'json'} kind */
	async function save(kind) {
		const all = firstPage?.next ? await readAll() : firstPage?.rows;
		if (!all) return;
		const text = kind === 'json' ? '[\n' + all.map((r) => r.text).join(',\n') + '\n]\n' : csv(all);
		const url = URL.createObjectURL(new Blob([text], { type: kind === 'json' ? 'application/json' : 'text/csv' }));
		const a = h('a', { href: url, download: `${coll}.${kind}` });
		document.body.appendChild(a);
		a.click();
		a.remove();
		setTimeout(() => URL.revokeObjectURL(url), 10000);
	}

	/** @param {Row[]} all */
	function csv(all) {
		const names = [...new Set(all.flatMap((r) => (r.v instanceof Obj ? r.v.keys() : ['value'])))];
		return (
			[
				names.map(cell).join(','),
				...all.map((r) =>
					names.map((n) => cell(r.v instanceof Obj ? r.v.get(n) : n === 'value' ? r.v : undefined)).join(','),
				),
			].join('\r\n') + '\r\n'
		);
	}

	const takeBack = offer('pane', () => [
		{ name: 'Run', group: 'Query', keys: 'Ctrl+Enter', act: start },
		{ name: 'Cancel', group: 'Query', keys: 'Escape', act: cancel },
		{ name: 'Edit the query', group: 'Query', keys: '/', act: () => ed.area.focus() },
		{ name: 'History', group: 'Query', act: history },
		{ name: 'Saved queries', group: 'Query', act: saved },
		...languages.map((l) => ({
			name: l.title,
			group: 'Language',
			act: () => {
				if (l !== lang)
					/** @type {any} */ ([...choose.children].find((b) => b.textContent === l.title)).click();
			},
		})),
	]);
	return () => {
		left = true;
		quit();
		takeBack();
		close();
	};
}

/** A cell of a CSV file. A text that a spreadsheet would run as a formula begins with an apostrophe. @param {any} v */
export function cell(v) {
	let s = show(v);
	if (!(v instanceof Num) && /^[=+\-@\t\r]/.test(s)) s = "'" + s;
	return /[",\r\n]/.test(s) ? '"' + s.replaceAll('"', '""') + '"' : s;
}

/** The paths of some items, such as address.city. @param {any[]} items */
function pathsOf(items) {
	/** @type {Set<string>} */ const out = new Set();
	/** @param {any} v @param {string} at @param {number} depth */
	const walk = (v, at, depth) => {
		if (v instanceof Obj && depth < 4)
			for (const [k, x] of v.members) {
				if (/^[A-Za-z_$][\w$]*$/.test(k)) {
					out.add(at + k);
					walk(x, at + k + '.', depth + 1);
				}
			}
	};
	for (const v of items) walk(v, '', 0);
	return [...out];
}
