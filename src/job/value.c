#include "job/int.h"

#include <stdio.h>
#include <string.h>

#include "base/near.h"
#include "base/num.h"

enum { VALUE_CAP = 64 };

static int64_t whole(double bound) { return bound >= 0x1p63 ? INT64_MAX : (int64_t)bound; }

static enum hd_err no_memory(const struct hd_job_reader *reader)
{
	return hd_fail(reader->diag, HD_E_NOMEM, "no memory for the values of a job");
}

/* "60 s" and "256 MiB" are written with a blank; the number reader knows none. */
static const char *without_blank(const char *text, char out[VALUE_CAP])
{
	const char *blank = strchr(text, ' ');

	if (!blank || blank == text || strlen(text) >= VALUE_CAP)
		return text;
	snprintf(out, VALUE_CAP, "%.*s%s", (int)(blank - text), text, blank + 1);
	return out;
}

static enum hd_err read_text(struct hd_job_reader *reader, const struct hd_job_key_row *row, const char *text,
	struct hd_job_value *v, struct hd_diag *why)
{
	(void)reader;
	(void)row;
	(void)v;
	return *text ? HD_OK : hd_fail(why, HD_E_INVAL, "an empty text means nothing here");
}

static enum hd_err read_word(struct hd_job_reader *reader, const struct hd_job_key_row *row, const char *text,
	struct hd_job_value *v, struct hd_diag *why)
{
	struct hd_near near = hd_near_to(text);
	char list[400];
	struct hd_text words;
	const char *word;
	size_t len;

	hd_text_fixed(&words, list, sizeof list);
	for (uint32_t i = 0; (word = hd_job_word(row->words, i, &len)); i++) {
		if (strlen(text) == len && memcmp(text, word, len) == 0) {
			v->i = i;
			return HD_OK;
		}
		hd_text_addf(&words, "%s%.*s", i ? ", " : "", (int)len, word);
		char *copy = hd_arena_text(reader->arena, word, len);
		if (!copy)
			return no_memory(reader);
		hd_near_offer(&near, copy);
	}
	if (hd_job_is_absent(row->table, row->key, text))
		return hd_fail(why, HD_E_INVAL, "%s is not available in this build; use %s", text, list);
	return hd_fail(why, HD_E_INVAL, "\"%.40s\" is none of %s%s%s%s", text, list,
		near.best ? "; did you mean " : "",
		near.best ? near.best : "", near.best ? "?" : "");
}

static enum hd_err read_int(struct hd_job_reader *reader, const struct hd_job_key_row *row, const char *text,
	struct hd_job_value *v, struct hd_diag *why)
{
	(void)reader;
	return hd_num_i64(text, whole(row->lo), whole(row->hi), &v->i, why);
}

static enum hd_err read_num(struct hd_job_reader *reader, const struct hd_job_key_row *row, const char *text,
	struct hd_job_value *v, struct hd_diag *why)
{
	(void)reader;
	return (row->result ? hd_num_real : hd_num_f64)(text, row->lo, row->hi, &v->f, why);
}

static enum hd_err read_size(struct hd_job_reader *reader, const struct hd_job_key_row *row, const char *text,
	struct hd_job_value *v, struct hd_diag *why)
{
	char compact[VALUE_CAP];
	uint64_t bytes = 0;
	enum hd_err err = hd_num_size(without_blank(text, compact), (uint64_t)whole(row->hi), &bytes, why);

	(void)reader;
	if (!err && bytes < (uint64_t)whole(row->lo))
		err = hd_fail(why, HD_E_INVAL, "%.40s is less than %lld", text, (long long)whole(row->lo));
	v->i = (int64_t)bytes;
	return err;
}

