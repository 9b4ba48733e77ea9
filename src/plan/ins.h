/* ins.h -- the plan instruction: 16 bytes, one meaning, one line of a table.
 *
 *  0  1     2     4           8           12    14    16
 *  +--+-----+-----+-----------+-----------+-----+-----+   little endian in files
 *  |op|flags|stage|    vn     |    ver    |peer |slot |
 *  +--+-----+-----+-----------+-----------+-----+-----+
 *
 * Unused fields are 0; ver = HD_VER_RULE means "by the job's rule". In a schedule
 * vn is the index inside the step of one pipeline; negative (two's complement)
 * in the period of an asynchronous list. Versions are relative to the step: 0 is the
 * one it begins with, older ones are negative. Compute instructions name a version
 * only under the flag VERSIONED, else it is the rule's. Slots count from 1; 0: any.
 *
 * The runtime, the checker, the simulator and the viewer read the same records.
 * Op numbers are those of files: never reused. */
#ifndef HD_PLAN_INS_H
#define HD_PLAN_INS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text.h"

/* id, number, text, fields (s stage, v vn, @ version, > to, < from, # slot), lane, meaning */
#define HD_INS(X) \
	X(LD,   1, "LD",   "sv",    "take samples (first stage) or labels (last stage) of vn from the reader")     \
	X(F,    2, "F",    "sv",    "forward of the stage on vn; activations stay live")                           \
	X(B,    3, "B",    "sv",    "full backward: I then W, bit for bit; vn's gradient joins the tree")          \
	X(I,    4, "I",    "sv",    "backward for the input only")                                                 \
	X(W,    5, "W",    "sv",    "backward for the weights; vn's gradient joins the tree")                      \
	X(R,    6, "R",    "sv",    "recompute the activations of a checkpointed forward")                         \
	X(SA,   7, "SA",   "sv>#",  "send the output of F to the next stage")                                      \
	X(SG,   8, "SG",   "sv>#",  "send the input gradient to the previous stage")                               \
	X(RA,   9, "RA",   "sv<#",  "accept the input of F")                                                       \
	X(RG,  10, "RG",   "sv<#",  "accept the output gradient of the stage")                                     \
	X(RED, 11, "RED",  "s#",    "sum the gradient partials of the stage (of bucket # of it) over its holders") \
	X(TIE, 12, "TIE",  "s",     "sum the gradients of a tied group over its stages")                           \
	X(NORM,13, "NORM", "",      "global gradient norm and finite flag")                                        \
	X(STEP,14, "STEP", "s@",    "optimizer update, version u-1 to u; with flag e before the norm is known")    \
	X(VAL, 15, "VAL",  "@",     "learn norm and flags, confirm or redo version u")                             \
	X(PIN, 16, "PIN",  "s@",    "keep a version")                                                              \
	X(REL, 17, "REL",  "s@",    "drop a version")                                                              \
	X(OFF, 18, "OFF",  "sv",    "move saved activations to the host")                                          \
	X(ON,  19, "ON",   "sv",    "bring saved activations back")                                                \
	X(BAR, 20, "BAR",  "s",     "all ranks meet; the stage field is a label")           \
	X(FL,  21, "FL",   "s",    "forward of the stage on all virtual nodes of the rank in lockstep; ranks meet inside")  \
	X(BL,  22, "BL",   "s",    "full backward likewise; gradients of all its virtual nodes join the tree") \
	X(SHIP,23, "SHIP", "s>#",  "send the reduced gradient of the stage (of bucket # of it) to its shadow")          \
	X(TAKE,24, "TAKE", "s<#",  "accept it, for the shadow of the stage")                                      \
	X(HA,  25, "HA",   "sv",   "hand the output of F to the next stage, which the rank runs too since a loss") \
	X(HG,  26, "HG",   "sv",   "hand the input gradient to the previous stage likewise")                      \
	X(RSG, 27, "RSG",  "sv>#", "send a kept input gradient again, to the rank that took a lost one's place")

enum hd_ins_op {
#define X(id, number, text, fields, about) HD_INS_##id = (number),
	HD_INS(X)
#undef X
	HD_INS_END
};

/*      id           bit  text; in texts the letter follows the op name, eager is '!'; the ops that may
 *      carry it */
