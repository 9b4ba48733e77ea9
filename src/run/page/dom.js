/* Elements, and nothing else: what is shown is always a text node, so no name of a run, a series or a key is
 * markup. Colours are set as a property: the page's policy knows no style in an element. */
const $ = (id) => document.getElementById(id);

function el(tag, attributes, ...children) {
	const e = tag.startsWith('svg:') ? document.createElementNS('http://www.w3.org/2000/svg', tag.slice(4)) :
		document.createElement(tag);
	for (const [key, value] of Object.entries(attributes || {}))
		if (key === 'colour')
			e.style.setProperty('--c', value);
		else if (key === 'stroke' || key === 'fill')
			e.style.setProperty(key, value);
		else if (value !== null && value !== undefined && value !== false)
			e.setAttribute(key, value === true ? '' : String(value));
	for (const child of children.flat(3))
		if (child !== null && child !== undefined && child !== false)
			e.append(child instanceof Node ? child : document.createTextNode(String(child)));
	return e;
}

const isNumber = (v) => typeof v === 'number' && isFinite(v);

function short(v, digits = 4) {
	if (!isNumber(v))
		return v === null || v === undefined ? '' : String(v);
	const size = Math.abs(v);
	if (size >= 1e7 || (size < 1e-3 && size > 0))
		return v.toExponential(digits - 2);
	return String(Number(v.toPrecision(Math.max(digits, size >= 1 ? Math.ceil(Math.log10(size + 1)) : digits))));
}

function duration(s) {
	if (s < 60)
		return short(s, 3) + ' s';
	if (s < 3600)
		return Math.floor(s / 60) + ' min ' + Math.floor(s % 60) + ' s';
	return Math.floor(s / 3600) + ' h ' + Math.floor(s % 3600 / 60) + ' min';
}

/* Twelve colours that stay apart, then the same with other brightness; on dark paper lighter. */
function colourOf(i, n) {
	const dark = matchMedia('(prefers-color-scheme: dark)').matches, hue = [212, 28, 140, 280, 0, 186, 330, 55, 250, 100,
		16, 165][i % 12];
	const turn = Math.floor(i / 12) % 3;
	return 'hsl(' + hue + ' ' + (n > 12 && turn ? 55 : 75) + '% ' + ((dark ? 66 : 42) + [0, 12, -12][turn]) + '%)';
}
