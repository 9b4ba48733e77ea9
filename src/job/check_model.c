#include "job/int.h"

#include <math.h>
#include <string.h>

#include "graph/lora.h"
#include "graph/model.h"

/* What is trained: the model and its arguments, the weights that it begins with, adapters, its loss. */

/* The arguments of a built-in model as its own table reads them, complete and in its order: so
 * the hash does not depend on how, or whether, a default was written. Those that came after the
 * first hashes are left out while they are the default. */
static enum hd_err fill_args(struct hd_job_reader *reader, const struct hd_model_row *row)
{
	struct hd_job_value *v = &reader->job->value[HD_JOB_MODEL_ARGS];
	struct hd_model_arg given[HD_JOB_MAX_ARGS];
	struct hd_model_value value[HD_MAX_ARGS];
	struct hd_job_arg *arg = hd_arena_take(reader->arena, HD_MAX_ARGS, sizeof *arg);
	struct hd_diag why = { "" };
	struct hd_text text;
	uint32_t n = 0;

	hd_job_at(reader, HD_JOB_MODEL_ARGS);
	for (uint32_t i = 0; i < v->nargs; i++)
		given[i] = (struct hd_model_arg){ v->arg[i].name, v->arg[i].text };
	if (arg && hd_model_args(row, given, v->nargs, value, &why))
		return hd_job_refuse(reader, "model.args: %.300s", why.text);
	for (const struct hd_model_param *p = row->param; arg && p->name; p++) {
		const struct hd_model_value *at = &value[p - row->param];
		if (!hd_model_arg_listed(p, at))
			continue;
		hd_text_init(&text, reader->arena);
		if (p->kind == HD_ARG_WORD)
			hd_text_add(&text, at->word);
		else
			hd_model_arg_print(&text, p, at);
		if (text.full)
			arg = NULL;
		else
			arg[n++] = (struct hd_job_arg){ .name = p->name, .text = text.at,
				.is_word = p->kind == HD_ARG_WORD };
	}
	if (!arg)
		return hd_fail(reader->diag, HD_E_NOMEM, "no memory for the arguments of a model");
	v->arg = arg;
	v->nargs = n;
	return HD_OK;
}

/* Rows are divided by the sum of their weights: with none the loss is 0, which looks like success. */
enum hd_err hd_job_check_class_weights(struct hd_job_reader *reader)
{
	const struct hd_job_value *v = &reader->job->value[HD_JOB_CLASS_WEIGHTS];
	bool any = !v->nlist;

	for (uint32_t i = 0; i < v->nlist; i++)
		any = any || (float)v->list[i] > 0;
	if (any)
		return HD_OK;
	hd_job_at(reader, HD_JOB_CLASS_WEIGHTS);
	return hd_job_refuse(reader, "loss.class_weights are all 0: nothing would be learnt; give a class "
		"that counts a weight above 0");
}

static enum hd_err check_weights(struct hd_job_reader *reader)
{
	hd_job_at(reader, HD_JOB_WEIGHTS_SKIP);
	if (reader->job->value[HD_JOB_WEIGHTS].is_none && reader->job->value[HD_JOB_WEIGHTS_SKIP].nargs)
		return hd_job_refuse(reader,
			"model.weights_skip has no meaning without model.weights; leave it out");
	return HD_OK;
}

static enum hd_err without_args(struct hd_job_reader *reader)
{
	hd_job_at(reader, HD_JOB_MODEL_ARGS);
	if (reader->job->value[HD_JOB_MODEL_ARGS].nargs)
		return hd_job_refuse(reader, "model.args belong to built-in models; a graph file takes none");
	return HD_OK;
}

static enum hd_err check_lora_numbers(struct hd_job_reader *reader, enum hd_job_key key)
{
	const struct hd_job_value *v = &reader->job->value[key];
	char pattern[HD_MAX_NAME], dotted[HD_DOTTED_CAP];
	double number = 0;

	hd_job_at(reader, key);
	for (uint32_t i = 0; i < v->nargs; i++) {
		bool fits = hd_lora_split(v->arg[i].text, pattern, &number);
		if (fits && key == HD_JOB_LORA_RANKS)
			fits = number >= 1 && number <= HD_LORA_MAX_RANK && number == floor(number);
		if (!fits)
			return hd_job_refuse(reader, "%s: '%s' is no PATTERN=%s, as h.0.*=16",
				hd_job_dotted(key, dotted), v->arg[i].text,
				key == HD_JOB_LORA_RANKS ? "RANK with a whole number from 1 to 4096" :
				"ALPHA with a number from 0 to 1e6");
	}
	return HD_OK;
}

