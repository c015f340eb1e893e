// The details of a row, a vertex or a request at the side.

import { h, fill, button } from '../dom.js';
import { offer } from '../keys.js';

/**
 * Shows something at the side, until Esc or the button closes it. back puts the focus where it was.
 * @param {HTMLElement} side @param {string} title @param {any} content @param {() => any} back @param {any[]} [actions]
 * @returns {() => void} closes it
 */
export function inspect(side, title, content, back, actions) {
	const close = () => {
		side.hidden = true;
		fill(side);
		takeBack();
		back();
	};
	const takeBack = offer('inspector', () =>
		side.hidden ? [] : [{ name: 'Close the details', keys: 'Escape', act: close }],
	);
	side.onkeydown = null;
	fill(
		side,
		h(
			'div',
			{ class: 'ihead' },
			h('h2', { class: 'mono' }, title),
			button('Close', close, { icon: 'close', only: true, class: 'quiet', title: 'Close (Esc)' }),
			actions && h('div', { class: 'second' }, actions),
		),
		content,
	);
	side.hidden = false;
	return close;
}
