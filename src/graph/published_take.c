#include "graph/published_int.h"

#include <stdio.h>
#include <string.h>

#include "base/num.h"

/* ---- values */

bool hd_published_null(const struct hd_json *json) { return !json || hd_json_kind(json) == HD_JSON_NULL; }

enum hd_err hd_published_nomem(struct hd_config_reading *r) { return hd_fail(r->diag, HD_E_NOMEM,
	"no memory for what %s says", r->name); }

/* A value as a user of ours would write it; an empty list or table is as good as none. */
static enum hd_err text_of(struct hd_config_reading *r, const struct hd_json *json, const char **out)
{
	struct hd_text text;
	const char *word;
	char number[HD_NUM_CAP];
	int64_t n;
	double x;
	bool yes;

	hd_text_init(&text, r->arena);
	hd_text_add(&text, "");
	if (!hd_json_as_text(json, &word, NULL))
		hd_text_add(&text, word);
	else if (!hd_json_as_i64(json, INT64_MIN, INT64_MAX, &n, NULL))
		hd_text_addf(&text, "%lld", (long long)n);
	else if (!hd_json_as_f64(json, &x, NULL))
		hd_text_add(&text, hd_num_print_f64(number, x));
	else if (!hd_json_as_bool(json, &yes, NULL))
		hd_text_add(&text, yes ? "true" : "false");
	else if (hd_json_count(json))
		hd_text_add(&text, hd_json_kind_name(hd_json_kind(json)));
	if (text.full)
		return hd_published_nomem(r);
	*out = text.at;
	return HD_OK;
}

/* Of the file, else what the library takes; NULL: it says nothing. */
static enum hd_err value_of(struct hd_config_reading *r, const struct hd_published_key *key,
	const struct hd_json *found,
	const char **out)
{
	*out = found && hd_published_null(found) && key->null ? key->null : key->standard;
	return hd_published_null(found) ? HD_OK : text_of(r, found, out);
}

static bool same_value(const char *a, const char *b, size_t len)
{
	char word[64];
	double x, y;

	if (len >= sizeof word)
		return false;
	memcpy(word, b, len);
	word[len] = '\0';
	if (!hd_num_f64(a, -1e300, 1e300, &x, NULL) && !hd_num_f64(word, -1e300, 1e300, &y, NULL))
		return x == y;
	return !strcmp(a, word);
}

/* The text of another key of the same file, or what is taken for it. */
static enum hd_err other_value(struct hd_config_reading *r, const char *name, const char **out)
{
	const struct hd_published_key *key = r->type->key;

	while (key->name && (strcmp(key->name, name) != 0 || key->in))
		key++;
	return value_of(r, key, hd_json_find(r->json, name), out);
}

static const char *dotted(const struct hd_published_key *key, char out[96])
{
	snprintf(out, 96, "%s%s%s", key->in ? key->in : "", key->in ? "." : "", key->name);
	return out;
}

/* ---- what becomes of a key */

static enum hd_err give(struct hd_config_reading *r, const struct hd_published_key *key, const char *argument,
	const char *value,
	bool found)
{
	struct hd_published *out = r->out;
	char path[96];

	for (uint32_t i = 0; i < out->nargs; i++)
		if (!strcmp(out->arg[i].name, argument)) {
			if (!found || same_value(value, out->arg[i].value, strlen(out->arg[i].value)))
				return HD_OK;
			return hd_fail(r->diag, HD_E_INPUT,
				"%s: %s is %s, but another key of the file says %s; leave one of them",
				r->name, dotted(key, path),
				value, out->arg[i].value);
		}
	if (out->nargs == HD_MAX_ARGS)
		return hd_fail(r->diag, HD_E_BUG, "%s: more than %d arguments of builtin:%s", r->name,
			HD_MAX_ARGS, r->type->model);
	out->arg[out->nargs++] = (struct hd_model_arg){ argument, value };
	return HD_OK;
}

enum hd_err hd_take_arg(struct hd_config_reading *r, const struct hd_published_key *key,
	const struct hd_json *found)
{
	const char *value;
	enum hd_err err = value_of(r, key, found, &value);

	return err || !value ? err : give(r, key, key->what, value, found != NULL);
}

/* What our default comes to as well is left to it: the job says no more than it must. */
static enum hd_err take_unless(struct hd_config_reading *r, const struct hd_published_key *key,
	const struct hd_json *found,
	int64_t standard)
{
	int64_t n;
	enum hd_err err = hd_published_null(found) ? HD_OK : hd_json_as_i64(found, 1, 1 << 30, &n, r->diag);

	return err || hd_published_null(found) || n == standard ? err : hd_take_arg(r, key, found);
}