static enum hd_err check_lora(struct hd_job_reader *reader)
{
	static const enum hd_job_key inside[] = { HD_JOB_LORA_TARGETS, HD_JOB_LORA_TRAIN, HD_JOB_LORA_RANKS,
		HD_JOB_LORA_ALPHAS }, alone[] = { HD_JOB_LORA_SCALE, HD_JOB_LORA_DROPOUT };
	struct hd_job *job = reader->job;
	struct hd_job_value *alpha = &job->value[HD_JOB_LORA_ALPHA];
	bool on = hd_job_int(job, HD_JOB_LORA_RANK) > 0;
	char dotted[HD_DOTTED_CAP];

	hd_job_at(reader, HD_JOB_LORA_RANK);
	if (on && !job->value[HD_JOB_LORA_TARGETS].nargs)
		return hd_job_refuse(reader,
			"model.lora.rank needs model.lora.targets: patterns of "
			"the matrices that get adapters, as [h.*.attn.c_attn.weight]");
	hd_job_at(reader, HD_JOB_LORA_ALPHA);
	if (!on && !alpha->is_auto)
		return hd_job_refuse(reader,
			"model.lora.alpha has no meaning without model.lora.rank; leave it out");
	for (size_t i = 0; i < sizeof inside / sizeof inside[0]; i++) {
		hd_job_at(reader, inside[i]);
		if (!on && job->value[inside[i]].nargs)
			return hd_job_refuse(reader,
				"%s has no meaning without model.lora.rank; leave it out",
				hd_job_dotted(inside[i], dotted));
	}
	for (size_t i = 0; i < sizeof alone / sizeof alone[0]; i++) {
		hd_job_at(reader, alone[i]);
		if (!on && !hd_job_is_left_out(reader, alone[i]))
			return hd_job_refuse(reader,
				"%s has no meaning without model.lora.rank; leave it out",
				hd_job_dotted(alone[i], dotted));
	}
	for (size_t i = 2; i < sizeof inside / sizeof inside[0]; i++) {
		enum hd_err err = check_lora_numbers(reader, inside[i]);
		if (err)
			return err;
	}
	return HD_OK;
}

static enum hd_err check_shards(struct hd_job_reader *reader)
{
	hd_job_at(reader, HD_JOB_SEQUENCE_SHARDS);
	if (hd_job_int(reader->job, HD_JOB_SEQUENCE_SHARDS) && hd_job_int(reader->job, HD_JOB_SHARDS) == 1)
		return hd_job_refuse(reader,
			"model.sequence_shards splits in model.shards parts, and that is 1; give "
			"model.shards, or leave this out");
	return HD_OK;
}

static enum hd_err check_graph_file(struct hd_job_reader *reader)
{
	struct hd_job *job = reader->job;
	struct hd_job_value *loss = &job->value[HD_JOB_LOSS];

	hd_job_at(reader, HD_JOB_LOSS);
	if (hd_job_is_given(job, HD_JOB_LOSS) && strcmp(loss->text, "none") != 0)
		return hd_job_refuse(reader,
			"model.loss is %s, but a graph file has its own loss; write none or leave it out",
			loss->text);
	loss->text = "none";
	const char *word;
	for (size_t len, i = 0; (word = hd_job_word(hd_job_keys[HD_JOB_LOSS].words, (uint32_t)i, &len)); i++)
		loss->i = len == 4 && !memcmp(word, "none", len) ? (int64_t)i : loss->i;
	return without_args(reader);
}

enum hd_err hd_job_check_model(struct hd_job_reader *reader)
{
	static const char builtin[] = "builtin:", graph[] = "graph:", onnx[] = "onnx:";
	const char *use = hd_job_text(reader->job, HD_JOB_MODEL);
	const struct hd_model_row *row = NULL;
	struct hd_diag why = { "" };

	hd_job_at(reader, HD_JOB_MODEL);
	if (strncmp(use, onnx, sizeof onnx - 1) == 0 && use[sizeof onnx - 1])
		return without_args(reader);
	if (strncmp(use, graph, sizeof graph - 1) == 0 && use[sizeof graph - 1])
		return check_graph_file(reader);
	if (strncmp(use, builtin, sizeof builtin - 1) != 0)
		return hd_job_refuse(reader,
			"model.use is \"%.60s\"; write builtin:NAME (heddle model ls prints the names), "
			"graph:FILE or onnx:FILE", use);
	if (hd_model_find(use + sizeof builtin - 1, &row, &why))
		return hd_job_refuse(reader, "model.use: %.200s", why.text);
	if (!strcmp(hd_job_text(reader->job, HD_JOB_LOSS), "none")) {
		hd_job_at(reader, HD_JOB_LOSS);
		return hd_job_refuse(reader,
			"model.loss is none, but a built-in model needs one, as cross-entropy or mse");
	}
	return fill_args(reader, row);
}

enum hd_err hd_job_check_parts(struct hd_job_reader *reader)
{
	static hd_job_rule *const checks[] = { check_weights, check_lora, check_shards };

	return hd_job_check_each(reader, checks, sizeof checks / sizeof checks[0]);
}
