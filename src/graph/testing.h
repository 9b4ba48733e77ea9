/* testing.h -- what the tests of this room and of those above share: a graph with its
 * arena, made from text or as a built-in model. For tests only. */
#ifndef HD_GRAPH_TESTING_H
#define HD_GRAPH_TESTING_H

#include <string.h>

#include "graph/autodiff.h"
#include "graph/model.h"
#include "graph/op.h"
#include "graph/pass.h"
#include "graph/text.h"
#include "graph/verify.h"

struct hd_subject { struct hd_arena arena; struct hd_graph graph; struct hd_diag diag; enum hd_err err; };

static inline void hd_subject_init(struct hd_subject *s)
{
	memset(s, 0, sizeof *s);
	hd_arena_init(&s->arena, 0);
	hd_graph_init(&s->graph, &s->arena);
}

static inline void hd_subject_finish(struct hd_subject *s) { hd_arena_finish(&s->arena); }

static inline void hd_subject_parse(struct hd_subject *s, const char *text)
{
	hd_subject_init(s);
	s->err = hd_graph_parse(&s->graph, "t.graph", text, strlen(text), &s->diag);
}

static inline void hd_subject_model(struct hd_subject *s, const char *name, const struct hd_model_arg *arg,
	uint32_t nargs,
	struct hd_model_opts opts)
{
	hd_subject_init(s);
	s->err = hd_model_build(&s->graph, name, arg, nargs, &opts, &s->diag);
}

/* The text lies in the subject's arena. */
static inline const char *hd_subject_print(struct hd_subject *s)
{
	struct hd_text text;

	hd_text_init(&text, &s->arena);
	s->err = hd_graph_print(&s->graph, &text, &s->diag);
	return text.at;
}

#endif
