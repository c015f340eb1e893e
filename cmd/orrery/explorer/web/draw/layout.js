// The layout of a graph, in a worker: springs along edges, repulsion between vertices, by cells so that far ones cost
// nothing. Gets {n, edges: Int32Array of pairs, x, y: Float32Array, fixed: Uint8Array}; answers with x and y until it is
// at rest. Another message replaces the graph.

/** @type {any} */ let g = null;
let heat = 0,
	timer = 0;

self.onmessage = (/** @type {MessageEvent} */ e) => {
	g = e.data;
	heat = g.heat || 1;
	clearTimeout(timer);
	run();
};

function run() {
	const until = performance.now() + 14;
	while (performance.now() < until && heat > 0.004) step();
	const x = g.x.slice(),
		y = g.y.slice();
	/** @type {any} */ (self).postMessage({ x, y, done: heat <= 0.004, round: g.round }, [x.buffer, y.buffer]);
	if (heat > 0.004) timer = /** @type {any} */ (setTimeout(run, 16));
}

const spring = 90,
	cell = 220;

function step() {
	const { n, edges, x, y, fixed } = g;
	const fx = new Float32Array(n),
		fy = new Float32Array(n);
	/** @type {Map<number, number[]>} */ const cells = new Map();
	const at = (/** @type {number} */ i) => (Math.floor(x[i] / cell) + 32768) * 65536 + Math.floor(y[i] / cell) + 32768;
	for (let i = 0; i < n; i++) {
		const c = at(i),
			l = cells.get(c);
		if (l) l.push(i);
		else cells.set(c, [i]);
	}
	for (let i = 0; i < n; i++) {
		const c = at(i);
		for (let a = -1; a <= 1; a++)
			for (let b = -1; b <= 1; b++) {
				const l = cells.get(c + a * 65536 + b);
				if (l)
					for (const k of l) {
						if (k === i) continue;
						let dx = x[i] - x[k],
							dy = y[i] - y[k],
							d = dx * dx + dy * dy;
						if (d < 1) {
							dx = ((i - k) % 7) - 3.1;
							dy = ((i + k) % 5) - 2.1;
							d = dx * dx + dy * dy;
						}
						const f = 5200 / d / Math.sqrt(d);
						fx[i] += dx * f;
						fy[i] += dy * f;
					}
			}
		fx[i] -= x[i] * 0.008;
		fy[i] -= y[i] * 0.008;
	}
	for (let e = 0; e < edges.length; e += 2) {
		const a = edges[e],
			b = edges[e + 1];
		if (a === b) continue;
		const dx = x[b] - x[a],
			dy = y[b] - y[a],
			d = Math.sqrt(dx * dx + dy * dy) || 1,
			f = (0.06 * (d - spring)) / d;
		fx[a] += dx * f;
		fy[a] += dy * f;
		fx[b] -= dx * f;
		fy[b] -= dy * f;
	}
	const most = 40 * heat;
	for (let i = 0; i < n; i++) {
		if (fixed[i]) continue;
		const d = Math.sqrt(fx[i] * fx[i] + fy[i] * fy[i]) || 1,
			m = Math.min(d, most) / d;
		x[i] += fx[i] * m;
		y[i] += fy[i] * m;
	}
	heat *= 0.985;
}
