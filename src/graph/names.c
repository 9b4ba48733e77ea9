#include "graph/names.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

const struct hd_family hd_families[] = {
	{
		/* stored as we store it, [in, out]; the causal mask came along as a tensor in older files */
		.model = "gpt",
		.prefix = { "transformer." },
		.ignored = { "h.{i}.attn.bias", "h.{i}.attn.masked_bias" },
		.tied = { { "lm_head.weight", "wte.weight", NULL } },
		.surplus = { "multiple_choice_head.*" },
	},
	/* rotary frequencies are computed; a head of its own is no second name where the model has one */
#define DECODER(name) \
	{ .model = name, .ignored = { "model.layers.{i}.self_attn.rotary_emb.inv_freq" }, \
	  .tied = { { "lm_head.weight", "model.embed_tokens.weight", NULL } } }
	DECODER("llama"), DECODER("mistral"), DECODER("qwen2"), DECODER("qwen3"), DECODER("gemma2"),
	DECODER("phi3"),
#undef DECODER
	/* experts are one tensor each, [experts, ..]; published one by one; in memory below mlp */
#define MIXTURE(name, moe) \
	{ .model = name, .rule = { \
	  { "model.layers.{i}." moe ".experts.*", "model.layers.{i}.mlp.experts.{i}.*", .stack = 2, .old = true, \
	  .memory = true }, \
	  { "model.layers.{i}." moe ".*", "model.layers.{i}.mlp.*", .old = true, .memory = true }, \
	  { "model.layers.{i}." moe ".experts.*", "model.layers.{i}." moe ".experts.{i}.*", .stack = 2 } }, \
	  .ignored = { "model.layers.{i}.self_attn.rotary_emb.inv_freq" }, \
	  .tied = { { "lm_head.weight", "model.embed_tokens.weight", NULL } } }
	MIXTURE("mixtral", "block_sparse_moe"), MIXTURE("qwen2-moe", "mlp"), MIXTURE("qwen3-moe", "mlp"),
#undef MIXTURE
	/* version 4 calls the head embed_out */
	{ .model = "neox", .rule = { { "lm_head.weight", "embed_out.weight", .old = true } },
	  .ignored = { "gpt_neox.layers.{i}.attention.bias", "gpt_neox.layers.{i}.attention.masked_bias",
	  "gpt_neox.layers.{i}.attention.rotary_emb.inv_freq" },
	  .tied = { { "lm_head.weight", "gpt_neox.embed_in.weight", NULL } } },
	{
		/* the norms of older files; positions that are only counted */
		.model = "bert",
		.rule = { { "*.weight", "*.gamma", .old = true }, { "*.bias", "*.beta", .old = true } },
		.ignored = { "bert.embeddings.position_ids" },
		.tied = { { "cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight",
		"cls.predictions.bias" },
			{ "cls.predictions.decoder.bias", "cls.predictions.bias", NULL } },
		.surplus = { "cls.*", "bert.pooler.*", "classifier.*" },
	},
	{
		.model = "roberta",
		.ignored = { "roberta.embeddings.position_ids" },
		.tied = { { "lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight",
		"lm_head.bias" },
			{ "lm_head.decoder.bias", "lm_head.bias", NULL } },
		.surplus = { "lm_head.*", "roberta.pooler.*", "classifier.*" },
	},
	/* the bias of some first files' cross attention is nothing that is read */
	{ .model = "t5", .ignored = { "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight" },
	  .tied = { { "lm_head.weight", "shared.weight", NULL },
	  { "encoder.embed_tokens.weight", "shared.weight", NULL },
	  { "decoder.embed_tokens.weight", "shared.weight", NULL } } },
	{
		/* version 5 of the library has other names in memory, and writes these */
		.model = "vit",
		.rule = {
			{ "vit.encoder.layer.{i}.attention.attention.query.*", "vit.layers.{i}.attention.q_proj.*", .old = true, .memory = true },
			{ "vit.encoder.layer.{i}.attention.attention.key.*", "vit.layers.{i}.attention.k_proj.*", .old = true, .memory = true },
			{ "vit.encoder.layer.{i}.attention.attention.value.*", "vit.layers.{i}.attention.v_proj.*", .old = true, .memory = true },
			{ "vit.encoder.layer.{i}.attention.output.dense.*", "vit.layers.{i}.attention.o_proj.*", .old = true, .memory = true },
			{ "vit.encoder.layer.{i}.intermediate.dense.*", "vit.layers.{i}.mlp.fc1.*", .old = true, .memory = true },
			{ "vit.encoder.layer.{i}.output.dense.*", "vit.layers.{i}.mlp.fc2.*", .old = true, .memory = true },
			{ "vit.encoder.layer.{i}.layernorm_*", "vit.layers.{i}.layernorm_*", .old = true, .memory = true } },
	},
#define COUNTED(name) { .model = name, .counter = { ".running_mean", ".num_batches_tracked" } }
	COUNTED("resnet18"), COUNTED("resnet34"), COUNTED("resnet50"), COUNTED("resnet101"),
	COUNTED("resnet152"),
	COUNTED("resnext50_32x4d"), COUNTED("resnext101_32x8d"), COUNTED("resnext101_64x4d"),
	COUNTED("wide_resnet50_2"), COUNTED("wide_resnet101_2"), COUNTED("vgg16"), COUNTED("inception"),
#undef COUNTED
	{ 0 },
};

