#include "cmd/ckpt/diff.h"

#include "base/json_writer.h"
#include "base/num.h"
#include "run/compare.h"
#include "run/value_log.h"

struct side { const char *path; struct hd_state state; struct hd_ckpt_info info; };

/* What cannot be read is exit 3, whatever was wrong with it: 5 is kept for "both read, and they differ". */
static enum hd_err open_side(struct hd_cmd *cmd, const char *path, struct side *side)
{
	side->path = path;
	return hd_ckpt_open(cmd, path, &side->state, &side->info) ? HD_E_INPUT : HD_OK;
}

/* --ulp and --rel turn "same bits" into "near enough". */
static enum hd_err read_slack(struct hd_cmd *cmd, struct hd_slack *slack)
{
	*slack = (struct hd_slack){ .any = cmd->args.has[HD_OPT_ULP] || cmd->args.has[HD_OPT_REL] };
	if (cmd->args.has[HD_OPT_ULP])
		slack->ulp = cmd->args.count[HD_OPT_ULP];
	return cmd->args.has[HD_OPT_REL] ? hd_num_f64(cmd->args.text[HD_OPT_REL], 0, 1, &slack->rel,
		&cmd->diag) : HD_OK;
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

static void print_divergence(const struct hd_divergence *d)
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

static void print_place(const char *of, const struct hd_value_place *p)
{
	printf("  %s: worker %u, device %u, stage %u\n", of, p->worker, p->rank, p->stage);
}

static void print_found(const struct hd_value_difference *d)
{
	if (!d->found && !d->compared) {
		printf("values: none is in both records\n");
		return;
	}
	if (!d->found) {
		printf("values agree: %llu digests of %llu steps\n", (unsigned long long)d->compared,
			(unsigned long long)d->steps);
		return;
	}
	printf("first difference of values: step %llu, ", (unsigned long long)d->step);
	if (d->vn == HD_NONE)
		printf("%s of the state after it (the sum over virtual nodes, or the update)\n", d->what);
	else
		printf("virtual node %u, op %s\n", d->vn, d->what);
	print_place(d->within ? d->within : "A", &d->a);
	print_place(d->within ? d->within : "B", &d->b);
	if (d->within)
		printf("  %s alone differs: it was computed twice there, and not alike\n", d->within);
	if (d->vn != HD_NONE)
		printf("  %u virtual nodes of the step differ; %llu digests of %llu steps agree before it\n",
			d->nvns, (unsigned long long)d->compared, (unsigned long long)d->steps);
}

/* Of A, of B; nothing if there is none. */
static void print_pair(const char *what, const uint64_t n[2])
{
	if (n[0] || n[1])
		printf("  %s: %llu of A, %llu of B\n", what, (unsigned long long)n[0],
			(unsigned long long)n[1]);
}

static void print_values(const struct hd_value_difference *d)
{
	print_found(d);
	print_pair("digests that one run alone has, compared with nothing", d->alone);
	print_pair("torn lines, left out", d->torn);
}

static void put_pair(struct hd_json_writer *w, const char *key, const uint64_t n[2])
{
	hd_json_open_array(w, key);
	hd_json_put_i64(w, NULL, (int64_t)n[0]);
	hd_json_put_i64(w, NULL, (int64_t)n[1]);
	hd_json_close(w);
}

static void put_place(struct hd_json_writer *w, const char *key, const struct hd_value_place *p)
{
	hd_json_open_object(w, key);
	hd_json_put_i64(w, "worker", p->worker);
	hd_json_put_i64(w, "device", p->rank);
	hd_json_put_i64(w, "stage", p->stage);
	hd_json_close(w);
}

static void put_values(struct hd_json_writer *w, const struct hd_value_difference *d)
{
	hd_json_open_object(w, "values");
	if (d->found || d->compared)
		hd_json_put_bool(w, "agree", !d->found);
	else
		hd_json_put_null(w, "agree");
	hd_json_put_i64(w, "compared", (int64_t)d->compared);
	hd_json_put_i64(w, "steps", (int64_t)d->steps);
	put_pair(w, "alone", d->alone);
	put_pair(w, "torn_lines", d->torn);
	if (d->found) {
		hd_json_put_text(w, "run", d->within ? d->within : "both");
		hd_json_put_i64(w, "step", (int64_t)d->step);
		if (d->vn == HD_NONE)
			hd_json_put_null(w, "virtual_node");
		else
			hd_json_put_i64(w, "virtual_node", d->vn);
		hd_json_put_i64(w, "virtual_nodes", d->nvns);
		hd_json_put_text(w, d->vn == HD_NONE ? "tensor" : "op", d->what);
		put_place(w, "a", &d->a);
		put_place(w, "b", &d->b);
	}
	hd_json_close(w);
}

static void print_json(struct hd_cmd *cmd, const struct side *a, const struct side *b,
	const struct hd_tensor_diff *diff, const bool *near,
	uint32_t ndiffering, uint32_t ntotal, const struct hd_divergence *d,
	const struct hd_value_difference *values, bool same)
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
	if (values)
		put_values(&w, values);
	hd_json_close(&w);
	printf("%s\n", text.at);
}

