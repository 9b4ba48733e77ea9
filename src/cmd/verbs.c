#include "cmd/verbs.h"

#include <string.h>

#include "base/near.h"

const struct hd_verb *const hd_verbs[] = {
#define X(name) &hd_verb_##name,
	HD_VERBS(X)
#undef X
	NULL,
};

/* Of `words` words, 1 or 2. */
static bool names(const struct hd_verb *verb, int argc, char **argv, int words)
{
	size_t len = strcspn(verb->name, " ");

	if (strlen(argv[0]) != len || strncmp(verb->name, argv[0], len) != 0 ||
		(verb->name[len] ? 2 : 1) != words)
		return false;
	return words == 1 || (argc > 1 && !strcmp(verb->name + len + 1, argv[1]));
}

/* Of a verb that also has subverbs (plan) the second word is an argument if it looks like a file or an
 * option; other words are subverbs, or slips of them. A file of a plain name is written ./NAME. */
static bool is_argument(int argc, char **argv) { return argc < 2 || argv[1][0] == '-' ||
	strpbrk(argv[1], "./") != NULL; }

enum { HD_WORD_CAP = 32 };

/* The nearest of all words that may stand where the user's word stood: first words, or subverbs of `first`.
 * */
static bool near_verb(const char *first, const char *word, char out[HD_WORD_CAP])
{
	struct hd_near near = hd_near_to(word);
	char offered[HD_WORD_CAP];

	for (const struct hd_verb *const *at = hd_verbs, *v; (v = *at); at++) {
		size_t len = strcspn(v->name, " "), before = near.distance;
		if (first && (strncmp(v->name, first, len) != 0 || strlen(first) != len))
			continue;
		snprintf(offered, sizeof offered, "%.*s", first ? HD_WORD_CAP - 1 : (int)len,
			first ? v->name + len + (v->name[len] == ' ') : v->name);
		hd_near_offer(&near, offered);
		if (near.distance < before)
			memcpy(out, offered, HD_WORD_CAP);
	}
	return near.best;
}

static void subverbs(const char *first, char *text, size_t cap)
{
	*text = 0;
	for (const struct hd_verb *const *at = hd_verbs, *v; (v = *at); at++) {
		size_t len = strcspn(v->name, " ");
		if (v->name[len] && strlen(first) == len && !strncmp(v->name, first, len)) {
			strncat(text, *text ? ", " : "", cap - strlen(text) - 1);
			strncat(text, v->name + len + 1, cap - strlen(text) - 1);
		}
	}
}

static bool stands_alone(const char *first)
{
	for (const struct hd_verb *const *at = hd_verbs, *v; (v = *at); at++)
		if (!strcmp(v->name, first))
			return true;
	return false;
}

enum hd_err hd_verb_find(int argc, char **argv, const struct hd_verb **verb, int *used, struct hd_diag *diag)
{
	char near[HD_WORD_CAP] = "", subs[200], hint[HD_WORD_CAP + 24] = "";

	subverbs(argv[0], subs, sizeof subs);
	for (*used = 2; *used; --*used)
		for (const struct hd_verb *const *at = hd_verbs, *v; (v = *at); at++)
			if (names(v, argc, argv, *used) && (*used == 2 || !*subs ||
				is_argument(argc, argv))) {
				*verb = v;
				return HD_OK;
			}
	if (*subs && (argc < 2 || argv[1][0] == '-'))
		return hd_fail(diag, HD_E_INVAL, "`heddle %s` needs one of: %s", argv[0], subs);
	if (*subs ? near_verb(argv[0], argv[1], near) : near_verb(NULL, argv[0], near))
		snprintf(hint, sizeof hint, "; did you mean \"%s\"?", near);
	if (*subs)
		return hd_fail(diag, HD_E_INVAL, "`heddle %s` has no \"%s\"%s%s has: %s%s%s", argv[0],
			argv[1],
			hint, *hint ? " It" : "; it", subs,
			stands_alone(argv[0]) ? "; a job file of that name is ./" : "",
			stands_alone(argv[0]) ? argv[1] : "");
	return hd_fail(diag, HD_E_INVAL, "there is no verb \"%s\"%s `heddle help` lists them", argv[0],
		*hint ? hint : ";");
}
