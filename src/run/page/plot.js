/* Axes of a chart: a range, where its marks lie, and which pixel a value has. */
const PLOT = { height: 240, left: 54, right: 10, top: 8, bottom: 22 };

function ticks(low, high, n) {
	const rough = (high - low) / n || 1, ten = 10 ** Math.floor(Math.log10(rough));
	const by = [1, 2, 5, 10].map((k) => k * ten).find((k) => k >= rough) || ten, all = [];

	for (let v = Math.ceil(low / by) * by; v <= high + by * 1e-9 && all.length < 20; v += by)
		all.push(Math.abs(v) < by * 1e-9 ? 0 : v);
	return all;
}

function logTicks(low, high) {
	const all = [];

	for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++)
		for (const k of high / low > 1000 ? [1] : [1, 2, 5])
			if (k * 10 ** e >= low * 0.999 && k * 10 ** e <= high * 1.001)
				all.push(k * 10 ** e);
	return all.length > 9 ? all.filter((_, i) => i % Math.ceil(all.length / 8) === 0) : all;
}

function rangeOf(values) {
	let low = Infinity, high = -Infinity;

	for (const v of values) {
		low = Math.min(low, v);
		high = Math.max(high, v);
	}
	return low <= high ? [low, high] : null;
}

/* { marks, at(v) in 0..1, of(share) } */
function axis(range, log) {
	let [low, high] = range;

	if (low === high) {
		low -= Math.abs(low) / 2 || 0.5;
		high += Math.abs(high) / 2 || 0.5;
	}
	if (log) {
		low = Math.max(low, 1e-300);
		const a = Math.log10(low), b = Math.log10(high);
		return { marks: logTicks(low, high), at: (v) => (Math.log10(v) - a) / (b - a || 1),
			of: (share) => 10 ** (a + share * (b - a)) };
	}
	return { marks: ticks(low, high, 5), at: (v) => (v - low) / (high - low), of: (share) => low + share *
		(high - low) };
}
