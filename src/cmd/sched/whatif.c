/* heddle sched whatif: a state asked twice, as it is and with something changed. */
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "scheduler/sched_why.h"
#include "cmd/json_line.h"
#include "cmd/sched/input.h"

enum { HD_CHANGES = 16 };

struct question {
	struct hd_sched_state state;
	struct hd_policy_setting set;
	uint32_t job;                             /* HD_SCHED_NONE: none was named */
	struct hd_change change[HD_CHANGES];
	uint32_t nchanges;
	enum hd_opt opt;                          /* whose list is read */
	enum hd_change_kind kind;
};

static enum hd_err add(struct hd_cmd *cmd, struct question *q, enum hd_change_kind kind, uint32_t at,
	const char *value)
{
	struct hd_diag why = { "" };
	double v = 0;

	if (q->nchanges == HD_CHANGES)
		return hd_fail(&cmd->diag, HD_E_INVAL, "more than %d changes", HD_CHANGES);
	if (!value || hd_num_f64(value, -1e12, 1e12, &v, &why))
		return hd_fail(&cmd->diag, HD_E_INVAL, "\"%.60s\" is no number", value ? value : "");
	q->change[q->nchanges++] = (struct hd_change){ kind, at, v };
	return HD_OK;
}

static enum hd_err put_type(struct hd_cmd *cmd, void *to, char *key, char *value)
{
	struct question *q = to;

	for (uint32_t t = 0; t < q->state.ntypes; t++)
		if (!strcmp(q->state.types[t].name, key))
			return add(cmd, q, q->kind, t, value);
	return hd_fail(&cmd->diag, HD_E_INVAL, "--%s %s: the cluster of the state has no type of that name",
		hd_opts[q->opt].name, key);
}

static enum hd_err read_job(struct hd_cmd *cmd, struct question *q)
{
	uint64_t id = 0;

	q->job = HD_SCHED_NONE;
	if (!cmd->args.npos)
		return HD_OK;
	if (hd_num_u64(cmd->args.pos[0], UINT64_MAX, &id, NULL) ||
		(q->job = hd_sched_find(&q->state, id)) == HD_SCHED_NONE)
		return hd_fail(&cmd->diag, HD_E_INVAL, "the state has no job %.60s", cmd->args.pos[0]);
	return HD_OK;
}

static enum hd_err read_changes(struct hd_cmd *cmd, struct question *q)
{
	static const struct { enum hd_opt opt; enum hd_change_kind kind; bool of_job; } options[] = {
		{ HD_OPT_WEIGHT, HD_CHANGE_WEIGHT, true }, { HD_OPT_SCALE, HD_CHANGE_SCALE, true },
		{ HD_OPT_ADD, HD_CHANGE_ADD, false }, { HD_OPT_PRICE, HD_CHANGE_PRICE, false },
	};
	enum hd_err err = HD_OK;

	for (size_t i = 0; i < sizeof options / sizeof *options && !err; i++) {
		if (!cmd->args.has[options[i].opt])
			continue;
		q->opt = options[i].opt;
		q->kind = options[i].kind;
		if (!options[i].of_job)
			err = hd_sched_each(cmd, options[i].opt, ":=", put_type, q);
		else if (q->job == HD_SCHED_NONE)
			err = hd_fail(&cmd->diag, HD_E_INVAL,
				"whose --%s? Name the job: `heddle sched whatif JOB --%s ...`",
				hd_opts[q->opt].name,
				hd_opts[q->opt].name);
		else
			err = add(cmd, q, q->kind, q->job, cmd->args.text[q->opt]);
	}
	if (!err && !q->nchanges)
		err = hd_fail(&cmd->diag, HD_E_INVAL,
			"what if what? --weight X or --scale N of a job, --add TYPE:N, --price TYPE:X");
	return err;
}

static enum hd_err read_question(struct hd_cmd *cmd, struct question *q)
{
	const char *path = cmd->args.text[HD_OPT_STATE], *name = cmd->args.text[HD_OPT_SCHED_POLICY];
	const struct hd_json *json;