static const struct hd_family plain;

const struct hd_family *hd_family_of(const char *model)
{
	for (const struct hd_family *f = hd_families; f->model; f++)
		if (!strcmp(f->model, model))
			return f;
	return &plain;
}

/* ---- patterns. What the wildcards stand for, in order. */

enum { MAX_CAUGHT = 4 };

struct caught { const char *at[MAX_CAUGHT]; size_t len[MAX_CAUGHT]; int n; };

static size_t wildcard(const char *pattern) { return *pattern == '*' ? 1 : strncmp(pattern, "{i}", 3) ? 0 : 3;
	}

/* Goes back by wildcards; a pattern has few and a name at most 128 characters. */
static bool match(const char *pattern, const char *name, struct caught *caught)
{
	size_t skip = 0;

	for (; *pattern && !(skip = wildcard(pattern)); pattern++, name++)
		if (*pattern != *name)
			return false;
	if (!*pattern)
		return !*name;
	if (caught->n == MAX_CAUGHT)
		return false;
	int mine = caught->n++;
	for (size_t len = 1; len <= strlen(name); len++) {
		if (skip > 1 && !isdigit((unsigned char)name[len - 1]))
			break;
		caught->at[mine] = name;
		caught->len[mine] = len;
		if (match(pattern + skip, name + len, caught))
			return true;
	}
	caught->n = mine;
	return false;
}

bool hd_name_matches(const char *pattern, const char *name) { return match(pattern, name,
	&(struct caught){ .n = 0 }); }

static bool fill(const char *pattern, const struct caught *caught, char out[HD_MAX_NAME])
{
	struct hd_text text;
	int n = 0;

	hd_text_fixed(&text, out, HD_MAX_NAME);
	while (*pattern) {
		size_t skip = wildcard(pattern);
		if (skip && n < caught->n) {
			hd_text_put(&text, caught->at[n], caught->len[n]);
			n++;
		} else {
			hd_text_put(&text, pattern, 1);
		}
		pattern += skip ? skip : 1;
	}
	return !text.full;
}

/* Takes wildcard `at`, digits, out of what was caught; false: no such number is meant. */
static bool caught_take(struct caught *caught, int at, uint32_t *number)
{
	char digits[8] = "";

	if (caught->len[at] >= sizeof digits)
		return false;
	memcpy(digits, caught->at[at], caught->len[at]);
	*number = (uint32_t)strtoul(digits, NULL, 10);
	caught->n--;
	for (int i = at; i < caught->n; i++) {
		caught->at[i] = caught->at[i + 1];
		caught->len[i] = caught->len[i + 1];
	}
	return true;
}

