#include "run/compare.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"

enum { HD_COMPARE_METRICS = 1 << 30 };    /* bytes of metrics.ndjson */

static bool digest_of_line(struct hd_arena *arena, const char *line, size_t len, uint64_t *step,
	struct hd_hash *digest)
{
	const struct hd_json *json;
	const char *hex;

	return !hd_json_parse(arena, "line", line, len, &json, NULL) &&
		!hd_json_get_u64(json, "step", INT64_MAX, step, NULL) &&
		!hd_json_get_text(json, "digest", &hex, NULL) && hd_hash_parse(hex, digest);
}

enum hd_err hd_digests_read(struct hd_fs *fs, const char *run, struct hd_arena *arena,
	struct hd_run_digests *out, struct hd_diag *diag)
{
	char path[HD_PATH_CAP];
	struct hd_text text;
	struct hd_arena line_arena;
	uint8_t *bytes;
	size_t len, nlines = 1;

	*out = (struct hd_run_digests){ 0 };
	hd_text_fixed(&text, path, sizeof path);
	hd_text_addf(&text, "%s/metrics.ndjson", run);
	if (text.full || hd_file_read_all(fs, path, arena, HD_COMPARE_METRICS, &bytes, &len, NULL))
		return HD_OK;
	for (size_t i = 0; i < len; i++)
		nlines += bytes[i] == '\n';
	out->step = hd_arena_take(arena, nlines, sizeof *out->step);
	out->digest = hd_arena_take(arena, nlines, sizeof *out->digest);
	if (!out->step || !out->digest)
		return hd_fail(diag, HD_E_NOMEM, "no memory for the digests in %s", path);
	hd_arena_init(&line_arena, 0);
	for (size_t from = 0; from < len;) {
		const uint8_t *end = memchr(bytes + from, '\n', len - from);
		size_t line_len = end ? (size_t)(end - bytes) - from : len - from;
		uint64_t step;
		struct hd_hash digest;
		if (digest_of_line(&line_arena, (const char *)bytes + from, line_len, &step, &digest)) {
			while (out->n && out->step[out->n - 1] >= step)
				out->n--;
			out->step[out->n] = step;
			out->digest[out->n++] = digest;
		}
		hd_arena_reset(&line_arena);
		from += line_len + 1;
	}
	hd_arena_finish(&line_arena);
	return HD_OK;
}

struct hd_divergence hd_digests_diverge(const struct hd_run_digests *a, const struct hd_run_digests *b)
{
	struct hd_divergence d = { 0 };

	for (size_t i = 0, k = 0; i < a->n && k < b->n;) {
		if (a->step[i] != b->step[k]) {
			a->step[i] < b->step[k] ? i++ : k++;
			continue;
		}
		if (!hd_hash_same(a->digest[i], b->digest[k])) {
			d.known = true;
			d.step = a->step[i];
			return d;
		}
		d.after = a->step[i];
		d.compared++;
		i++;
		k++;
	}
	return d;
}

static double element(const struct hd_state_entry *e, uint64_t i)
{
	switch ((enum hd_dtype)e->dtype) {
	case HD_F32: return (double)((const float *)e->at)[i];
	case HD_F64: return ((const double *)e->at)[i];
	case HD_I32: return ((const int32_t *)e->at)[i];
	case HD_I64: return (double)((const int64_t *)e->at)[i];
	case HD_U8:  return ((const uint8_t *)e->at)[i];
	}
	return NAN;
}

bool hd_slack_allows(const struct hd_slack *slack, const struct hd_state *a, const struct hd_state *b,
	const struct hd_tensor_diff *d)
{
	if (!slack->any || d->only_a || d->only_b || d->shapes)
		return false;
	if (d->max_ulp <= slack->ulp)
		return true;
	const struct hd_state_entry *x = hd_state_find(a, d->name),
		*y = hd_state_find(b, d->name);
	size_t size = hd_dtype_bytes((enum hd_dtype)x->dtype);
	for (uint64_t i = d->first; i < d->elems; i++) {
		if (!memcmp((const char *)x->at + i * size, (const char *)y->at + i * size, size))
			continue;
		double p = element(x, i), q = element(y, i);
		if (!(fabs(p - q) <= slack->rel * fmax(fabs(p), fabs(q))))
			return false;
	}
	return true;
}
