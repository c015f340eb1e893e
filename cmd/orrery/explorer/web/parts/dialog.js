// Dialogs and notes.

import { h, button, fill } from '../dom.js';

/**
 * Opens a dialog. The content gets a function that closes it; the promise has what was given to it, or null.
 * @param {string} title @param {(done: (v?: any) => void) => any} content @param {{wide?: boolean}} [o] @returns {Promise<any>}
 */
export function dialog(title, content, o = {}) {
	return new Promise((resolve) => {
		/** @type {any} */ let result = null;
		const before = /** @type {HTMLElement|null} */ (document.activeElement);
		const el = h('dialog', {
			class: 'dialog' + (o.wide ? ' wide' : ''),
			'aria-label': title,
			onclose: () => {
				el.remove();
				if (before && before.isConnected) before.focus();
				resolve(result);
			},
		});
		const done = (/** @type {any} */ v) => {
			result = v === undefined ? null : v;
			el.close();
		};
		fill(el, h('h2', null, title), content(done));
		document.body.appendChild(el);
		el.showModal();
		const first = el.querySelector('[autofocus], input, textarea, select');
		if (first) /** @type {HTMLElement} */ (first).focus();
	});
}

/**
 * Asks before something is destroyed. With a word the user has to type it.
 * @param {string} title @param {string} text @param {string} act @param {string} [word] @returns {Promise<boolean>}
 */
export async function confirm(title, text, act, word) {
	return !!(await dialog(title, (done) => {
		const go = button(act, () => done(true), { class: 'danger', disabled: !!word });
		const input =
			word &&
			h('input', {
				type: 'text',
				class: 'wide',
				autocomplete: 'off',
				spellcheck: 'false',
				'aria-label': 'Type ' + word,
				oninput: () => {
					go.disabled = input.value !== word;
				},
			});
		return h(
			'form',
			{
				onsubmit: (e) => {
					e.preventDefault();
					if (!go.disabled) done(true);
				},
			},
			h('p', null, text),
			word &&
				h(
					'label',
					{ class: 'field' },
					h('span', null, 'Type ', h('b', { class: 'mono' }, word), ' to confirm'),
					input,
				),
			h(
				'div',
				{ class: 'buttons' },
				button('Cancel', () => done(), {}),
				go,
			),
		);
	}));
}

let area = /** @type {HTMLElement|null} */ (null);

/**
 * Shows a note for a while; an error stays until it is closed.
 * @param {string|Error} what @param {'ok'|'bad'|''} [kind] @param {HTMLElement} [act] what may be done about it
 */
export function note(what, kind = '', act) {
	if (/** @type {any} */ (what).code === 'Cancelled') what = 'Cancelled.';
	if (!area) {
		area = h('div', { class: 'notes', role: 'status', 'aria-live': 'polite' });
		document.body.appendChild(/** @type {HTMLElement} */ (area));
	}
	const bad = what instanceof Error || kind === 'bad';
	const el = h(
		'div',
		{ class: 'note ' + (bad ? 'bad' : kind) },
		what instanceof Error ? problem(what) : what,
		act,
		button('Close', () => el.remove(), { icon: 'close', only: true, class: 'quiet' }),
	);
	const holder = document.querySelector('dialog[open]');
	(holder || /** @type {HTMLElement} */ (area)).appendChild(el);
	if (!bad) setTimeout(() => el.remove(), 4000);
	return el;
}

/** An error in words: the sentence, its code, the next step. @param {any} e */
export function problem(e) {
	return h(
		'div',
		{ class: 'problem' },
		h('p', null, e.message),
		e.next && h('p', { class: 'dim' }, e.next),
		e.code && h('p', { class: 'dim mono code' }, (e.status ? e.status + ' ' : '') + e.code),
	);
}

/** Copies a text. @param {string} text */
export async function copy(text) {
	try {
		await navigator.clipboard.writeText(text);
		note('Copied.', 'ok');
	} catch {
		await dialog('Copy', () =>
			h(
				'div',
				null,
				h('p', null, 'The browser allows no copying here: select the text.'),
				h('textarea', { class: 'code wide', rows: 8, readOnly: true, value: text, autofocus: true }),
			),
		);
	}
}
