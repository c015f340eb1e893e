// Shortcuts, and the palette that lists them all.

import { h, fill } from './dom.js';

/** Commands by who offers them: the page, and the pane that is shown. @type {Map<string, () => Command[]>} */
const sources = new Map();

/** Offers commands; the result takes them back. @param {string} who @param {() => Command[]} list */
export function offer(who, list) {
	sources.set(who, list);
	return () => {
		if (sources.get(who) === list) sources.delete(who);
	};
}

function all() {
	return [...sources.values()].flatMap((f) => f());
}

/** The name of a key press: "Ctrl+Shift+K". On a Mac the command key counts as Ctrl. @param {KeyboardEvent} e */
export function nameOf(e) {
	const k = e.key === ' ' ? 'Space' : e.key.length === 1 ? e.key.toUpperCase() : e.key;
	return (
		(e.ctrlKey || e.metaKey ? 'Ctrl+' : '') +
		(e.altKey ? 'Alt+' : '') +
		(e.shiftKey && e.key.length > 1 ? 'Shift+' : '') +
		k
	);
}

/** @param {EventTarget|null} t */
function typing(t) {
	return t instanceof HTMLElement && (t.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(t.tagName));
}

document.addEventListener('keydown', (e) => {
	if (e.defaultPrevented) return;
	const name = nameOf(e);
	if (name === 'Ctrl+K') {
		e.preventDefault();
		palette();
		return;
	}
	if (document.querySelector('dialog[open]')) return;
	if (name === 'F6' || name === 'Shift+F6') {
		e.preventDefault();
		nextRegion(e.shiftKey);
		return;
	}
	if (typing(e.target) && !/Ctrl|Alt|Escape|^F\d/.test(name)) return;
	if (name === '?') {
		e.preventDefault();
		palette('keys');
		return;
	}
	const c = all()
		.reverse()
		.find((x) => x.keys === name);
	if (c) {
		e.preventDefault();
		c.act();
	}
});

/** Moves the focus to the next region of the page. @param {boolean} back */
function nextRegion(back) {
	const regions = /** @type {HTMLElement[]} */ (
		[...document.querySelectorAll('[data-region]')].filter(
			(r) => r.checkVisibility({ visibilityProperty: true }),
		)
	);
	const now = regions.findIndex((r) => r.contains(document.activeElement));
	const next = regions[(now + (back ? -1 : 1) + regions.length) % regions.length];
	if (!next) return;
	const first = /** @type {HTMLElement|null} */ (
		next.querySelector('[tabindex="0"], textarea, input, select, button:not(:disabled), a[href]')
	);
	(first || next).focus();
}

/** Opens the palette. @param {string} [mode] "keys" shows only what has a shortcut */
export function palette(mode) {
	const open = document.querySelector('dialog.palette[open]');
	if (open) {
		/** @type {HTMLDialogElement} */ (open).close();
		return;
	}
	const before = /** @type {HTMLElement|null} */ (document.activeElement);
	const commands = all().filter((c) => mode !== 'keys' || c.keys);
	if (mode === 'keys')
		commands.push(
			{ name: 'Next part of the page', keys: 'F6', act: () => {} },
			{ name: 'Palette', keys: 'Ctrl+K', act: () => {} },
		);
	let at = 0;
	/** @type {Command[]} */ let shown = [];
	const list = h('ul', { class: 'choices', role: 'listbox', id: 'palette-list', 'aria-label': 'Commands' });
	const input = h('input', {
		type: 'text',
		class: 'wide',
		placeholder: mode === 'keys' ? 'Shortcuts' : 'Go to a container, or do something',
		'aria-label': 'Command',
		role: 'combobox',
		'aria-expanded': 'true',
		'aria-controls': 'palette-list',
		autocomplete: 'off',
		spellcheck: 'false',
		oninput: () => {
			at = 0;
			draw();
		},
		onkeydown: (e) => {
			if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
				e.preventDefault();
				at = Math.max(0, Math.min(shown.length - 1, at + (e.key === 'ArrowDown' ? 1 : -1)));
				draw();
			} else if (e.key === 'Enter') {
				e.preventDefault();
				run(shown[at]);
			}
		},
	});
	const dialog = h(
		'dialog',
		{
			class: 'palette',
			'aria-label': 'Commands',
			onclose: () => {
				dialog.remove();
				if (before && document.activeElement === document.body) before.focus();
			},
		},
		input,
		list,
	);
	/** @param {Command|undefined} c */
	const run = (c) => {
		dialog.close();
		if (c) c.act();
	};
	const draw = () => {
		const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
		shown = commands
			.filter((c) =>
				words.every((/** @type {string} */ w) => (c.name + ' ' + (c.group || '')).toLowerCase().includes(w)),
			)
			.slice(0, 60);
		fill(
			list,
			shown.map((c, i) =>
				h(
					'li',
					{
						role: 'option',
						id: 'choice' + i,
						'aria-selected': String(i === at),
						class: i === at ? 'on' : '',
						onclick: () => run(c),
					},
					h('span', null, c.group && h('span', { class: 'dim' }, c.group + ' '), c.name),
					c.keys && h('kbd', null, c.keys),
				),
			),
		);
		if (!shown.length)
			fill(list, h('li', { class: 'dim', role: 'option', 'aria-selected': 'false' }, 'Nothing is called that.'));
		input.setAttribute('aria-activedescendant', shown.length ? 'choice' + at : '');
		list.children[at]?.scrollIntoView({ block: 'nearest' });
	};
	document.body.appendChild(dialog);
	dialog.showModal();
	draw();
	input.focus();
}

/**
 * Lets the arrow keys move between the elements of a list, of which only one is in the order of tabs.
 * @param {HTMLElement} el @param {string} selector @param {{horizontal?: boolean}} [o]
 */
export function rove(el, selector, o = {}) {
	const items = () => /** @type {HTMLElement[]} */ ([...el.querySelectorAll(selector)]);
	/** @param {HTMLElement} to */
	const move = (to) => {
		for (const i of items()) i.tabIndex = i === to ? 0 : -1;
		to.focus();
	};
	el.addEventListener('keydown', (e) => {
		const list = items(),
			at = list.indexOf(/** @type {HTMLElement} */ (document.activeElement));
		if (at < 0) return;
		const step = { [o.horizontal ? 'ArrowRight' : 'ArrowDown']: 1, [o.horizontal ? 'ArrowLeft' : 'ArrowUp']: -1 }[
			e.key
		];
		const to = step ? at + step : e.key === 'Home' ? 0 : e.key === 'End' ? list.length - 1 : -1;
		if (to < 0 || to >= list.length) return;
		e.preventDefault();
		move(list[to]);
	});
}
