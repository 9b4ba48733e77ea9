/* What the runs came to, in what their jobs differ, and how they ended. */
function table(heads, rows) {
	return el('table', {}, el('thead', {}, el('tr', {}, heads.map((h) => el('th', { scope: 'col' }, h)))),
		el('tbody', {}, rows));
}

function dot(run) { return el('i', { class: 'dot', colour: colourOf(run, S.data.runs.length) }); }

/* A run a row; of each series that varies the last value, and the extremes with their steps. */
function values() {
	const names = S.data.series.filter((name) => S.data.runs.some((r) => r.values.some((v) => v.series === name && v.n &&
		(v.least !== v.greatest || v.not_finite))));

	return table(['run', ...names], S.data.runs.map((r, run) => el('tr', {}, el('th', { scope: 'row' }, dot(run), ' ',
		r.name), names.map((name) => {
		const v = r.values.find((w) => w.series === name);
		if (!v)
			return el('td', {}, '');
		return el('td', { class: 'value' }, v.n ? short(v.last, 6) : 'none', v.n ? el('small', {}, el('br'), 'least ' +
			short(v.least) + ' at ' + v.least_step, el('br'), 'most ' + short(v.greatest) + ' at ' +
			v.greatest_step) : null, v.not_finite ? el('small', {}, el('br'), v.not_finite + ' not finite') : null);
	}))));
}

/* A key a row; what is not as in the first run stands out. */
function jobs() {
	const rows = S.data.differences;

	if (!rows.length)
		return el('p', { class: 'soft' }, S.data.runs.length > 1 ? 'All jobs are alike.' : 'There is one run.');
	return table(['key', ...S.data.runs.map((r) => r.name)], rows.map((d) => el('tr', {}, el('th', { scope: 'row' },
		d.key), d.values.map((v) => el('td', { class: v !== d.values[0] ? 'odd' : null }, v === null ? 'not there' :
		v)))));
}

function bits(run, r) {
	if (!run)
		return '';
	if (r.digests.differ_at !== undefined)
		return 'differ from step ' + r.digests.differ_at + (r.digests.alike ? ', alike until ' + r.digests.alike_until :
			'');
	return r.digests.alike ? 'alike until step ' + r.digests.alike_until : 'no digests in common';
}

function ends() {
	return table(['run', 'state', 'steps', 'samples', 'time', 'bits beside the first', 'folder'], S.data.runs.map(
		(r, run) => el('tr', {}, el('th', { scope: 'row' }, dot(run), ' ', r.name), el('td', {}, r.state, r.why &&
			el('small', {}, ' ' + r.why)), el('td', {}, r.steps ? r.step + ' of ' + r.steps : r.step),
		el('td', {}, r.samples), el('td', {}, duration(r.seconds)), el('td', {}, bits(run, r)), el('td', {}, r.path,
			r.unreadable_lines ? el('small', {}, ' ' + r.unreadable_lines + ' lines cannot be read') : null))));
}
