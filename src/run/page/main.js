function title() {
	const names = S.data.runs.map((r) => r.name), n = names.length;
	return n <= 3 ? names.join(', ') : names.slice(0, 2).join(', ') + ' and ' + (n - 2) + ' more';
}

function drawRuns() {
	const n = S.data.runs.length, all = n > 2 ? [['all', true], ['none', false]].map(([text, shown]) => {
		const b = el('button', { type: 'button' }, text);
		b.addEventListener('click', () => { S.shown.fill(shown); redraw(); });
		return b;
	}) : [];

	$('runs').replaceChildren(...all, ...S.data.runs.map((r, run) => {
		const b = el('button', { type: 'button', 'aria-pressed': String(S.shown[run]), title: r.path },
			dot(run), el('span', {}, r.name));
		b.addEventListener('click', (e) => {
			if (e.altKey)
				S.shown.fill(false);
			S.shown[run] = e.altKey || !S.shown[run];
			redraw(run);
		});
		return b;
	}));
}

function redraw(run) {
	drawRuns();
	drawCharts();
	if (run !== undefined)
		$('runs').children[run + (S.data.runs.length > 2 ? 2 : 0)].focus();
}

function begin() {
	S.shown = S.data.runs.map(() => true);
	$('title').textContent = title();
	if (S.data.left_out) {
		$('note').textContent = 'More series than are shown: the rest is left out.';
		$('note').hidden = false;
	}
	$('along').addEventListener('change', (e) => { S.along = e.target.value; drawCharts(); });
	$('smooth').addEventListener('input', (e) => {
		S.by = Number(e.target.value);
		$('smoothed').textContent = S.by ? S.by.toFixed(2) : '';
		drawCharts();
	});
	$('log').addEventListener('change', (e) => { S.log = e.target.checked; drawCharts(); });
	$('band').addEventListener('change', (e) => { S.band = e.target.checked; drawCharts(); });
	$('find').addEventListener('input', (e) => { S.find = e.target.value; drawCharts(); });
	let width = innerWidth;
	addEventListener('resize', () => {
		if (innerWidth !== width)
			drawCharts();
		width = innerWidth;
	});
	matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => redraw());
	redraw();
	$('values').append(values());
	$('jobs').append(jobs());
	$('ends').append(ends());
}

begin();
