#include <string.h>

#include "cmd/verbs.h"

/* Scripts are made from the tables, so they cannot lag behind. */

static void first_words(const char *sep, FILE *to)
{
	const char *last = "";

	for (const struct hd_verb *const *at = hd_verbs, *v; (v = *at); at++) {
		size_t len = strcspn(v->name, " ");
		if (strlen(last) >= len && !strncmp(last, v->name, len) &&
			(last[len] == ' ' || last[len] == 0))
			continue;
		fprintf(to, "%s%.*s", *last ? sep : "", (int)len, v->name);
		last = v->name;
	}
}

static void options_of(const struct hd_verb *v, FILE *to)
{
	for (int i = 0; i <= HD_OPT_DIR; i++)
		fprintf(to, " --%s", hd_opts[i].name);
	for (const enum hd_opt *o = v->opts; *o != HD_NOPTS; o++)
		fprintf(to, " --%s", hd_opts[*o].name);
}

static void subverbs_of(const char *first, size_t len, FILE *to)
{
	for (const struct hd_verb *const *at = hd_verbs, *v; (v = *at); at++)
		if (!strncmp(v->name, first, len) && v->name[len] == ' ')
			fprintf(to, " %s", v->name + len + 1);
}

static void bash(FILE *to)
{
	const char *last = "";

	fputs("_heddle() {\n\tlocal cur=${COMP_WORDS[COMP_CWORD]} words=\n\tcase "
		"\"${COMP_WORDS[1]}:$COMP_CWORD\" in\n\t*:1) words=\"", to);
	first_words(" ", to);
	fputs("\" ;;\n", to);
	for (const struct hd_verb *const *at = hd_verbs, *v; (v = *at); at++) {
		size_t len = strcspn(v->name, " ");
		if (!v->name[len] || (strlen(last) == len && !strncmp(last, v->name, len)))
			continue;
		fprintf(to, "\t%.*s:2) words=\"", (int)len, v->name);
		subverbs_of(v->name, len, to);
		fputs("\" ;;\n", to);
	}
	fputs("\t*) case \"${COMP_WORDS[1]} ${COMP_WORDS[2]}\" in\n", to);
	for (const struct hd_verb *const *at = hd_verbs, *v; (v = *at); at++) {
		fprintf(to, "\t\t\"%s\"%s) words=\"", v->name, strchr(v->name, ' ') ? "" : "*");
		options_of(v, to);
		fputs("\" ;;\n", to);
	}
	fputs("\tesac ;;\n\tesac\n\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
	      "\t[[ $cur == -* || -z $cur && $COMP_CWORD -lt 3 ]] || COMPREPLY+=($(compgen -f -- "
	      "\"$cur\"))\n}\n"
	      "complete -o filenames -F _heddle heddle\n", to);
}

static void zsh(FILE *to)
{
	fputs("#compdef heddle\nautoload -U +X bashcompinit && bashcompinit\n", to);
	bash(to);
}

static void fish(FILE *to)
{
	fputs("complete -c heddle -n __fish_use_subcommand -f -a '", to);
	first_words(" ", to);
	fputs("'\n", to);
	for (const struct hd_verb *const *at = hd_verbs, *v; (v = *at); at++) {
		size_t len = strcspn(v->name, " ");
		if (v->name[len])
			fprintf(to,
				"complete -c heddle -n '__fish_seen_subcommand_from %.*s' -f -a %s -d '%s'\n",
				(int)len, v->name,
				v->name + len + 1, v->about);
		for (const enum hd_opt *o = v->opts; *o != HD_NOPTS; o++)
			fprintf(to, "complete -c heddle -n '__fish_seen_subcommand_from %.*s' -l %s%s\n",
				(int)len, v->name, hd_opts[*o].name,
				hd_opts[*o].kind == HD_TAKES_FLAG ? "" : " -r");
	}
}

static enum hd_err verb_completion(struct hd_cmd *cmd)
{
	static const struct { const char *name; void (*write)(FILE *to); } shells[] = { { "bash", bash },
		{ "zsh", zsh }, { "fish", fish } };

	for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
		if (!strcmp(cmd->args.pos[0], shells[i].name)) {
			shells[i].write(stdout);
			return HD_OK;
		}
	return hd_fail(&cmd->diag, HD_E_INVAL,
		"there is no completion for \"%s\"; bash, zsh and fish have one", cmd->args.pos[0]);
}

const struct hd_verb hd_verb_completion = {
	.name = "completion", .args = "bash|zsh|fish", .npos_min = 1, .npos_max = 1,
	.about = "shell completion",
	.opts = HD_OPTS(),
	.run = verb_completion, .test = "program_completion.sh",
};
