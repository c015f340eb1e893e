// A grid over any number of rows. Only the rows that can be seen are in the document, and at most 2,000 in memory: pages
// before these are dropped, and come back by their continuations when one scrolls up.
//
//   pages     0   1   2  [3   4   5]  6 ..        loaded: the ones in brackets
//   scroller              ^^^^^^^^^               as high as these, so that it never reaches a browser's limit of height

import { h, fill } from '../dom.js';
import { plain, show } from '../json.js';

const height = 30,
	most = 2000;

/** @param {HTMLElement} el @param {GridOptions} o */
export function grid(el, o) {
	const head = h('div', { class: 'head', role: 'row' }),
		body = h('div', { class: 'rows', role: 'rowgroup' });
	const box = h(
		'div',
		{ class: 'grid', role: 'grid', 'aria-label': o.label, tabindex: '-1' },
		h('div', { role: 'rowgroup' }, head),
		body,
	);
	el.appendChild(box);
	/** @type {{from: string, rows: Row[], next: string}[]} */ let pages = [];
	/** @type {string[]} */ let before = []; // continuations of dropped pages
	let skipped = 0,
		at = 0,
		busy = false,
		done = false,
		stuck = false, // the next page couldn't be read: it is asked for again when the user says so
		life = 0,
		wanted = false;
	/** @type {Column[]} */ let columns = [];
	/** @type {Set<string>} */ const picks = new Set();
	/** @type {Map<string, Row>} */ const picked = new Map();
	let opened = '';
	/** @type {string[]} */ let widths = [];
	const keyOf = o.key || ((/** @type {Row} */ r) => r.text);

	const total = () => pages.reduce((n, p) => n + p.rows.length, 0);
	/** @param {number} i @returns {Row|undefined} */
	const rowAt = (i) => {
		for (const p of pages) {
			if (i < p.rows.length) return p.rows[i];
			i -= p.rows.length;
		}
	};

	async function more() {
		if (busy || done || stuck) return;
		busy = true;
		const mine = life,
			last = pages[pages.length - 1];
		try {
			const from = last ? last.next : '',
				p = await o.page(from);
			if (mine !== life) return;
			pages.push({ from, ...p });
			done = !p.next;
			if (!columns.length && p.rows.length) {
				columns = o.columns(p.rows);
				drawHead();
			}
			while (total() > most && pages.length > 1) {
				const first = /** @type {any} */ (pages.shift());
				before.push(first.from);
				skipped += first.rows.length;
				at -= first.rows.length;
				box.scrollTop -= first.rows.length * height;
			}
		} catch (e) {
			if (mine === life) {
				stuck = true;
				o.failed(e);
			}
		} finally {
			if (mine === life) {
				busy = false;
				draw();
			}
		}
	}

	async function earlier() {
		if (busy || !before.length) return;
		busy = true;
		const mine = life,
			from = /** @type {string} */ (before.pop());
		try {
			const p = await o.page(from);
			if (mine !== life) return;
			pages.unshift({ from, ...p });
			skipped -= p.rows.length;
			at += p.rows.length;
			while (total() > most && pages.length > 1) {
				pages.pop();
				done = false;
			}
			body.style.height = total() * height + 'px';
			box.scrollTop += p.rows.length * height;
		} catch (e) {
			if (mine === life) o.failed(e);
		} finally {
			if (mine === life) {
				busy = false;
				draw();
			}
		}
	}

	function drawHead() {
		const some = pages.flatMap((p) => p.rows).slice(0, 60);
		widths = columns.map((c) => {
			const longest = some.reduce((n, r) => Math.max(n, plain(c.get(r.v)).length), c.name.length + 1);
			return Math.min(340, 26 + 7 * longest) + 'px';
		});
		box.style.setProperty('--wide', widths.reduce((n, w) => n + parseInt(w), o.pick ? 34 : 0) + 'px');
		fill(
			head,
			o.pick &&
				h(
					'div',
					{ class: 'cell pick', role: 'columnheader' },
					h('input', {
						type: 'checkbox',
						'aria-label': 'Select all loaded rows',
						onchange: (e) => {
							for (const p of pages) for (const r of p.rows) set(r, e.target.checked);
							draw();
						},
					}),
				),
			columns.map((c, i) => {
				const by = o.sorted?.(),
					way = by === c.name ? 'ascending' : by === '-' + c.name ? 'descending' : undefined;
				return h(
					'div',
					{ class: 'cell', role: 'columnheader', 'aria-sort': way, style: { 'flex-basis': widths[i] } },
					o.sort
						? h(
								'button',
								{ type: 'button', tabindex: '-1', title: 'Sort', onclick: () => o.sort?.(c.name) },
								c.name,
								way && (way === 'ascending' ? ' ▴' : ' ▾'),
							)
						: c.name,
				);
			}),
		);
	}

	/** @param {Row} r @param {boolean} on */
	function set(r, on) {
		const k = keyOf(r);
		if (on) {
			picks.add(k);
			picked.set(k, r);
		} else {
			picks.delete(k);
			picked.delete(k);
		}
		o.picked?.(picks.size);
	}

	function draw() {
		const n = total();
		/** @type {HTMLElement} */ (head.parentElement).hidden = !columns.length;
		box.tabIndex = n ? -1 : 0; // with rows, one of them has the focus
		body.style.height = n * height + 'px';
		const first = Math.max(0, Math.floor(box.scrollTop / height) - 8),
			last = Math.min(n, first + Math.ceil(box.clientHeight / height) + 16);
		at = Math.max(0, Math.min(n - 1, at));
		const had = body.contains(document.activeElement);
		if (!n) {
			fill(
				body,
				h(
					'div',
					{ class: 'nothing', role: 'row' },
					h('span', { role: 'gridcell' }, busy || !(done || stuck) ? 'Reading …' : stuck ? 'The rows could not be read.' : o.empty || 'No items here.'),
				),
			);
			body.style.height = 'auto';
			return o.moved?.();
		}
		const list = [];
		for (let i = first; i < last; i++) {
			const r = rowAt(i);
			if (r) list.push(line(r, i));
		}
		fill(body, list);
		if (had || wanted) focusAt();
		if (last > n - 30) more();
		if (first < 10 && before.length) earlier();
		o.moved?.();
	}

	/** @param {Row} r @param {number} i */
	function line(r, i) {
		const k = keyOf(r);
		return h(
			'div',
			{
				class: 'line' + (k === opened ? ' on' : ''),
				role: 'row',
				'aria-rowindex': String(skipped + i + 2),
				'aria-selected': String(picks.has(k)),
				tabindex: i === at ? '0' : '-1',
				'data-i': String(i),
				style: { top: i * height + 'px' },
				onclick: (e) => {
					at = i;
					if (!e.target.closest('.pick')) choose(r);
				},
			},
			o.pick &&
				h(
					'div',
					{ class: 'cell pick', role: 'gridcell' },
					h('input', {
						type: 'checkbox',
						tabindex: '-1',
						checked: picks.has(k),
						'aria-label': 'Select row',
						onchange: (e) => {
							set(r, e.target.checked);
							draw();
						},
					}),
				),
			columns.map((c, i) => cell(c.get(r.v), widths[i])),
		);
	}

	/** @param {any} v @param {string} width */
	function cell(v, width) {
		const text = plain(v),
			whole = show(v);
		return h(
			'div',
			{
				class: 'cell' + (v && v.text !== undefined ? ' n' : ''),
				role: 'gridcell',
				style: { 'flex-basis': width },
				title: whole.length > 24 ? whole.slice(0, 500) : undefined,
			},
			v === null ? h('span', { class: 'null' }, 'null') : text.slice(0, 200),
		);
	}

	/** @param {Row} r */
	function choose(r) {
		opened = keyOf(r);
		draw();
		o.open(r);
	}
	function focusAt() {
		const el = /** @type {HTMLElement|null} */ (body.querySelector(`[data-i="${at}"]`));
		wanted = !el && !total();
		el?.focus({ preventScroll: true });
	}

	/** @param {number} to */
	function move(to) {
		at = Math.max(0, Math.min(total() - 1, to));
		const top = at * height,
			seen = box.clientHeight - height;
		if (top < box.scrollTop) box.scrollTop = top;
		else if (top + height > box.scrollTop + seen) box.scrollTop = top + height - seen;
		draw();
		focusAt();
	}

	box.addEventListener('scroll', draw, { passive: true });
	body.addEventListener('keydown', (/** @type {KeyboardEvent} */ e) => {
		const r = rowAt(at),
			page = Math.max(1, Math.floor(box.clientHeight / height) - 2);
		const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -total(), End: total() }[e.key];
		if (e.key === 'Home' && before.length) {
			e.preventDefault();
			reload().then(focusAt);
			return;
		}
		if (step !== undefined) {
			e.preventDefault();
			move(at + step);
			return;
		}
		if (e.key === 'Enter' && r) {
			e.preventDefault();
			choose(r);
		}
		if (e.key === ' ' && r && o.pick) {
			e.preventDefault();
			set(r, !picks.has(keyOf(r)));
			draw();
			focusAt();
		}
	});
	const watch = new ResizeObserver(draw);
	watch.observe(box);

	/** Reads from the beginning. */
	function reload() {
		life++;
		pages = [];
		before = [];
		skipped = 0;
		at = 0;
		busy = false;
		done = false;
		stuck = false;
		columns = [];
		opened = '';
		picks.clear();
		picked.clear();
		o.picked?.(0);
		box.scrollTop = 0;
		fill(head);
		draw();
		return more();
	}

	return {
		el: box,
		reload,
		/** Asks again for the page that failed. */
		again() {
			stuck = false;
			return more();
		},
		/** @param {Row[]} list @param {Column[]} [cols] */
		set(list, cols) {
			life++;
			pages = [{ from: '', rows: list, next: '' }];
			done = true;
			busy = false;
			before = [];
			skipped = 0;
			at = 0;
			columns = cols || o.columns(list);
			drawHead();
			draw();
		},
		picked: () => [...picked.values()],
		/** Shows what a row has become. @param {Row} row @returns {boolean} whether it is loaded */
		change(row) {
			for (const p of pages)
				for (let i = 0; i < p.rows.length; i++)
					if (keyOf(p.rows[i]) === keyOf(row)) {
						p.rows[i] = row;
						draw();
						return true;
					}
			return false;
		},
		clear() {
			picks.clear();
			picked.clear();
			o.picked?.(0);
			draw();
		},
		/** Marks a row as the open one. @param {string} k */
		mark(k) {
			opened = k;
			draw();
		},
		columns: () => columns.map((c) => c.name),
		/** The numbers of the first and last loaded row, and whether there are more. */
		range: () => ({ from: skipped + 1, to: skipped + total(), more: !done }),
		focus() {
			focusAt();
		},
		/** @param {number} by */
		step(by) {
			const r = rowAt(at + by);
			if (r) {
				at += by;
				choose(r);
			}
		},
		close() {
			life++;
			watch.disconnect();
		},
	};
}

/**
 * Columns for items: the keys first, then the members in the order in which the items have them. What the server adds
 * comes last or not at all.
 * @param {{v: any}[]} rows @param {string[]} first @param {number} limit
 */
export function columnsOf(rows, first, limit) {
	const names = new Set(first);
	for (const r of rows.slice(0, 100))
		for (const k of r.v && r.v.keys ? r.v.keys() : []) if (!k.startsWith('_')) names.add(k);
	return [...names]
		.slice(0, limit)
		.map((name) => ({
			name,
			get: (/** @type {any} */ v) =>
				v && v.get
					? name.includes('/')
						? name.split('/').reduce((/** @type {any} */ x, p) => (x && x.get ? x.get(p) : undefined), v)
						: v.get(name)
					: undefined,
		}));
}
