// An editor for text: a textarea, and behind it the same text with colours. What is in the textarea is what is saved.

import { h, fill } from '../dom.js';
import { colours } from '../json.js';

const mostPainted = 200000; // characters: longer texts have no colours, and stay as fast

/**
 * @param {{value?: string, label: string, readOnly?: boolean, paint?: (text: string) => [string, string][], change?: (text: string) => any,
 *   complete?: (text: string, at: number) => {from: number, choices: string[]}|null}} o
 */
export function editor(o) {
	const paint = o.paint || colours;
	const area = h('textarea', {
		spellcheck: 'false',
		autocomplete: 'off',
		autocapitalize: 'off',
		wrap: 'off',
		'aria-label': o.label,
		readOnly: !!o.readOnly,
		value: o.value || '',
	});
	const back = h('pre', { 'aria-hidden': 'true' });
	const el = h('div', { class: 'editor' }, back, area);
	let frame = 0;
	/** @type {HTMLElement|null} */ let menu = null;

	function draw() {
		frame = 0;
		const text = area.value,
			painted = text.length <= mostPainted;
		el.classList.toggle('painted', painted);
		fill(
			back,
			painted ? paint(text).map(([kind, t]) => (kind ? h('span', { class: 't-' + kind }, t) : t)) : '',
			'\n',
		);
		follow();
	}
	function follow() {
		back.style.transform = `translate(${-area.scrollLeft}px,${-area.scrollTop}px)`;
	}
	function changed() {
		if (!frame) frame = requestAnimationFrame(draw);
		o.change?.(area.value);
		suggest();
	}
	area.addEventListener('input', changed);
	area.addEventListener('scroll', follow, { passive: true });
	area.addEventListener('blur', () => hide());
	area.addEventListener('keydown', (/** @type {KeyboardEvent} */ e) => {
		if (menu && (e.key === 'ArrowDown' || e.key === 'ArrowUp')) {
			e.preventDefault();
			step(e.key === 'ArrowDown' ? 1 : -1);
			return;
		}
		if (menu && (e.key === 'Enter' || e.key === 'Tab') && !e.ctrlKey && !e.metaKey) {
			e.preventDefault();
			take();
			return;
		}
		if (menu && e.key === 'Escape') {
			e.preventDefault();
			e.stopPropagation();
			hide();
			return;
		}
		if (e.key === ' ' && e.ctrlKey) {
			e.preventDefault();
			suggest(true);
			return;
		}
		if (e.key === 'Enter' && !e.ctrlKey && !e.metaKey && !area.readOnly) {
			const before = area.value.slice(0, area.selectionStart),
				indent = /(^|\n)([ \t]*)[^\n]*$/.exec(before)?.[2] || '';
			e.preventDefault();
			insert('\n' + indent + (/[{[(]\s*$/.test(before) ? '  ' : ''));
		}
	});
	/** @param {string} text */
	function insert(text) {
		if (!document.execCommand('insertText', false, text)) {
			area.setRangeText(text, area.selectionStart, area.selectionEnd, 'end');
			changed();
		}
	}

	/** @type {string[]} */ let choices = [];
	let from = 0,
		at = 0;
	/** @param {boolean} [asked] */
	function suggest(asked) {
		if (!o.complete) return;
		const got = area.selectionStart === area.selectionEnd ? o.complete(area.value, area.selectionStart) : null;
		const typed = got ? area.value.slice(got.from, area.selectionStart) : '';
		if (!got || (!asked && !typed && area.value[got.from - 1] !== '.')) {
			hide();
			return;
		}
		const low = typed.toLowerCase();
		choices = got.choices.filter((c) => c.toLowerCase().startsWith(low) && c !== typed).slice(0, 12);
		if (!choices.length) {
			hide();
			return;
		}
		from = got.from;
		at = 0;
		show();
	}
	function show() {
		hide();
		const before = area.value.slice(0, from).split('\n'),
			y = before.length * 18.6 + 12 - area.scrollTop,
			x = (before.pop() || '').length * 7.22 + 12 - area.scrollLeft;
		menu = h(
			'ul',
			{ class: 'suggest', role: 'listbox', 'aria-label': 'Names' },
			choices.map((c, i) =>
				h(
					'li',
					{
						role: 'option',
						'aria-selected': String(i === at),
						class: i === at ? 'on' : '',
						onmousedown: (e) => {
							e.preventDefault();
							at = i;
							take();
						},
					},
					c,
				),
			),
		);
		menu?.style.setProperty('left', Math.max(4, x) + 'px');
		menu?.style.setProperty('top', y + 'px');
		el.appendChild(/** @type {HTMLElement} */ (menu));
	}
	function hide() {
		menu?.remove();
		menu = null;
	}
	/** @param {number} by */
	function step(by) {
		at = (at + by + choices.length) % choices.length;
		show();
	}
	function take() {
		const c = choices[at];
		hide();
		area.setSelectionRange(from, area.selectionStart);
		insert(c);
		hide();
	}

	draw();
	return {
		el,
		area,
		get value() {
			return area.value;
		},
		set value(v) {
			area.value = v;
			area.scrollTop = 0;
			draw();
		},
		get selected() {
			return area.value.slice(area.selectionStart, area.selectionEnd);
		},
		/** Moves to a place and shows it. @param {number} where */
		goTo(where) {
			area.focus();
			area.setSelectionRange(where, where + 1);
		},
		draw,
		/** Closes the list of names. */
		hide,
	};
}