static bool caught_put(struct caught *caught, int at, const char *digits)
{
	if (caught->n == MAX_CAUGHT || at > caught->n)
		return false;
	for (int i = caught->n++; i > at; i--) {
		caught->at[i] = caught->at[i - 1];
		caught->len[i] = caught->len[i - 1];
	}
	caught->at[at] = digits;
	caught->len[at] = strlen(digits);
	return true;
}

static const char *without_prefix(const struct hd_family *family, const char *name)
{
	for (const char *const *prefix = family->prefix; *prefix; prefix++)
		if (!strncmp(name, *prefix, strlen(*prefix)))
			return name + strlen(*prefix);
	return name;
}

static bool ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n > m && !strcmp(name + n - m, end);
}

static bool means_nothing(const struct hd_family *family, const char *name)
{
	for (const char *const *ignored = family->ignored; *ignored; ignored++)
		if (hd_name_matches(*ignored, name))
			return true;
	return family->counter.of && ends_with(name, family->counter.theirs);
}

bool hd_name_from_theirs(const struct hd_family *family, const char *theirs, struct hd_ours *ours)
{
	const char *name = without_prefix(family, theirs);
	struct caught same = { { name }, { strlen(name) }, 1 };

	*ours = (struct hd_ours){ .kind = means_nothing(family, name) ? HD_NAME_NOTHING : HD_NAME_OURS };
	for (const struct hd_name_tie *tie = family->tied; tie->theirs; tie++)
		if (!strcmp(tie->theirs, name)) {
			ours->kind = HD_NAME_TIED;
			ours->second = tie->theirs;
			return fill(tie->ours, &(struct caught){ .n = 0 }, ours->name);
		}
	for (const struct hd_name_rule *rule = family->rule; rule->ours; rule++) {
		struct caught caught = { .n = 0 };
		if (match(rule->theirs, name, &caught)) {
			ours->turned = rule->turned;
			ours->stacked = rule->stack;
			return (!rule->stack || caught_take(&caught, rule->stack - 1, &ours->part)) &&
				fill(rule->ours, &caught, ours->name);
		}
	}
	return fill("*", &same, ours->name);
}

bool hd_name_is_surplus(const struct hd_family *family, const char *theirs)
{
	for (const char *const *surplus = family->surplus; *surplus; surplus++)
		if (hd_name_matches(*surplus, without_prefix(family, theirs)))
			return true;
	return false;
}

bool hd_name_is_second(const struct hd_family *family, const char *theirs)
{
	for (const struct hd_name_tie *tie = family->tied; tie->theirs; tie++)
		if (!strcmp(tie->theirs, theirs))
			return true;
	return false;
}

/* By the rules that `counts` lets count. */
static bool theirs_by(const struct hd_family *family, const char *ours, uint32_t part,
	bool (*counts)(const struct hd_name_rule *rule), struct hd_theirs *theirs)
{
	struct caught same = { { ours }, { strlen(ours) }, 1 };
	char digits[16];

	theirs->turned = theirs->stacked = false;
	snprintf(digits, sizeof digits, "%u", part);
	for (const struct hd_name_rule *rule = family->rule; rule->ours; rule++) {
		struct caught caught = { .n = 0 };
		if (counts(rule) && match(rule->ours, ours, &caught)) {
			theirs->turned = rule->turned;
			theirs->stacked = rule->stack;
			return (!rule->stack || caught_put(&caught, rule->stack - 1, digits)) &&
				fill(rule->theirs, &caught, theirs->name);
		}
	}
	return fill("*", &same, theirs->name);
}

static bool is_written(const struct hd_name_rule *rule) { return !rule->old; }

static bool is_memory(const struct hd_name_rule *rule) { return rule->memory || !rule->old; }

bool hd_name_to_theirs(const struct hd_family *family, const char *ours, struct hd_theirs *theirs)
{
	return theirs_by(family, ours, 0, is_written, theirs);
}

bool hd_name_in_memory(const struct hd_family *family, const char *ours, struct hd_theirs *theirs)
{
	return theirs_by(family, ours, 0, is_memory, theirs);
}

bool hd_name_part_to_theirs(const struct hd_family *family, const char *ours, uint32_t part,
	struct hd_theirs *theirs)
{
	return theirs_by(family, ours, part, is_written, theirs);
}
