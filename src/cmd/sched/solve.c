/* heddle sched policies, heddle sched solve. */
#include <math.h>
#include <stdio.h>

#include "scheduler/sched_policy.h"
#include "scheduler/sched_why.h"
#include "cmd/json_line.h"
#include "cmd/sched/input.h"

/* Sentences about jobs that wait. A way out of one asks the policy up to 25 times again: where it solves
 * programs, of so many jobs that the states asked about have HD_WAYS_OUT jobs together. */
enum { HD_WHY_MOST = 20, HD_WAYS_OUT = 400 };

static const char *const variants[] = {
#define X(id, name) name,
	HD_VARIANTS(X)
#undef X
};

static bool built(const struct hd_sched_policy *row) { return !(row->powers & HD_POLICY_LP) ||
	hd_policy_has_lp(); }

static enum hd_err verb_sched_policies(struct hd_cmd *cmd)
{
	for (const struct hd_sched_policy *row = hd_sched_policies; row->name; row++) {
		struct hd_json_line line;
		struct hd_json_writer *w = cmd->args.has[HD_OPT_JSON] ? hd_json_line_open(cmd, &line) : NULL;
		if (w) {
			hd_json_put_text(w, "name", row->name);
			hd_json_put_text(w, "about", row->about);
			hd_json_put_text(w, "measure", row->measure);
			hd_json_put_bool(w, "built", built(row));
			hd_json_put_bool(w, "elastic", row->powers & HD_POLICY_ELASTIC);
			hd_json_open_array(w, "variants");
		} else {
			printf("%-18s %s%s\n%18s ", row->name, row->about,
				built(row) ? "" : " (not in this build: no solver of linear programs)", "");
		}
		for (int v = 0; v < HD_NVARIANTS; v++)
			if (row->variants & 1u << v) {
				if (w)
					hd_json_put_text(w, NULL, variants[v]);
				else
					printf(" %s", variants[v]);
			}
		if (w) {
			hd_json_close(w);
			hd_json_line_print(&line);
		} else {
			printf("%s%s\n", *row->measure ? "; objective: " : "", row->measure);
		}
	}
	if (cmd->args.has[HD_OPT_JSON])
		return HD_OK;
	printf("published names:\n");
	for (uint32_t i = 0; hd_policy_published(i); i++)
		printf("  %s\n", hd_policy_published(i));
	return HD_OK;
}

const struct hd_verb hd_verb_sched_policies = {
	.name = "sched policies", .args = "", .npos_min = 0, .npos_max = 0,
	.about = "which job should get which devices: the policies, their variants and published names",
	.more = "NAME is the variant hetero; NAME-plain, NAME-packed the others.",
	.opts = HD_OPTS(),
	.run = verb_sched_policies, .test = "program_sched.sh",
};

/* ---- solve ---- */

struct solved { struct hd_sched_state state; struct hd_policy_setting set; struct hd_shares shares; };

static enum hd_err read_state(struct hd_cmd *cmd, struct hd_sched_state *state)
{
	const char *path = cmd->args.text[HD_OPT_STATE];
	const struct hd_json *json = NULL;
	uint8_t *bytes;
	size_t len;
	enum hd_err err = path ? HD_OK : hd_fail(&cmd->diag, HD_E_INVAL,
		"which state? --state FILE (jobs, cluster and more as JSON)");

	if (!err)
		err = hd_file_read_all(&cmd->fs, path, &cmd->arena, HD_JSON_BYTES, &bytes, &len, &cmd->diag);
	if (!err)
		err = hd_json_parse(&cmd->arena, path, (const char *)bytes, len, &json, &cmd->diag);
	return err ? err : hd_sched_read(state, json, cmd->args.text[HD_OPT_STATE_SET], &cmd->arena,
		&cmd->diag);
}

static enum hd_err solve(struct hd_cmd *cmd, struct solved *to)
{
	struct hd_policy *policy = NULL;
	const char *name = cmd->args.text[HD_OPT_SCHED_POLICY];
	enum hd_err err;

