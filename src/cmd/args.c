#include "cmd/args.h"

#include <ctype.h>
#include <string.h>

#include "base/near.h"
#include "base/num.h"
#include "cmd/verbs.h"

const struct hd_opt_row hd_opts[HD_NOPTS] = {
#define X(id, letter, name, kind, value, about) { letter, name, HD_TAKES_##kind, value, about },
	HD_OPTIONS(X)
#undef X
};

static bool takes(const struct hd_verb *verb, enum hd_opt opt)
{
	if (opt <= HD_OPT_DIR)
		return true;
	for (const enum hd_opt *o = verb->opts; *o != HD_NOPTS; o++)
		if (*o == opt)
			return true;
	return false;
}

static enum hd_err unknown(const char *name, struct hd_diag *diag)
{
	struct hd_near near = hd_near_to(name);

	for (int i = 0; i < HD_NOPTS; i++)
		hd_near_offer(&near, hd_opts[i].name);
	return near.best ? hd_fail(diag, HD_E_INVAL, "there is no option --%s; did you mean --%s?", name,
		near.best)
		    : hd_fail(diag, HD_E_INVAL, "there is no option --%s; `heddle help` lists what there is",
		    	name);
}

static enum hd_err not_here(const struct hd_verb *verb, enum hd_opt opt, struct hd_diag *diag)
{
	char takers[200] = "";

	for (const struct hd_verb *const *at = hd_verbs, *v; (v = *at); at++)
		if (takes(v, opt) && strlen(takers) + strlen(v->name) + 3 < sizeof takers) {
			if (*takers)
				strncat(takers, ", ", sizeof takers - strlen(takers) - 1);
			strncat(takers, v->name, sizeof takers - strlen(takers) - 1);
		}
	return hd_fail(diag, HD_E_INVAL, "`heddle %s` does not take --%s; these do: %s", verb->name,
		hd_opts[opt].name, takers);
}

static bool word_ok(const char *words, const char *text)
{
	size_t len = strlen(text);

	if (strchr(text, '|'))
		return false;
	for (const char *at = words; at; at = strchr(at, '|'), at = at ? at + 1 : NULL)
		if (!strncmp(at, text, len) && (at[len] == '|' || at[len] == 0))
			return true;
	return false;
}

static enum hd_err take_value(struct hd_args *args, enum hd_opt opt, const char *text, struct hd_diag *diag)
{
	const struct hd_opt_row *row = &hd_opts[opt];
	struct hd_diag why = { "" };

	args->has[opt] = true;
	switch ((enum hd_opt_kind)row->kind) {
	case HD_TAKES_FLAG:
		break;
	case HD_TAKES_TEXT:
		args->text[opt] = text;
		break;
	case HD_TAKES_WORD:
		if (!word_ok(row->value, text))
			return hd_fail(diag, HD_E_INVAL, "--%s is one of %s, not \"%s\"", row->name,
				row->value, text);
		args->text[opt] = text;
		break;
	case HD_TAKES_COUNT:
		if (hd_num_u64(text, INT64_MAX, &args->count[opt], &why))
			return hd_fail(diag, HD_E_INVAL, "--%s %s: %s", row->name, text, why.text);
		break;
	case HD_TAKES_REPEAT:
		if (args->nsets == HD_MAX_SETS)
			return hd_fail(diag, HD_E_INVAL, "more than %d times --%s", HD_MAX_SETS, row->name);
		args->set[args->nsets++] = text;
		break;
	}
	return HD_OK;
}

/* A letter that the verb gives a meaning of its own (-v of schedules), else the common one. */
static enum hd_opt of_letter(const struct hd_verb *verb, char letter)
{
	int first = HD_NOPTS;

	for (int i = 0; i < HD_NOPTS; i++)
		if (hd_opts[i].letter == letter && (first == HD_NOPTS || takes(verb, (enum hd_opt)i)))
			first = i;
	return (enum hd_opt)first;
}

static enum hd_opt of_name(const struct hd_verb *verb, const char *name)
{
	int first = HD_NOPTS;

	for (int i = 0; i < HD_NOPTS; i++)
		if (!strcmp(hd_opts[i].name, name) && (first == HD_NOPTS || takes(verb, (enum hd_opt)i)))
			first = i;
	return (enum hd_opt)first;
}

/* The option that `word` names: "--name", "--name=value", "-x". */
static enum hd_err find(const char *word, const struct hd_verb *verb, enum hd_opt *opt, const char **value,
	struct hd_diag *diag)
{
	char name[64];
	size_t len = strcspn(word, "=");

	*value = NULL;
	if (word[1] != '-') {
		*opt = word[2] ? HD_NOPTS : of_letter(verb, word[1]);
		return *opt != HD_NOPTS ? HD_OK : hd_fail(diag, HD_E_INVAL,
			"there is no option %s; `heddle help` lists what there is", word);
	}
	if (len - 2 >= sizeof name)
		return hd_fail(diag, HD_E_INVAL, "there is no option %s", word);
	memcpy(name, word + 2, len - 2);
	name[len - 2] = 0;
	*opt = of_name(verb, name);
	if (*opt == HD_NOPTS)
		return unknown(name, diag);
	*value = word[len] ? word + len + 1 : NULL;
	return HD_OK;
}

static enum hd_err one_option(struct hd_args *args, const struct hd_verb *verb, int argc, char **argv, int *i,
	struct hd_diag *diag)
{
	const char *value;
	enum hd_opt opt = HD_NOPTS;
	enum hd_err err = find(argv[*i], verb, &opt, &value, diag);

	if (err)
		return err;
	if (!takes(verb, opt))
		return not_here(verb, opt, diag);
	bool flag = hd_opts[opt].kind == HD_TAKES_FLAG;
	if (flag && value)
		return hd_fail(diag, HD_E_INVAL, "--%s takes no value", hd_opts[opt].name);
	if (!flag && !value && ++*i == argc)
		return hd_fail(diag, HD_E_INVAL, "--%s needs a value: %s", hd_opts[opt].name,
			hd_opts[opt].value);
	return take_value(args, opt, value ? value : flag ? "" : argv[*i], diag);
}

enum hd_err hd_args_parse(struct hd_args *args, const struct hd_verb *verb, int argc, char **argv,
	struct hd_diag *diag)
{
	bool ended = false;
	enum hd_err err = HD_OK;

	*args = (struct hd_args){ 0 };
	for (int i = 0; i < argc && !err; i++) {
		if (!ended && !strcmp(argv[i], "--"))
			ended = true;
		/* -3: less three */
		else if (!ended && argv[i][0] == '-' && argv[i][1] && !isdigit((unsigned char)argv[i][1]))
			err = one_option(args, verb, argc, argv, &i, diag);
		else if (args->npos == HD_MAX_POSITIONALS)
			err = hd_fail(diag, HD_E_INVAL, "more than %d arguments", HD_MAX_POSITIONALS);
		else
			args->pos[args->npos++] = argv[i];
	}
	if (err || args->has[HD_OPT_HELP])
		return err;
	if (args->npos < verb->npos_min || args->npos > verb->npos_max)
		return hd_fail(diag, HD_E_INVAL, "`heddle %s` takes %s; see `heddle %s --help`", verb->name,
			*verb->args ? verb->args : "no arguments", verb->name);
	return HD_OK;
}
