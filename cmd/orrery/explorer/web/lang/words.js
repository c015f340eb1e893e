// Colours and completion that all languages share.

/**
 * Makes a painter from the words of a language.
 * @param {string[]} words @param {{comment?: string, calls?: boolean, insensitive?: boolean}} [o] @returns {(text: string) => [string, string][]}
 */
export function painter(words, o = {}) {
	const set = new Set(words.map((w) => (o.insensitive ? w.toLowerCase() : w)));
	const note = o.comment ? '|' + o.comment : '';
	const re = new RegExp(
		`("(?:[^"\\\\\\n]|\\\\.)*"?|'(?:[^'\\\\\\n]|\\\\.)*'?)|(\\b\\d[\\w.]*)|([A-Za-z_$][\\w$]*)(\\s*\\()?${note ? `|(${note.slice(1)})` : ''}`,
		'g',
	);
	return (text) => {
		/** @type {[string, string][]} */ const out = [];
		let at = 0;
		re.lastIndex = 0;
		for (let m; (m = re.exec(text)); ) {
			if (m.index > at) out.push(['', text.slice(at, m.index)]);
			if (m[1]) out.push(['str', m[1]]);
			else if (m[2]) out.push(['num', m[2]]);
			else if (m[3]) {
				out.push([set.has(o.insensitive ? m[3].toLowerCase() : m[3]) ? 'word' : m[4] ? 'key' : '', m[3]]);
				if (m[4]) out.push(['', m[4]]);
			} else out.push(['note', m[0]]);
			at = re.lastIndex;
		}
		if (at < text.length) out.push(['', text.slice(at)]);
		return out;
	};
}

/**
 * The word before the cursor and what may complete it.
 * @param {string} text @param {number} at @param {(before: string, typed: string) => string[]} choices gets the text before the word, and the word
 */
export function word(text, at, choices) {
	const m = /[A-Za-z_$][\w$]*$/.exec(text.slice(0, at));
	const from = m ? at - m[0].length : at;
	const list = choices(text.slice(0, from), text.slice(from, at));
	return list.length ? { from, choices: list } : null;
}
