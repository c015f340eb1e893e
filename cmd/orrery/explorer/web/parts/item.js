// One item at the side: its source with a save that loses nothing, and the same item through all four APIs.
//
// The editor shows the text of the reply, laid out in lines but with every token as it came. A save of an unedited item
// would send the reply's bytes again; an edited one sends the editor's tokens without the blanks between them. Nothing is
// parsed to numbers in between.

import { h, fill, button, later } from '../dom.js';
import { call, link, enc, keyOf } from '../api.js';
import { compact, format, parse, show, JSONError, Obj } from '../json.js';
import { load, keep } from '../state.js';
import { editor } from './editor.js';
import { diff } from './diff.js';
import { confirm, dialog, note, problem, copy } from './dialog.js';

/**
 * @param {HTMLElement} side
 * @param {{db: string, coll: string, def: any, row: Row|null, readOnly: boolean, changed: (row?: Row|null) => any, closed: () => any, step: (by: number) => any}} o
 */
export function openItem(side, o) {
	const { db, coll, def } = o;
	// what NoSQL can't save isn't edited here: only its beginning is shown
	const huge = (o.row?.text.length || 0) > 2200000;
	if (huge) o = { ...o, readOnly: true };
	let source = o.row ? o.row.text : template(def);
	let fresh = !o.row;
	let shown = layOut(source);
	let id = o.row ? show(o.row.v.get('id')) : '',
		key = o.row ? keyOf(def, o.row.v) : '';
	let tag = o.row ? show(o.row.v.get('_etag')) : '';
	const draftName = () => 'draft.' + JSON.stringify([db, coll, key, id]);
	/** @type {{text: string, tag: string}|null} */ const draft = o.readOnly
		? null
		: load(draftName(), /** @type {any} */ (null));
	const ed = editor({
		label: fresh ? 'New item' : 'Source of ' + id,
		readOnly: o.readOnly,
		value: draft ? draft.text : shown,
		change: (t) => typed(t),
	});
	const save = button('Save', () => write(), { icon: 'save', class: 'primary', title: 'Save (Ctrl+S)' });
	const revert = button(
		'Revert',
		() => {
			ed.value = shown;
			edited();
		},
		{},
	);
	const soon = later(edited, 400);
	const title = h('h2', { class: 'mono' });
	const trouble = h('div', { role: 'alert' });
	const state = h('span', { class: 'tag' });
	const body = h('div', { class: 'pane' });
	const tabs = ['Source', 'Four APIs'];
	let tab = 'Source';
	/** @type {{close: () => void}|null} */ let views = null;
	const seg = h(
		'div',
		{ class: 'seg', role: 'tablist', 'aria-label': 'Views of the item' },
		tabs.map((t) =>
			h('button', { type: 'button', role: 'tab', 'aria-selected': String(t === tab), onclick: () => pick(t) }, t),
		),
	);
	const remove = button('Delete', drop, { icon: 'trash', only: true, class: 'quiet' });
	fill(
		side,
		h(
			'div',
			{ class: 'ihead' },
			title,
			state,
			!o.readOnly && remove,
			button('Copy', () => copy(ed.value), { icon: 'copy', only: true, class: 'quiet' }),
			button('Close', () => leave().then((ok) => ok && close()), {
				icon: 'close',
				only: true,
				class: 'quiet',
				title: 'Close (Esc)',
			}),
			h('div', { class: 'second' }, !fresh && seg, h('span', { class: 'grow' }), !o.readOnly && [revert, save]),
		),
		trouble,
		body,
	);
	side.hidden = false;
	pick('Source');
	head();
	edited();
	if (fresh) {
		ed.area.focus();
		const at = ed.value.indexOf('""') + 1;
		if (at > 0) ed.area.setSelectionRange(at, at);
	} else side.focus();
	if (draft && draft.tag !== tag)
		fill(
			trouble,
			h(
				'p',
				{ class: 'warn small pad' },
				'This is your draft; the item has been changed since. Saving will show both versions.',
			),
		);

	function head() {
		fill(title, fresh ? 'New item' : id);
		title.title = fresh ? '' : id + ' · partition key ' + key;
		remove.hidden = fresh;
	}
	function isEdited() {
		return ed.value !== shown;
	}
	function edited() {
		const is = isEdited() || fresh;
		save.disabled = !is;
		revert.hidden = !isEdited();
		fill(state, huge ? 'the beginning' : o.readOnly ? 'read-only' : fresh ? 'new' : is ? 'edited' : 'saved');
		state.className = 'tag ' + (is && !o.readOnly ? 'warn' : '');
		if (!o.readOnly) keep(draftName(), isEdited() ? { text: ed.value, tag } : undefined);
	}

	/** A key in a long text must not wait for its comparison and its draft. @param {string} text */
	function typed(text) {
		if (text.length < 100000) return edited();
		save.disabled = false;
		soon();
	}

	/** @param {string} t */
	async function pick(t) {
		tab = t;
		for (const b of seg.children) b.setAttribute('aria-selected', String(b.textContent === t));
		views?.close();
		views = null;
		if (t === 'Source') {
			fill(body, ed.el);
			ed.draw();
			return;
		}
		fill(body, h('p', { class: 'empty' }, 'Reading …'));
		const { fourViews } = await import('./views.js');
		if (tab === t) views = fourViews(body, { db, coll, def, id, key, v: parse(source) });
	}

	/** @param {string} [match] the etag to replace, when it isn't the one that was read */
	async function write(match) {
		fill(trouble);
		const text = ed.value;
		/** @type {any} */ let v;
		try {
			v = parse(text);
			if (!(v instanceof Obj)) throw new JSONError('An item is an object, in braces', 0, text);
		} catch (e) {
			fill(
				trouble,
				problem({
					message: /** @type {Error} */ (e).message + '.',
					next: 'Correct the text.',
					code: 'NotJSON',
				}),
			);
			if (e instanceof JSONError) ed.goTo(e.at);
			return;
		}
		const k = keyOf(def, v),
			name = show(v.get('id'));
		if (!fresh && (name !== id || k !== key)) {
			if (
				!(await confirm(
					'Another item',
					`The id or the partition key has been changed, so this is another item: ${name}. The one that you have opened stays as it is.`,
					'Create ' + name,
				))
			)
				return;
		}
		const other = fresh || name !== id || k !== key;
		save.disabled = true;
		try {
			const headers = { 'x-ms-documentdb-partitionkey': k, ...(other ? {} : { 'if-match': match || tag }) };
			const r = await call(
				'nosql',
				other ? 'POST' : 'PUT',
				link(db, coll) + '/docs' + (other ? '' : '/' + enc(id)),
				{ headers, body: isEdited() || fresh ? compact(text) : source },
			);
			keep(draftName(), undefined);
			source = r.text;
			const saved = parse(source);
			shown = layOut(source);
			fresh = false;
			id = show(saved.get('id'));
			key = keyOf(def, saved);
			tag = show(saved.get('_etag'));
			const at = ed.area.selectionStart,
				top = ed.area.scrollTop;
			ed.value = shown;
			ed.area.setSelectionRange(at, at);
			ed.area.scrollTop = top;
			head();
			edited();
			note(`Saved ${id}, ${r.charge} RU.`, 'ok');
			o.changed(other ? null : { v: saved, text: source });
		} catch (e) {
			edited();
			if (/** @type {any} */ (e).status === 412) conflict();
			else fill(trouble, problem(e));
		}
	}

	/** Somebody else has saved: both versions, and what to do. */
	async function conflict() {
		/** @type {string} */ let theirs;
		try {
			theirs = (
				await call('nosql', 'GET', link(db, coll) + '/docs/' + enc(id), {
					headers: { 'x-ms-documentdb-partitionkey': key },
				})
			).text;
		} catch (e) {
			return fill(trouble, problem(e));
		}
		const now = parse(theirs);
		const what = await dialog(
			'Changed by somebody else',
			(done) =>
				h(
					'div',
					null,
					h(
						'p',
						null,
						`${id} has been saved since you opened it. Yours is at the left, the stored one at the right.`,
					),
					diff('Yours', ed.value, 'Stored', layOut(theirs)),
					h(
						'div',
						{ class: 'buttons' },
						button('Go on editing', () => done()),
						button('Take the stored one', () => done('theirs')),
						button('Overwrite with mine', () => done('mine'), { class: 'danger' }),
					),
				),
			{ wide: true },
		);
		if (what === 'mine') return write(show(now.get('_etag')));
		if (what === 'theirs') {
			source = theirs;
			shown = layOut(source);
			tag = show(now.get('_etag'));
			ed.value = shown;
			edited();
			o.changed();
		}
	}

	async function drop() {
		if (!(await confirm('Delete item', `${id} will be deleted.`, 'Delete 1 item'))) return;
		try {
			await call('nosql', 'DELETE', link(db, coll) + '/docs/' + enc(id), {
				headers: { 'x-ms-documentdb-partitionkey': key, 'if-match': tag },
			});
			keep(draftName(), undefined);
			note(`${id} is deleted.`, 'ok');
			close();
			o.changed();
		} catch (e) {
			fill(trouble, problem(e));
		}
	}

	/** Whether the item may be left: a draft is kept, so it always may, except a new one. */
	async function leave() {
		if (o.readOnly || !fresh || ed.value === shown) return true;
		return confirm('New item', 'The new item has not been saved.', 'Leave it');
	}
	function close() {
		views?.close();
		if (fresh) keep(draftName(), undefined);
		side.hidden = true;
		fill(side);
		o.closed();
	}
	side.onkeydown = (e) => {
		if (e.key === 'Escape' && !e.defaultPrevented) {
			e.preventDefault();
			leave().then((ok) => ok && close());
		}
		if (e.key.toLowerCase() === 's' && (e.ctrlKey || e.metaKey)) {
			e.preventDefault();
			if (!o.readOnly && !save.disabled) write();
			else if (!o.readOnly) note('Nothing has been changed.');
		}
	};

	return {
		close() {
			views?.close();
			side.hidden = true;
			fill(side);
			side.onkeydown = null;
		},
		leave,
		commands: () => [
			{
				name: 'Save',
				group: 'Item',
				keys: 'Ctrl+S',
				act: () => {
					if (!save.disabled) write();
				},
			},
			{ name: 'Four APIs', group: 'Item', act: () => pick('Four APIs') },
			{ name: 'Next item', group: 'Item', keys: 'Alt+ArrowDown', act: () => o.step(1) },
			{ name: 'Previous item', group: 'Item', keys: 'Alt+ArrowUp', act: () => o.step(-1) },
			{ name: 'Close the item', group: 'Item', keys: 'Escape', act: () => leave().then((ok) => ok && close()) },
		],
	};
}

/** @param {string} text */
function layOut(text) {
	if (text.length > 2200000) text = text.slice(0, text.lastIndexOf(',', 300000));
	try {
		return format(text);
	} catch {
		return text;
	}
}

/** The text of a new item. @param {any} def */
function template(def) {
	const names = [
		'id',
		...(def.partitionKey?.paths || [])
			.filter((/** @type {string} */ p) => p.split('/').length === 2)
			.map((/** @type {string} */ p) => p.slice(1).replaceAll('"', '')),
	];
	return '{' + [...new Set(names)].map((n) => JSON.stringify(n) + ': ""').join(', ') + '}';
}
