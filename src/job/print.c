#include "job/int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/num.h"

/* A value as JSON. What was asked for as auto or none stays that word. */
static void put_list(struct hd_json_writer *w, const char *key, const struct hd_job_value *v)
{
	hd_json_open_array(w, key);
	for (uint32_t i = 0; i < v->nlist; i++)
		hd_json_put_f64(w, NULL, v->list[i]);
	hd_json_close(w);
}

static void put_names(struct hd_json_writer *w, const char *key, const struct hd_job_value *v)
{
	hd_json_open_array(w, key);
	for (uint32_t i = 0; i < v->nargs; i++)
		hd_json_put_text(w, NULL, v->arg[i].text);
	hd_json_close(w);
}

static void put_param(struct hd_json_writer *w, const char *key, const struct hd_job_param *p)
{
	if (!p->is_list) {
		hd_json_put_f64(w, key, p->at[0]);
		return;
	}
	hd_json_open_array(w, key);
	for (uint32_t i = 0; i < p->n; i++)
		hd_json_put_f64(w, NULL, p->at[i]);
	hd_json_close(w);
}

static void put_calls(struct hd_json_writer *w, const char *key, const struct hd_job_value *v)
{
	hd_json_open_array(w, key);
	for (const struct hd_job_call *c = v->call; c < v->call + v->ncalls; c++) {
		if (!c->nparams) {
			hd_json_put_text(w, NULL, c->name);
			continue;
		}
		hd_json_open_object(w, NULL);
		if (!c->param->name)
			put_param(w, c->name, c->param);
		else {
			hd_json_open_object(w, c->name);
			for (uint32_t i = 0; i < c->nparams; i++)
				put_param(w, c->param[i].name, &c->param[i]);
			hd_json_close(w);
		}
		hd_json_close(w);
	}
	hd_json_close(w);
}

