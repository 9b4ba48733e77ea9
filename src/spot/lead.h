/* lead.h -- what is done about a machine that will be taken away, by how long before it is known.
 *
 * The answers are tried in the order of the table; the first that fits is taken. L is the time left, less a
 * margin: a tenth of it, at most HD_LEAD_MARGIN_MS.
 *
 * 1. NOTE: a risk has no end; an end further off than HD_LEAD_AHEAD_MS may be taken back.
 * 2. SAVE: where all machines go, and L is enough for a checkpoint.
 * 3. EVACUATE: L is enough for the step at hand, all that has to pass before a worker may leave between two
 *    steps, and for what no other machine holds to move. Nothing is computed twice.
 * 4. HAND_OVER: the same without the move, where another machine holds its state.
 * 5. LOSE: it counts as lost now, so that the others begin before the end to do what it did.
 *
 * Asked by a worker when it hears (worker/elastic_notice.c) and by the replay of a trace (spot/replay.h).
 *
 * Pure; plain values. */
#ifndef HD_SPOT_LEAD_H
#define HD_SPOT_LEAD_H

#include <stdbool.h>
#include <stdint.h>

/*        id         name         what is done */
#define HD_LEADS(X) \
	X(NOTE,      "note",      "it is written down")                                         \
	X(SAVE,      "save",      "a checkpoint now, then all leave")                           \
	X(EVACUATE,  "evacuate",  "its state moves while steps go on, then it leaves between two") \
	X(HAND_OVER, "hand_over", "the step is ended, then another holder of its state takes its place") \
	X(LOSE,      "lose",      "it counts as lost now")

enum hd_lead {
#define X(id, name, about) HD_LEAD_##id,
	HD_LEADS(X)
#undef X
	HD_NLEADS
};
extern const char *const hd_lead_names[HD_NLEADS];

enum { HD_LEAD_MARGIN_MS = 5000, HD_LEAD_AHEAD_MS = 150000 };

struct hd_lead_case {
	bool risk, all;                   /* there is no end; all machines go */
	int64_t left_ms;                  /* until the end; 0 or less: it is now */
	int64_t step_ms;                  /* until it could leave between two steps */
	int64_t ship_ms;                  /* to move what no other machine holds; 0: nothing, or not known */
	int64_t save_ms;                  /* of a checkpoint */
	bool held;                        /* its state is at another machine, too */
};

enum hd_lead hd_lead_answer(const struct hd_lead_case *c);
int64_t hd_lead_usable_ms(int64_t left_ms);         /* L; 0 or more */

#endif