static enum hd_err verb_ckpt_diff(struct hd_cmd *cmd)
{
	struct side a, b;
	struct hd_run_digests log_a, log_b;
	struct hd_tensor_diff *diff;
	struct hd_slack slack;
	struct hd_value_difference found = { 0 };
	const bool explains = cmd->args.has[HD_OPT_EXPLAIN];
	uint32_t ndiffering, ntotal, far = 0;
	enum hd_err err = read_slack(cmd, &slack);

	if (!err)
		err = open_side(cmd, cmd->args.pos[0], &a);
	if (!err)
		err = open_side(cmd, cmd->args.pos[1], &b);
	if (!err)
		err = hd_state_diff(&a.state, &b.state, &cmd->arena, &diff, &ndiffering, &ntotal, &cmd->diag);
	if (!err)
		err = hd_digests_read(&cmd->fs, a.path, &cmd->arena, &log_a, &cmd->diag);
	if (!err)
		err = hd_digests_read(&cmd->fs, b.path, &cmd->arena, &log_b, &cmd->diag);
	if (!err && explains && hd_value_diff(&cmd->fs, a.path, b.path, &cmd->arena, &found, &cmd->diag))
		err = HD_E_INPUT;
	if (err)
		return err;
	bool *near = hd_arena_take(&cmd->arena, (size_t)ndiffering + 1, sizeof *near);
	if (!near)
		return hd_fail(&cmd->diag, HD_E_NOMEM, "no memory to compare %u tensors", ndiffering);
	for (uint32_t i = 0; i < ndiffering; i++)
		far += !(near[i] = hd_slack_allows(&slack, &a.state, &b.state, &diff[i]));
	struct hd_divergence d = hd_digests_diverge(&log_a, &log_b);
	bool same = far == 0;
	if (cmd->args.has[HD_OPT_JSON]) {
		print_json(cmd, &a, &b, diff, near, ndiffering, ntotal, &d,
			explains ? &found : NULL, same);
	} else {
		print_context(&a, &b);
		for (uint32_t i = 0; i < ndiffering; i++)
			print_tensor(&diff[i], near[i]);
		print_divergence(&d);
		if (explains)
			print_values(&found);
		printf("%s: %u of %u tensors equal\n", !ndiffering ? "IDENTICAL" : same ? "NEAR ENOUGH" :
			"DIFFERENT", ntotal - ndiffering, ntotal);
	}
	if (explains && !found.found && !found.compared)
		return hd_fail(&cmd->diag, HD_E_INPUT, "the records of values of %s and %s have no step, "
			"virtual node and op in common: nothing was compared", a.path, b.path);
	if (same && found.found)
		return hd_fail(&cmd->diag, HD_E_INTEGRITY, "%s and %s differ in values of step %llu",
			a.path, b.path, (unsigned long long)found.step);
	return same ? HD_OK : hd_fail(&cmd->diag, HD_E_INTEGRITY, "%s and %s differ in %u of %u tensors",
		a.path, b.path, far, ntotal);
}

const struct hd_verb hd_verb_ckpt_diff = {
	.name = "ckpt diff", .args = "A B", .npos_min = 2, .npos_max = 2,
	.about = "compare two checkpoints or runs, bit for bit",
	.more =
		"Exit 0: identical; 5: different; 3: unreadable. For runs the first divergent step of "
		"their digest logs is named. --explain: of runs with trace.values, the first op, virtual "
		"node and place whose values differ, whatever the plans were; 3 if their records have "
		"nothing in common.",
	.opts = HD_OPTS(HD_OPT_ULP, HD_OPT_REL, HD_OPT_EXPLAIN),
	.run = verb_ckpt_diff, .test = "program_ckpt.sh",
};
