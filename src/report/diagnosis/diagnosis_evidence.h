/* SPDX-License-Identifier: MIT */
/* What rules of the diagnosis judge by. Private to src/report/diagnosis. */
#ifndef CUSCOPE_REPORT_DIAGNOSIS_DIAGNOSIS_EVIDENCE_H
#define CUSCOPE_REPORT_DIAGNOSIS_DIAGNOSIS_EVIDENCE_H

#include "report/diagnosis/diagnosis.h"
#include "report/diagnosis/diagnosis_limits.h"
#include "report/findings/findings.h"
#include "report/gaps/gaps_conclusion.h"
#include "report/thread_use.h"

struct diagnosis_evidence {
	const struct diagnosis_run *about;
	struct stack_places *places;
	/* Of one GPU; NULL: nothing that ran is known: */
	const struct gap_line *gpu;
	struct gaps_conclusion conclusion;
	size_t n_gpus;
	bool idle_for_longest; /* of all, the one that is spoken of */
	/* Without GPU times: the thread that launched most; NULL: none did. */
	const struct thread_use_row *thread;
	struct gap_host host; /* its samples */
	const struct finding *findings;
	size_t n_findings;
};

enum diagnosis_verdict { NOT_JUDGED, HEALTHY, WRONG };

struct diagnosis_rule {
	const char *name;
	enum diagnosis_verdict verdict;
	bool (*applies)(const struct diagnosis_evidence *evidence);
	/* The first sentence: what is wrong. */
	void (*what)(const struct diagnosis_evidence *evidence, struct buf *out);
	/* Where in the code, and how sure that is; NULL: it has no place. */
	void (*where)(const struct diagnosis_evidence *evidence, struct diagnosis *diagnosis);
	const char *hint;         /* what to do where no line of code says more; NULL: nothing */
	const char *covers[4];    /* findings that say the same */
	const char *hint_blocked; /* instead, where the host was blocked; NULL: the same */
};

/* The one that applies: the last applies to all. */
const struct diagnosis_rule *diagnosis_rule_for(const struct diagnosis_evidence *evidence);

/* Sentences of the places, for rules: from samples, or from calls where there are some. */
void diagnosis_where_host(const struct diagnosis_evidence *evidence, struct diagnosis *diagnosis);
void diagnosis_where_waits(const struct diagnosis_evidence *evidence, struct diagnosis *diagnosis);
void diagnosis_where_launches(const struct diagnosis_evidence *evidence,
                              struct diagnosis *diagnosis);
void diagnosis_where_thread(const struct diagnosis_evidence *evidence, struct diagnosis *diagnosis);

/* Whether a rule's place is that of calls, see gap_meanwhile.h; else it is that of samples. */
bool diagnosis_by_calls(const struct diagnosis_evidence *evidence,
                        const struct diagnosis_rule *rule);

/* What to try where the host was in a stack like this, in which state; NULL: nothing special. */
const char *diagnosis_hint(const struct stack *stack, bool blocked);

/* The next sentence; NULL where there are as many as can be. */
struct buf *diagnosis_sentence(struct diagnosis *diagnosis);

/* "the main thread", "thread 7301" */
void diagnosis_add_thread(struct buf *out, const struct process *process, uint32_t tid,
                          bool several);

#endif
