/* pipe.h -- the stages of a pipeline on the devices of one worker. Private to engine.
 *
 * A plan of several stages (pipeline/staged.h) gives each rank a list of instructions (plan/ins.h) over
 * (stage, virtual node). Here each stage is a graph and a program of its own (graph/stages.h), and a rank has
 * a *seat* for each stage that it runs: memory for what lives between its instructions. Tensors go from seat
 * to seat by *mail*: the sender copies them into a buffer of the receiver's. Between workers the mail goes by
 * *post* (post.h).
 *
 * The instructions that matter here: F forward; B backward, or in two halves I (gradients of activations) and
 * W (of weights); Fc, an F that keeps its input alone, and R, which recomputes it; OFF and ON move
 * activations to a file and back (offload.h); SA and SG send activations and their gradients; RED and NORM
 * sum gradients and take their norm; STEP updates.
 *
 * 1. A cell is one (stage, virtual node). One seat runs it, of this worker or of another. Its activations
 *    live in an arena of the seat from F to B or W; after Fc only until they are sent, and again from R on;
 *    between OFF and ON in the file.
 *    What came from a neighbour lives as long, in a buffer.
 * 2. How many arenas and buffers a seat needs is counted from its list before anything is taken. A sender has
 *    at most HD_CREDITS tensors of a channel at a seat that no F, B or I has used yet. The seat has buffers
 *    for the credits of all senders besides what it keeps. So a list that the checker accepts with buffered
 *    sends cannot deadlock (pipeline/schedule_check.h, K8).
 * 3. Gradients are added along the canonical tree (plan/tree.h) into flat vectors (graph/layout.h). Seats of
 *    one stage have flat vectors of their own; seats of different stages share them, since their parameters
 *    lie apart, and so do the parts of a tied parameter's gradient. The sums of all stages end up in vector
 *    0.
 * 4. Nothing here is state: each step begins with everything empty (hd_pipe_begin).
 * 5. A rank may be several devices (tensor.h): the arenas of its seats are dealt to them in turn, everything
 *    else is the first device's.
 *    Devices that share a stage's shards may also be groups on several workers (parcel.h): then a stage of
 *    the plan is what one group runs of a stage of the cuts, and its neighbours are `groups` stages away.
 * 6. A rank that fails fences the mail: every wait ends at once, and the step ends without a change of state.
 * 7. Work of shadows (flag x, shadow.h) has cells and seats of its own. Its mail has a buffer for each
 *    virtual node, so a send to it never waits. What is sent under flag k is kept where its cell is, from the
 *    moment it is made.
 *
 * Ownership: tables lie in the arena given, memory is taken from devices and given back by hd_pipe_give().
 * Threads: a rank writes its own seats and, under the lock of the receiver, what it sends. */
#ifndef HD_ENGINE_PIPE_H
#define HD_ENGINE_PIPE_H

#include "sys/lock.h"
#include "graph/spread.h"
#include "engine/offload.h"
#include "engine/rank.h"
#include "engine/step.h"
#include "engine/tensor.h"

/* What arrives at a stage from one side, as one buffer. */
struct hd_letter {
	uint32_t n;
	/* [n] bytes from the buffer's beginning, of full virtual nodes; HD_NOT_SENT: the group has it not */
	uint64_t *at;
	uint64_t bytes;
};
#define HD_NOT_SENT UINT64_MAX

struct hd_flat_run { uint64_t at, len; };         /* elements of the flat vector */

struct hd_pipe_stage {
	const struct hd_graph_stage *cut;
	uint32_t cut_of, group;           /* which of the cuts it is; what of it (graph/spread.h) */
	struct hd_program_tensor tensor;  /* its program, for the devices of a rank */
	uint64_t idle_bytes;              /* of each arena, what no kernel writes to (device/idle.h) */
	/* of each arena, what OFF moves to a file and ON brings back (offload.h) */
	struct hd_memory_part *kept; uint32_t nkept;
	uint64_t kept_bytes;
	struct hd_readout out;
	struct hd_waits pace;
	const int64_t *node_ns;           /* what pace is made of; NULL: devices do not wait */
	const uint32_t *node_of;          /* where values are looked at (values.h), as of its nodes */
	uint32_t *field;                  /* [cut->ndata] field of the data */
	struct hd_letter act, grad;       /* what comes from the stage before, from the one after */
	struct hd_flat_run *run; uint32_t nruns;          /* what it trains */
	/* partial sums of this worker's seats, added as far as both operands are here: what is left; joins */
	struct hd_left *root; uint32_t nroots;
	float **item;
	struct hd_flat_join *join; uint32_t njoins;
	struct hd_flat_join *part_join;   /* as in work.h */
};

