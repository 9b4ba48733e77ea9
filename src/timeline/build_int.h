/* build_int.h -- the steps of building a timeline (build.h). Private to the room. */
#ifndef HD_TIMELINE_BUILD_INT_H
#define HD_TIMELINE_BUILD_INT_H

#include "timeline/build.h"

/* Texts to numbers of a timeline's names; open addressing, a power of two of places. */
struct tl_names { const char **text; uint32_t n, cap; uint32_t *place, nplaces; };
HD_MUST_USE enum hd_err hd_tl_name_of(struct hd_arena *arena, struct tl_names *names, const char *text,
	size_t len, uint32_t *name, struct hd_diag *diag);

struct tl_seen { int64_t first, last; };               /* times of a process */
/* Begin or end of a step. lane, seq: which of two at one time comes first. */
struct tl_mark { int64_t at; uint64_t number, seq; uint32_t lane; uint8_t kind; bool committed; };

struct tl_build {
	struct hd_arena *arena;
	const struct hd_tl_lives *lives;
	const struct hd_tl_clock *clock;
	uint32_t reference, lanes_cap, steps_cap;
	struct hd_timeline *out;
	struct tl_names names;
	bool outline;                     /* events are looked at, and not kept */
	uint64_t first;                   /* of the events: those of the ring at hand */
	struct hd_tl_event *spare; uint64_t spare_cap;         /* room to sort and to part them */
	/* the lane of each of them: 0 its own, 1 transfers, 2 and up spilled */
	uint8_t *line; uint64_t line_cap;
	struct tl_mark *mark; uint32_t nmarks, marks_cap;      /* of steps, of the process at hand */
	struct tl_seen *seen;             /* [lives] */
	int64_t error_ns;                 /* the largest of the process at hand */
};

/* Of the life's local time on the axis of the timeline; *error_ns grows (may be NULL). */
int64_t hd_tl_time(const struct tl_build *build, uint32_t life, int64_t local, int64_t *error_ns);
/* One more event is at the end of the timeline's, or would be: of the next lane, and that process. */
HD_MUST_USE enum hd_err hd_tl_note(struct tl_build *build, uint32_t process, const struct hd_tl_event *event,
	struct hd_diag *diag);
/* The lanes of one ring, at the end of the timeline's. */
HD_MUST_USE enum hd_err hd_tl_build_ring(struct tl_build *build, uint32_t life, uint32_t ring,
	struct hd_diag *diag);
/* Rows of steps of a process, whose lanes are made and noted, and the step of each of its events. */
HD_MUST_USE enum hd_err hd_tl_build_steps(struct tl_build *build, uint32_t process, struct hd_diag *diag);

/* 4 of build.h: the line of each event of a device's lane, which is in order. */
enum { TL_OWN, TL_TRANSFERS, TL_SPILLED, TL_LINES = TL_SPILLED + HD_TL_SPILL };
void hd_tl_part(struct hd_tl_event *event, uint8_t *line, uint64_t n);
/* What a lane is called that holds that line of another. */
void hd_tl_line_name(char *name, size_t cap, const char *lane, uint32_t line);

/* By lane order (timeline.h, 3); stable. False: it would move many far, and nothing is lost; then with a
 * spare of n places. */
bool hd_tl_sort_near(struct hd_tl_event *event, uint64_t n);
void hd_tl_sort(struct hd_tl_event *event, struct hd_tl_event *spare, uint64_t n);

/* Of an instruction's text in a plan or a recording, as "F" or "SA3.7>2". */
enum hd_tl_class hd_tl_class_of_op(const char *name);

#endif