#define HD_INS_FLAGS(X)                                                   \
	X(CHECKPOINT,  1, 'c', "F", "F keeps the stage input only")       \
	X(EAGER,       2, '!', "STEP", "STEP before the norm is known")   \
	X(SHADOW,      4, 'x', "LD F B I W R SA SG RA RG OFF ON STEP", "work of a shadow stage") \
	X(PAIR_BEGIN,  8, 'p', "F B I", "first of a pair (binary form only)") \
	X(PAIR_END,   16, 'q', "F B I", "second of a pair (binary form only)") \
	X(KEEP,       64, 'k', "SA SG", "what is sent stays on the host until the step commits") \
	X(VERSIONED,  32, '@', "F B I W R", "ver says which version is used (in texts the version itself)")

enum hd_ins_flag {
#define X(id, bit, letter, on, about) HD_INS_##id = (bit),
	HD_INS_FLAGS(X)
#undef X
	HD_INS_PAIR = HD_INS_PAIR_BEGIN | HD_INS_PAIR_END,
	/* those that stand as letters in texts */
	HD_INS_LETTERS = HD_INS_CHECKPOINT | HD_INS_EAGER | HD_INS_SHADOW | HD_INS_KEEP,
};

/* HD_VER_RULE has the place of -1, so older versions are stored one lower: -1 as UINT32_MAX - 1. */
#define HD_VER_RULE UINT32_MAX
static inline int32_t hd_ver_value(uint32_t ver) { return ver > INT32_MAX ? -(int32_t)(UINT32_MAX - ver) :
	(int32_t)ver; }
static inline uint32_t hd_ver_of(int32_t version) { return version < 0 ? (uint32_t)version - 1 :
	(uint32_t)version; }

struct hd_ins {
	uint8_t  op, flags;
	uint16_t stage;
	uint32_t vn, ver;
	uint16_t peer, slot;
};
enum { HD_INS_BYTES = 16 };

struct hd_ins_row { const char *text, *fields, *about; };
const struct hd_ins_row *hd_ins_row(uint8_t op);                     /* NULL: no such op */
/* `fields` as bits: the checker and the simulators ask for every instruction. */
#define HD_INS_FIELD(c) ((c) == 's' ? 1 : (c) == 'v' ? 2 : (c) == '@' ? 4 : (c) == '#' ? 8 : \
	(c) == '>' ? 16 : (c) == '<' ? 32 : 0)
extern const uint8_t hd_ins_fields[HD_INS_END];
/* of a row that exists */
static inline bool hd_ins_uses(uint8_t op, char field) { return hd_ins_fields[op] & HD_INS_FIELD(field); }
bool hd_ins_versioned(const struct hd_ins *ins);                     /* ver names a version, not the rule's */
/* It exists for redundancy alone (pipeline/redundancy.h): without it the list computes the same. */
static inline bool hd_ins_redundant(const struct hd_ins *ins)
{
	return ins->flags & HD_INS_SHADOW || (ins->op >= HD_INS_SHIP && ins->op <= HD_INS_RSG);
}
uint8_t hd_ins_flags_of(uint8_t op);                                 /* all that it may carry */
/* of the letters in texts; 0: no such flag */
uint8_t hd_ins_flag_bit(char letter);
char hd_ins_flag_letter(uint8_t bit);

/* One word of the text form, as LD0.7, Fc3.7, SA3.7>2#1, STEP!3@5; of a pair each half by itself. */
void hd_ins_print(const struct hd_ins *ins, struct hd_text *text);
/* The op name is the longest match. `bad` (may be NULL) is the byte of the word that was refused. */
HD_MUST_USE enum hd_err hd_ins_parse(struct hd_ins *ins, const char *word, size_t len, size_t *bad,
	struct hd_diag *diag);

/* hd_ins_put and hd_ins_get are for tests. */
void hd_ins_put(const struct hd_ins *ins, uint8_t bytes[HD_INS_BYTES]);
/* Accepts only what it fully understands: known op and flags, unused fields 0. */
HD_MUST_USE enum hd_err hd_ins_verify(const struct hd_ins *ins, struct hd_diag *diag);
HD_MUST_USE enum hd_err hd_ins_get(struct hd_ins *ins, const uint8_t bytes[HD_INS_BYTES],
	struct hd_diag *diag);

#endif