/* Buffers of one kind at a seat: free ones are a stack. */
struct hd_mail_pool { uint8_t **free; uint32_t nfree, cap; uint64_t bytes; };

enum hd_mail { HD_MAIL_ACT, HD_MAIL_GRAD, HD_MAILS };

struct hd_shadow;

struct hd_seat {
	uint32_t rank, device, stage;     /* of the plan; the rank's first device; of the plan */
	struct hd_fold_script script;     /* in the order in which its list completes gradients */
	float **vector;                   /* [script.nbuffers] */
	struct hd_mail_pool arena;        /* the rank's own: without a lock */
	struct hd_offload_pool away;      /* the same */
	struct hd_mail_pool mail[HD_MAILS];               /* under the rank's lock */
	struct hd_mail_pool kept[HD_MAILS];       /* the rank's own: what its cells keep */
	bool shadow;                      /* of the stage that the rank shadows */
	bool loads;                       /* after a loss: it has loaded its program itself (rest.h) */
	/* [ranks] tensors of a sender that are not used yet; under the lock */
	uint8_t *unused[HD_MAILS];
	uint8_t **memory; uint32_t nmemory; uint64_t *memory_bytes;      /* all of it, to be given back */
};

#define HD_CELL_ENDED UINT16_MAX

struct hd_cell {
	struct hd_seat *seat;             /* NULL: another worker's */
	uint16_t rank;                    /* of the plan: it runs the cell; HD_CELL_ENDED: none any more */
	/* which line (post.h) carries what comes from or goes to another worker; HD_NONE: none */
	uint32_t line[HD_MAILS];
	uint32_t leaf;                    /* which one of seat->script */
	uint8_t *arena;                   /* NULL: it has none, or its activations are in the file */
	uint32_t place;                   /* which place in the file, between OFF and ON */
	/* under the lock of the seat's rank: the buffer, once a sender has it; filled; by which rank */
	uint8_t *mail[HD_MAILS];
	bool here[HD_MAILS];
	uint16_t from[HD_MAILS];
	/* what the seat's rank has taken, and reads without the lock; NULL: not yet */
	const uint8_t *taken[HD_MAILS];
	bool light;                       /* F kept its input alone (activation checkpointing) */
	bool sent;                        /* SA is done: after a loss it may stand in the list once more */
	/* what it makes is kept, as the letter that the neighbour stage gets: bits of (1 << hd_mail); where,
	 * once it is made */
	uint8_t keeps;
	uint8_t *kept[HD_MAILS];
	/* how many instructions end the use of its memory: B or W, and SG where the list has one; how many of
	 * them are still to come in this step */
	uint8_t ends, left;
	bool away;                        /* its activations are in the file */
	struct hd_seat *before;           /* since before a loss, as a cell of this seat (rest.h) */
};

/* Of a virtual node in a step: how many rows it has is known; they are at hand. */
enum hd_rows { HD_ROWS_NONE, HD_ROWS_COUNTED, HD_ROWS_READ };

struct hd_mailbox { struct hd_lock lock; struct hd_cond cond; };

