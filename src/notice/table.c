#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "notice/source.h"

static const struct hd_notice_source *const sources[] = {
#define X(id) &hd_notice_of_##id,
#include "notice/list.h"
#undef X
};
enum { N_SOURCES = sizeof sources / sizeof *sources };
_Static_assert((int)N_SOURCES <= (int)HD_NOTICE_SOURCES, "a choice has room for all sources");

static const char *const words[] = { "auto", "env", "none" };

const char *hd_notice_kind_name(enum hd_notice_kind kind)
{
	static const char *const names[] = {
#define X(id, name) [HD_NOTICE_##id] = name,
		HD_NOTICE_KINDS(X)
#undef X
	};
	return names[kind];
}

const struct hd_notice_source *hd_notice_find(const char *name)
{
	for (size_t i = 0; i < N_SOURCES; i++)
		if (!strcmp(sources[i]->name, name))
			return sources[i];
	return NULL;
}

const char *hd_notice_name(const struct hd_notice_source *source) { return source->name; }
const char *hd_notice_base(const struct hd_notice_source *source) { return source->base ? source->base : ""; }

static bool is_named(const struct hd_notice_source *s, const char *word) { return !strcmp(s->name, word) ||
	!strcmp(s->cloud, word); }

bool hd_notice_is_setting(const char *word, char list[256])
{
	struct hd_text text;
	bool known = false;

	hd_text_fixed(&text, list, 256);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		known |= !strcmp(words[i], word);
		hd_text_addf(&text, "%s%s", i ? ", " : "", words[i]);
	}
	for (size_t i = 0; i < N_SOURCES; i++) {
		known |= is_named(sources[i], word);
		hd_text_addf(&text, ", %s", sources[i]->name);
	}
	return known;
}

static void take(struct hd_notice_choice *c, const struct hd_notice_source *source)
{
	for (uint32_t i = 0; i < c->n; i++)
		if (c->source[i] == source)
			return;
	c->source[c->n++] = source;
}

/* Files and the signals of the place count always: whatever a cloud says, a user may say more. */
void hd_notice_choose(const char *word, char *const *environment, struct hd_notice_choice *c)
{
	bool by_signal = false, automatic = !strcmp(word, "auto"), named = false;

	*c = (struct hd_notice_choice){ .n = 0 };
	if (!strcmp(word, "none"))
		return;
	for (size_t i = 0; i < N_SOURCES; i++)
		named |= sources[i]->way == HD_NOTICE_BY_SIGNAL && is_named(sources[i], word);
	for (size_t i = 0; i < N_SOURCES; i++) {
		const struct hd_notice_source *s = sources[i];
		bool first = !i || strcmp(sources[i - 1]->cloud, s->cloud) != 0;
		if (s->way == HD_NOTICE_BY_FILE || (s->way == HD_NOTICE_BY_HTTP && is_named(s, word)))
			take(c, s);
		else if (s->way == HD_NOTICE_BY_SIGNAL && !by_signal &&
			(named ? is_named(s, word) : s->is_here(environment))) {
			take(c, s);
			by_signal = true;
		} else if (s->way == HD_NOTICE_BY_HTTP && first && automatic) {
			c->probe[c->nprobes++] = s;
		}
	}
}

void hd_notice_chosen(const struct hd_notice_source *probed, struct hd_notice_choice *c)
{
	for (size_t i = 0; i < N_SOURCES; i++)
		if (!strcmp(sources[i]->cloud, probed->cloud))
			take(c, sources[i]);
}

/* ---- what rows share ---- */

const char *hd_notice_env(char *const *environment, const char *name)
{
	size_t n = strlen(name);

	for (char *const *at = environment; at && *at; at++)
		if (!strncmp(*at, name, n) && (*at)[n] == '=')
			return *at + n + 1;
	return NULL;
}

void hd_notice_put(char *to, size_t cap, const char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len && n + 1 < cap; i++)
		if (text[i] >= ' ' && text[i] < 0x7f && text[i] != '"' && text[i] != '\\')
			to[n++] = text[i];
	to[n] = '\0';
}

bool hd_notice_object(struct hd_arena *arena, const struct hd_notice_answer *a, const struct hd_json **object,
	struct hd_diag *diag)
{
	return hd_json_parse(arena, "the answer", a->body, a->len, object, diag) == HD_OK &&
		hd_json_as(*object, HD_JSON_OBJECT, diag) == HD_OK;
}

const char *hd_notice_member(const struct hd_json *object, const char *key)
{
	const struct hd_json *member = hd_json_find(object, key);
	const char *text = "";

	return member && hd_json_as_text(member, &text, NULL) == HD_OK ? text : "";
}

enum hd_notice_verdict hd_notice_strange(const struct hd_notice_answer *a, struct hd_diag *diag)
{
	bool moved = a->status >= 300 && a->status < 400;

	(void)!hd_fail(diag, HD_E_PROTOCOL, "it answers with status %d%s", a->status,
		moved ? ", and where that leads is not asked" : "");
	return HD_FAILED;
}
