#include "job/int.h"

#include <string.h>

#include "base/json_writer.h"
#include "base/near.h"
#include "base/num.h"

/* loss: [{kind: cross-entropy}, {kind: kl, weight: 0.5, target: teacher}, ...], which is loss.sum: losses
 * that are added. One table says what a term may have, for the reader, the printer and the schema. */

enum field { KIND, WEIGHT, OF, TARGET, SMOOTHING, DELTA, NFIELDS };

static const struct { const char *name, *about; double standard, hi; const char *words; } fields[NFIELDS] = {
	[KIND]   = { "kind", "a word of model.loss but none", 0, 0, NULL },
	[WEIGHT] = { "weight", "what it counts in the sum", 1, 1e6, NULL },
	[OF]     = { "of", "the output that it judges, of an ONNX file by name", 0, 0, NULL },
	[TARGET] = { "target", "the field of the data that the output is compared with", 0, 0, NULL },
	[SMOOTHING] = { "smoothing", "share of a label that is spread evenly over all classes", 0, 1,
		"cross-entropy|soft-cross-entropy" },
	[DELTA]  = { "delta", "the distance from which on the loss grows evenly", 1, 1e6, "huber|smooth-l1" },
};

/* What a single loss has and a term may have, too, by the name that it has there; NULL: a term has none. */
static const char *in_term(enum hd_job_key key)
{
	if (key == HD_JOB_SMOOTHING)
		return fields[SMOOTHING].name;
	return key == HD_JOB_DELTA ? fields[DELTA].name : NULL;
}

static enum hd_err bad(struct hd_job_reader *reader, const struct hd_yaml_node *node, const char *say)
{
	hd_job_place(reader, &node->at);
	return hd_job_refuse(reader, "loss: %s", say);
}

static double *number_of(struct hd_job_term *term, enum field f)
{
	return f == WEIGHT ? &term->weight : f == SMOOTHING ? &term->smoothing : &term->delta;
}

static const char **text_of(struct hd_job_term *term, enum field f)
{
	return f == KIND ? &term->kind : f == OF ? &term->of : &term->target;
}

static bool is_text(enum field f) { return f == KIND || f == OF || f == TARGET; }

static enum hd_err unknown(struct hd_job_reader *reader, const struct hd_yaml_node *node)
{
	struct hd_near near = hd_near_to(node->key);

	for (int f = 0; f < NFIELDS; f++)
		hd_near_offer(&near, fields[f].name);
	hd_job_place(reader, &node->key_at);
	return hd_job_refuse(reader, "loss: a term of a sum has no \"%.40s\"%s%s%s; it has kind, weight, of, "
		"target, smoothing, delta; class_weights, ignore and pos_weight are of a single loss",
		node->key,
		near.best ? "; did you mean " : "", near.best ? near.best : "", near.best ? "?" : "");
}

static enum hd_err read_number(struct hd_job_reader *reader, const struct hd_yaml_node *node, enum field f,
	struct hd_job_term *term)
{
	struct hd_diag why = { "" };
	double *at = number_of(term, f);

	if (node->kind == HD_YAML_SCALAR && !hd_num_real(node->text, 0, fields[f].hi, at, &why) &&
		(*at > 0 || f == SMOOTHING))
		return HD_OK;
	hd_job_place(reader, &node->at);
	return hd_job_refuse(reader, "loss: %s takes one number%s%s%s", fields[f].name,
		*why.text ? ": " : f == SMOOTHING ? "" : " above 0", why.text,
		f == WEIGHT ? "; leave out a term that counts nothing" : "");
}

static enum hd_err read_field(struct hd_job_reader *reader, const struct hd_yaml_node *node,
	struct hd_job_term *term)
{
	int f = 0;

	while (f < NFIELDS && strcmp(fields[f].name, node->key) != 0)
		f++;
	if (f == NFIELDS)
		return unknown(reader, node);
	if (!is_text((enum field)f))
		return read_number(reader, node, (enum field)f, term);
	if (node->kind != HD_YAML_SCALAR || !node->text_len || strlen(node->text) != node->text_len ||
		node->text_len >= HD_JOB_NAME_CAP)
		return bad(reader, node, "kind, of and target take a name of at most 63 characters");
	*text_of(term, (enum field)f) = node->text;
	return HD_OK;
}

static enum hd_err check_kind(struct hd_job_reader *reader, const struct hd_yaml_node *node,
	const struct hd_job_term *term)
{
	const char *words = hd_job_keys[HD_JOB_LOSS].words;

	if (!term->kind)
		return bad(reader, node, "a term of a sum needs kind, a word of model.loss");
	if (!hd_job_has_word(words, term->kind) || !strcmp(term->kind, "none")) {
		hd_job_place(reader, &node->at);
		return hd_job_refuse(reader, "loss: kind is %.40s: it takes %s, but none", term->kind, words);
	}
	for (int f = 0; f < NFIELDS; f++) {
		if (!fields[f].words || hd_job_has_word(fields[f].words, term->kind) ||
			*number_of((struct hd_job_term *)term, (enum field)f) == fields[f].standard)
			continue;
		hd_job_place(reader, &node->at);
		return hd_job_refuse(reader,
			"loss: %s has no meaning with kind %s (only with %s); leave it out",
			fields[f].name, term->kind, fields[f].words);
	}
	return HD_OK;
}