static enum hd_err read_every(struct hd_job_reader *reader, const struct hd_job_key_row *row,
	const char *text, struct hd_job_value *v, struct hd_diag *why)
{
	static const uint64_t max_ms = UINT64_C(366) * 86400 * 1000, ns_per_ms = 1000000;
	char compact[VALUE_CAP];
	const char *at = without_blank(text, compact), *unit = strstr(at, "step");
	uint64_t ms = 0;

	(void)reader;
	if (unit && (!strcmp(unit, "steps") || !strcmp(unit, "step")) && at == compact) {
		compact[unit - at] = '\0';
		v->every_steps = true;
		return hd_num_i64(compact, whole(row->lo), whole(row->hi), &v->i, why);
	}
	if (unit)
		return hd_fail(why, HD_E_INVAL, "\"%.40s\" is no number of steps; write it as 200 steps",
			text);
	enum hd_err err = hd_num_duration(at, max_ms, &ms, why);
	if (!err && ms == 0)
		err = hd_fail(why, HD_E_INVAL,
			"0 is too often; write a duration as 60 s, or steps as 200 steps");
	v->i = (int64_t)(ms * ns_per_ms);
	return err;
}

static enum hd_err read_span(struct hd_job_reader *reader, const struct hd_job_key_row *row, const char *text,
	struct hd_job_value *v, struct hd_diag *why)
{
	static const uint64_t ns_per_ms = 1000000;
	char compact[VALUE_CAP];
	uint64_t ms = 0;
	enum hd_err err = hd_num_duration(without_blank(text, compact), (uint64_t)whole(row->hi), &ms, why);

	(void)reader;
	if (!err && ms < (uint64_t)whole(row->lo))
		err = hd_fail(why, HD_E_INVAL, "%.40s is less than %lld ms", text, (long long)whole(row->lo));
	v->i = (int64_t)(ms * ns_per_ms);
	return err;
}

static enum hd_err (*const read_scalar[])(struct hd_job_reader *reader, const struct hd_job_key_row *row,
	const char *text,
	struct hd_job_value *v, struct hd_diag *why) = {
	[HD_T_TEXT] = read_text, [HD_T_FILE] = read_text, [HD_T_WORD] = read_word, [HD_T_INT] = read_int,
		[HD_T_NUM] = read_num,
	[HD_T_SIZE] = read_size, [HD_T_EVERY] = read_every, [HD_T_SPAN] = read_span,
};

static enum hd_err read_one(struct hd_job_reader *reader, enum hd_job_key key,
	const struct hd_yaml_node *node, struct hd_job_value *v)
{
	const struct hd_job_key_row *row = &hd_job_keys[key];
	char dotted[HD_DOTTED_CAP];
	struct hd_diag why = { "" };

	hd_job_dotted(key, dotted);
	if (node->kind != HD_YAML_SCALAR)
		return hd_job_refuse(reader, "%s takes one value, not %s", dotted,
			hd_yaml_kind_name(node->kind));
	if (!node->text_len && !node->quoted)
		return hd_job_refuse(reader, "%s has no value; give one or leave the line out", dotted);
	if (strlen(node->text) != node->text_len)
		return hd_job_refuse(reader, "%s has a NUL character in its value", dotted);
	v->text = hd_arena_text(reader->arena, node->text, node->text_len);
	if (!v->text)
		return no_memory(reader);
	if (row->type != HD_T_WORD && hd_job_has_word(row->words, v->text)) {
		v->is_auto = !strcmp(v->text, "auto");
		v->is_none = !v->is_auto;
		return HD_OK;
	}
	enum hd_err err = read_scalar[row->type](reader, row, v->text, v, &why);
	return err == HD_E_INVAL ? hd_job_refuse(reader, "%s: %s", dotted, why.text) : err;
}

static enum hd_err number_of(struct hd_job_reader *reader, const char *dotted,
	const struct hd_job_key_row *row,
	const struct hd_yaml_node *node, double *out)
{
	struct hd_diag why = { "" };

	if (node->kind != HD_YAML_SCALAR)
		return hd_job_refuse(reader, "%s takes numbers, not %s", dotted,
			hd_yaml_kind_name(node->kind));
	return hd_num_real(node->text, row->lo, row->hi, out, &why) ? hd_job_refuse(reader, "%s: %s", dotted,
		why.text) : HD_OK;
}

