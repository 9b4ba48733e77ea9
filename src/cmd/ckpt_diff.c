#include "cmd/ckpt_diff.h"

#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/json_writer.h"
#include "base/num.h"

enum { METRICS_BYTES = 1 << 30 };

struct side { const char *path; struct hd_state state; struct hd_ckpt_info info; };

/* Digests by step; a step recorded again replaces what it recorded before. */
struct digests { uint64_t *step; struct hd_hash *digest; size_t n; };

/* What cannot be read is exit 3, whatever was wrong with it: 5 is kept for "both read, and they differ". */
static enum hd_err open_side(struct hd_cmd *cmd, const char *path, struct side *side)
{
	side->path = path;
	return hd_ckpt_open(cmd, path, &side->state, &side->info) ? HD_E_INPUT : HD_OK;
}

static bool digest_of_line(struct hd_arena *arena, const char *line, size_t len, uint64_t *step,
	struct hd_hash *digest)
{
	const struct hd_json *json;
	const char *hex;

	return !hd_json_parse(arena, "line", line, len, &json, NULL) &&
		!hd_json_get_u64(json, "step", INT64_MAX, step, NULL) &&
		!hd_json_get_text(json, "digest", &hex, NULL) && hd_hash_parse(hex, digest);
}

/* A checkpoint folder has no metrics: then there are none. */
static enum hd_err read_digests(struct hd_cmd *cmd, const char *run, struct digests *out)
{
	char path[HD_PATH_CAP];
	struct hd_text text;
	struct hd_arena line_arena;
	uint8_t *bytes;
	size_t len, nlines = 1;

