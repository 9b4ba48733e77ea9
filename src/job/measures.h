/* measures.h -- the table of measures: what an evaluation can say of a model beside its loss.
 *
 * A job asks for some (eval.metrics), and may go by one (checkpoint.best, stop.metric, optim.schedule.metric,
 * eval.metric): there it is called val_WORD, of split valid, or WORD. What a measure is, scikit-learn's
 * function of the name says (engine/measure.h); more is better where `more` is 1.
 *
 * X(id, word, more, of, about); of: CLASSES, a class for each row; LABELS, several labels of each row at once
 * (bce); both; NUMBERS
 * 1. Words of HD_OTHER_MEASURES are appended: their order is that of the words of job keys. */
#ifndef HD_JOB_MEASURES_H
#define HD_JOB_MEASURES_H

#include <stdbool.h>
#include <stdint.h>

enum { HD_OF_CLASSES = 1, HD_OF_LABELS = 2, HD_OF_BOTH = 3, HD_OF_NUMBERS = 4 };

#define HD_OTHER_MEASURES(X) \
	X(TOP2,             "top-2",            1, CLASSES, "share of rows whose label is among the 2 largest logits") \
	X(TOP3,             "top-3",            1, CLASSES, "among the 3 largest") \
	X(TOP5,             "top-5",            1, CLASSES, "among the 5 largest") \
	X(TOP10,            "top-10",           1, CLASSES, "among the 10 largest") \
	X(PRECISION_MACRO,  "precision-macro",  1, BOTH,    "precision, mean over the classes that occur, or over the labels") \
	X(PRECISION_MICRO,  "precision-micro",  1, BOTH,    "precision of all classes counted together") \
	X(PRECISION_BINARY, "precision-binary", 1, CLASSES, "precision of class 1 of two") \
	X(RECALL_MACRO,     "recall-macro",     1, BOTH,    "recall, as precision-macro") \
	X(RECALL_MICRO,     "recall-micro",     1, BOTH,    "recall, as precision-micro") \
	X(RECALL_BINARY,    "recall-binary",    1, CLASSES, "recall of class 1 of two") \
	X(F1_MACRO,         "f1-macro",         1, BOTH,    "F1, as precision-macro") \
	X(F1_MICRO,         "f1-micro",         1, BOTH,    "F1, as precision-micro") \
	X(F1_BINARY,        "f1-binary",        1, CLASSES, "F1 of class 1 of two") \
	X(AUROC,            "auroc",            1, BOTH,    "area under the ROC curve: of class 1 of two, else mean over classes or labels against the rest") \
	X(MAE,              "mae",              0, NUMBERS, "mean absolute error") \
	X(MSE,              "mse",              0, NUMBERS, "mean squared error") \
	X(R2,               "r2",               1, NUMBERS, "coefficient of determination, mean over the outputs")
#define HD_MEASURES(X) \
	HD_OTHER_MEASURES(X) \
	X(ACCURACY,         "accuracy",         1, BOTH,    "share of rows that are right, of labels all of a row; classes have no weights")

/* Words of job keys that go by a measure, behind those that they had before; accuracy was among them. */
#define HD_VAL_WORD(id, word, ...) "|val_" word
#define HD_PLAIN_WORD(id, word, ...) "|" word
#define HD_VAL_MEASURES HD_OTHER_MEASURES(HD_VAL_WORD)
#define HD_PLAIN_MEASURES HD_OTHER_MEASURES(HD_PLAIN_WORD)

enum hd_measure {
#define X(id, word, more, of, about) HD_MEASURE_##id,
	HD_MEASURES(X)
#undef X
	HD_NMEASURES
};

struct hd_job;

struct hd_measure_row { const char *word; bool more; uint8_t of; const char *about; };
extern const struct hd_measure_row hd_measures[HD_NMEASURES];
/* "f1-macro"; with `val`, "val_f1-macro"; HD_NMEASURES: no such word. */
enum hd_measure hd_measure_find(const char *word, bool val);
/* Bit i: measure i is asked for, shown or gone by. */
uint32_t hd_job_measures(const struct hd_job *job);
/* More of it is better: val_loss, loss, perplexity, or what is in the table. */
bool hd_measure_more(const char *word);

#endif
