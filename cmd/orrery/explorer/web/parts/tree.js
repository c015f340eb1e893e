// A tree with arrow keys: one element is in the order of tabs, the arrows move and open, Enter chooses.

import { h, fill, icon } from '../dom.js';

/** @param {HTMLElement} el @param {string} label */
export function tree(el, label) {
	let at = '';
	const root = h('ul', { role: 'tree', class: 'tree', 'aria-label': label });
	el.appendChild(root);
	/** @type {Node2[]} */ let nodes = [];
	/** @type {Map<string, {n: Node2, el: HTMLElement, up: string}>} */ const all = new Map();

	root.addEventListener('keydown', (/** @type {KeyboardEvent} */ e) => {
		const li = /** @type {HTMLElement} */ (/** @type {HTMLElement} */ (e.target).closest('li'));
		if (!li || e.target !== li) return;
		const order = [...all.keys()],
			i = order.indexOf(li.dataset.id || ''),
			x = all.get(order[i]);
		if (!x) return;
		/** @type {string|undefined} */ let to;
		switch (e.key) {
			case 'ArrowDown':
				to = order[i + 1];
				break;
			case 'ArrowUp':
				to = order[i - 1];
				break;
			case 'Home':
				to = order[0];
				break;
			case 'End':
				to = order[order.length - 1];
				break;
			case 'ArrowRight':
				if (x.n.kids !== undefined && !x.n.open) x.n.toggle?.(true);
				else to = order[i + 1];
				break;
			case 'ArrowLeft':
				if (x.n.kids !== undefined && x.n.open) x.n.toggle?.(false);
				else to = x.up;
				break;
			case 'Enter':
			case ' ':
				choose(x.n);
				break;
			case 'Delete':
				x.n.actions?.find((a) => a.icon === 'trash')?.act();
				break;
			default:
				return;
		}
		e.preventDefault();
		if (to) focus(to);
	});

	/** @param {Node2} n */
	function choose(n) {
		if (n.choose) n.choose();
		else n.toggle?.(!n.open);
	}

	/** @param {string} id */
	function focus(id) {
		const old = all.get(at),
			x = all.get(id);
		if (old) old.el.tabIndex = -1;
		at = id;
		if (x) {
			x.el.tabIndex = 0;
			x.el.focus();
		}
	}

	/** @param {Node2} n @param {number} level @param {string} up */
	function item(n, level, up) {
		const leaf = n.kids === undefined;
		const li = h(
			'li',
			{
				role: 'treeitem',
				'data-id': n.id,
				tabindex: '-1',
				'aria-level': String(level),
				'aria-selected': String(!!n.on),
				'aria-expanded': leaf ? undefined : String(!!n.open),
				'aria-label': n.label + (n.note ? ', ' + n.note : '') + (n.sub ? ', ' + n.sub : ''),
			},
			h(
				'div',
				{
					class: 'row' + (n.on ? ' on' : ''),
					title: n.title,
					onclick: (e) => {
						if (!(/** @type {Element} */ (e.target).closest('button'))) {
							focus(n.id);
							choose(n);
						}
					},
				},
				h('span', { class: 'turn' }, !leaf && icon(n.open ? 'down' : 'right')),
				icon(n.icon),
				h('span', { class: 'name' }, n.label),
				(n.actions || []).map((a) =>
					h(
						'button',
						{
							type: 'button',
							class: 'button only quiet act',
							tabindex: '-1',
							title: a.label,
							'aria-label': a.label,
							onclick: a.act,
						},
						icon(a.icon),
					),
				),
				n.note && h('span', { class: 'count' }, n.note),
			),
			n.sub && h('div', { class: 'sub' }, n.sub),
		);
		all.set(n.id, { n, el: li, up });
		if (!leaf && n.open)
			li.appendChild(
				h(
					'ul',
					{ role: 'group' },
					(n.kids || []).map((k) => item(k, level + 1, n.id)),
				),
			);
		return li;
	}

	return {
		/** @param {Node2[]} list */
		set(list) {
			const had = root.contains(document.activeElement);
			nodes = list;
			all.clear();
			fill(
				root,
				nodes.map((n) => item(n, 1, '')),
			);
			if (!all.has(at)) at = [...all.entries()].find(([, x]) => x.n.on)?.[0] || [...all.keys()][0] || '';
			const x = all.get(at);
			if (x) {
				x.el.tabIndex = 0;
				if (had) x.el.focus();
			}
		},
		focus: () => focus(at),
	};
}