static enum hd_err integer_of(struct hd_config_reading *r, const char *name, int64_t *n)
{
	const char *text = "";
	enum hd_err err = other_value(r, name, &text);

	if (!err && hd_num_i64(text, 1, 1 << 30, n, NULL))
		err = hd_fail(r->diag, HD_E_INPUT, "%s: %s is '%s', not a number above 0", r->name, name,
			text);
	return err;
}

enum hd_err hd_take_inner(struct hd_config_reading *r, const struct hd_published_key *key,
	const struct hd_json *found)
{
	int64_t width = 0;
	enum hd_err err = integer_of(r, "n_embd", &width);

	return err ? err : take_unless(r, key, found, 4 * width);
}

enum hd_err hd_take_head_dim(struct hd_config_reading *r, const struct hd_published_key *key,
	const struct hd_json *found)
{
	int64_t width = 0, heads = 1;
	enum hd_err err = integer_of(r, "hidden_size", &width);

	if (!err)
		err = integer_of(r, "num_attention_heads", &heads);
	return err ? err : take_unless(r, key, found, width % heads ? 0 : width / heads);
}

/* `what`: the words that ours computes with, the usual one first; "": only where the key says nothing. */
enum hd_err hd_take_must(struct hd_config_reading *r, const struct hd_published_key *key,
	const struct hd_json *found)
{
	const char *value = "";
	char path[96];
	enum hd_err err = hd_published_null(found) ? HD_OK : text_of(r, found, &value);
	size_t first = strcspn(key->what, "|");

	if (err || hd_published_null(found) || (!*value && !*key->what))
		return err;
	for (const char *at = key->what; *at; at += strspn(at, "|")) {
		size_t len = strcspn(at, "|");
		if (same_value(value, at, len))
			return HD_OK;
		at += len;
	}
	return hd_fail(r->diag, HD_E_INPUT,
		"%s: %s is %s; builtin:%s computes with %.*s and would give other outputs", r->name,
		dotted(key, path), value,
		r->type->model, first ? (int)first : 7, first ? key->what : "nothing of the kind");
}

enum hd_err hd_take_same(struct hd_config_reading *r, const struct hd_published_key *key,
	const struct hd_json *found)
{
	const char *value = "", *other = "";
	enum hd_err err = hd_published_null(found) ? HD_OK : text_of(r, found, &value);

	if (!err)
		err = other_value(r, key->what, &other);
	if (err || hd_published_null(found) || same_value(value, other, strlen(other)))
		return err;
	return hd_fail(r->diag, HD_E_INPUT, "%s: %s is %s and %s %s; builtin:%s has one number for both",
		r->name, key->name, value, key->what, other,
		r->type->model);
}

static enum hd_err note(struct hd_config_reading *r, const struct hd_published_key *key, const char *value,
	const char *ours)
{
	double x;

	if (hd_num_f64(value, 0, 1, &x, NULL) || hd_num_f64(ours, 0, 1, &x, NULL))
		return hd_fail(r->diag, HD_E_INPUT, "%s: %s is '%s', not a share from 0 to 1", r->name,
			key->name, value);
	hd_text_addf(&r->out->notes,
		"%s: %s is %s, builtin:%s trains with %s there; outputs do not depend on it\n", r->name,
		key->name, value,
		r->type->model, ours);
	return r->out->notes.full ? hd_published_nomem(r) : HD_OK;
}

enum hd_err hd_take_note(struct hd_config_reading *r, const struct hd_published_key *key,
	const struct hd_json *found)
{
	const char *value;
	enum hd_err err = value_of(r, key, found, &value);

	return err || !value || same_value(value, key->what, strlen(key->what)) ? err : note(r, key, value,
		key->what);
}

enum hd_err hd_take_like(struct hd_config_reading *r, const struct hd_published_key *key,
	const struct hd_json *found)
{
	const char *value, *other;
	enum hd_err err = value_of(r, key, found, &value);

	if (!err)
		err = other_value(r, key->what, &other);
	return err || !value || same_value(value, other, strlen(other)) ? err : note(r, key, value, other);
}

/* id2label names them, num_labels counts them. */
enum hd_err hd_take_labels(struct hd_config_reading *r, const struct hd_published_key *key,
	const struct hd_json *found)
{
	struct hd_text text;

	if (hd_published_null(found) || hd_json_kind(found) != HD_JSON_OBJECT)
		return hd_take_arg(r, key, found);
	hd_text_init(&text, r->arena);
	hd_text_addf(&text, "%zu", hd_json_count(found));
	return text.full ? hd_published_nomem(r) : give(r, key, key->what, text.at, true);
}