	if (!name)
		return hd_fail(&cmd->diag, HD_E_INVAL,
			"which policy? --policy NAME (heddle sched policies lists them)");
	err = hd_policy_parse(&to->set, name, &cmd->diag);
	to->set.fidelity = cmd->args.has[HD_OPT_FAITHFUL] ? HD_FIDELITY_GAVEL : HD_FIDELITY_EXACT;
	to->set.seed = (uint32_t)cmd->args.count[HD_OPT_SEED];
	to->set.deadlines |= !to->set.published;
	if (!err)
		err = hd_sched_lp_limit(cmd, &to->set);
	if (!err)
		err = hd_policy_create(&policy, &to->set, &cmd->diag);
	if (!err)
		err = read_state(cmd, &to->state);
	if (!err)
		err = hd_policy_allocate(policy, &to->state, &cmd->arena, &to->shares, &cmd->diag);
	hd_policy_destroy(policy);
	return err;
}

/* "3", or "(1, 2)" of a pair: as in the reference answers. */
static void key_of(const struct hd_sched_state *s, const struct hd_shape *shape, char out[64])
{
	unsigned long long a = s->jobs[shape->member[0]].id;

	if (shape->nmembers == 1)
		snprintf(out, 64, "%llu", a);
	else
		snprintf(out, 64, "(%llu, %llu)", a, (unsigned long long)s->jobs[shape->member[1]].id);
}

static bool same_members(const struct hd_shape *a, const struct hd_shape *b)
{
	return a->nmembers == b->nmembers && a->member[0] == b->member[0] &&
		(a->nmembers == 1 || a->member[1] == b->member[1]);
}

/* By members, then by type: shares of several sizes on one type are added up. */
static void put_allocation(struct hd_json_writer *w, const struct solved *to)
{
	const struct hd_shares *out = &to->shares;
	char key[64];

	hd_json_open_object(w, "allocation");
	for (uint32_t k = 0, end; k < out->nshapes; k = end) {
		for (end = k; end < out->nshapes && same_members(&out->shape[end], &out->shape[k]); end++)
			;
		key_of(&to->state, &out->shape[k], key);
		hd_json_open_object(w, key);
		for (uint32_t j = 0; j < to->state.ntypes; j++) {
			double x = 0;
			for (uint32_t i = k; i < end; i++)
				for (uint32_t d = 0; d < out->shape[i].nneeds; d++)
					x += out->shape[i].need[d].type == j ? out->x[i] : 0;
			if (x > 0)
				hd_json_put_f64(w, to->state.types[j].name, x);
		}
		hd_json_close(w);
	}
	hd_json_close(w);
}

/* What the allocation by types cannot say: how many devices each share is of. */
static void put_ways(struct hd_json_writer *w, const struct solved *to)
{
	const struct hd_shares *out = &to->shares;
	char key[64];

	hd_json_open_array(w, "ways");
	for (uint32_t k = 0; k < out->nshapes; k++) {
		const struct hd_shape *shape = &out->shape[k];
		key_of(&to->state, shape, key);
		hd_json_open_object(w, NULL);
		hd_json_put_text(w, "job", key);
		hd_json_open_object(w, "devices");
		for (uint32_t d = 0; d < shape->nneeds; d++)
			hd_json_put_i64(w, to->state.types[shape->need[d].type].name, shape->need[d].n);
		hd_json_close(w);
		hd_json_put_f64(w, "share", out->x[k]);
		hd_json_put_f64(w, "steps_per_s", shape->rate[0] + (shape->nmembers == 2 ? shape->rate[1] :
			0));
		hd_json_close(w);
	}
	hd_json_close(w);
}

static void put_by_job(struct hd_json_writer *w, const char *key, const struct hd_sched_state *s,
	const double *values)
{
	char id[24];

	hd_json_open_object(w, key);
	for (uint32_t i = 0; i < s->njobs; i++) {
		snprintf(id, sizeof id, "%llu", (unsigned long long)s->jobs[i].id);
		hd_json_put_f64(w, id, values[i]);
	}
	hd_json_close(w);
}

static void put_duals(struct hd_json_writer *w, const struct solved *to)
{
	if (!to->shares.y) {
		hd_json_put_null(w, "duals");
		return;
	}
	hd_json_open_object(w, "duals");
	hd_json_open_object(w, "devices");
	for (uint32_t j = 0; j < to->state.ntypes; j++)
		hd_json_put_f64(w, to->state.types[j].name, to->shares.y[j]);
	hd_json_close(w);
	put_by_job(w, "time", &to->state, to->shares.u);
	put_by_job(w, "promise", &to->state, to->shares.l);
	hd_json_put_bool(w, "one_of_several", to->shares.degenerate);
	hd_json_close(w);
}

