// SPDX-License-Identifier: MIT
/* The sentences on where in the code it is, and how sure that is. */
#include "report/diagnosis/diagnosis_evidence.h"

struct buf *diagnosis_sentence(struct diagnosis *diagnosis)
{
	if (diagnosis->n == DIAGNOSIS_SENTENCES)
		return NULL;
	return &diagnosis->sentence[diagnosis->n++];
}

void diagnosis_add_thread(struct buf *out, const struct process *process, uint32_t tid,
                          bool several)
{
	if (several)
		buf_puts(out, "the launching thread");
	else if (process && process->pid == tid)
		buf_puts(out, "the main thread");
	else
		buf_printf(out, "thread %u", tid);
}

static void add_places(struct buf *out, const struct gap_host *host, struct stack_places *places,
                       const char *time)
{
	for (size_t i = 0; i < host->n && i < 2; i++) {
		const struct gap_place *place = &host->places[i];
		double share = gap_host_share(host, gap_place_ns(place));

		if (i && share < LIMIT_SECOND_LINE)
			break;
		buf_printf(out, "%s %.0f %% ", i ? ", and for" : "For", share);
		if (!i) {
			buf_printf(out, "of %s ", time);
			diagnosis_add_thread(out, host->known.process, host->known.tid,
			                     host->known.several);
			buf_puts(out, " was ");
		}
		buf_printf(out, "in %s", gap_place_label(places, place));
		gaps_add_state(out, place);
	}
	buf_putc(out, '.');
}

/* "Sure: 312 samples cover 96 % of it." */
static void add_trust(struct buf *out, const struct gap_sampling *known)
{
	static const char *const begin[] = {
		[GAP_TRUST_NONE] = "Not known",      [GAP_TRUST_GUESS] = "A guess",
		[GAP_TRUST_PARTLY] = "Partly known", [GAP_TRUST_LIKELY] = "Likely",
		[GAP_TRUST_SURE] = "Sure",
	};
	enum gap_trust trust = gap_host_trust(known);

	buf_printf(out, "%s: ", begin[trust]);
	buf_u64(out, known->samples);
	buf_printf(out, " sample%s %.0f %% of it", known->samples == 1 ? " covers" : "s cover",
	           gap_host_covered(known));
	if (trust == GAP_TRUST_PARTLY)
		buf_puts(out,
		         "; in the rest the thread waited for a CPU, was blocked only briefly, or "
		         "samples are lost");
	buf_putc(out, '.');
}

/* Why no line is named, and what to record. */
static void add_unknown(const struct diagnosis_evidence *evidence, const struct gap_sampling *known,
                        struct buf *out)
{
	const struct run_info *run = evidence->about->run;

	buf_puts(out, "In which line of code is not known: ");
	if (known->samples) {
		buf_puts(out, "only ");
		buf_u64(out, known->samples);
		buf_printf(out, " sample%s of that time", known->samples == 1 ? " is" : "s are");
	} else if (run->stacks.sample_ns || run->stacks.blocked) {
		buf_puts(out, "no sample is of that time");
	} else {
		buf_puts(out, "'cuscope record --stacks' takes the samples that tell");
	}
	if (run->stacks.missed[STACKS_LOST] || run->stacks.missed[STACKS_NO_WALK])
		buf_puts(out, ", and others were lost ('cuscope info FILE')");
	buf_putc(out, '.');
}

static void where_samples(const struct diagnosis_evidence *evidence, const struct gap_host *host,
                          const char *time, struct diagnosis *diagnosis)
{
	struct buf *out = diagnosis_sentence(diagnosis);

	if (gap_host_trust(&host->known) <= GAP_TRUST_GUESS) {
		add_unknown(evidence, &host->known, out);
		return;
	}
	add_places(out, host, evidence->places, time);
	add_trust(diagnosis_sentence(diagnosis), &host->known);
}

void diagnosis_where_host(const struct diagnosis_evidence *evidence, struct diagnosis *diagnosis)
{
	where_samples(evidence, &evidence->conclusion.host, "that time", diagnosis);
}

void diagnosis_where_thread(const struct diagnosis_evidence *evidence, struct diagnosis *diagnosis)
{
	where_samples(evidence, &evidence->host, "its time", diagnosis);
}

/* Of most of the gaps the call is known with its stack. */
static bool knows_calls(const struct diagnosis_evidence *evidence)
{
	return gap_host_trust(&evidence->conclusion.calls.known) >= GAP_TRUST_LIKELY;
}

bool diagnosis_by_calls(const struct diagnosis_evidence *evidence,
                        const struct diagnosis_rule *rule)
{
	return evidence->gpu && knows_calls(evidence) &&
	       (rule->where == diagnosis_where_waits || rule->where == diagnosis_where_launches);
}

static void add_call(const struct diagnosis_evidence *evidence, struct buf *out)
{
	const struct gap_host *calls = &evidence->conclusion.calls;
	double share = gap_host_share(calls, gap_place_ns(&calls->places[0]));

	buf_puts(out, gap_place_label(evidence->places, &calls->places[0]));
	if (share < LIMIT_WHOLE_REASON)
		buf_printf(out, " for %.0f %% of it", share);
}

/* How sure a line of calls is: it is no estimate, but some have no stack. */
static void add_calls_trust(const struct diagnosis_evidence *evidence, const char *what,
                            struct buf *out)
{
	const struct gap_sampling *known = &evidence->conclusion.calls.known;

	buf_printf(out, "%s: the code is known of the ",
	           gap_host_trust(known) == GAP_TRUST_SURE ? "Sure" : "Likely");
	buf_u64(out, known->samples);
	buf_printf(out, " %s %.0f %% of that time.", what, gap_host_covered(known));
}

void diagnosis_where_waits(const struct diagnosis_evidence *evidence, struct diagnosis *diagnosis)
{
	const struct gap_host *host = &evidence->conclusion.host;
	struct buf *out;

	if (!knows_calls(evidence)) {
		where_samples(evidence, host, "that time", diagnosis);
		return;
	}
	out = diagnosis_sentence(diagnosis);
	buf_puts(out, "It waited in ");
	add_call(evidence, out);
	if (gap_host_trust(&host->known) >= GAP_TRUST_PARTLY)
		buf_printf(out, ", and prepared what comes next in %s",
		           gap_place_label(evidence->places, &host->places[0]));
	buf_putc(out, '.');
	add_calls_trust(evidence, "waits right before", diagnosis_sentence(diagnosis));
}

void diagnosis_where_launches(const struct diagnosis_evidence *evidence,
                              struct diagnosis *diagnosis)
{
	struct buf *out;

	if (!knows_calls(evidence)) {
		where_samples(evidence, &evidence->conclusion.host, "that time", diagnosis);
		return;
	}
	out = diagnosis_sentence(diagnosis);
	buf_puts(out, "The late launches are made in ");
	add_call(evidence, out);
	buf_putc(out, '.');
	add_calls_trust(evidence, "launches that ended", diagnosis_sentence(diagnosis));
}