	if (!path || !name)
		return hd_fail(&cmd->diag, HD_E_INVAL, path ?
			"which policy? --policy NAME (heddle sched policies lists them)" :
			"which state? --state FILE (jobs, cluster and more as JSON)");
	enum hd_err err = hd_policy_parse(&q->set, name, &cmd->diag);
	q->set.fidelity = cmd->args.has[HD_OPT_FAITHFUL] ? HD_FIDELITY_GAVEL : HD_FIDELITY_EXACT;
	q->set.deadlines |= !q->set.published;
	if (!err)
		err = hd_sched_lp_limit(cmd, &q->set);
	if (!err)
		err = hd_sched_json(cmd, path, &json);
	if (!err)
		err = hd_sched_read(&q->state, json, cmd->args.text[HD_OPT_STATE_SET], &cmd->arena,
			&cmd->diag);
	if (!err)
		err = read_job(cmd, q);
	return err ? err : read_changes(cmd, q);
}

static void print_json(struct hd_cmd *cmd, const struct question *q, const struct hd_what_if *rows,
	uint32_t n)
{
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);

	hd_json_put_text(w, "policy", cmd->args.text[HD_OPT_SCHED_POLICY]);
	hd_json_open_array(w, "affected");
	for (uint32_t i = 0; i < n; i++) {
		hd_json_open_object(w, NULL);
		hd_json_put_u64(w, "job", q->state.jobs[rows[i].job].id);
		hd_json_put_f64(w, "share", rows[i].share[0]);
		hd_json_put_f64(w, "share_then", rows[i].share[1]);
		hd_json_put_f64(w, "steps_s", rows[i].rate[0]);
		hd_json_put_f64(w, "steps_s_then", rows[i].rate[1]);
		hd_json_close(w);
	}
	hd_json_close(w);
	hd_json_put_i64(w, "jobs", q->state.njobs);
	hd_json_line_print(&line);
}

static enum hd_err verb_sched_whatif(struct hd_cmd *cmd)
{
	struct question q = { 0 };
	const struct hd_what_if *rows;
	uint32_t n = 0;
	enum hd_err err = read_question(cmd, &q);

	if (!err)
		err = hd_sched_what_if(&q.set, NULL, &q.state, q.change, q.nchanges, &cmd->arena, &rows, &n,
			&cmd->diag);
	if (err)
		return err;
	if (cmd->args.has[HD_OPT_JSON]) {
		print_json(cmd, &q, rows, n);
		return HD_OK;
	}
	if (n)
		printf("%-12s %9s %9s %12s %12s\n", "job", "share", "then", "steps/s", "then");
	for (uint32_t i = 0; i < n; i++)
		printf("%-12llu %9.5f %9.5f %12.6g %12.6g\n",
			(unsigned long long)q.state.jobs[rows[i].job].id, rows[i].share[0], rows[i].share[1],
			rows[i].rate[0], rows[i].rate[1]);
	printf("%u of %u jobs are affected\n", n, q.state.njobs);
	return HD_OK;
}

const struct hd_verb hd_verb_sched_whatif = {
	.name = "sched whatif", .args = "[JOB]", .npos_min = 0, .npos_max = 1,
	.about = "the same state with something changed: whose share differs, and by how much",
	.more =
		"The policy is asked twice. --weight X and --scale N are of JOB (steps/s are taken to "
		"grow with its devices); --add TYPE:N brings devices,\n"
		"--price TYPE:X changes what one costs. Jobs that lose stand first.\n"
		"The solver gives up on either: exit 1, nothing is printed.",
	.opts = HD_OPTS(HD_OPT_STATE, HD_OPT_STATE_SET, HD_OPT_SCHED_POLICY, HD_OPT_FAITHFUL,
		HD_OPT_LP_ITERATIONS, HD_OPT_WEIGHT, HD_OPT_SCALE, HD_OPT_ADD, HD_OPT_PRICE),
	.run = verb_sched_whatif, .test = "program_sched.sh",
};