/* The objectives that any shares can be measured by, whatever policy made them. */
static void put_measures(struct hd_json_writer *w, const struct solved *to)
{
	const struct hd_sched_state *s = &to->state;
	double least = INFINITY, latest = 0, sum = 0;

	for (uint32_t i = 0; i < s->njobs; i++) {
		if (hd_sched_absent(s, i))
			continue;
		least = fmin(least, to->shares.z[i] * s->jobs[i].scale / s->jobs[i].weight);
		latest = fmax(latest, to->shares.e[i] > 0 ? s->jobs[i].steps_left / to->shares.e[i] :
			INFINITY);
		sum += to->shares.e[i];
	}
	hd_json_put_f64(w, "objective_maxmin", isfinite(least) ? least : 0);
	if (isfinite(latest))
		hd_json_put_f64(w, "objective_makespan_s", latest);
	else
		hd_json_put_null(w, "objective_makespan_s");
	hd_json_put_f64(w, "objective_sum_throughput", sum);
}

static void put_objective(struct hd_json_writer *w, double objective)
{
	if (isnan(objective))
		hd_json_put_null(w, "objective");
	else
		hd_json_put_f64(w, "objective", objective);
}

static void put_array(struct hd_json_writer *w, const char *key, const double *values, uint32_t n)
{
	hd_json_open_array(w, key);
	for (uint32_t i = 0; i < n; i++)
		hd_json_put_f64(w, NULL, values[i]);
	hd_json_close(w);
}

static uint32_t most_ways_out(const struct solved *to)
{
	if (!(to->set.policy->powers & HD_POLICY_LP) || !to->state.njobs ||
		HD_WAYS_OUT / to->state.njobs > HD_WHY_MOST)
		return HD_WHY_MOST;
	return HD_WAYS_OUT / to->state.njobs;
}

static void print_why(const struct hd_why *why, uint64_t id, struct hd_json_writer *w)
{
	if (!w) {
		printf("%s%s%s\n", why->text, *why->help ? "; " : "", why->help);
		return;
	}
	hd_json_open_object(w, NULL);
	hd_json_put_u64(w, "job", id);
	hd_json_put_text(w, "code", hd_why_name(why->code));
	hd_json_put_text(w, "why", why->text);
	hd_json_put_text(w, "help", why->help);
	hd_json_close(w);
}

/* At most HD_WHY_MOST; `w` NULL: as text. */
static enum hd_err tell_why(struct hd_cmd *cmd, const struct solved *to, struct hd_json_writer *w)
{
	uint32_t shown = 0, most = most_ways_out(to);
	enum hd_err err = HD_OK;

	for (uint32_t i = 0; !err && i < to->state.njobs && shown < HD_WHY_MOST; i++) {
		struct hd_why why;
		hd_sched_why_code(&to->set, &to->state, &to->shares, i, &why);
		if (why.code == HD_WHY_RUNS)
			continue;
		if (shown++ < most)
			err = hd_sched_why(&to->set, &to->state, &to->shares, i, &cmd->arena, &why,
				&cmd->diag);
		if (!err)
			print_why(&why, to->state.jobs[i].id, w);
	}
	if (!err && !w && shown > most)
		printf("ways out are sought for %u of these: each asks the policy again, up to 25 times, "
			"about %u jobs. One change at a time: heddle sched "
			"whatif JOB --state %s --policy %s --weight X (or --scale, --add, --price)\n", most,
			to->state.njobs,
			cmd->args.text[HD_OPT_STATE], cmd->args.text[HD_OPT_SCHED_POLICY]);
	return err;
}

/* Shares of more devices than their type has: the published programs count them, no round can give them. */
static uint32_t beyond(const struct solved *to)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < to->shares.nshapes; k++)
		for (int d = 0; d < to->shares.shape[k].nneeds; d++)
			n += to->shares.shape[k].need[d].n >
				to->state.types[to->shares.shape[k].need[d].type].n;
	return n;
}

