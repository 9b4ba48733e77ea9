#include "job/int.h"

#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/near.h"
#include "base/num.h"

/* optim.groups: [{params: [PATTERN, ...], lr: 1e-4, decay: 0}, ...]. One table says what a group may
 * have, for the reader, the printer and the schema. */

enum field { PARAMS, LR, LR_SCALE, DECAY, FREEZE, NFIELDS };

static const struct { const char *name, *about; double hi; } fields[NFIELDS] = {
	[PARAMS]   = { "params", "patterns of names of parameters; of several groups the first that "
		"matches", 0 },
	[LR]       = { "lr", "learning rate in place of optim.lr; the schedule is the same", 1e6 },
	[LR_SCALE] = { "lr_scale", "times optim.lr", 1e6 },
	[DECAY]    = { "decay", "weight decay in place of optim.weight_decay", 1e6 },
	[FREEZE]   = { "freeze", "true: they are not trained", 0 },
};

static enum hd_err bad(struct hd_job_reader *reader, const struct hd_yaml_node *node, const char *say)
{
	hd_job_place(reader, &node->at);
	return hd_job_refuse(reader, "optim.groups: %s", say);
}

static enum hd_err read_number(struct hd_job_reader *reader, const struct hd_yaml_node *node, enum field f,
	double *out)
{
	struct hd_diag why = { "" };

	if (node->kind == HD_YAML_SCALAR && !hd_num_real(node->text, 0, fields[f].hi, out, &why))
		return HD_OK;
	hd_job_place(reader, &node->at);
	return hd_job_refuse(reader, "optim.groups: %s takes one number%s%s", fields[f].name,
		*why.text ? ": " : "", why.text);
}

static enum hd_err read_params(struct hd_job_reader *reader, const struct hd_yaml_node *node,
	struct hd_job_group *group)
{
	struct hd_job_arg *arg = hd_arena_take(reader->arena, node->nchildren + 1u, sizeof *arg);

	if (!arg)
		return hd_fail(reader->diag, HD_E_NOMEM, "no memory for the values of a job");
	if (node->kind != HD_YAML_SEQ || !node->nchildren || node->nchildren > HD_JOB_MAX_NAMES)
		return bad(reader, node, "params takes a list of 1 to 256 patterns, as [\"*.bias\"]");
	for (const struct hd_yaml_node *c = node->first; c; c = c->next) {
		if (c->kind != HD_YAML_SCALAR || !c->text_len || strlen(c->text) != c->text_len)
			return bad(reader, c, "params takes texts that are not empty");
		arg[group->nparams++] = (struct hd_job_arg){ .text = c->text, .line = c->at.line,
			.column = c->at.column };
	}
	group->params = arg;
	return HD_OK;
}

static enum hd_err read_freeze(struct hd_job_reader *reader, const struct hd_yaml_node *node,
	struct hd_job_group *group)
{
	if (node->kind != HD_YAML_SCALAR || (strcmp(node->text, "true") != 0 &&
		strcmp(node->text, "false") != 0))
		return bad(reader, node, "freeze is true or false");
	group->freeze = !strcmp(node->text, "true");
	return HD_OK;
}

static enum hd_err unknown(struct hd_job_reader *reader, const struct hd_yaml_node *node)
{
	struct hd_near near = hd_near_to(node->key);

	for (int f = 0; f < NFIELDS; f++)
		hd_near_offer(&near, fields[f].name);
	hd_job_place(reader, &node->key_at);
	return hd_job_refuse(reader, "optim.groups: a group has no \"%.40s\"%s%s%s; it has params, lr or "
		"lr_scale, decay, freeze", node->key, near.best ? "; did you mean " : "",
		near.best ? near.best : "", near.best ? "?" : "");
}

static enum hd_err read_field(struct hd_job_reader *reader, const struct hd_yaml_node *node,
	struct hd_job_group *group)
{
	int f = 0;

	while (f < NFIELDS && strcmp(fields[f].name, node->key) != 0)
		f++;
	switch (f) {
	case PARAMS:   return read_params(reader, node, group);
	case FREEZE:   return read_freeze(reader, node, group);
	case LR:       group->has_lr = true; return read_number(reader, node, LR, &group->lr);
	case LR_SCALE: group->has_lr_scale = true; return read_number(reader, node, LR_SCALE,
		&group->lr_scale);
	case DECAY:    group->has_decay = true; return read_number(reader, node, DECAY, &group->decay);
	default:       return unknown(reader, node);
	}
}

static enum hd_err read_group(struct hd_job_reader *reader, const struct hd_yaml_node *node,
	struct hd_job_group *group)
{
	enum hd_err err = HD_OK;