struct hd_pipe {
	struct hd_worker *worker;         /* borrowed, as the plan */
	const struct hd_plan *plan;
	struct hd_graph_stages cuts;
	/* over the groups of the plan: its stages are substages of `cuts` */
	struct hd_graph_spread spread;
	uint32_t nranks, nstages, nvns;   /* of the plan */
	uint32_t groups;                  /* of the plan; 1: ranks share no stage */
	uint32_t ndevices, width;         /* of the worker; of a rank */
	/* [ndevices] which rank of the plan each device is of; HD_NONE: it has no stage */
	uint32_t *rank_of;
	uint32_t *device_of;              /* [nranks] its first one; HD_NONE: another worker's */
	struct hd_tensor_turn *turn;      /* [nranks] where ranks have several devices (tensor.h) */
	struct hd_pipe_stage *stage;      /* [nstages] */
	struct hd_seat *seat; uint32_t nseats;
	struct hd_cell *cell;             /* [nstages][nvns]; with shadows theirs after them */
	size_t ncells;
	/* of tests: what a forward has just left; NULL */
	void (*watch)(struct hd_rank *rank, const struct hd_ins *ins, const struct hd_bind *bind);
	bool keeps;                       /* its lists have shadows, or keep what they send */
	struct hd_shadow *shadow; uint32_t nshadows;      /* [nshadows] of this worker's ranks (shadow.h) */
	bool *reads;                      /* [nbuckets] a stage that this worker runs reads it */
	/* [nvns] what the forward of a shadow says of a virtual node: numbers, moments */
	struct hd_leaf *shadow_leaf; double *shadow_moments;
	bool overlaps;                    /* it is one of two, of steps that overlap (overlap.h) */
	struct hd_pipe *before;           /* this one is the rest of its step (rest.h); NULL: none */
	struct hd_mailbox *box;           /* [ndevices] */
	_Atomic bool fenced;
	bool *updated;                    /* [ndevices] the rank has updated in this step */
	int away;                         /* the file of activations (offload.h); -1: none */
	float **vector; uint32_t nvectors;
	uint64_t *vector_bytes;           /* [nvectors] in pages that are written to */
	/* rows of the step's virtual nodes: counted, and read, by the first rank that asks for that */
	struct hd_lock rows_lock;
	struct hd_loaded *rows;           /* [nvns] */
	uint8_t *loaded;                  /* [nvns] enum hd_rows */
	uint32_t *left;                   /* [nvns] stages that still read them; under rows_lock */
	uint32_t *readers;                /* [nvns] stages of this worker that read them in a step */
	/* [nvns] loss, weight and hits of virtual nodes that run before their step (overlap.h) */
	struct hd_leaf *ahead_leaf;
	uint32_t first_vector;            /* index in the pools, from which on flat vectors are this pipe's */
	const void **input;               /* [ndevices][HD_MAX_ENDS] */
	struct hd_mail_line *line; uint32_t nlines;       /* to and from other workers (post.h) */
	struct hd_parcel_line *parcel_line; uint32_t nparcel_lines;    /* between groups (parcel.h) */
	uint32_t nparcels;                /* numbers of the parcels of a stage */
	uint8_t *known;                   /* [nstages][nvns] as step.h has it */
	/* [3 + moments] which stage computes each number of a virtual node: loss, weight, hits, moments */
	uint16_t *says; uint64_t nsays;
	bool taken;
};

/* The plan's number of a device's rank. */
static inline uint32_t hd_pipe_rank(const struct hd_pipe *pipe, const struct hd_rank *rank)
{
	return pipe->rank_of[rank->id];
}

/* The stage after, and before, of the same group; HD_NONE: there is none. */
static inline uint32_t hd_pipe_next(const struct hd_pipe *pipe, uint32_t stage)
{
	return stage + pipe->groups < pipe->nstages ? stage + pipe->groups : HD_NONE;
}
static inline uint32_t hd_pipe_before(const struct hd_pipe *pipe, uint32_t stage)
{
	return stage >= pipe->groups ? stage - pipe->groups : HD_NONE;
}
static inline uint32_t hd_pipe_to(const struct hd_pipe *pipe, uint32_t stage, enum hd_mail kind)
{
	return kind == HD_MAIL_ACT ? hd_pipe_next(pipe, stage) : hd_pipe_before(pipe, stage);
}

static inline struct hd_cell *hd_cell_of(const struct hd_pipe *pipe, uint32_t stage, uint32_t vn)
{
	return &pipe->cell[(size_t)stage * pipe->nvns + vn];
}

/* The cell of an instruction: that of the shadow, if it is its work. */
static inline struct hd_cell *hd_cell_for(const struct hd_pipe *pipe, const struct hd_ins *ins,
	uint32_t stage)
{
	const bool shadow = ins->flags & HD_INS_SHADOW && pipe->keeps;
	struct hd_cell *cell = hd_cell_of(pipe, shadow ? pipe->nstages + stage : stage, ins->vn);

	/* after a loss a shadow has become its owner (rest.h) */
	return shadow && pipe->before && cell->rank == HD_CELL_ENDED ? hd_cell_of(pipe, stage, ins->vn) :
		cell;
}

/* Counts what the lists of `plan` need, which has been checked. rank[d]: which rank of the plan device d of
 * the worker belongs to, or HD_NONE; devices of a rank follow one another. No device memory is taken. */
HD_MUST_USE enum hd_err hd_pipe_make(struct hd_pipe **pipe, struct hd_worker *worker,
	const struct hd_plan *plan, const uint32_t *rank, struct hd_arena *arena, struct hd_diag *diag);