/* A head that has none leaves them alone. */
enum hd_err hd_take_classes(struct hd_config_reading *r, const struct hd_published_key *key,
	const struct hd_json *found)
{
	return r->head && !strcmp(r->head, "cls") ? hd_take_labels(r, key, found) : HD_OK;
}

enum hd_err hd_take_architectures(struct hd_config_reading *r, const struct hd_published_key *key,
	const struct hd_json *found)
{
	const struct hd_published_head *h = r->type->head;
	const char *first = "";
	enum hd_err err = HD_OK;

	if (hd_published_null(found))
		return HD_OK;
	err = hd_json_as(found, HD_JSON_ARRAY, r->diag);
	if (err || !hd_json_count(found))
		return err;
	err = hd_json_as_text(hd_json_item(found, 0), &first, r->diag);
	while (!err && h->architecture && strcmp(h->architecture, first) != 0)
		h++;
	if (!err && !h->architecture)
		err = hd_fail(r->diag, HD_E_INPUT,
			"%s: %s says %s; builtin:%s is a %s%s%s and has no other head", r->name, key->name,
			first, r->type->model,
			r->type->head[0].architecture, r->type->head[1].head ? " or a " : "",
			r->type->head[1].head ? r->type->head[1].architecture : "");
	r->head = err ? NULL : h->head;
	return err || !r->head ? err : give(r, key, "head", r->head, true);
}

enum hd_err hd_take_table(struct hd_config_reading *r, const struct hd_published_key *key,
	const struct hd_json *found)
{
	(void)key;
	return hd_published_null(found) ? HD_OK : hd_json_as(found, HD_JSON_OBJECT, r->diag);
}

enum hd_err hd_take_any(struct hd_config_reading *r, const struct hd_published_key *key,
	const struct hd_json *found)
{
	(void)r, (void)key, (void)found;
	return HD_OK;
}

/* A model of classes has no head to be tied. */
enum hd_err hd_take_tied_head(struct hd_config_reading *r, const struct hd_published_key *key,
	const struct hd_json *found)
{
	return r->head && !strcmp(r->head, "cls") ? HD_OK : hd_take_must(r, key, found);
}

/* ---- positions behind those of pads (RoBERTa) */

static enum hd_err pad_of(struct hd_config_reading *r, int64_t *pad)
{
	const char *text = "";
	enum hd_err err = other_value(r, "pad_token_id", &text);

	if (!err && hd_num_i64(text, 0, 1 << 16, pad, NULL))
		err = hd_fail(r->diag, HD_E_INPUT, "%s: pad_token_id is '%s': positions begin behind it, so "
			"it is a number from 0 to 65536", r->name, text);
	return err;
}

static enum hd_err give_count(struct hd_config_reading *r, const struct hd_published_key *key,
	const char *argument, int64_t n)
{
	struct hd_text text;

	hd_text_init(&text, r->arena);
	hd_text_addf(&text, "%lld", (long long)n);
	return text.full ? hd_published_nomem(r) : give(r, key, argument, text.at, true);
}

enum hd_err hd_take_pad(struct hd_config_reading *r, const struct hd_published_key *key,
	const struct hd_json *found)
{
	int64_t pad = 0;
	enum hd_err err = pad_of(r, &pad);

	if (!err && found && hd_published_null(found))
		err = hd_fail(r->diag, HD_E_INPUT, "%s: pad_token_id is null: positions begin behind it, so "
			"it must be a number", r->name);
	if (!err)
		err = give_count(r, key, key->what, pad);
	return err ? err : give_count(r, key, "offset", pad + 1);
}

enum hd_err hd_take_places(struct hd_config_reading *r, const struct hd_published_key *key,
	const struct hd_json *found)
{
	int64_t pad = 0, rows = 0;
	enum hd_err err = pad_of(r, &pad);

	(void)found;
	if (!err)
		err = integer_of(r, key->name, &rows);
	if (!err && rows < pad + 3)
		err = hd_fail(r->diag, HD_E_INPUT, "%s: %s is %lld, and positions begin at %lld: none are "
			"left for two tokens", r->name, key->name, (long long)rows, (long long)pad + 1);
	if (!err)
		err = give_count(r, key, "context", rows - pad - 1);
	return err ? err : give_count(r, key, key->what, rows);
}

