/* Colours: those of the classes, lighter where the page is dark; letters that stand out on them. */

function parts(colour) { return [1, 3, 5].map((at) => parseInt(colour.substr(at, 2), 16)); }

function luminance(rgb) {
	const [r, g, b] = rgb.map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 :
		Math.pow((v + 0.055) / 1.055, 2.4));
	return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function lighter(rgb, least) {
	let out = rgb;
	for (let k = 1; luminance(out) < least && k <= 20; k++)
		out = rgb.map((v) => Math.round(v + (255 - v) * k / 20));
	return out;
}

function readLook() {
	const style = getComputedStyle(document.documentElement), dark = matchMedia(
		'(prefers-color-scheme: dark)').matches;
	const look = { dark, fill: [], letters: [] };
	for (const name of ['ink', 'soft', 'paper', 'card', 'rule', 'lane', 'mark', 'accent', 'bad', 'path'])
		look[name] = style.getPropertyValue('--' + name).trim();
	for (const c of S.head.classes) {
		let rgb = parts(c.colour);
		if (dark)
			rgb = c.colour === '#000000' ? [255, 255, 255] : lighter(rgb, 0.16);
		look.fill.push('rgb(' + rgb.join(',') + ')');
		look.letters.push(luminance(rgb) > 0.22 ? '#000' : '#fff');
	}
	return look;
}
