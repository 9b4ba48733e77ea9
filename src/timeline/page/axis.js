/* Marks of the axis of time. */

function tickStep(span, most) {
	const base = Math.pow(10, Math.floor(Math.log10(span / most)));
	return [1, 2, 5, 10].map((f) => f * base).find((s) => span / s <= most) || 10 * base;
}

/* One unit for the whole axis, as many digits as tell neighbours apart. */
function tickText(v, step, most) {
	const unit = UNITS.find((u) => most >= u[0]) || UNITS[3];
	const digits = Math.max(0, Math.ceil(-Math.log10(step / unit[0]) - 1e-9));
	return (v / unit[0]).toFixed(Math.min(digits, 9)) + ' ' + unit[1];
}

function ticks(a, b, width) {
	const room = 110, step = tickStep(b - a, Math.max(2, width / room)), out = [];
	const most = Math.max(Math.abs(a), Math.abs(b));
	for (let k = Math.ceil(a / step); k * step <= b; k++)
		out.push({ at: k * step, text: tickText(k * step, step, most) });
	return out;
}