/* "a, b" of "a=x|b=y" */
static const char *theirs_of(struct hd_config_reading *r, const char *words)
{
	struct hd_text text;

	hd_text_init(&text, r->arena);
	for (const char *at = words; *at; at += strspn(at, "|")) {
		hd_text_addf(&text, "%s%.*s", at == words ? "" : ", ", (int)strcspn(at, "="), at);
		at += strcspn(at, "|");
	}
	return text.full ? "others" : text.at;
}

/* "default=plain|su=longrope|...": the file's words and ours. One that is not listed is refused. */
enum hd_err hd_take_word(struct hd_config_reading *r, const struct hd_published_key *key,
	const struct hd_json *found)
{
	const char *argument = key->what, *words = strchr(argument, ':') + 1, *value = NULL;
	char path[96];
	enum hd_err err = value_of(r, key, found, &value);

	for (const char *at = words; !err && value && *at; at += strspn(at, "|")) {
		size_t len = strcspn(at, "=|"), whole = strcspn(at, "|");
		if (same_value(value, at, len)) {
			const char *ours = hd_arena_text(r->arena, at + len + 1, whole - len - 1),
				*name = hd_arena_text(r->arena, argument, (size_t)(words - argument) - 1);
			return ours && name ? give(r, key, name, ours, found != NULL) : hd_published_nomem(r);
		}
		at += whole;
	}
	return err || !value ? err : hd_fail(r->diag, HD_E_INPUT,
		"%s: %s is %s; builtin:%s computes with %s and would give other outputs", r->name,
		dotted(key, path), value, r->type->model, theirs_of(r, words));
}

enum hd_err hd_take_reals(struct hd_config_reading *r, const struct hd_published_key *key,
	const struct hd_json *found)
{
	char number[HD_NUM_CAP];
	struct hd_text text;
	double x;
	enum hd_err err = hd_published_null(found) ? HD_OK : hd_json_as(found, HD_JSON_ARRAY, r->diag);

	if (err || hd_published_null(found))
		return err;
	hd_text_init(&text, r->arena);
	hd_text_add(&text, "[");
	for (size_t i = 0; i < hd_json_count(found) && !err; i++) {
		err = hd_json_as_f64(hd_json_item(found, i), &x, r->diag);
		hd_text_addf(&text, "%s%s", i ? "," : "", err ? "" : hd_num_print_f64(number, x));
	}
	hd_text_add(&text, "]");
	if (err || text.full)
		return err ? err : hd_published_nomem(r);
	return give(r, key, key->what, text.at, true);
}

/* ---- windows */

static const char *given(const struct hd_config_reading *r, const char *argument)
{
	for (uint32_t i = 0; i < r->out->nargs; i++)
		if (!strcmp(r->out->arg[i].name, argument))
			return r->out->arg[i].value;
	return NULL;
}

/* The window counts where the file says that it is used. */
enum hd_err hd_take_window(struct hd_config_reading *r, const struct hd_published_key *key,
	const struct hd_json *found)
{
	const char *used = NULL;
	enum hd_err err = other_value(r, "use_sliding_window", &used);

	return err || !used || strcmp(used, "true") != 0 ? err : hd_take_arg(r, key, found);
}

/* Unless layer_types has said it, or there is no window. */
enum hd_err hd_take_window_from(struct hd_config_reading *r, const struct hd_published_key *key,
	const struct hd_json *found)
{
	return !given(r, "window") || given(r, "window_from") ? HD_OK : hd_take_arg(r, key, found);
}

static enum hd_err is_windowed(struct hd_config_reading *r, const struct hd_json *layers, size_t i, bool *yes)
{
	const char *word = "";
	enum hd_err err = hd_json_as_text(hd_json_item(layers, i), &word, r->diag);

	*yes = !strcmp(word, "sliding_attention");
	if (!err && !*yes && strcmp(word, "full_attention") != 0)
		err = hd_fail(r->diag, HD_E_INPUT,
			"%s: layer_types has '%s'; builtin:%s has full_attention and "
			"sliding_attention", r->name, word, r->type->model);
	return err;
}