static enum hd_err print_json(struct hd_cmd *cmd, const struct solved *to)
{
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);

	hd_json_put_text(w, "policy", cmd->args.text[HD_OPT_SCHED_POLICY]);
	hd_json_put_text(w, "fidelity", to->set.fidelity == HD_FIDELITY_GAVEL ? "gavel" : "exact");
	put_objective(w, to->shares.objective);
	put_allocation(w, to);
	if (to->set.policy->powers & HD_POLICY_ELASTIC)
		put_ways(w, to);
	put_array(w, "effective_throughput", to->shares.e, to->state.njobs);
	put_array(w, "normalized", to->shares.z, to->state.njobs);
	put_measures(w, to);
	put_duals(w, to);
	if (to->shares.short_by)
		put_by_job(w, "short_by", &to->state, to->shares.short_by);
	hd_json_put_u64(w, "shares_beyond_devices", beyond(to));
	hd_json_put_bool(w, "work_conserving", to->shares.work_conserving);
	hd_json_put_bool(w, "kept", to->shares.kept);
	if (to->shares.kept)
		hd_json_put_text(w, "kept_why", to->shares.kept_why);
	hd_json_put_bool(w, "cut", to->shares.cut);
	hd_json_put_i64(w, "programs", to->shares.nlps);
	hd_json_put_f64(w, "gap", to->shares.gap);
	hd_json_open_array(w, "waiting");
	enum hd_err err = tell_why(cmd, to, w);
	hd_json_close(w);
	if (!err)
		hd_json_line_print(&line);
	return err;
}

static enum hd_err print_text(struct hd_cmd *cmd, const struct solved *to)
{
	const struct hd_shares *out = &to->shares;
	char key[64];

	if (out->kept)
		printf("the policy gave up: equal parts%s, no answer of it\n",
			to->set.npops > 1 ? " in one of its problems or more" : "");
	if (!isnan(out->objective))
		printf("%s: %.9g\n", to->set.policy->measure, out->objective);
	printf("%-16s %-16s %8s %12s\n", "job", "devices", "share", "steps/s");
	for (uint32_t k = 0; k < out->nshapes; k++) {
		char devices[160] = "";
		size_t used = 0;
		key_of(&to->state, &out->shape[k], key);
		for (uint32_t d = 0; d < out->shape[k].nneeds && used < sizeof devices; d++)
			used += (size_t)snprintf(devices + used, sizeof devices - used, "%s%u %s",
				d ? " + " : "", out->shape[k].need[d].n,
				to->state.types[out->shape[k].need[d].type].name);
		printf("%-16s %-16s %8.5f %12.6g\n", key, devices, out->x[k],
			out->x[k] * (out->shape[k].rate[0] + out->shape[k].rate[1]));
	}
	for (uint32_t j = 0; out->y && j < to->state.ntypes; j++)
		printf("one more %s is worth %.6g%s\n", to->state.types[j].name, out->y[j],
			out->degenerate ? " (one of several prices)" : "");
	if (beyond(to))
		printf("%u of these shares are of more devices than their type has: the published programs "
			"count them in the objective, no round can give "
			"them (without --faithful there are none)\n", beyond(to));
	if (out->cut)
		printf("cut: the search for better columns ended with its last turn; these shares are the "
			"best of those found\n");
	return tell_why(cmd, to, NULL);
}

static enum hd_err verb_sched_solve(struct hd_cmd *cmd)
{
	struct solved to = { 0 };
	enum hd_err err = solve(cmd, &to);

	if (err)
		return err;
	err = cmd->args.has[HD_OPT_JSON] ? print_json(cmd, &to) : print_text(cmd, &to);
	const char *name = cmd->args.text[HD_OPT_SCHED_POLICY];
	bool dealt = to.set.npops > 1;
	if (!err && to.shares.kept)
		err = hd_fail(&cmd->diag, HD_E_AGAIN,
			"policy %s gave up (%s): the shares above are equal parts%s, no answer of it; "
			"another policy%s%s may have one", name, to.shares.kept_why,
			dealt ? " in one of its problems or more" : "", dealt ? "" : " or pop:2:",
			dealt ? "" : name);
	return err;
}

const struct hd_verb hd_verb_sched_solve = {
	.name = "sched solve", .args = "", .npos_min = 0, .npos_max = 0,
	.about = "shares of devices by a policy, for one state of a cluster",
	.more =
		"--state FILE: jobs (id, scale_factor, priority, steps_remaining, time_since_start, "
		"throughput by type; deadline_s, elastic), cluster (devices by type), and pairs, "
		"prices_per_hour, entities as they are needed. --json: objective, allocation, prices of "
		"devices and promises (duals), and of jobs that wait why, the first 20. A policy that "
		"needs a solver which this build lacks: exit 2. Its solver gives up: exit 1; what is "
		"printed are equal parts, and says so.",
	.opts = HD_OPTS(HD_OPT_STATE, HD_OPT_STATE_SET, HD_OPT_SCHED_POLICY, HD_OPT_FAITHFUL,
		HD_OPT_LP_ITERATIONS, HD_OPT_SEED),
	.run = verb_sched_solve, .test = "program_sched.sh",
};