static enum hd_err read_list(struct hd_job_reader *reader, enum hd_job_key key,
	const struct hd_yaml_node *node, struct hd_job_value *v)
{
	const struct hd_job_key_row *row = &hd_job_keys[key];
	char dotted[HD_DOTTED_CAP];
	double *list = hd_arena_take(reader->arena, HD_JOB_MAX_LIST, sizeof *list);
	enum hd_err err = HD_OK;

	hd_job_dotted(key, dotted);
	if (!list)
		return no_memory(reader);
	v->list = list;
	if (node->kind == HD_YAML_SCALAR && hd_job_has_word(row->words, node->text)) {
		v->is_auto = true;
		v->text = "auto";
		return HD_OK;
	}
	if (node->kind != HD_YAML_SEQ)
		return hd_job_refuse(reader, "%s takes a list: write it as [...]", dotted);
	if (node->nchildren && row->hi <= row->lo)
		return hd_job_refuse(reader, "%s: none is available in this build; write []", dotted);
	if (node->nchildren > HD_JOB_MAX_LIST)
		return hd_job_refuse(reader, "%s has %u entries; %d are the most", dotted, node->nchildren,
			HD_JOB_MAX_LIST);
	for (const struct hd_yaml_node *child = node->first; child && !err; child = child->next)
		err = number_of(reader, dotted, row, child, &list[v->nlist++]);
	return err;
}

/* Names left out are 0: {train: 1} splits nothing off. */
static enum hd_err read_split(struct hd_job_reader *reader, enum hd_job_key key,
	const struct hd_yaml_node *node, struct hd_job_value *v)
{
	const struct hd_job_key_row *row = &hd_job_keys[key];
	char dotted[HD_DOTTED_CAP];
	const char *word;
	size_t len;
	uint32_t nnames = 0, nfound = 0;
	double *list;
	enum hd_err err = HD_OK;

	hd_job_dotted(key, dotted);
	while (hd_job_word(row->words, nnames, &len))
		nnames++;
	list = hd_arena_take(reader->arena, nnames, sizeof *list);
	if (!list)
		return no_memory(reader);
	v->list = list;
	v->nlist = nnames;
	if (node->kind != HD_YAML_MAP)
		return hd_job_refuse(reader, "%s takes shares by name: write %s", dotted, row->def);
	for (uint32_t i = 0; (word = hd_job_word(row->words, i, &len)) && !err; i++)
		for (const struct hd_yaml_node *child = node->first; child && !err; child = child->next)
			if (strlen(child->key) == len && memcmp(child->key, word, len) == 0) {
				nfound++;
				err = number_of(reader, dotted, row, child, &list[i]);
			}
	return !err && nfound < node->nchildren ? hd_job_refuse(reader, "%s has a name that is not in %s",
		dotted, row->words) : err;
}

/* One by one as written; [] is none, and a word of the key alone is a list of it. A text that begins with *
 * must be quoted in YAML. */
static enum hd_err read_names(struct hd_job_reader *reader, enum hd_job_key key,
	const struct hd_yaml_node *node, struct hd_job_value *v)
{
	struct hd_job_arg *arg = hd_arena_take(reader->arena, HD_JOB_MAX_NAMES, sizeof *arg);
	char dotted[HD_DOTTED_CAP];

	hd_job_dotted(key, dotted);
	if (!arg)
		return no_memory(reader);
	v->arg = arg;
	if (node->kind == HD_YAML_SCALAR && hd_job_has_word(hd_job_keys[key].words, node->text)) {
		arg[v->nargs++] = (struct hd_job_arg){ .text = node->text, .line = node->at.line,
			.column = node->at.column };
		return HD_OK;
	}
	if (node->kind != HD_YAML_SEQ)
		return hd_job_refuse(reader, "%s takes a list: write it as [...]%s%s", dotted,
			*hd_job_keys[key].words ? ", or " : "", hd_job_keys[key].words);
	if (node->nchildren > HD_JOB_MAX_NAMES)
		return hd_job_refuse(reader, "%s has %u entries; %d are the most", dotted, node->nchildren,
			HD_JOB_MAX_NAMES);
	for (const struct hd_yaml_node *child = node->first; child; child = child->next) {
		if (child->kind != HD_YAML_SCALAR || !child->text_len ||
			strlen(child->text) != child->text_len)
			return hd_job_refuse(reader, "%s takes texts that are not empty", dotted);
		arg[v->nargs++] = (struct hd_job_arg){ .text = child->text, .line = child->at.line,
			.column = child->at.column };
	}
	return HD_OK;
}

