#include <string.h>

#include "base/near.h"
#include "cmd/verbs.h"

static void option_line(const struct hd_opt_row *row, FILE *to)
{
	char left[64], letter[8] = "";

	if (row->letter)
		snprintf(letter, sizeof letter, "-%c, ", row->letter);
	snprintf(left, sizeof left, "%s--%s%s%s", letter, row->name, *row->value ? " " : "", row->value);
	fprintf(to, "  %-28s %s\n", left, row->about);
}

/* One error for each code of base/err.h; README.md has the same list. */
static const struct { enum hd_err err; const char *about; } exits[] = {
	{ HD_OK, "done" },
	{ HD_E_AGAIN, "not now (somebody else does it, or did not answer), or a fault of heddle itself" },
	{ HD_E_INVAL, "the request makes no sense: an option, a key, a plan, a name that is taken" },
	{ HD_E_INPUT, "an input is missing or bad; of a run: nobody coordinates it" },
	{ HD_E_DIVERGED, "the loss or a gradient is not a finite number" },
	{ HD_E_INTEGRITY, "data, a checkpoint or bits are not what they were" },
	{ HD_E_WORKERS, "too few workers came in time" },
	{ HD_E_REFUSED, "the machine refuses what is needed: memory, disk, permission" },
	{ HD_E_PREEMPTED, "stopped as asked, with a checkpoint: `heddle resume` goes on" },
	{ HD_E_INTERRUPT, "interrupted (Ctrl-C), with a checkpoint" },
};

void hd_help_all(FILE *to)
{
	fputs("Heddle trains neural networks on machines that come, go and differ:\n"
	      "the same job gives the same bits on any number of devices.\n\n"
	      "usage: heddle VERB [OPTIONS] [ARGUMENTS]\n\n", to);
	for (const struct hd_verb *v = hd_verbs; v->name; v++) {
		char left[64];
		snprintf(left, sizeof left, "%s%s%s", v->name, *v->args ? " " : "", v->args);
		fprintf(to, "  %-28s %s\n", left, v->about);
	}
	fputs("\ncommon options:\n", to);
	for (int i = 0; i <= HD_OPT_DIR; i++)
		option_line(&hd_opts[i], to);
	fputs("\nexit codes:\n", to);
	for (size_t i = 0; i < sizeof exits / sizeof *exits; i++)
		fprintf(to, "  %3d  %s\n", hd_err_exit(exits[i].err), exits[i].about);
	fputs("\n`heddle VERB --help` tells more. Start with `heddle demo`.\n", to);
}

void hd_help_verb(const struct hd_verb *verb, FILE *to)
{
	fprintf(to, "usage: heddle %s%s%s%s\n\n%s.\n", verb->name,
		verb->opts[0] != HD_NOPTS ? " [OPTIONS]" : "", *verb->args ? " " : "", verb->args,
		verb->about);
	if (*verb->more)
		fprintf(to, "\n%s\n", verb->more);
	if (verb->opts[0] != HD_NOPTS)
		fputs("\noptions:\n", to);
	for (const enum hd_opt *o = verb->opts; *o != HD_NOPTS; o++)
		option_line(&hd_opts[*o], to);
	fputs("\ncommon options:\n", to);
	for (int i = 0; i <= HD_OPT_DIR; i++)
		option_line(&hd_opts[i], to);
}

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

/* The nearest of all words that may stand where the user's word stood: first words, or subverbs of the
 * first. */
static bool near_verb(const char *first, const char *word, char out[HD_WORD_CAP])
{
	for (const struct hd_verb *v = hd_verbs; v->name; v++) {
		size_t len = strcspn(v->name, " ");
		struct hd_near near = hd_near_to(word);
		if (first && (strncmp(v->name, first, len) != 0 || strlen(first) != len))
			continue;
		snprintf(out, HD_WORD_CAP, "%.*s", first ? HD_WORD_CAP - 1 : (int)len,
			first ? v->name + len + (v->name[len] == ' ') : v->name);
		hd_near_offer(&near, out);
		if (near.best)
			return true;
	}
	return false;
}

static void subverbs(const char *first, char *text, size_t cap)
{
	*text = 0;
	for (const struct hd_verb *v = hd_verbs; v->name; v++) {
		size_t len = strcspn(v->name, " ");
		if (v->name[len] && strlen(first) == len && !strncmp(v->name, first, len)) {
			strncat(text, *text ? ", " : "", cap - strlen(text) - 1);
			strncat(text, v->name + len + 1, cap - strlen(text) - 1);
		}
	}
}

static bool stands_alone(const char *first)
{
	for (const struct hd_verb *v = hd_verbs; v->name; v++)
		if (!strcmp(v->name, first))
			return true;
	return false;
}

enum hd_err hd_verb_find(int argc, char **argv, const struct hd_verb **verb, int *used, struct hd_diag *diag)
{
	char near[HD_WORD_CAP] = "", subs[200], hint[HD_WORD_CAP + 24] = "";

	subverbs(argv[0], subs, sizeof subs);
	for (*used = 2; *used; --*used)
		for (const struct hd_verb *v = hd_verbs; v->name; v++)
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
		return hd_fail(diag, HD_E_INVAL, "`heddle %s` has no \"%s\"%s; it has: %s%s%s", argv[0],
			argv[1], hint, subs,
			stands_alone(argv[0]) ? "; a job file of that name is ./" : "",
			stands_alone(argv[0]) ? argv[1] : "");
	return hd_fail(diag, HD_E_INVAL, "there is no verb \"%s\"%s; `heddle help` lists them", argv[0],
		hint);
}