	*out = (struct digests){ 0 };
	hd_text_fixed(&text, path, sizeof path);
	hd_text_addf(&text, "%s/metrics.ndjson", run);
	if (text.full || hd_file_read_all(&cmd->fs, path, &cmd->arena, METRICS_BYTES, &bytes, &len, NULL))
		return HD_OK;
	for (size_t i = 0; i < len; i++)
		nlines += bytes[i] == '\n';
	out->step = hd_arena_take(&cmd->arena, nlines, sizeof *out->step);
	out->digest = hd_arena_take(&cmd->arena, nlines, sizeof *out->digest);
	if (!out->step || !out->digest)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory for the digests in %s", path);
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

struct divergence { bool known; uint64_t step, after, compared; };

static struct divergence first_divergence(const struct digests *a, const struct digests *b)
{
	struct divergence d = { 0 };

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

/* --ulp and --rel turn "same bits" into "near enough", for each tensor by its greatest distance. */
struct slack { uint64_t ulp; double rel; bool any; };

static enum hd_err read_slack(struct hd_cmd *cmd, struct slack *slack)
{
	*slack = (struct slack){ .any = cmd->args.has[HD_OPT_ULP] || cmd->args.has[HD_OPT_REL] };
	if (cmd->args.has[HD_OPT_ULP])
		slack->ulp = cmd->args.count[HD_OPT_ULP];
	return cmd->args.has[HD_OPT_REL] ? hd_num_f64(cmd->args.text[HD_OPT_REL], 0, 1, &slack->rel,
		&cmd->diag) : HD_OK;
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

static bool near_enough(const struct slack *slack, const struct side *a, const struct side *b,
	const struct hd_tensor_diff *d)
{
	if (!slack->any || d->only_a || d->only_b || d->shapes)
		return false;
	if (d->max_ulp <= slack->ulp)
		return true;
	const struct hd_state_entry *x = hd_state_find(&a->state, d->name),
		*y = hd_state_find(&b->state, d->name);
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

static void print_tensor(const struct hd_tensor_diff *d, bool near)
{
	if (d->only_a || d->only_b)
		printf("%-40s only in %s\n", d->name, d->only_a ? "A" : "B");
	else if (d->shapes)
		printf("%-40s another type or shape\n", d->name);
	else
		printf("%-40s %llu of %llu differ, max abs %.4g, max ulp %llu, first at %llu%s\n", d->name,
			(unsigned long long)d->differing,
			(unsigned long long)d->elems, d->max_abs, (unsigned long long)d->max_ulp,
			(unsigned long long)d->first,
			near ? "  (near enough)" : "");
}

static void put_tensor(struct hd_json_writer *w, const struct hd_tensor_diff *d, bool near)
{
	hd_json_open_object(w, NULL);
	hd_json_put_text(w, "name", d->name);
	hd_json_put_text(w, "in", d->only_a ? "A" : d->only_b ? "B" : "both");
	hd_json_put_bool(w, "shapes_differ", d->shapes);
	hd_json_put_u64(w, "elements", d->elems);
	hd_json_put_u64(w, "differing", d->differing);
	hd_json_put_f64(w, "max_abs", d->max_abs);
	hd_json_put_u64(w, "max_ulp", d->max_ulp);
	hd_json_put_u64(w, "first", d->first);
	hd_json_put_bool(w, "near", near);
	hd_json_close(w);
}

/* Facts about the two that explain a difference, before the difference. */
static void print_context(const struct side *a, const struct side *b)
{
	const struct { const char *what; bool same; } facts[] = {
		{ "job hash", hd_hash_same(a->info.job_hash, b->info.job_hash) },
		{ "data", hd_hash_same(a->info.data_hash, b->info.data_hash) && a->info.data_count == b->info.data_count },
		{ "kernels", hd_hash_same(a->info.fingerprint, b->info.fingerprint) },
		{ "lineage", a->info.lineage == b->info.lineage },
		{ "step", a->info.step == b->info.step },
	};

	printf("A  %s  step %llu\nB  %s  step %llu\n", a->info.folder, (unsigned long long)a->info.step,
		b->info.folder, (unsigned long long)b->info.step);
	for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
		if (!facts[i].same)
			printf("the %s differs\n", facts[i].what);
}

static void print_divergence(const struct divergence *d)
{
	if (d->known && d->compared)
		printf("first divergent step: %llu (of those with digests; step %llu still agrees)\n",
			(unsigned long long)d->step,
			(unsigned long long)d->after);
	else if (d->known)
		printf("first divergent step: %llu (of those with digests; no earlier one is in both)\n",
			(unsigned long long)d->step);
	else if (d->compared)
		printf("digest logs agree in %llu steps, to step %llu\n", (unsigned long long)d->compared,
			(unsigned long long)d->after);
}

static void print_json(struct hd_cmd *cmd, const struct side *a, const struct side *b,
	const struct hd_tensor_diff *diff, const bool *near,
	uint32_t ndiffering, uint32_t ntotal, const struct divergence *d, bool same)
{
	struct hd_json_writer w;
	struct hd_text text;

	hd_text_init(&text, &cmd->arena);
	hd_json_writer_init(&w, &text);
	hd_json_open_object(&w, NULL);
	hd_json_put_bool(&w, "identical", same && !ndiffering);
	hd_json_put_bool(&w, "accepted", same);
	hd_json_put_text(&w, "a", a->info.folder);
	hd_json_put_text(&w, "b", b->info.folder);
	hd_json_put_bool(&w, "same_job", hd_hash_same(a->info.job_hash, b->info.job_hash));
	hd_json_put_i64(&w, "step_a", (int64_t)a->info.step);
	hd_json_put_i64(&w, "step_b", (int64_t)b->info.step);
	hd_json_put_i64(&w, "tensors", ntotal);
	hd_json_put_i64(&w, "digests_agree", (int64_t)d->compared);
	if (d->known)
		hd_json_put_i64(&w, "first_divergent_step", (int64_t)d->step);
	else
		hd_json_put_null(&w, "first_divergent_step");
	hd_json_open_array(&w, "differing");
	for (uint32_t i = 0; i < ndiffering; i++)
		put_tensor(&w, &diff[i], near[i]);
	hd_json_close(&w);
	hd_json_close(&w);
	printf("%s\n", text.at);
}

enum hd_err hd_cmd_ckpt_diff(struct hd_cmd *cmd)
{
	struct side a, b;
	struct digests log_a, log_b;
	struct hd_tensor_diff *diff;
	struct slack slack;
	uint32_t ndiffering, ntotal, far = 0;
	enum hd_err err = read_slack(cmd, &slack);

	if (!err)
		err = open_side(cmd, cmd->args.pos[0], &a);
	if (!err)
		err = open_side(cmd, cmd->args.pos[1], &b);
	if (!err)
		err = hd_state_diff(&a.state, &b.state, &cmd->arena, &diff, &ndiffering, &ntotal, &cmd->diag);
	if (!err)
		err = read_digests(cmd, a.path, &log_a);
	if (!err)
		err = read_digests(cmd, b.path, &log_b);
	if (err)
		return err;
	bool *near = hd_arena_take(&cmd->arena, (size_t)ndiffering + 1, sizeof *near);
	if (!near)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory to compare %u tensors", ndiffering);
	for (uint32_t i = 0; i < ndiffering; i++)
		far += !(near[i] = near_enough(&slack, &a, &b, &diff[i]));
	struct divergence d = first_divergence(&log_a, &log_b);
	bool same = far == 0;
	if (cmd->args.has[HD_OPT_JSON]) {
		print_json(cmd, &a, &b, diff, near, ndiffering, ntotal, &d, same);
	} else {
		print_context(&a, &b);
		for (uint32_t i = 0; i < ndiffering; i++)
			print_tensor(&diff[i], near[i]);
		print_divergence(&d);
		printf("%s: %u of %u tensors equal\n", !ndiffering ? "IDENTICAL" : same ? "NEAR ENOUGH" :
			"DIFFERENT", ntotal - ndiffering, ntotal);
	}
	return same ? HD_OK : hd_fail(&cmd->diag, HD_E_INTEGRITY, "%s and %s differ in %u of %u tensors",
		a.path, b.path, far, ntotal);
}
