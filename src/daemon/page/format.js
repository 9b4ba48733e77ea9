/* Numbers as people read them. What is not finite comes as a text and stays one. */
const isNumber = (v) => typeof v === 'number' && isFinite(v);

function short(v, digits = 3) {
	if (!isNumber(v))
		return String(v);
	const size = Math.abs(v);
	if (size >= 1e6 || (size < 1e-3 && size > 0))
		return v.toExponential(digits - 1);
	return String(Number(v.toPrecision(Math.max(digits, size >= 1 ? Math.ceil(Math.log10(size + 1)) : digits))));
}

function duration(s) {
	if (!isNumber(s) || s < 0)
		return '';
	if (s < 60)
		return (s < 10 ? s.toFixed(1) : Math.round(s)) + ' s';
	if (s < 3600)
		return Math.floor(s / 60) + ' min ' + Math.floor(s % 60) + ' s';
	if (s < 172800)
		return Math.floor(s / 3600) + ' h ' + Math.floor(s % 3600 / 60) + ' min';
	return Math.floor(s / 86400) + ' d ' + Math.floor(s % 86400 / 3600) + ' h';
}

const dollars = (usd) => '$' + (usd >= 100 ? usd.toFixed(0) : usd >= 1 ? usd.toFixed(2) : usd.toFixed(4));
const hours = (ms) => short(ms / 3.6e6) + ' h';
const compact = (n) => (n < 1e5 ? String(n) : n < 1e7 ? short(n / 1e3) + 'k' : n < 1e10 ? short(n / 1e6) + 'M' :
	short(n / 1e9) + 'G');
const steps = (j) => (j.steps ? compact(j.step) + ' / ' + compact(j.steps) : compact(j.step));
const plural = (n, word) => n + ' ' + word + (n === 1 ? '' : 's');
