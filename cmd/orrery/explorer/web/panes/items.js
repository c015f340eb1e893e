// The items of a container: a grid, a filter, and the editor of one item at the side.

import { h, fill, button, count } from '../dom.js';
import { call, query, link, enc, keyOf, passes } from '../api.js';
import { parse, show } from '../json.js';
import { offer } from '../keys.js';
import { grid, columnsOf } from '../parts/grid.js';
import { confirm, note, problem, dialog } from '../parts/dialog.js';
import { openItem } from '../parts/item.js';

/** @param {HTMLElement} el @param {Context} ctx */
export function mount(el, ctx) {
	const { db, coll } = ctx;
	/** @type {any} */ let def = null;
	/** @type {any} */ let item = null;
	let charge = 0,
		took = 0;
	const box = h('input', {
		type: 'text',
		class: 'mono',
		placeholder: "c.price > 10 AND c.category = 'office'",
		'aria-label': 'Filter, the WHERE of a query',
		spellcheck: 'false',
		autocomplete: 'off',
		value: ctx.params.where || '',
		onkeydown: (e) => {
			if (e.key === 'Enter') {
				e.preventDefault();
				apply();
			} else if (e.key === 'ArrowDown') {
				e.preventDefault();
				g.focus();
			}
		},
	});
	const jump = h('input', {
		type: 'text',
		class: 'jump',
		placeholder: 'Go to id',
		'aria-label': 'Go to the item with this id',
		spellcheck: 'false',
		autocomplete: 'off',
		onkeydown: (e) => {
			if (e.key === 'Enter' && jump.value) {
				e.preventDefault();
				find(jump.value);
			}
		},
	});
	const status = h('div', { class: 'status', role: 'status' }),
		trouble = h('div');
	const del = button('Delete', remove, { icon: 'trash', class: 'danger' });
	const file = h('input', {
		type: 'file',
		accept: '.json,.jsonl,.ndjson',
		hidden: true,
		'aria-label': 'File with items',
		onchange: () => {
			if (file.files?.[0]) upload(file.files[0]);
			file.value = '';
		},
	});
	del.hidden = true;
	fill(
		el,
		h(
			'div',
			{ class: 'toolbar' },
			h('div', { class: 'filter' }, h('span', { class: 'mono' }, 'WHERE'), box),
			button('Apply', apply, {}),
			h(
				'div',
				{ class: 'inline flat' },
				jump,
				!ctx.readOnly && [
					button('New item', () => show1(null), { icon: 'plus', class: 'primary' }),
					button('Upload', () => file.click(), {
						icon: 'upload',
						only: true,
						title: 'Upload JSON: an array, or one item a line',
					}),
					button('Empty', empty, {
						icon: 'trash',
						only: true,
						class: 'quiet',
						title: 'Delete all items that the filter selects',
					}),
					del,
					file,
				],
			),
		),
		trouble,
	);

	const chosen = () => (ctx.params.where ? ' WHERE ' + ctx.params.where : '');
	/** @param {string} name */
	const path = (name) =>
		'c' +
		name
			.split('/')
			.map((x) => `[${JSON.stringify(x)}]`)
			.join('');
	const text = () => {
		const by = ctx.params.sort;
		return (
			'SELECT * FROM c' +
			chosen() +
			(by ? ` ORDER BY ${path(by.replace(/^-/, ''))} ${by[0] === '-' ? 'DESC' : 'ASC'}` : '')
		);
	};
	/** Sorts by a column, then the other way round, then no longer. @param {string} name */
	function sort(name) {
		const by = ctx.params.sort;
		ctx.params.sort = by === name ? '-' + name : by === '-' + name ? '' : name;
		ctx.setParams({ sort: ctx.params.sort });
		return apply();
	}
	const g = grid(el, {
		label: 'Items of ' + coll,
		pick: !ctx.readOnly,
		async page(next) {
			def = def || (await ctx.definition());
			const r = await query(db, coll, text(), { next, size: 100 });
			charge += r.charge;
			took = r.ms;
			return r;
		},
		columns: (rows) =>
			columnsOf(
				rows,
				[
					'id',
					...(def?.partitionKey?.paths || [])
						.map((/** @type {string} */ p) => p.slice(1).replaceAll('"', ''))
						.filter((/** @type {string} */ p) => p !== 'id'),
				],
				14,
			),
		key: (r) => String(show(r.v.get('_rid')) || r.text),
		sorted: () => ctx.params.sort,
		sort,
		open: (r) => show1(r),
		picked: (n) => {
			del.hidden = !n;
			del.lastChild.textContent = `Delete ${count(n)}`;
		},
		moved: () => {
			const r = g.range();
			fill(
				status,
				r.to ? h('span', null, `Items ${count(r.from)} to ${count(r.to)}${r.more ? ' of ' + all(r.to) : ''}`) : '',
				charge ? h('span', null, charge.toFixed(2) + ' RU') : '',
				took ? h('span', null, Math.round(took) + ' ms a page') : '',
				h('span', { class: 'right wideonly' }, 'Enter opens, Space selects'),
			);
		},
		failed: (e) => {
			const again = () => {
				fill(trouble);
				g.again();
			};
			fill(trouble, problem(e), passes(e) && h('div', { class: 'pad' }, button('Read on', again, { icon: 'refresh' })));
		},
	});
	el.appendChild(status);

	/** How many items there are, as the tree has it; with a filter nobody knows. @param {number} seen */
	function all(seen) {
		const n = ctx.params.where ? 0 : ctx.items() || 0;
		return n > seen ? count(n) : 'more';
	}

	function apply() {
		const where = box.value.trim().replace(/^where\s+/i, '');
		ctx.params.where = where;
		ctx.setParams({ where });
		fill(trouble);
		charge = 0;
		return g.reload();
	}

	/** @param {string} id */
	async function find(id) {
		fill(trouble);
		try {
			const r = await query(db, coll, 'SELECT * FROM c WHERE c.id = @id', {
				params: [{ name: '@id', value: id }],
				size: 2,
			});
			if (!r.rows.length) return note(`No item has the id ${id}.`);
			if (r.rows.length > 1) {
				box.value = `c.id = ${JSON.stringify(id)}`;
				return apply();
			}
			show1(r.rows[0]);
		} catch (e) {
			fill(trouble, problem(e));
		}
	}

	/** @param {Row|null} row */
	async function show1(row) {
		if (item && !(await item.leave())) return;
		item?.close();
		def = def || (await ctx.definition());
		ctx.setParams({ id: row ? show(row.v.get('id')) : undefined, key: row ? keyOf(def, row.v) : undefined });
		item = openItem(ctx.inspector, {
			db,
			coll,
			def,
			row,
			readOnly: ctx.readOnly,
			changed: (now) => (now && g.change(now)) || apply(),
			closed: () => {
				item = null;
				ctx.setParams({ id: undefined, key: undefined });
				g.mark('');
				g.focus();
			},
			step: (by) => g.step(by),
		});
	}

	async function remove() {
		const list = g.picked(),
			n = list.length;
		if (
			!(await confirm(
				'Delete items',
				`${count(n)} item${n === 1 ? '' : 's'} of ${coll} will be deleted.`,
				`Delete ${count(n)} item${n === 1 ? '' : 's'}`,
			))
		)
			return;
		const bad = await each(
			list,
			(r) =>
				call('nosql', 'DELETE', link(db, coll) + '/docs/' + enc(show(r.v.get('id'))), {
					headers: { 'x-ms-documentdb-partitionkey': keyOf(def, r.v) },
					quiet: true,
					also: [404],
				}),
			() => false,
		);
		note(
			bad.length
				? `${count(n - bad.length)} deleted, ${count(bad.length)} not: ${bad[0].message}`
				: `${count(n)} deleted.`,
			bad.length ? 'bad' : 'ok',
		);
		apply();
	}

	async function empty() {
		def = def || (await ctx.definition());
		let n = 0;
		try {
			n = Number(
				show(
					(
						await query(
							db,
							coll,
							'SELECT VALUE COUNT(1) FROM c' + chosen(),
						)
					).rows[0]?.v,
				),
			);
		} catch (e) {
			return note(/** @type {Error} */ (e));
		}
		if (!n) return note('There is nothing to delete.');
		if (
			!(await confirm(
				ctx.params.where ? 'Delete what the filter selects' : 'Empty the container',
				`${count(n)} item${n === 1 ? '' : 's'} of ${coll} will be deleted.`,
				`Delete ${count(n)} item${n === 1 ? '' : 's'}`,
				String(n),
			))
		)
			return;
		let stop = false,
			gone = 0;
		/** @type {any[]} */ let bad = [];
		await dialog('Deleting', (done) => {
			const bar = h('progress', { max: n, value: 0, class: 'wide', 'aria-label': 'Deleted items' });
			(async () => {
				for (;;) {
					const r = await query(db, coll, 'SELECT * FROM c' + chosen(), { size: 1000, quiet: true });
					if (!r.rows.length || stop || bad.length) break;
					bad = await each(
						r.rows,
						(x) =>
							call('nosql', 'DELETE', link(db, coll) + '/docs/' + enc(show(x.v.get('id'))), {
								headers: { 'x-ms-documentdb-partitionkey': keyOf(def, x.v) },
								quiet: true,
								also: [404],
							}).then(() => {
								bar.value = ++gone;
							}),
						() => stop,
					);
				}
				done();
			})().catch((e) => {
				bad.push(e);
				done();
			});
			return h(
				'div',
				null,
				bar,
				h(
					'div',
					{ class: 'buttons' },
					button('Stop', () => {
						stop = true;
					}),
				),
			);
		});
		stop = true;
		note(
			bad.length ? `${count(gone)} deleted, then: ${bad[0].message}` : `${count(gone)} deleted.`,
			bad.length ? 'bad' : 'ok',
		);
		apply();
	}

	/** @param {File} f */
	async function upload(f) {
		/** @type {string[]} */ let items;
		try {
			const t = await f.text(),
				start = t.trimStart()[0];
			if (start === '[') {
				const v = parse(t);
				items = v.map((/** @type {any} */ x) => t.slice(x.start, x.end));
			} else {
				items = t
					.split('\n')
					.map((l) => l.trim())
					.filter(Boolean);
				items.forEach((l) => parse(l));
			}
		} catch (e) {
			return note('The file is not JSON: ' + /** @type {Error} */ (e).message, 'bad');
		}
		def = def || (await ctx.definition());
		if (
			!(await confirm(
				'Upload',
				`${count(items.length)} item${items.length === 1 ? '' : 's'} of ${f.name} will be written to ${coll}. Items with the same key are replaced.`,
				`Write ${count(items.length)}`,
			))
		)
			return;
		const bad = await each(
			items,
			(x) =>
				call('nosql', 'POST', link(db, coll) + '/docs', {
					body: x,
					headers: {
						'x-ms-documentdb-is-upsert': 'true',
						'x-ms-documentdb-partitionkey': keyOf(def, parse(x)),
					},
					quiet: true,
				}),
			() => false,
		);
		note(
			bad.length
				? `${count(items.length - bad.length)} written, ${count(bad.length)} not: ${bad[0].message}`
				: `${count(items.length)} written.`,
			bad.length ? 'bad' : 'ok',
		);
		apply();
	}

	el.addEventListener('dragover', over);
	el.addEventListener('dragleave', () => el.classList.remove('drop'));
	el.addEventListener('drop', (e) => {
		e.preventDefault();
		el.classList.remove('drop');
		const f = e.dataTransfer?.files[0];
		if (f && !ctx.readOnly) upload(f);
	});
	/** @param {DragEvent} e */
	function over(e) {
		if (!ctx.readOnly) {
			e.preventDefault();
			el.classList.add('drop');
		}
	}

	const takeBack = offer('pane', () => [
		{ name: 'Filter', group: 'Items', keys: '/', act: () => box.focus() },
		{ name: 'Read again', group: 'Items', keys: 'R', act: apply },
		...g.columns().map((name) => ({ name: 'Sort by ' + name, group: 'Items', act: () => sort(name) })),
		...(ctx.readOnly ? [] : [{ name: 'New item', group: 'Items', keys: 'N', act: () => show1(null) }]),
		...(item ? item.commands() : []),
	]);
	g.reload().then(async () => {
		if (!ctx.params.id) return;
		try {
			const r = await call('nosql', 'GET', link(db, coll) + '/docs/' + enc(ctx.params.id), {
				headers: { 'x-ms-documentdb-partitionkey': ctx.params.key || '[{}]' },
			});
			show1({ v: parse(r.text), text: r.text });
		} catch (e) {
			ctx.setParams({ id: undefined, key: undefined });
		}
	});
	return () => {
		takeBack();
		g.close();
		item?.close();
	};
}

/**
 * Runs f for each element, eight at a time, until stop; the result has the errors.
 * @template T @param {T[]} list @param {(x: T) => Promise<any>} f @param {() => boolean} stop @returns {Promise<any[]>}
 */
async function each(list, f, stop) {
	/** @type {any[]} */ const bad = [];
	let i = 0;
	await Promise.all(
		Array.from({ length: 8 }, async () => {
			while (i < list.length && !stop()) {
				const x = list[i++];
				try {
					await f(x);
				} catch (e) {
					bad.push(e);
				}
			}
		}),
	);
	return bad;
}
