/* An exponential mean with its bias taken away: what the first values weigh too little is put back, as
 * TensorBoard does. `by` 0: the values themselves. A value that is none leaves the mean as it is. */
function smoothed(values, by) {
	let sum = 0, weight = 0;

	return values.map((v) => {
		if (!isNumber(v))
			return v;
		sum = by * sum + (1 - by) * v;
		weight = by * weight + (1 - by);
		return sum / weight;
	});
}