static enum hd_err read_term(struct hd_job_reader *reader, const struct hd_yaml_node *node,
	struct hd_job_term *term)
{
	enum hd_err err = HD_OK;

	*term = (struct hd_job_term){ .weight = fields[WEIGHT].standard, .delta = fields[DELTA].standard,
		.of = HD_JOB_TERM_OF, .target = HD_JOB_TERM_TARGET };
	if (node->kind != HD_YAML_MAP)
		return bad(reader, node, "a term of a sum is a table, as {kind: mse, weight: 0.5}");
	for (const struct hd_yaml_node *c = node->first; c && !err; c = c->next)
		err = read_field(reader, c, term);
	return err ? err : check_kind(reader, node, term);
}

enum hd_err hd_job_read_terms(struct hd_job_reader *reader, const struct hd_yaml_node *node,
	struct hd_job_value *v)
{
	struct hd_job_term *term = hd_arena_take(reader->arena, HD_JOB_MAX_TERMS, sizeof *term);
	enum hd_err err = HD_OK;

	if (!term)
		return hd_fail(reader->diag, HD_E_NOMEM, "no memory for the values of a job");
	v->term = term;
	if (node->kind != HD_YAML_SEQ)
		return hd_job_refuse(reader,
			"loss.sum takes a list: write it as [{kind: cross-entropy}, {kind: mse, weight: "
			"0.5}]");
	if (node->nchildren > HD_JOB_MAX_TERMS)
		return hd_job_refuse(reader, "loss has %u terms; %d are the most", node->nchildren,
			HD_JOB_MAX_TERMS);
	for (const struct hd_yaml_node *c = node->first; c && !err; c = c->next)
		err = read_term(reader, c, &term[v->nterms++]);
	return err;
}

/* What evaluations count, and whether y is a class, goes by the first term: model.loss is its kind. */
enum hd_err hd_job_check_terms(struct hd_job_reader *reader)
{
	static const enum hd_job_key alone[] = { HD_JOB_SMOOTHING, HD_JOB_CLASS_WEIGHTS, HD_JOB_IGNORE,
		HD_JOB_POS_WEIGHT, HD_JOB_DELTA };
	const struct hd_job_value *v = &reader->job->value[HD_JOB_SUM];
	struct hd_job_value *loss = &reader->job->value[HD_JOB_LOSS];
	char dotted[HD_DOTTED_CAP];

	if (!v->nterms)
		return HD_OK;
	for (size_t i = 0; i < sizeof alone / sizeof *alone; i++)
		if (!hd_job_is_left_out(reader, alone[i])) {
			hd_job_at(reader, alone[i]);
			return in_term(alone[i]) ? hd_job_refuse(reader, "%s is of a single loss; with "
				"several write it into its term, as {kind: ..., %s: 0.1}",
				hd_job_dotted(alone[i], dotted), in_term(alone[i])) :
				hd_job_refuse(reader, "%s is of a single loss, and in a sum of losses no "
				"term has it: leave it out, or give one loss",
				hd_job_dotted(alone[i], dotted));
		}
	hd_job_at(reader, HD_JOB_LOSS);
	if (loss->origin != HD_FROM_DEFAULT && strcmp(loss->text, v->term->kind) != 0)
		return hd_job_refuse(reader, "model.loss is %s, and the first term of the list of losses %s: "
			"leave model.loss out", loss->text, v->term->kind);
	loss->text = v->term->kind;
	for (loss->i = 0;; loss->i++) {
		size_t len = 0;
		const char *word = hd_job_word(hd_job_keys[HD_JOB_LOSS].words, (uint32_t)loss->i, &len);
		if (!word || (strlen(loss->text) == len && !strncmp(word, loss->text, len)))
			break;
	}
	return HD_OK;
}

void hd_job_put_terms(struct hd_json_writer *w, const char *key, const struct hd_job_value *v)
{
	hd_json_open_array(w, key);
	for (uint32_t i = 0; i < v->nterms; i++) {
		struct hd_job_term t = v->term[i];
		hd_json_open_object(w, NULL);
		for (int f = 0; f < NFIELDS; f++) {
			if (is_text((enum field)f))
				hd_json_put_text(w, fields[f].name, *text_of(&t, (enum field)f));
			else if (*number_of(&t, (enum field)f) != fields[f].standard)
				hd_json_put_f64(w, fields[f].name, *number_of(&t, (enum field)f));
		}
		hd_json_close(w);
	}
	hd_json_close(w);
}

void hd_job_schema_terms(struct hd_json_writer *w)
{
	hd_json_put_text(w, "type", "array");
	hd_json_put_i64(w, "maxItems", HD_JOB_MAX_TERMS);
	hd_json_open_object(w, "items");
	hd_json_put_text(w, "type", "object");
	hd_json_put_bool(w, "additionalProperties", false);
	hd_json_open_array(w, "required");
	hd_json_put_text(w, NULL, fields[KIND].name);
	hd_json_close(w);
	hd_json_open_object(w, "properties");
	for (int f = 0; f < NFIELDS; f++) {
		hd_json_open_object(w, fields[f].name);
		hd_json_put_text(w, "description", fields[f].about);
		hd_json_put_text(w, "type", is_text((enum field)f) ? "string" : "number");
		if (!is_text((enum field)f)) {
			hd_json_put_f64(w, "minimum", 0);
			hd_json_put_f64(w, "maximum", fields[f].hi);
		}
		hd_json_close(w);
	}
	hd_json_close(w);
	hd_json_close(w);
}
