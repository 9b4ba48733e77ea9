#include <string.h>

#include "base/flow.h"
#include "sys/tty.h"
#include "cmd/verbs.h"

enum { HD_HELP_LEFT = 31, HD_HELP_LEAST = 60 };      /* columns of the left side; of all at least */

struct page { struct hd_arena arena; struct hd_text text; unsigned width; };

static void begin_page(struct page *page, FILE *to)
{
	int fd = fileno(to);
	unsigned width = fd >= 0 && hd_tty_is(fd) ? hd_tty_width(fd) : HD_TTY_WIDTH;

	page->width = width < HD_HELP_LEAST ? HD_HELP_LEAST : width;
	hd_arena_init(&page->arena, 0);
	hd_text_init(&page->text, &page->arena);
}

static void end_page(struct page *page, FILE *to)
{
	if (page->text.at)
		fputs(page->text.at, to);
	hd_arena_finish(&page->arena);
}

/* "  LEFT   ABOUT", ABOUT in a column of its own. */
static void line_of(struct page *page, const char *left, const char *about)
{
	const struct hd_flow flow = { .width = page->width, .indent = HD_HELP_LEFT };
	size_t len = strlen(left) + 3;

	hd_text_addf(&page->text, "  %-28s ", left);
	hd_flow_add(&flow, about, len > HD_HELP_LEFT ? (unsigned)len : HD_HELP_LEFT, &page->text);
	hd_text_add(&page->text, "\n");
}

static void option_line(struct page *page, const struct hd_opt_row *row)
{
	char left[64], letter[8] = "";

	if (row->letter)
		snprintf(letter, sizeof letter, "-%c, ", row->letter);
	snprintf(left, sizeof left, "%s--%s%s%s", letter, row->name, *row->value ? " " : "", row->value);
	line_of(page, left, row->about);
}

/* One error for each code of base/err.h; README.md has the same list. */
static const struct { enum hd_err err; const char *about; } exits[] = {
	{ HD_OK, "done" },
	{ HD_E_AGAIN, "not now (another process does it, or did not answer), or a fault of heddle itself" },
	{ HD_E_INVAL, "the request makes no sense: an option, a key, a plan, a name that is taken" },
	{ HD_E_INPUT, "an input is missing or bad; of a run: no process coordinates it" },
	{ HD_E_DIVERGED, "the loss or a gradient is not a finite number" },
	{ HD_E_INTEGRITY, "data, a checkpoint or bits are not what they were" },
	{ HD_E_WORKERS, "too few workers came in time" },
	{ HD_E_REFUSED, "the machine refuses what is needed: memory, disk, permission" },
	{ HD_E_PREEMPTED, "stopped as asked, with a checkpoint: `heddle resume` goes on" },
	{ HD_E_INTERRUPT, "interrupted (Ctrl-C), with a checkpoint" },
};

static void common_options(struct page *page)
{
	hd_text_add(&page->text, "\ncommon options:\n");
	for (int i = 0; i <= HD_OPT_DIR; i++)
		option_line(page, &hd_opts[i]);
}

void hd_help_all(FILE *to)
{
	struct page page;

	begin_page(&page, to);
	hd_text_add(&page.text, "Heddle trains neural networks on machines that come, go and differ:\n"
		"the same job gives the same bits on any number of devices.\n\n"
		"usage: heddle VERB [OPTIONS] [ARGUMENTS]\n\n");
	for (const struct hd_verb *const *at = hd_verbs, *v; (v = *at); at++) {
		char left[64];
		snprintf(left, sizeof left, "%s%s%s", v->name, *v->args ? " " : "", v->args);
		line_of(&page, left, v->about);
	}
	common_options(&page);
	hd_text_add(&page.text, "\nexit codes:\n");
	for (size_t i = 0; i < sizeof exits / sizeof *exits; i++)
		hd_text_addf(&page.text, "  %3d  %s\n", hd_err_exit(exits[i].err), exits[i].about);
	hd_text_add(&page.text, "\n`heddle VERB --help` tells more. Start with `heddle demo`.\n");
	end_page(&page, to);
}

void hd_help_verb(const struct hd_verb *verb, FILE *to)
{
	struct page page;

	begin_page(&page, to);
	const struct hd_flow whole = { .width = page.width, .apart = true };
	hd_text_addf(&page.text, "usage: heddle %s%s%s%s\n\n", verb->name,
		verb->opts[0] != HD_NOPTS ? " [OPTIONS]" : "", *verb->args ? " " : "", verb->args);
	hd_flow_add(&whole, verb->about, 0, &page.text);
	hd_text_add(&page.text, ".\n");
	if (verb->more) {
		hd_text_add(&page.text, "\n");
		hd_flow_add(&whole, verb->more, 0, &page.text);
		hd_text_add(&page.text, "\n");
	}
	if (verb->opts[0] != HD_NOPTS)
		hd_text_add(&page.text, "\noptions:\n");
	for (const enum hd_opt *o = verb->opts; *o != HD_NOPTS; o++)
		option_line(&page, &hd_opts[*o]);
	common_options(&page);
	end_page(&page, to);
}
