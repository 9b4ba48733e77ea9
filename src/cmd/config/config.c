#include <string.h>

#include "base/num.h"
#include "cmd/json_line.h"
#include "cmd/session.h"

static enum hd_err read_job(struct hd_cmd *cmd, struct hd_job **job)
{
	struct hd_job *read = hd_arena_take(&cmd->arena, 1, sizeof *read);
	enum hd_err err = read ? hd_session_job(cmd, cmd->args.pos[0], read, NULL, NULL) : hd_fail(&cmd->diag,
		HD_E_NOMEM, "no memory for a job");

	if (!err)
		*job = read;
	return err;
}

static void check_json(struct hd_cmd *cmd, const struct hd_job *job, const char *hex)
{
	struct hd_json_line line;
	struct hd_json_writer *w = hd_json_line_open(cmd, &line);

	hd_json_put_bool(w, "ok", true);
	hd_json_put_text(w, "job_hash", hex);
	hd_json_put_i64(w, "virtual_nodes", job->nvns);
	hd_json_put_i64(w, "rows_per_virtual_node", (int64_t)job->per_vn);
	hd_json_line_print(&line);
}

static enum hd_err verb_config_check(struct hd_cmd *cmd)
{
	struct hd_job *job;
	char hex[HD_HASH_HEX];
	enum hd_err err = read_job(cmd, &job);

	if (!err)
		err = hd_session_check_model(cmd, job);
	if (err)
		return err;
	hd_hash_hex(job->hash, hex);
	if (cmd->args.has[HD_OPT_JSON])
		check_json(cmd, job, hex);
	else
		printf("%s: ok  job %s  %u virtual nodes of %llu rows\n", cmd->args.pos[0], hex, job->nvns,
			(unsigned long long)job->per_vn);
	return HD_OK;
}

const struct hd_verb hd_verb_config_check = {
	.name = "config check", .args = "JOB", .npos_min = 1, .npos_max = 1,
	.about = "check a job file",
	.opts = HD_OPTS(HD_OPT_SET),
	.run = verb_config_check, .test = "program_config.sh",
};

static void add_numbers(struct hd_text *text, const struct hd_job_value *v)
{
	char number[HD_NUM_CAP];

	hd_text_add(text, "[");
	for (uint32_t i = 0; i < v->nlist; i++)
		hd_text_addf(text, "%s%s", i ? ", " : "", hd_num_print_f64(number, v->list[i]));
	hd_text_add(text, "]");
}

static void add_split(struct hd_text *text, const struct hd_job_value *v, const char *words)
{
	char number[HD_NUM_CAP];

	hd_text_add(text, "{");
	for (uint32_t i = 0; i < v->nlist; i++) {
		size_t len = strcspn(words, "|");
		hd_text_addf(text, "%s%.*s: %s", i ? ", " : "", (int)len, words,
			hd_num_print_f64(number, v->list[i]));
		words += words[len] ? len + 1 : len;
	}
	hd_text_add(text, "}");
}

static void add_names(struct hd_text *text, const struct hd_job_value *v)
{
	hd_text_add(text, "[");
	for (uint32_t i = 0; i < v->nargs; i++)
		hd_text_addf(text, "%s\"%s\"", i ? ", " : "", v->arg[i].text);
	hd_text_add(text, "]");
}

static void add_param(struct hd_text *text, const struct hd_job_param *p)
{
	char number[HD_NUM_CAP];

	hd_text_addf(text, "%s%s%s", p->name ? p->name : "", p->name ? ": " : "", p->is_list ? "[" : "");
	for (uint32_t i = 0; i < p->n; i++)
		hd_text_addf(text, "%s%s", i ? ", " : "", hd_num_print_f64(number, p->at[i]));
	hd_text_add(text, p->is_list ? "]" : "");
}

static void add_calls(struct hd_text *text, const struct hd_job_value *v)
{
	hd_text_add(text, "[");
	for (uint32_t i = 0; i < v->ncalls; i++) {
		const struct hd_job_call *c = &v->call[i];
		bool inner = c->nparams && c->param->name;
		hd_text_addf(text, "%s%s%s%s%s", i ? ", " : "", c->nparams ? "{" : "", c->name,
			c->nparams ? ": " : "", inner ? "{" : "");
		for (uint32_t k = 0; k < c->nparams; k++) {
			hd_text_add(text, k ? ", " : "");
			add_param(text, &c->param[k]);
		}
		hd_text_addf(text, "%s%s", inner ? "}" : "", c->nparams ? "}" : "");
	}
	hd_text_add(text, "]");
}

static void add_args(struct hd_text *text, const struct hd_job_value *v)
{
	hd_text_add(text, "{");
	for (uint32_t i = 0; i < v->nargs; i++)
		hd_text_addf(text, "%s%s: %s", i ? ", " : "", v->arg[i].name, v->arg[i].text);
	hd_text_add(text, "}");
}

static void add_group(struct hd_text *text, const struct hd_job_group *g)
{
	char number[HD_NUM_CAP];

	hd_text_add(text, "{params: [");
	for (uint32_t i = 0; i < g->nparams; i++)
		hd_text_addf(text, "%s\"%s\"", i ? ", " : "", g->params[i].text);
	hd_text_add(text, "]");
	if (g->has_lr)
		hd_text_addf(text, ", lr: %s", hd_num_print_f64(number, g->lr));
	if (g->has_lr_scale)
		hd_text_addf(text, ", lr_scale: %s", hd_num_print_f64(number, g->lr_scale));
	if (g->has_decay)
		hd_text_addf(text, ", decay: %s", hd_num_print_f64(number, g->decay));
	hd_text_add(text, g->freeze ? ", freeze: true}" : "}");
}

