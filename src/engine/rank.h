/* rank.h -- one device with its thread, walking its list. Private to the room.
 *
 * A rank writes its own fields and, of what all share, its virtual nodes and the chunks it owns. Rank 0 is
 * the thread of the worker's caller. Threads: its own; between two activities the worker's caller. */
#ifndef HD_ENGINE_RANK_H
#define HD_ENGINE_RANK_H

#include "sys/thread.h"
#include "device/optim.h"
#include "engine/stage.h"
#include "engine/work.h"

struct hd_worker;
struct hd_rank;

/* Whose values are looked at while a program runs (values.h): its rank, the stage of the plan, and which node
 * of the task's graph each node of the program is (NULL: the same). */
struct hd_look { struct hd_rank *rank; const uint32_t *node_of; uint16_t stage; };

/* What the largest of the plans at hand needs of a rank: counted before it is taken. */
struct hd_rank_need {
	uint32_t nbuffers, ntemps, narenas;
	/* of several stages: arenas and mail of its seats, what they write of flat vectors (pipe.h);
	 * `whole`: one of the plans has whole models */
	bool staged, whole; uint64_t pipe_bytes, vector_bytes;
	uint64_t idle_bytes;              /* of pipe_bytes, what no kernel writes to (device/idle.h) */
};

struct hd_rank {
	struct hd_worker *worker;
	uint32_t id;
	struct hd_device *device;         /* owned */
	struct hd_thread thread;          /* ranks above 0 */
	struct hd_rank_need need;
	struct hd_rank_work *work;        /* of the pass at hand */
	/* of the instruction at hand, in a plan of several stages: 1: of the step to come (overlap.h). Of a
	 * graph in intervals: how many steps ahead of the one at hand virtual nodes run now (fore.h) */
	struct hd_pipe *pipe; uint32_t ahead;
	/* how far its virtual nodes have come: parts of that step that are done (fore.h) */
	struct { uint64_t step; uint32_t nparts; } at;
	bool undone;                      /* the mail that it waits for was fenced: it has not been run */
	struct hd_grad_pool *pool;        /* of this device, in the stage */
	uint8_t *activations;             /* of the rows at hand: training, or between steps a forward pass */
	const void **input;               /* [max inputs] as the graph orders them */
	uint8_t *eval_input[HD_MAX_FIELDS];       /* rows read by this rank itself (forward passes) */
	/* the wave at hand: virtual nodes script.vn[first_ivn ..], taken by LD */
	uint32_t first_ivn, nloaded, nforward, nback, nwave;
	/* [narenas] in lockstep: activations of each virtual node of the rank */
	uint8_t **arena;
	uint32_t narenas;
	struct hd_fold fold[HD_MAX_WAVE][HD_MAX_FOLDS];
	struct hd_step_scalars scalars;
	struct hd_look look;
	uint64_t wait_data_ns;
	/* of the step: work that is there for redundancy alone; waiting for tensors of neighbour stages */
	uint64_t redundant_ns, stalled_ns;
	enum hd_err err;
	struct hd_diag diag;
};

#endif
