#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "planner/bucket.h"
#include "cmd/json_line.h"
#include "cmd/plan/job.h"

/* Larger tensors are cut, so that what is urgent does not wait for them; of files, whose sizes have no
 * unit, none is. */
enum { BUCKET_MOST = 64 << 20 };

struct buckets_summary {
	const struct hd_bucket_problem *problem;
	uint32_t *order;
	/* declared, one bucket a gradient and one for all: in the declared order */
	struct hd_bucketing best, declared, each, one;
};

static double units(const struct buckets_summary *t,
	int64_t ticks) { return (double)ticks / t->problem->graph.unit; }
static const char *name(const struct buckets_summary *t, uint32_t op) { return t->problem->graph.op[op].name;
	}

static void print_text(const struct buckets_summary *t, const char *unit)
{
	const struct hd_bucketing *b = &t->best;

	printf("%s%s%g%s: %u buckets of %u gradients, computed in %g; %g in the declared order, %g one by "
		"one there, %g in one bucket\n",
		t->problem->graph.name, *t->problem->graph.name ? ": " : "", units(t, b->end), unit,
		b->nbuckets, b->ngradients, units(t, b->compute_end),
		units(t, t->declared.end), units(t, t->each.end), units(t, t->one.end));
	printf("%8s %12s %12s %12s %12s  gradients\n", "bucket", "bytes", "ready", "start", "end");
	for (uint32_t k = 0; k < b->nbuckets; k++) {
		const struct hd_bucket *x = &b->bucket[k];
		printf("%8u %12lld %12g %12g %12g  %s", k, (long long)x->bytes, units(t, x->ready),
			units(t, x->start), units(t, x->end),
			name(t, b->gradient[x->first]));
		if (x->n > 1)
			printf(" .. %s", name(t, b->gradient[x->first + x->n - 1]));
		printf("\n");
	}
}

static void put_bucket(struct hd_json_writer *w, const struct buckets_summary *t, const struct hd_bucket *x)
{
	hd_json_open_object(w, NULL);
	hd_json_put_i64(w, "bytes", x->bytes);
	hd_json_put_f64(w, "ready", units(t, x->ready));
	hd_json_put_f64(w, "start", units(t, x->start));
	hd_json_put_f64(w, "end", units(t, x->end));
	hd_json_open_array(w, "gradients");
	for (uint32_t i = x->first; i < x->first + x->n; i++)
		hd_json_put_text(w, NULL, name(t, t->best.gradient[i]));
	hd_json_close(w);
	hd_json_close(w);
}

static void print_json(struct hd_cmd *cmd, const struct buckets_summary *t, const char *unit)
{
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);

	hd_json_put_text(w, "name", t->problem->graph.name);
	hd_json_put_text(w, "unit", *unit ? "s" : "as given");
	hd_json_put_f64(w, "iteration_time", units(t, t->best.end));
	hd_json_put_f64(w, "compute_end", units(t, t->best.compute_end));
	hd_json_open_array(w, "compute_order");
	for (uint32_t k = 0; k < t->problem->graph.nops; k++)
		hd_json_put_text(w, NULL, name(t, t->order[k]));
	hd_json_close(w);
	hd_json_open_array(w, "buckets");
	for (uint32_t k = 0; k < t->best.nbuckets; k++)
		put_bucket(w, t, &t->best.bucket[k]);
	hd_json_close(w);
	hd_json_open_object(w, "declared_order");
	hd_json_put_f64(w, "best_buckets", units(t, t->declared.end));
	hd_json_put_f64(w, "one_each", units(t, t->each.end));
	hd_json_put_f64(w, "one_bucket", units(t, t->one.end));
	hd_json_close(w);
	hd_json_line_print(&line);
}

static enum hd_err tell(struct hd_cmd *cmd, const struct hd_bucket_problem *p, int64_t most)
{
	const char *unit = p->graph.unit == HD_ORDER_TICKS ? "" : " s";
	struct buckets_summary t = { .problem = p };
	uint32_t *declared = NULL;
	uint64_t bytes = 0;
	enum hd_err err = HD_OK;