/* A number, or a list of them, as one parameter. */
static enum hd_err read_param(struct hd_job_reader *reader, const char *dotted,
	const struct hd_job_key_row *row, const struct hd_yaml_node *node,
	struct hd_job_param *param)
{
	bool is_list = node->kind == HD_YAML_SEQ;
	const struct hd_yaml_node *child = is_list ? node->first : node;
	double *at = hd_arena_take(reader->arena, HD_JOB_MAX_LIST, sizeof *at);
	uint32_t n = 0;
	enum hd_err err = HD_OK;

	if (!at)
		return no_memory(reader);
	if (is_list && (node->nchildren == 0 || node->nchildren > HD_JOB_MAX_LIST))
		return hd_job_refuse(reader, "%s: a list of numbers has 1 to %d of them", dotted,
			HD_JOB_MAX_LIST);
	for (; child && !err; child = is_list ? child->next : NULL)
		err = number_of(reader, dotted, row, child, &at[n++]);
	param->at = at;
	param->n = n;
	param->is_list = is_list;
	return err;
}

/* In bytewise order of the names, so that how it was written does not reach the hash. */
static enum hd_err read_params(struct hd_job_reader *reader, const char *dotted,
	const struct hd_job_key_row *row,
	const struct hd_yaml_node *node, struct hd_job_call *call)
{
	struct hd_job_param *param = hd_arena_take(reader->arena, HD_JOB_MAX_PARAMS, sizeof *param);

	if (!param)
		return no_memory(reader);
	call->param = param;
	call->nparams = 1;
	if (node->kind != HD_YAML_MAP)
		return read_param(reader, dotted, row, node, param);
	if (node->nchildren == 0 || node->nchildren > HD_JOB_MAX_PARAMS)
		return hd_job_refuse(reader, "%s: %.40s has 1 to %d parameters", dotted, call->name,
			HD_JOB_MAX_PARAMS);
	call->nparams = 0;
	for (const struct hd_yaml_node *child = node->first; child; child = child->next) {
		struct hd_job_param got = { .name = child->key };
		enum hd_err err = read_param(reader, dotted, row, child, &got);
		uint32_t at = call->nparams++;
		if (err)
			return err;
		for (; at && strcmp(param[at - 1].name, got.name) > 0; at--)
			param[at] = param[at - 1];
		param[at] = got;
	}
	return HD_OK;
}

static enum hd_err read_calls(struct hd_job_reader *reader, enum hd_job_key key,
	const struct hd_yaml_node *node, struct hd_job_value *v)
{
	const struct hd_job_key_row *row = &hd_job_keys[key];
	struct hd_job_call *call = hd_arena_take(reader->arena, HD_JOB_MAX_CALLS, sizeof *call);
	char dotted[HD_DOTTED_CAP];
	enum hd_err err = HD_OK;

	hd_job_dotted(key, dotted);
	if (!call)
		return no_memory(reader);
	v->call = call;
	if (node->kind != HD_YAML_SEQ)
		return hd_job_refuse(reader, "%s takes a list: write it as [...]", dotted);
	if (node->nchildren > HD_JOB_MAX_CALLS)
		return hd_job_refuse(reader, "%s has %u entries; %d are the most", dotted, node->nchildren,
			HD_JOB_MAX_CALLS);
	for (const struct hd_yaml_node *child = node->first; child && !err; child = child->next) {
		const struct hd_yaml_node *inner = child->kind == HD_YAML_MAP &&
			child->nchildren == 1 ? child->first : NULL;
		struct hd_job_call *c = &call[v->ncalls++];
		*c = (struct hd_job_call){ .name = inner ? inner->key : child->text, .line = child->at.line,
			.column = child->at.column };
		if (!inner && (child->kind != HD_YAML_SCALAR || !child->text_len ||
			strlen(child->text) != child->text_len))
			return hd_job_refuse(reader,
				"%s takes names, or a name and its numbers: [flip, {crop: 4}]", dotted);
		if (inner)
			err = read_params(reader, dotted, row, inner, c);
	}
	return err;
}

