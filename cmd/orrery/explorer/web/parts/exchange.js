// Both sides of a request, and the request as a command for the shell.

import { h, button, ms } from '../dom.js';
import { format } from '../json.js';
import { dialog, copy } from './dialog.js';

/** @param {string} text */
export function pretty(text) {
	try {
		return format(text);
	} catch {
		return text;
	}
}

/** The request as curl sends it to the page's bridge, with a place for the session. @param {Logged} l */
function curl(l) {
	const q = (/** @type {string} */ s) => "'" + s.replaceAll("'", "'\\''") + "'";
	const headers = Object.entries(l.headers)
		.map(([k, v]) => ' \\\n  -H ' + q(k + ': ' + v))
		.join('');
	return `# the session of the page: its cookie and token\ncurl -X ${l.method} ${q(new URL('api/' + l.door + l.path, location.href).href)} \\\n  -H "cookie: $ORRERY_COOKIE" -H "x-orrery-token: $ORRERY_TOKEN"${l.body ? " \\\n  -H 'content-type: application/json'" : ''}${headers}${l.body ? ' \\\n  -d ' + q(l.body) : ''}`;
}

/** @param {Logged} l */
export function show(l) {
	return dialog(
		`${l.method} ${l.path}`.slice(0, 90),
		(done) =>
			h(
				'div',
				null,
				h(
					'p',
					null,
					h('span', { class: 'tag ' + (l.error ? 'bad' : 'ok') }, l.status || '–'),
					' ',
					l.door,
					' · ',
					l.charge ? l.charge + ' RU · ' : '',
					ms(l.ms),
				),
				l.error && h('p', { class: 'bad' }, l.error),
				h(
					'div',
					{ class: 'diff' },
					h(
						'div',
						null,
						h('h3', null, 'Request'),
						h(
							'pre',
							{ class: 'code', tabindex: '0', 'aria-label': 'Request' },
							`${l.method} ${l.path}\n` +
								Object.entries(l.headers)
									.map(([k, v]) => `${k}: ${v}\n`)
									.join('') +
								(l.body ? '\n' + pretty(l.body) : ''),
						),
					),
					h(
						'div',
						null,
						h('h3', null, 'Reply'),
						h(
							'pre',
							{ class: 'code', tabindex: '0', 'aria-label': 'Reply' },
							`${l.status}\n` +
								l.replyHeaders.map(([k, v]) => `${k}: ${v}\n`).join('') +
								(l.reply ? '\n' + pretty(l.reply) : ''),
						),
					),
				),
				h(
					'div',
					{ class: 'buttons' },
					button('Copy as curl', () => copy(curl(l)), { icon: 'copy' }),
					button('Close', () => done(), { class: 'primary' }),
				),
			),
		{ wide: true },
	);
}