	if (cmd->args.has[HD_OPT_BUCKETS]) {
		struct hd_diag why = { "" };
		if (hd_num_size(cmd->args.text[HD_OPT_BUCKETS], (uint64_t)HD_BUCKET_SIZE_MAX, &bytes, &why) ||
			bytes == 0)
			return hd_fail(&cmd->diag, HD_E_INVAL, "--buckets %s: a size from 1, as 16MiB",
				cmd->args.text[HD_OPT_BUCKETS]);
		most = (int64_t)bytes;
	}
	err = hd_compute_declared(&declared, p, &cmd->arena, &cmd->diag);
	err = err ? err : hd_compute_greedy(&t.order, p, &cmd->arena, &cmd->diag);
	err = err ? err : hd_buckets_make(&t.best, p, t.order, HD_BUCKETS_EXACT, most, &cmd->arena,
		&cmd->diag);
	err = err ? err : hd_buckets_make(&t.declared, p, declared, HD_BUCKETS_EXACT, most, &cmd->arena,
		&cmd->diag);
	err = err ? err : hd_buckets_make(&t.each, p, declared, HD_BUCKETS_EACH, 0, &cmd->arena, &cmd->diag);
	err = err ? err : hd_buckets_make(&t.one, p, declared, HD_BUCKETS_ONE, 0, &cmd->arena, &cmd->diag);
	if (err)
		return err;
	if (t.declared.end < t.best.end) {        /* the greedy order is no promise */
		t.best = t.declared;
		t.order = declared;
	}
	if (cmd->args.has[HD_OPT_JSON])
		print_json(cmd, &t, unit);
	else
		print_text(&t, unit);
	return HD_OK;
}

/* Gradients are summed over all devices, by owners. */
static enum hd_err of_job(struct hd_cmd *cmd, const struct hd_plan_input *in,
	const struct hd_cluster_level *outer)
{
	struct hd_bucket_problem problem;
	enum hd_err err = hd_bucket_of_profile(&problem, &in->profile, in->cluster.ndevices,
		outer->bytes_per_s, outer->latency_ps, &cmd->arena, &cmd->diag);

	return err ? err : tell(cmd, &problem, BUCKET_MOST);
}

static enum hd_err of_file(struct hd_cmd *cmd, const char *bytes, size_t len)
{
	struct hd_bucket_problem *problem = NULL;
	uint32_t n = 0;
	enum hd_err err = hd_bucket_read(&problem, &n, bytes, len, cmd->args.pos[0], &cmd->arena, &cmd->diag);

	for (uint32_t i = 0; i < n && !err; i++)
		err = tell(cmd, &problem[i], 0);
	return err;
}

static enum hd_err verb_plan_buckets(struct hd_cmd *cmd)
{
	return hd_cmd_graph_file(cmd, &(struct hd_cmd_graph_readers){ of_file, of_job });
}

const struct hd_verb hd_verb_plan_buckets = {
	.name = "plan buckets", .args = "FILE|JOB", .npos_min = 1, .npos_max = 1,
	.about = "in which order to compute gradients, and in which buckets to sum them",
	.more =
		"FILE: {\"ops\": {NAME: {\"time\": T, \"inputs\": [NAME, ...]}}, \"gradient_size\": "
		"{NAME: BYTES}, \"alpha\": A, \"beta\": B}, or {\"cases\": [...]} of such: a bucket of "
		"n bytes takes A + B n on one channel, once its gradients are made. JOB: its backward "
		"pass and weights, summed over all devices on the slowest link of the cluster; costs as "
		"for `heddle plan JOB`. The compute order is greedy (least time a byte), the buckets "
		"are the best for it; where the declared order is faster, that is printed. Bits do not "
		"depend on buckets.",
	.opts = HD_OPTS(HD_OPT_BUCKETS, HD_OPT_WORKERS, HD_OPT_CLUSTER, HD_OPT_PROFILE,
		HD_OPT_FORCE_PROFILE, HD_OPT_SET),
	.run = verb_plan_buckets, .test = "program_plan_order.sh",
};
