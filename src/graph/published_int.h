/* published_int.h -- the tables of published.h and what their functions share; of this room.
 *
 * A row is a key of config.json; its function says what becomes of it. Rows are asked in order, those of a
 * type before those of every type. A row whose name begins with a blank is no key: its function sees what the
 * rows before it gave. */
#ifndef HD_GRAPH_PUBLISHED_INT_H
#define HD_GRAPH_PUBLISHED_INT_H

#include "graph/published.h"

struct hd_config_reading;
struct hd_published_key;
/* `found`: NULL where the file has no such key; it may be a null. */
typedef enum hd_err hd_take(struct hd_config_reading *r, const struct hd_published_key *key,
	const struct hd_json *found);

struct hd_published_key {
	const char *name;
	hd_take *take;
	const char *what;                 /* what the function makes of it */
	/* what the library takes where the key is missing; NULL: our default */
	const char *standard;
	const char *null;                 /* what a null stands for; NULL: as if missing */
	const char *in;                   /* the table of the file that it lies in */
};
struct hd_published_head { const char *architecture, *head; };

struct hd_published_type {
	const char *name, *model;
	const struct hd_published_key *key;       /* ends with name == NULL */
	const struct hd_published_head *head;
};
extern const struct hd_published_type hd_published_types[];      /* in order of their names */
extern const struct hd_published_key hd_published_common[];      /* of every type */

struct hd_config_reading {
	struct hd_published *out;
	const struct hd_published_type *type;
	const struct hd_json *json;
	const char *name, *head;
	struct hd_arena *arena;
	struct hd_diag *diag;
};

bool hd_published_null(const struct hd_json *json);
enum hd_err hd_published_nomem(struct hd_config_reading *r);

/* What becomes of a key. */
hd_take hd_take_arg, hd_take_inner, hd_take_head_dim, hd_take_must, hd_take_same, hd_take_note, hd_take_like,
	hd_take_classes, hd_take_labels, hd_take_architectures, hd_take_table, hd_take_any, hd_take_word,
		hd_take_reals,
	hd_take_window, hd_take_window_from, hd_take_layers, hd_take_rope, hd_take_tied_head, hd_take_pad,
	hd_take_places, hd_take_balance, hd_take_act_of;

#endif
