#include "cmd/plan/planning.h"

#include "cmd/json_line.h"

static void print_text(const struct hd_planning *p, const struct hd_suggestion *s, uint32_t n)
{
	printf("profile   %s%s\n", p->in.profile_from, p->in.measured ?
		"; other sizes of virtual nodes by counts of operations" : "");
	printf("devices   %u: %s\n", p->in.cluster.ndevices, p->in.cluster_from);
	printf("planner   %s\n", p->planner->name);
	printf("%10s %13s %12s %12s %10s  plan\n", "samples", "virtual nodes", "step ms", "samples/s",
		"peak MiB");
	for (uint32_t i = 0; i < n; i++) {
		printf("%10llu %13u ", (unsigned long long)s[i].vn_size, s[i].vns);
		if (s[i].fits)
			printf("%12.4f %12.1f %10.1f", s[i].step_s * 1e3, s[i].samples_s,
				(double)s[i].peak * 0x1p-20);
		else
			printf("%12s %12s %10s", "-", "-", "-");
		printf("  %s%s%s\n", s[i].what, s[i].best ? " (most samples/s)" : "",
			s[i].own ? " (this job)" : "");
	}
	for (uint32_t i = 0; i < n; i++)
		if (s[i].best && !s[i].own)
			printf("-s batch.virtual_nodes=%u makes it another job, with bits of its own; "
				"nothing was changed\n", s[i].vns);
}

static void print_json(struct hd_cmd *cmd, const struct hd_planning *p, const struct hd_suggestion *s,
	uint32_t n)
{
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);

	hd_json_put_text(w, "planner", p->planner->name);
	hd_json_put_text(w, "profile", hd_profile_method_name(p->in.profile.method));
	hd_json_put_i64(w, "devices", p->in.cluster.ndevices);
	hd_json_put_i64(w, "batch", (int64_t)p->in.job.batch);
	hd_json_open_array(w, "suggestions");
	for (uint32_t i = 0; i < n; i++) {
		hd_json_open_object(w, NULL);
		hd_json_put_i64(w, "vn_size", (int64_t)s[i].vn_size);
		hd_json_put_i64(w, "virtual_nodes", s[i].vns);
		hd_json_put_bool(w, "this_job", s[i].own);
		hd_json_put_bool(w, "best", s[i].best);
		if (s[i].fits) {
			hd_json_put_f64(w, "predicted_s", s[i].step_s);
			hd_json_put_f64(w, "samples_s", s[i].samples_s);
			hd_json_put_i64(w, "peak_bytes", s[i].peak);
			hd_json_put_text(w, "plan", s[i].what);
		} else {
			hd_json_put_text(w, "why_not", s[i].what);
		}
		hd_json_close(w);
	}
	hd_json_close(w);
	hd_json_line_print(&line);
}

enum hd_err hd_cmd_suggest_job(struct hd_cmd *cmd, struct hd_planning *p)
{
	static const enum hd_opt of_one[] = { HD_OPT_OUTPUT, HD_OPT_DRAW, HD_OPT_EXPLAIN };
	struct hd_suggest_ask ask = { .planner = p->planner, .plan = p->ask, .batch = p->in.job.batch,
		.profile = hd_plan_input_profile_at, .user = &p->in,
		.cuts = hd_plan_input_cuts(cmd) };
	struct hd_suggestion list[HD_SUGGEST_MOST];
	uint32_t n = 0;

	for (size_t i = 0; i < sizeof of_one / sizeof *of_one; i++)
		if (cmd->args.has[of_one[i]])
			return hd_fail(&cmd->diag, HD_E_INVAL,
				"--%s is of one plan; --suggest-job compares jobs: choose one, then plan it",
				hd_opts[of_one[i]].name);
	enum hd_err err = hd_suggest(list, &n, &ask, &cmd->arena, &cmd->diag);
	if (err)
		return err;
	if (cmd->args.has[HD_OPT_JSON])
		print_json(cmd, p, list, n);
	else
		print_text(p, list, n);
	return HD_OK;
}