static void add_groups(struct hd_text *text, const struct hd_job_value *v)
{
	hd_text_add(text, "[");
	for (uint32_t i = 0; i < v->ngroups; i++) {
		hd_text_add(text, i ? ", " : "");
		add_group(text, &v->group[i]);
	}
	hd_text_add(text, "]");
}

static void add_terms(struct hd_text *text, const struct hd_job_value *v)
{
	char number[HD_NUM_CAP];

	hd_text_add(text, "[");
	for (const struct hd_job_term *t = v->term; t < v->term + v->nterms; t++) {
		hd_text_addf(text, "%s{kind: %s, weight: %s, of: %s, target: %s", t == v->term ? "" : ", ",
			t->kind,
			hd_num_print_f64(number, t->weight), t->of, t->target);
		if (t->smoothing > 0)
			hd_text_addf(text, ", smoothing: %s", hd_num_print_f64(number, t->smoothing));
		if (t->delta < 1 || t->delta > 1)
			hd_text_addf(text, ", delta: %s", hd_num_print_f64(number, t->delta));
		hd_text_add(text, "}");
	}
	hd_text_add(text, "]");
}

/* As a user would write it in a job file. */
static void add_value(struct hd_text *text, const struct hd_job *job, int key)
{
	const struct hd_job_value *v = &job->value[key];
	char number[HD_NUM_CAP];

	if (v->is_auto || v->is_none) {
		hd_text_add(text, v->is_auto ? "auto" : "none");
		return;
	}
	switch ((enum hd_job_type)hd_job_keys[key].type) {
	case HD_T_TEXT: case HD_T_FILE: case HD_T_WORD: hd_text_add(text, v->text); break;
	case HD_T_INT: case HD_T_SIZE:  hd_text_addf(text, "%lld", (long long)v->i); break;
	case HD_T_NUM:   hd_text_add(text, hd_num_print_f64(number, v->f)); break;
	case HD_T_EVERY: case HD_T_SPAN: hd_text_add(text, v->text); break;
	case HD_T_LIST:  add_numbers(text, v); break;
	case HD_T_NAMES: add_names(text, v); break;
	case HD_T_CALLS: add_calls(text, v); break;
	case HD_T_TERMS: add_terms(text, v); break;
	case HD_T_GROUPS: add_groups(text, v); break;
	case HD_T_SPLIT: add_split(text, v, hd_job_keys[key].words); break;
	case HD_T_ARGS:  add_args(text, v); break;
	}
}

static void print_row(struct hd_cmd *cmd, const struct hd_job *job, int key)
{
	static const char *const origins[] = {
		[HD_FROM_DEFAULT] = "default", [HD_FROM_FILE] = "file", [HD_FROM_ENV] = "environment",
			[HD_FROM_SET] = "-s", [HD_FROM_OPTION] = "option",
	};
	const struct hd_job_value *v = &job->value[key];
	char name[64], where[48];
	struct hd_text text;

	hd_text_init(&text, &cmd->arena);
	add_value(&text, job, key);
	snprintf(name, sizeof name, "%s.%s", hd_job_keys[key].table, hd_job_keys[key].key);
	snprintf(where, sizeof where, v->line ? "%s %u:%u" : "%s", origins[v->origin], v->line, v->column);
	printf("%-24s %-3s %-18s %s\n", name, hd_job_keys[key].result ? "R" : "", where, text.at);
}

static enum hd_err verb_config_show(struct hd_cmd *cmd)
{
	struct hd_job *job;
	char hex[HD_HASH_HEX];
	enum hd_err err = read_job(cmd, &job);

	if (err)
		return err;
	if (cmd->args.has[HD_OPT_JSON]) {
		struct hd_text text;
		hd_text_init(&text, &cmd->arena);
		hd_job_json(job, true, &text);
		printf("%s\n", text.at);
		return HD_OK;
	}
	printf("%-24s %-3s %-18s %s\n", "key", "R", "from", "value");
	for (int key = 0; key < HD_JOB_NKEYS; key++)
		print_row(cmd, job, key);
	hd_hash_hex(job->hash, hex);
	printf("\njob hash  %s   (of the keys marked R: they alone fix the result)\n", hex);
	return HD_OK;
}

const struct hd_verb hd_verb_config_show = {
	.name = "config show", .args = "JOB", .npos_min = 1, .npos_max = 1,
	.about = "the resolved job: every value and where it came from",
	.opts = HD_OPTS(HD_OPT_SET),
	.run = verb_config_show, .test = "program_config.sh",
};

static enum hd_err verb_config_schema(struct hd_cmd *cmd)
{
	struct hd_text text;

	hd_text_init(&text, &cmd->arena);
	hd_job_schema(&text);
	printf("%s\n", text.at);
	return HD_OK;
}

const struct hd_verb hd_verb_config_schema = {
	.name = "config schema", .args = "", .npos_min = 0, .npos_max = 0,
	.about = "JSON Schema of job files",
	.opts = HD_OPTS(),
	.run = verb_config_schema, .test = "program_config.sh",
};