/* Our models have the window in every n-th layer from one on; what no such n says is refused. */
enum hd_err hd_take_layers(struct hd_config_reading *r, const struct hd_published_key *key,
	const struct hd_json *found)
{
	size_t n = hd_published_null(found) ? 0 : hd_json_count(found), from = n, every = 1;
	bool yes = false;
	enum hd_err err = n ? hd_json_as(found, HD_JSON_ARRAY, r->diag) : HD_OK;

	for (size_t i = 0; i < n && !err; i++) {
		err = is_windowed(r, found, i, &yes);
		if (yes && from == n)
			from = i;
		else if (yes && every == 1 && i > from)
			every = i - from;
		if (yes && i > from)
			break;
	}
	for (size_t i = 0; i < n && !err; i++) {
		err = is_windowed(r, found, i, &yes);
		if (!err && yes != (i >= from && (i - from) % every == 0))
			err = hd_fail(r->diag, HD_E_INPUT,
				"%s: %s: builtin:%s has windows in every n-th layer "
				"from one on, and layer %zu is none or one too many", r->name, key->name,
				r->type->model, i);
	}
	if (err || !n || !given(r, "window"))
		return err;
	char *text[2] = { hd_arena_take(r->arena, HD_NUM_CAP, 1), hd_arena_take(r->arena, HD_NUM_CAP, 1) };
	if (!text[0] || !text[1])
		return hd_published_nomem(r);
	snprintf(text[0], HD_NUM_CAP, "%zu", from);
	snprintf(text[1], HD_NUM_CAP, "%zu", every);
	err = give(r, key, "window_from", text[0], true);
	return err ? err : give(r, key, "window_every", text[1], true);
}

/* The library adds it where it is asked for the router's logits. */
enum hd_err hd_take_balance(struct hd_config_reading *r, const struct hd_published_key *key,
	const struct hd_json *found)
{
	const char *asked = NULL, *value = NULL;
	enum hd_err err = other_value(r, "output_router_logits", &asked);

	if (!err)
		err = value_of(r, key, found, &value);
	if (err || !value || same_value(value, "0", 1))
		return err;
	if (asked && !strcmp(asked, "true"))
		return give(r, key, key->what, value, found != NULL);
	hd_text_addf(&r->out->notes, "%s: output_router_logits is not true: the loss is without balance of "
		"the experts, as the library's; `%s: %s` adds it\n", r->name, key->what, value);
	return r->out->notes.full ? hd_published_nomem(r) : HD_OK;
}

/* What the library makes of "gated-gelu" and writes beside it: the activation, and whether there is a gate.
 * Ours is read from the first alone, so they must agree. */
enum hd_err hd_take_act_of(struct hd_config_reading *r, const struct hd_published_key *key,
	const struct hd_json *found)
{
	const char *value = "", *ff = NULL;
	enum hd_err err = hd_published_null(found) ? HD_OK : text_of(r, found, &value);

	if (!err)
		err = other_value(r, key->what, &ff);
	if (err || hd_published_null(found) || !ff)
		return err;
	const bool gated = !strncmp(ff, "gated-", 6);
	const char *act = !strcmp(ff, "gated-gelu") ? "gelu_new" : gated ? ff + 6 : ff;
	if (!strcmp(value, hd_json_kind(found) == HD_JSON_TEXT ? act : gated ? "true" : "false"))
		return HD_OK;
	return hd_fail(r->diag, HD_E_INPUT, "%s: %s is %s, and %s says %s; make them agree", r->name,
		key->name, value, key->what, ff);
}

/* ---- stretched positions */

static void drop(struct hd_published *out, const char *prefix)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < out->nargs; i++)
		if (strncmp(out->arg[i].name, prefix, strlen(prefix)) != 0 ||
			!strcmp(out->arg[i].name, "rope_part"))
			out->arg[kept++] = out->arg[i];
	out->nargs = kept;
}

static enum hd_err give_number(struct hd_config_reading *r, const struct hd_published_key *key,
	const char *argument,
	double x)
{
	char *text = hd_arena_take(r->arena, HD_NUM_CAP, 1);

	return text ? give(r, key, argument, hd_num_print_f64(text, x), true) : hd_published_nomem(r);
}

/* What the library makes of keys that are not there; and of plain positions nothing else counts. Stands
 * behind
 * the keys of the table, of which `what` is the positions of the model. */
enum hd_err hd_take_rope(struct hd_config_reading *r, const struct hd_published_key *key,
	const struct hd_json *found)
{
	const char *kind = given(r, "rope_kind"), *original, *most = given(r, "context");
	double a = 0, b = 0;
	enum hd_err err = HD_OK;

	(void)found;
	if (!kind || !strcmp(kind, "plain")) {
		drop(r->out, "rope_");
		return HD_OK;
	}
	if (!given(r, "rope_original") && most)
		err = give(r, key, "rope_original", most, true);
	original = given(r, "rope_original");
	if (!err && !given(r, "rope_factor") && original && most && !hd_num_f64(original, 1, 1e12, &a,
		NULL) &&
		!hd_num_f64(most, 1, 1e12, &b, NULL))
		err = give_number(r, key, "rope_factor", b / a);
	return err;
}