/* Makes arenas and mail large enough for these lists as well, one a rank. */
HD_MUST_USE enum hd_err hd_pipe_also(struct hd_pipe *pipe, const struct hd_ilist *list,
	struct hd_arena *arena, struct hd_diag *diag);
/* hd_pipe_make() for a pass of a step: sets work->pipe. */
HD_MUST_USE enum hd_err hd_pipe_work(struct hd_worker *worker, struct hd_work *work,
	const struct hd_plan *plan, const uint32_t *rank, struct hd_arena *arena, struct hd_diag *diag);
/* Bytes of device r's arenas and mail. */
uint64_t hd_pipe_bytes(const struct hd_pipe *pipe, uint32_t device);
uint64_t hd_pipe_idle_bytes(const struct hd_pipe *pipe, uint32_t device);      /* of these */
/* Bytes of the pages of device r's flat vectors that seats write to. */
uint64_t hd_pipe_vector_bytes(const struct hd_pipe *pipe, uint32_t device);
uint32_t hd_pipe_vectors_of(const struct hd_pipe *pipe, uint32_t device);      /* how many it needs */
/* Loads programs and takes memory. Flat vectors are of the ranks' pools, which must be large enough. */
HD_MUST_USE enum hd_err hd_pipe_take(struct hd_pipe *pipe, struct hd_worker *worker, struct hd_arena *arena,
	struct hd_diag *diag);
void hd_pipe_give(struct hd_pipe *pipe, struct hd_worker *worker);           /* takes NULL */

/* A step begins, and everything is empty. With steps that overlap (overlap.h) these are two calls: _clear()
 * before instructions of the step run ahead of it, _go_on() when it begins itself. */
void hd_pipe_begin(struct hd_pipe *pipe);
void hd_pipe_clear(struct hd_pipe *pipe);
void hd_pipe_go_on(struct hd_pipe *pipe);
void hd_pipe_end(struct hd_pipe *pipe);            /* the step is over: rows that were kept are given back */
/* Before a rank runs an instruction: sets the rank's pipe by the step that it is of, this one or the next,
 * and returns it with its virtual node counted within that step. */
struct hd_ins hd_pipe_turn(struct hd_rank *rank, const struct hd_ins *ins);
void hd_pipe_fence(struct hd_pipe *pipe);          /* any thread: all waits end */
/* Was the mail fenced while the ranks compute? Then each goes to the end of its list without computing. */
bool hd_pipe_is_stale(const struct hd_pipe *pipe);

/* mail.c. A buffer of the cell's seat for what rank `from` sends to it; waits for a credit. NULL: fenced, or
 * called back. The seat's own rank never waits and takes no credit. */
uint8_t *hd_mail_place(struct hd_pipe *pipe, struct hd_cell *cell, enum hd_mail kind, uint32_t from);
void hd_mail_put(struct hd_pipe *pipe, struct hd_cell *cell, enum hd_mail kind);      /* it is filled */
/* false: fenced, or called back (post.h, rule 8) */
bool hd_mail_wait(struct hd_pipe *pipe, struct hd_cell *cell, enum hd_mail kind);
void hd_mail_wake(struct hd_pipe *pipe);           /* waits look again */
/* An instruction has read what came: its sender has a credit more. */
void hd_mail_used(struct hd_pipe *pipe, struct hd_cell *cell, enum hd_mail kind);
/* It is no longer needed: the buffer is free. */
void hd_mail_give(struct hd_pipe *pipe, struct hd_cell *cell, enum hd_mail kind);

/* RED: the sums of the chunks that a rank owns, and their sums of squares. With several workers it only adds
 * up what this worker has. */
void hd_pipe_reduce(struct hd_rank *rank);
/* Segments from `first` on, before `last`, which one stage trains: where they end, and *stage. */
uint32_t hd_pipe_run(const struct hd_pipe *pipe, uint32_t first, uint32_t last, uint32_t *stage);

/* How instructions of such a plan run, a row an op (interp.c). */
struct hd_ins_runner {
	enum hd_err (*run)(struct hd_rank *rank, const struct hd_ins *ins, struct hd_diag *diag);
	bool meets;                       /* all ranks wait for one another in it; idle ranks take part */
	enum hd_section section;          /* before or after the exchange between workers (step.h) */
};
extern const struct hd_ins_runner hd_pipe_runners[HD_INS_END];
/* The rows for a device: its rank's first device has those above, the others follow it (tensor.h). */
const struct hd_ins_runner *hd_pipe_runners_of(const struct hd_pipe *pipe, const struct hd_rank *rank);

#endif