	*group = (struct hd_job_group){ .lr_scale = 1, .line = node->at.line, .column = node->at.column };
	if (node->kind != HD_YAML_MAP)
		return bad(reader, node, "a group is a table, as {params: [\"*.bias\"], decay: 0}");
	for (const struct hd_yaml_node *c = node->first; c && !err; c = c->next)
		err = read_field(reader, c, group);
	if (err)
		return err;
	if (!group->nparams)
		return bad(reader, node, "a group needs params: patterns of the names of its parameters");
	if (group->has_lr && group->has_lr_scale)
		return bad(reader, node, "a group has lr or lr_scale, not both");
	if (group->freeze && (group->has_lr || group->has_lr_scale || group->has_decay))
		return bad(reader, node, "what is frozen has neither rate nor decay: leave them out");
	return HD_OK;
}

enum hd_err hd_job_read_groups(struct hd_job_reader *reader, const struct hd_yaml_node *node,
	struct hd_job_value *v)
{
	struct hd_job_group *group = hd_arena_take(reader->arena, HD_JOB_MAX_GROUPS, sizeof *group);
	enum hd_err err = HD_OK;

	if (!group)
		return hd_fail(reader->diag, HD_E_NOMEM, "no memory for the values of a job");
	v->group = group;
	if (node->kind != HD_YAML_SEQ)
		return hd_job_refuse(reader,
			"optim.groups takes a list: write it as [{params: [\"*.bias\"], decay: 0}]");
	if (node->nchildren > HD_JOB_MAX_GROUPS)
		return hd_job_refuse(reader, "optim.groups has %u entries; %d are the most", node->nchildren,
			HD_JOB_MAX_GROUPS);
	for (const struct hd_yaml_node *c = node->first; c && !err; c = c->next)
		err = read_group(reader, c, &group[v->ngroups++]);
	return err;
}

/* A rate that is a share of nothing says nothing. */
enum hd_err hd_job_check_groups(struct hd_job_reader *reader)
{
	const struct hd_job_value *v = &reader->job->value[HD_JOB_GROUPS];

	hd_job_at(reader, HD_JOB_GROUPS);
	for (uint32_t i = 0; i < v->ngroups; i++) {
		const double lr = hd_job_num(reader->job, HD_JOB_LR);
		if (!v->group[i].has_lr)
			continue;
		if (lr == 0)
			return hd_job_refuse(reader, "optim.groups: group %u has a rate, and optim.lr is 0, "
				"which the schedule goes by: give optim.lr a rate, and the others "
				"lr_scale: 0", i + 1);
		if (v->group[i].lr > fields[LR_SCALE].hi * lr)
			return hd_job_refuse(reader, "optim.groups: the lr of group %u is %g; it is at most "
				"%g times optim.lr", i + 1, v->group[i].lr, fields[LR_SCALE].hi);
	}
	return HD_OK;
}

void hd_job_put_groups(struct hd_json_writer *w, const char *key, const struct hd_job_value *v)
{
	hd_json_open_array(w, key);
	for (const struct hd_job_group *g = v->group; g < v->group + v->ngroups; g++) {
		hd_json_open_object(w, NULL);
		if (g->has_decay)
			hd_json_put_f64(w, fields[DECAY].name, g->decay);
		if (g->freeze)
			hd_json_put_bool(w, fields[FREEZE].name, true);
		if (g->has_lr)
			hd_json_put_f64(w, fields[LR].name, g->lr);
		if (g->has_lr_scale)
			hd_json_put_f64(w, fields[LR_SCALE].name, g->lr_scale);
		hd_json_open_array(w, fields[PARAMS].name);
		for (uint32_t i = 0; i < g->nparams; i++)
			hd_json_put_text(w, NULL, g->params[i].text);
		hd_json_close(w);
		hd_json_close(w);
	}
	hd_json_close(w);
}

void hd_job_schema_groups(struct hd_json_writer *w)
{
	hd_json_put_text(w, "type", "array");
	hd_json_put_i64(w, "maxItems", HD_JOB_MAX_GROUPS);
	hd_json_open_object(w, "items");
	hd_json_put_text(w, "type", "object");
	hd_json_put_bool(w, "additionalProperties", false);
	hd_json_open_array(w, "required");
	hd_json_put_text(w, NULL, fields[PARAMS].name);
	hd_json_close(w);
	hd_json_open_object(w, "properties");
	for (int f = 0; f < NFIELDS; f++) {
		hd_json_open_object(w, fields[f].name);
		hd_json_put_text(w, "description", fields[f].about);
		hd_json_put_text(w, "type", f == PARAMS ? "array" : f == FREEZE ? "boolean" : "number");
		if (f == PARAMS) {
			hd_json_open_object(w, "items");
			hd_json_put_text(w, "type", "string");
			hd_json_put_i64(w, "minLength", 1);
			hd_json_close(w);
		} else if (f != FREEZE) {
			hd_json_put_f64(w, "minimum", 0);
			hd_json_put_f64(w, "maximum", fields[f].hi);
		}
		hd_json_close(w);
	}
	hd_json_close(w);
	hd_json_close(w);
}