/* A list of an argument is kept as text, for the model's own table to read. */
static enum hd_err arg_text(struct hd_job_reader *reader, const char *dotted, const struct hd_yaml_node *node,
	const char **out)
{
	struct hd_text text;

	if (node->kind == HD_YAML_SCALAR) {
		*out = node->text;
		return HD_OK;
	}
	hd_text_init(&text, reader->arena);
	hd_text_add(&text, "[");
	for (const struct hd_yaml_node *child = node->first; child; child = child->next) {
		if (node->kind != HD_YAML_SEQ || child->kind != HD_YAML_SCALAR)
			return hd_job_refuse(reader, "%s: %.60s takes one value or a flat list", dotted,
				node->key);
		hd_text_addf(&text, "%s%s", child == node->first ? "" : ", ", child->text);
	}
	hd_text_add(&text, "]");
	*out = text.at;
	return text.full ? no_memory(reader) : HD_OK;
}

static enum hd_err read_args(struct hd_job_reader *reader, enum hd_job_key key,
	const struct hd_yaml_node *node, struct hd_job_value *v)
{
	char dotted[HD_DOTTED_CAP];
	struct hd_job_arg *arg = hd_arena_take(reader->arena, HD_JOB_MAX_ARGS, sizeof *arg);
	enum hd_err err = HD_OK;

	hd_job_dotted(key, dotted);
	if (!arg)
		return no_memory(reader);
	v->arg = arg;
	if (node->kind != HD_YAML_MAP)
		return hd_job_refuse(reader, "%s takes values by name: write {name: value, ...}", dotted);
	if (node->nchildren > HD_JOB_MAX_ARGS)
		return hd_job_refuse(reader, "%s has %u entries; %d are the most", dotted, node->nchildren,
			HD_JOB_MAX_ARGS);
	for (const struct hd_yaml_node *child = node->first; child && !err; child = child->next) {
		struct hd_job_arg *a = &arg[v->nargs++];
		*a = (struct hd_job_arg){ .name = child->key, .line = child->at.line,
			.column = child->at.column };
		err = arg_text(reader, dotted, child, &a->text);
	}
	return err;
}

enum hd_err hd_job_read_arg(struct hd_job_reader *reader, enum hd_job_key key, const char *name,
	const char *text)
{
	struct hd_job_value *v = &reader->job->value[key];
	struct hd_job_arg *arg = hd_arena_take(reader->arena, (size_t)v->nargs + 1, sizeof *arg);
	uint32_t n = v->nargs, at = 0;

	if (!arg)
		return no_memory(reader);
	if (n)
		memcpy(arg, v->arg, n * sizeof *arg);
	while (at < n && strcmp(arg[at].name, name) != 0)
		at++;
	if (at == HD_JOB_MAX_ARGS)
		return hd_job_refuse(reader, "more than %d arguments", HD_JOB_MAX_ARGS);
	arg[at] = (struct hd_job_arg){ .name = name, .text = text };
	v->arg = arg;
	v->nargs = at == n ? n + 1 : n;
	v->origin = reader->origin;
	v->line = v->column = 0;
	return HD_OK;
}

enum hd_err hd_job_read(struct hd_job_reader *reader, enum hd_job_key key, const struct hd_yaml_node *node)
{
	struct hd_job_value v = { .type = hd_job_keys[key].type, .origin = reader->origin };
	enum hd_err err;

	switch ((enum hd_job_type)v.type) {
	case HD_T_LIST:  err = read_list(reader, key, node, &v); break;
	case HD_T_NAMES: err = read_names(reader, key, node, &v); break;
	case HD_T_CALLS: err = read_calls(reader, key, node, &v); break;
	case HD_T_SPLIT: err = read_split(reader, key, node, &v); break;
	case HD_T_TERMS: err = hd_job_read_terms(reader, node, &v); break;
	case HD_T_GROUPS: err = hd_job_read_groups(reader, node, &v); break;
	case HD_T_ARGS:  err = read_args(reader, key, node, &v); break;
	case HD_T_TEXT: case HD_T_FILE: case HD_T_WORD: case HD_T_INT: case HD_T_NUM: case HD_T_SIZE:
	case HD_T_EVERY: case HD_T_SPAN:
	default:         err = read_one(reader, key, node, &v); break;
	}
	if (!err)
		reader->job->value[key] = v;
	return err;
}