static int by_name(const void *a, const void *b)
{
	const struct hd_job_arg *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* Written by the model's table, so it is a number. */
static void put_number(struct hd_json_writer *w, const char *key, const char *text)
{
	double v;

	if (hd_num_f64(text, -1e300, 1e300, &v, NULL))
		hd_json_put_text(w, key, text);
	else
		hd_json_put_f64(w, key, v);
}

static void put_numbers(struct hd_json_writer *w, const char *key, const char *text)
{
	char item[HD_NUM_CAP];

	hd_json_open_array(w, key);
	for (text += strspn(text, "[ "); *text && *text != ']'; text += strspn(text, ", ")) {
		size_t len = strcspn(text, ", ]");
		snprintf(item, sizeof item, "%.*s", (int)len, text);
		put_number(w, NULL, item);
		text += len;
	}
	hd_json_close(w);
}

static void put_args(struct hd_json_writer *w, const char *key, const struct hd_job_value *v)
{
	struct hd_job_arg arg[HD_JOB_MAX_ARGS];

	if (v->nargs)
		memcpy(arg, v->arg, v->nargs * sizeof *arg);
	qsort(arg, v->nargs, sizeof *arg, by_name);
	hd_json_open_object(w, key);
	for (uint32_t i = 0; i < v->nargs; i++) {
		if (arg[i].is_word)
			hd_json_put_text(w, arg[i].name, arg[i].text);
		else if (*arg[i].text == '[')
			put_numbers(w, arg[i].name, arg[i].text);
		else
			put_number(w, arg[i].name, arg[i].text);
	}
	hd_json_close(w);
}

static void put_split(struct hd_json_writer *w, const char *key, const struct hd_job_value *v,
	const char *words)
{
	char name[HD_DOTTED_CAP];
	size_t len;

	hd_json_open_object(w, key);
	for (uint32_t i = 0; i < v->nlist; i++) {
		const char *word = hd_job_word(words, i, &len);
		snprintf(name, sizeof name, "%.*s", (int)len, word);
		hd_json_put_f64(w, name, v->list[i]);
	}
	hd_json_close(w);
}

static void put_every(struct hd_json_writer *w, const char *key, const struct hd_job_value *v)
{
	static const int64_t ns_per_ms = 1000000;
	char text[HD_NUM_CAP + 8];

	if (v->every_steps)
		snprintf(text, sizeof text, "%lld steps", (long long)v->i);
	else if (v->i % (1000 * ns_per_ms) == 0)
		snprintf(text, sizeof text, "%lld s", (long long)(v->i / (1000 * ns_per_ms)));
	else
		snprintf(text, sizeof text, "%lld ms", (long long)(v->i / ns_per_ms));
	hd_json_put_text(w, key, text);
}

static void put_value(struct hd_json_writer *w, const char *name, const struct hd_job *job,
	enum hd_job_key key)
{
	const struct hd_job_value *v = &job->value[key];

	if (v->is_auto || v->is_none) {
		hd_json_put_text(w, name, v->is_auto ? "auto" : "none");
		return;
	}
	switch ((enum hd_job_type)hd_job_keys[key].type) {
	case HD_T_TEXT: case HD_T_FILE: case HD_T_WORD: hd_json_put_text(w, name, v->text); break;
	case HD_T_INT: case HD_T_SIZE:  hd_json_put_i64(w, name, v->i); break;
	case HD_T_NUM:   hd_json_put_f64(w, name, v->f); break;
	case HD_T_EVERY: case HD_T_SPAN: put_every(w, name, v); break;
	case HD_T_LIST:  put_list(w, name, v); break;
	case HD_T_NAMES: put_names(w, name, v); break;
	case HD_T_CALLS: put_calls(w, name, v); break;
	case HD_T_ARGS:  put_args(w, name, v); break;
	case HD_T_TERMS: hd_job_put_terms(w, name, v); break;
	case HD_T_GROUPS: hd_job_put_groups(w, name, v); break;
	case HD_T_SPLIT: put_split(w, name, v, hd_job_keys[key].words); break;
	}
}

static void put_with_origin(struct hd_json_writer *w, const char *name, const struct hd_job *job,
	enum hd_job_key key)
{
	static const char *const origins[] = {
		[HD_FROM_DEFAULT] = "default", [HD_FROM_FILE] = "file", [HD_FROM_ENV] = "environment",
		[HD_FROM_SET] = "-s", [HD_FROM_OPTION] = "option",
	};
	const struct hd_job_value *v = &job->value[key];

	hd_json_open_object(w, name);
	put_value(w, "value", job, key);
	hd_json_put_text(w, "origin", origins[v->origin]);
	if (v->line) {
		hd_json_put_i64(w, "line", v->line);
		hd_json_put_i64(w, "column", v->column);
	}
	hd_json_close(w);
}

static int by_dotted(const void *a, const void *b)
{
	enum hd_job_key x = *(const enum hd_job_key *)a, y = *(const enum hd_job_key *)b;
	int tables = strcmp(hd_job_keys[x].table, hd_job_keys[y].table);

	return tables ? tables : strcmp(hd_job_keys[x].key, hd_job_keys[y].key);
}

/* The part of a key before the dot is a table inside its table; "" without one. */
static void subtable(enum hd_job_key key, char out[HD_DOTTED_CAP])
{
	const char *dot = key < HD_JOB_NKEYS ? strchr(hd_job_keys[key].key, '.') : NULL;

	snprintf(out, HD_DOTTED_CAP, "%.*s", dot ? (int)(dot - hd_job_keys[key].key) : 0,
		dot ? hd_job_keys[key].key : "");
}

typedef void hd_put_fn(struct hd_json_writer *w, const char *name, const struct hd_job *job,
	enum hd_job_key key);

/* Keys sorted by table and name; no key of ours sorts between a table and its inside. */
static void put_tables(const struct hd_job *job, bool result_only, hd_put_fn *put, struct hd_text *text)
{
	struct hd_json_writer w;
	enum hd_job_key key[HD_JOB_NKEYS];
	const char *table = NULL;
	char inside[HD_DOTTED_CAP] = "", sub[HD_DOTTED_CAP];
	size_t n = 0;

	for (int k = 0; k < HD_JOB_NKEYS; k++)
		if (!result_only || hd_job_keys[k].result == 1 ||
			(hd_job_keys[k].result && !job->value[k].is_standard))
			key[n++] = (enum hd_job_key)k;
	qsort(key, n, sizeof *key, by_dotted);
	hd_json_writer_init(&w, text);
	hd_json_open_object(&w, NULL);
	for (size_t i = 0; i < n; i++) {
		const struct hd_job_key_row *row = &hd_job_keys[key[i]];
		bool new_table = !table || strcmp(table, row->table) != 0;
		subtable(key[i], sub);
		if (*inside && (new_table || strcmp(inside, sub) != 0))
			hd_json_close(&w);
		if (new_table) {
			if (table)
				hd_json_close(&w);
			hd_json_open_object(&w, row->table);
			*inside = '\0';
		}
		if (*sub && strcmp(inside, sub) != 0)
			hd_json_open_object(&w, sub);
		snprintf(inside, sizeof inside, "%s", sub);
		table = row->table;
		put(&w, *sub ? row->key + strlen(sub) + 1 : row->key, job, key[i]);
	}
	if (*inside)
		hd_json_close(&w);
	hd_json_close(&w);
	hd_json_close(&w);
}

void hd_job_json(const struct hd_job *job, bool origins, struct hd_text *text)
{
	put_tables(job, false, origins ? put_with_origin : put_value, text);
}

/* That there is a file belongs to the job; its content is known to its reader. */
static void put_hashed(struct hd_json_writer *w, const char *name, const struct hd_job *job,
	enum hd_job_key key)
{
	if (hd_job_keys[key].type == HD_T_FILE && !job->value[key].is_none)
		hd_json_put_text(w, name, "file");
	else
		put_value(w, name, job, key);
}

void hd_job_canonical(const struct hd_job *job, struct hd_text *text) { put_tables(job, true, put_hashed,
	text); }
