#include <assert.h>
#include <string.h>

#include "cmd/verbs.h"

enum { HD_MANUAL_PARAGRAPH = 4096 };

/* Manual pages are made from the tables, as the help is: they cannot lag behind. */

/* Text of a page: what roff would read as a command or an escape is shown as it is. */
static void put_text(const char *text, FILE *to)
{
	bool begins = true;

	for (; *text; text++) {
		if (begins && (*text == '.' || *text == '\''))
			fputs("\\&", to);
		if (*text == '\\')
			fputs("\\e", to);
		else if (*text == '-')
			fputs("\\-", to);
		else
			fputc(*text, to);
		begins = *text == '\n';
	}
}

/* Examples, lines that begin with a blank, are kept as they are; the formatter fills the others. */
static void put_paragraphs(const char *text, FILE *to)
{
	char line[HD_MANUAL_PARAGRAPH];
	bool kept = false;

	fputs(".SH DESCRIPTION\n", to);
	for (bool first = true; *text; first = false) {
		size_t len = strcspn(text, "\n");
		if ((*text == ' ') != kept)
			fputs(kept ? ".fi\n" : ".PP\n.nf\n", to);
		if (*text != ' ' && !first)
			fputs(".PP\n", to);
		kept = *text == ' ';
		assert(len < sizeof line);
		snprintf(line, sizeof line, "%.*s", (int)len, text);
		put_text(line, to);
		fputs("\n", to);
		text += len + (text[len] == '\n');
	}
	if (kept)
		fputs(".fi\n", to);
}

static void put_title(const char *name, FILE *to)        /* "ckpt ls": heddle-ckpt-ls */
{
	fputs("heddle\\-", to);
	for (; *name; name++)
		fputs(*name == ' ' || *name == '-' ? "\\-" : (char[]){ *name, 0 }, to);
}

static void put_option(const struct hd_opt_row *row, FILE *to)
{
	fputs(".TP\n\\fB", to);
	if (row->letter)
		fprintf(to, "\\-%c\\fR, \\fB", row->letter);
	fputs("\\-\\-", to);
	put_text(row->name, to);
	fputs("\\fR", to);
	if (*row->value) {
		fputs(" \\fI", to);
		put_text(row->value, to);
		fputs("\\fR", to);
	}
	fputs("\n", to);
	put_text(row->about, to);
	fputs("\n", to);
}

void hd_help_manual(const struct hd_verb *verb, FILE *to)
{
	fputs(".TH \"", to);
	put_title(verb->name, to);
	fputs("\" \"1\" \"\" \"heddle\" \"Heddle manual\"\n.SH NAME\n", to);
	put_title(verb->name, to);
	fputs(" \\- ", to);
	put_text(verb->about, to);
	fputs("\n.SH SYNOPSIS\n\\fBheddle ", to);
	put_text(verb->name, to);
	fprintf(to, "\\fR%s", verb->opts[0] != HD_NOPTS ? " [OPTIONS] " : " ");
	put_text(verb->args, to);
	fputs("\n", to);
	if (verb->more)
		put_paragraphs(verb->more, to);
	fputs(".SH OPTIONS\n", to);
	for (const enum hd_opt *o = verb->opts; *o != HD_NOPTS; o++)
		put_option(&hd_opts[*o], to);
	for (int i = 0; i <= HD_OPT_DIR; i++)
		put_option(&hd_opts[i], to);
	fputs(".SH SEE ALSO\n\\fBheddle help\\fR lists all verbs and exit codes.\n", to);
}
