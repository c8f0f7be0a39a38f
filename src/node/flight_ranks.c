// SPDX-License-Identifier: MIT
#include "node/flight_ranks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/by_id.h"
#include "analysis/lateness.h"
#include "analysis/missed.h"
#include "base/array.h"
#include "base/at_end.h"
#include "base/vec.h"
#include "base/xalloc.h"
#include "probe/person.h"

#define PERSONS_MAX  8              /* with collectives; others' are left out */
#define CALLS_MOST   (1u << 15)     /* of each that wait: 4 MiB, three times that for a moment */
#define JUDGE_NS     10000000000ull /* what late_rank is percent of */
#define MISSING_NS   10000000000ull /* a rank that lacks for so long is late as well */
#define COMM_OF(id)  ((uint32_t)((id) >> 32))
#define NOBODYS      UINT8_MAX
#define ASK_LEAST_NS 60000000000ull   /* between two times that RAS is asked anew, doubled */
#define ASK_SOON_NS  3000000000ull    /* after calls were lost */
#define ASK_MOST_NS  3600000000000ull /* up to this */

/* What was told of a rank, and how the rule stands. */
struct told_rank {
	struct lateness_rank told;
	uint64_t judged_ns, judged_late_ns;
	bool known, ended, late; /* known: it has a series */
};

struct person {
	uint64_t person;
	struct lateness *lateness;
	struct told_rank *ranks;
	size_t n_ranks, remind_at;                  /* of his ranks, the next that is told of */
	uint64_t asked_ns, ask_at_ns, ask_pause_ns; /* of RAS, by what is not known without it */
	bool ask_soon;                              /* calls were lost since */
};

struct flight_ranks {
	const struct recorder_settings *settings;
	struct person persons[PERSONS_MAX];
	size_t n_persons;
	uint8_t *owners; /* by process: of persons, and 1; 0: not looked at */
	size_t n_owners;
	uint64_t lost, left_out;
	uint64_t seen_ns; /* until then all calls have come */
	struct function reminder;
	struct api *reminder_api;         /* NULL: it has no number yet */
	struct lateness_unmatched before; /* of persons that were forgotten */
	rules_fired_fn fired;
	void *data;
};

struct flight_ranks *flight_ranks_new(const struct recorder_settings *settings,
                                      rules_fired_fn fired, void *data)
{
	struct flight_ranks *ranks = xcalloc(1, sizeof(*ranks));

	ranks->settings = settings;
	ranks->fired = fired;
	ranks->data = data;
	return ranks;
}

void flight_ranks_free(struct flight_ranks *ranks)
{
	if (!ranks)
		return;
	for (size_t i = 0; i < ranks->n_persons; i++) {
		lateness_free(ranks->persons[i].lateness);
		free(ranks->persons[i].ranks);
	}
	free(ranks->owners);
	api_free(ranks->reminder_api);
	free(ranks);
}

/* Waits for the GPU, and what they are for: without them a rank that waits seems late. */
void flight_ranks_select(struct selection *selection)
{
	static const char *functions[] = { "cuEventRecord", "cuEventRecordWithFlags",
		                           "cuEventSynchronize", "cuStreamSynchronize",
		                           "cuCtxSynchronize" };

	selection->only = functions;
	selection->n_only = ARRAY_SIZE(functions);
	selection->layers = LAYERS_DRIVER;
}

/* ---- events ---------------------------------------------------------------------------------- */

static bool is_over(const struct person *person)
{
	const struct collectives *of = lateness_collectives(person->lateness);

	for (size_t i = 0; i < of->n_ranks; i++)
		if (!of->ranks[i].gone)
			return false;
	return true;
}

static void add_unmatched(struct lateness_unmatched *sum, const struct person *person)
{
	struct lateness_unmatched of = lateness_unmatched(person->lateness);

	sum->unknown += of.unknown;
	sum->uncounted += of.uncounted;
	sum->lost += of.lost;
	sum->unlike += of.unlike;
}

/* All that was known of his ranks; what they did is told already. */
static void person_begin(struct flight_ranks *ranks, struct person *person, uint64_t whose)
{
	if (person->lateness)
		add_unmatched(&ranks->before, person);
	lateness_free(person->lateness);
	free(person->ranks);
	*person = (struct person){ .person = whose, .lateness = lateness_new(CALLS_MOST) };
}

/* A place, of whose owner no rank lives any more; NULL: there is none. */
static struct person *person_give_way(struct flight_ranks *ranks)
{
	for (size_t i = 0; i < ranks->n_persons; i++) {
		if (!is_over(&ranks->persons[i]))
			continue;
		for (size_t k = 0; k < ranks->n_owners; k++)
			if (ranks->owners[k] == i + 1)
				ranks->owners[k] = NOBODYS;
		return &ranks->persons[i];
	}
	return NULL;
}

/* NULL: there is no room for more. */
static struct person *person_of(struct flight_ranks *ranks, const struct process *process)
{
	uint64_t person = process->person;
	struct person *place;

	if (person == PERSON_UNKNOWN)
		return NULL;
	for (size_t i = 0; i < ranks->n_persons; i++)
		if (ranks->persons[i].person == person)
			return &ranks->persons[i];
	/* one place is root's */
	if (ranks->n_persons + (person != PERSON_ROOT) < PERSONS_MAX)
		place = &ranks->persons[ranks->n_persons++];
	else
		place = person_give_way(ranks);
	if (place)
		person_begin(ranks, place, person);
	return place;
}

/* Of one that has called a collective; NULL: it has not, or is left out. */
static struct person *owner_of(struct flight_ranks *ranks, const struct process *process, bool make)
{
	uint8_t *owner;

	owner = BY_ID(ranks->owners, ranks->n_owners, process->id);
	if (!*owner && make) {
		struct person *person = person_of(ranks, process);

		*owner = person ? (uint8_t)(person - ranks->persons + 1) : NOBODYS;
	}
	return *owner && *owner != NOBODYS ? &ranks->persons[*owner - 1] : NULL;
}

void flight_ranks_event(struct flight_ranks *ranks, const struct event *event)
{
	struct person *person;

	if (event->type == EVENT_CALL || event->type == EVENT_OTHER_CALL)
		ranks->seen_ns = event->time_ns;
	if (event->type == EVENT_OTHER_CALL && event->call->function == &ranks->reminder)
		return;
	if (event->type != EVENT_EXIT && event->type != EVENT_OTHER_CALL &&
	    (event->type != EVENT_CALL ||
	     (event->call->op != OP_SYNC && event->call->op != OP_EVENT_RECORD)))
		return;
	person = owner_of(ranks, event->process, event->type == EVENT_OTHER_CALL);
	if (person)
		lateness_event(person->lateness, event);
	else if (event->type == EVENT_OTHER_CALL)
		ranks->left_out++;
}

/* ---- reminders ------------------------------------------------------------------------------- */

static void reminder_make(struct flight_ranks *ranks, struct capture *capture)
{
	static const struct api_text text = {
		.name = "recorder.rank",
		.spec = "comm:addr id:addr id2:addr rank:int ranks:int AllReduce:u64 "
			"ReduceScatter:u64 AllGather:u64 Broadcast:u64 Reduce:u64",
		.cls = CLASS_OTHER
	};

	ranks->reminder = (struct function){ .name = text.name,
		                             .lib = "cuscope",
		                             .layer = LAYER_HOOK,
		                             .cls = CLASS_OTHER,
		                             .api = api_from_text(&text, &ranks->reminder_api) };
	ranks->reminder.id = capture_function_number(capture);
}

static int remind_of(const struct flight_ranks *ranks, struct capture *capture,
                     const struct collective_comm *comm, const struct collective_rank *rank,
                     const struct collective_counts *counts, struct err *err)
{
	struct call call = { .function = &ranks->reminder,
		             .begin_ns = ranks->seen_ns,
		             .end_ns = ranks->seen_ns };
	const struct event event = { .type = EVENT_OTHER_CALL,
		                     .time_ns = ranks->seen_ns,
		                     .process = rank->process,
		                     .tid = rank->process->pid,
		                     .call = &call };

	call.args.arg[0] = rank->handle;
	memcpy(&call.args.arg[1], comm->id, 2 * sizeof(uint64_t));
	call.args.arg[3] = (uint64_t)(int64_t)rank->number;
	call.args.arg[4] = comm->size;
	memcpy(&call.args.arg[5], counts->of, sizeof(counts->of));
	call.args.n_args = 5 + COLLECTIVES_TOLD;
	return capture_tell(capture, &event, err);
}

/* What one person has of a turn's reminders. */
struct reminding {
	struct collective_counts *counts;
	size_t n_known, share;
};

/* An equal part each, and what others do not need of theirs. */
static size_t reminders_share(struct reminding *all, size_t n)
{
	size_t rest = FLIGHT_RANKS_TOLD, left = 0;

	for (size_t i = 0; i < n; i++) {
		size_t part = FLIGHT_RANKS_TOLD / n;

		all[i].share = all[i].n_known < part ? all[i].n_known : part;
		rest -= all[i].share;
	}
	for (size_t i = 0; i < n; i++) {
		size_t more = all[i].n_known - all[i].share;

		more = more < rest ? more : rest;
		all[i].share += more;
		rest -= more;
		left += all[i].n_known - all[i].share;
	}
	return left;
}

/* From where the last turn ended, so that all are told of in a few. */
static int remind_person(struct flight_ranks *ranks, struct person *person,
                         const struct reminding *mine, struct capture *capture, struct err *err)
{
	const struct collectives *of = lateness_collectives(person->lateness);
	size_t told = 0, first = person->remind_at;
	int rc = 0;

	for (size_t i = 0; i < of->n_ranks && told < mine->share && !rc; i++) {
		size_t k = (first + i) % of->n_ranks;

		if (!mine->counts[k].known)
			continue;
		told++;
		person->remind_at = k + 1;
		rc = remind_of(ranks, capture, &of->comms[of->ranks[k].comm], &of->ranks[k],
		               &mine->counts[k], err);
	}
	return rc;
}

int flight_ranks_remind(struct flight_ranks *ranks, struct capture *capture, size_t *left,
                        struct err *err)
{
	struct reminding all[PERSONS_MAX] = { 0 };
	int rc = 0;

	if (!ranks->reminder_api)
		reminder_make(ranks, capture);
	for (size_t i = 0; i < ranks->n_persons; i++) {
		const struct collectives *of = lateness_collectives(ranks->persons[i].lateness);

		all[i].counts = collectives_count(of);
		for (size_t k = 0; k < of->n_ranks; k++)
			all[i].n_known += all[i].counts[k].known;
	}
	*left = reminders_share(all, ranks->n_persons);
	for (size_t i = 0; i < ranks->n_persons; i++) {
		rc = rc ? rc : remind_person(ranks, &ranks->persons[i], &all[i], capture, err);
		free(all[i].counts);
	}
	return rc;
}

/* ---- the rule -------------------------------------------------------------------------------- */

static void judge_fire(struct flight_ranks *ranks, const struct collective_comm *comm,
                       const struct collective_rank *rank, const char *how)
{
	char why[RULES_TEXT_MAX];

	snprintf(why, sizeof(why), "rank %d of communicator %08x, process %u (%s), %s",
	         rank->number, COMM_OF(comm->id[0]), rank->process->pid, rank->process->comm, how);
	ranks->fired(ranks->data, RULE_LATE_RANK, rank->process->person, why);
}

/* Once, until it is half as late or less. */
static void judge(struct flight_ranks *ranks, const struct collective_comm *comm,
                  const struct collective_rank *rank, const struct lateness_rank *sums,
                  struct told_rank *told, uint64_t now_ns)
{
	double most = ranks->settings->rules.late_rank, percent;
	bool missing = sums->missing_ns >= MISSING_NS;
	char how[160];

	if (most <= 0 || (!missing && now_ns - told->judged_ns < JUDGE_NS))
		return;
	percent = told->judged_ns ? 100.0 * (double)(sums->late_ns - told->judged_late_ns) /
	                                    (double)(now_ns - told->judged_ns)
	                          : 0;
	if (missing)
		snprintf(how, sizeof(how), "has not called for %.1f s what all others here have",
		         (double)sums->missing_ns / 1e9);
	else
		snprintf(how, sizeof(how),
		         "was called last: others here waited up to %.0f %% of %.1f s for it alone",
		         percent, (double)(now_ns - told->judged_ns) / 1e9);
	if (!told->late && (missing || percent >= most))
		judge_fire(ranks, comm, rank, how);
	told->late = missing || percent >= (told->late ? most / 2 : most);
	told->judged_ns = now_ns;
	told->judged_late_ns = sums->late_ns;
}

/* ---- what is told ---------------------------------------------------------------------------- */

struct telling {
	struct recorder_message message;
	struct told_rank *from[RECORDER_RANKS_EACH];
	struct lateness_rank sums[RECORDER_RANKS_EACH];
	int socket;
	bool full; /* the other side has no room: later */
};

static void telling_send(struct telling *telling)
{
	struct recorder_ranks_part *part = &telling->message.ranks;

	if (part->n && recorder_send(telling->socket, &telling->message))
		telling->full = true;
	for (uint32_t i = 0; i < part->n && !telling->full; i++) {
		telling->from[i]->told = telling->sums[i];
		telling->from[i]->known = true;
		telling->from[i]->ended = part->of[i].ended;
	}
	part->n = 0;
}

static void telling_add(struct telling *telling, const struct collective_comm *comm,
                        const struct collective_rank *rank, const struct lateness_rank *sums,
                        struct told_rank *told)
{
	struct recorder_ranks_part *part = &telling->message.ranks;
	struct recorder_rank *one = &part->of[part->n];

	*one = (struct recorder_rank){ .comm = COMM_OF(comm->id[0]),
		                       .pid = rank->process->pid,
		                       .number = rank->number,
		                       .ended = rank->gone,
		                       .n = sums->n - told->told.n,
		                       .n_last = sums->n_last - told->told.n_last,
		                       .late_ns = sums->late_ns - told->told.late_ns,
		                       .waited_ns = sums->waited_ns - told->told.waited_ns,
		                       .missing_ns = sums->missing_ns };
	snprintf(one->process, sizeof(one->process), "%s", rank->process->comm);
	telling->from[part->n] = told;
	telling->sums[part->n++] = *sums;
	if (part->n == RECORDER_RANKS_EACH)
		telling_send(telling);
}

/* There is room for no more of his ranks: he begins anew, once all that was told of has ended. */
static void person_renew(struct flight_ranks *ranks, struct person *person, struct telling *telling)
{
	const struct collectives *of = lateness_collectives(person->lateness);

	for (size_t i = 0; i < of->n_ranks && !telling->full; i++) {
		struct collective_rank rank = of->ranks[i];
		struct told_rank *told = &person->ranks[i];

		if (rank.gone || !told->known)
			continue;
		rank.gone = true;
		telling_add(telling, &of->comms[rank.comm], &rank, &told->told, told);
	}
	telling_send(telling);
	if (!telling->full)
		person_begin(ranks, person, person->person);
}

/* Ranks that no other one of was seen have nothing to tell. */
static void person_turn(struct flight_ranks *ranks, struct person *person, struct telling *telling,
                        uint64_t now_ns)
{
	const struct collectives *of = lateness_collectives(person->lateness);

	lateness_turn(person->lateness, now_ns);
	if (of->n_ranks)
		person->ranks = by_id_room(person->ranks, &person->n_ranks, sizeof(*person->ranks),
		                           (uint32_t)of->n_ranks - 1);
	for (size_t i = 0; i < of->n_ranks && !telling->full; i++) {
		const struct collective_rank *rank = &of->ranks[i];
		const struct lateness_rank *sums = lateness_of(person->lateness, i);
		struct told_rank *told = &person->ranks[i];

		if (rank->comm == COLLECTIVES_NONE ||
		    (!sums->n && !sums->missing_ns && !told->known))
			continue;
		judge(ranks, &of->comms[rank->comm], rank, sums, told, now_ns);
		if (memcmp(sums, &told->told, sizeof(*sums)) != 0 || rank->gone != told->ended)
			telling_add(telling, &of->comms[rank->comm], rank, sums, told);
	}
	if (collectives_are_full(of) && !telling->full)
		person_renew(ranks, person, telling);
}

static void count_unmatched(const struct flight_ranks *ranks, struct recorder_state *state)
{
	struct lateness_unmatched sum = ranks->before;

	for (size_t i = 0; i < ranks->n_persons; i++)
		add_unmatched(&sum, &ranks->persons[i]);
	state->unmatched[RECORDER_UNKNOWN_COMM] = sum.unknown;
	state->unmatched[RECORDER_UNCOUNTED] = sum.uncounted;
	state->unmatched[RECORDER_CALLS_LOST] = sum.lost + ranks->left_out;
	state->unmatched[RECORDER_UNLIKE] = sum.unlike;
}

/* As it is known that there is something to ask about. Further losses do not put it off. */
static void person_ask_soon(struct person *person, uint64_t now_ns)
{
	uint64_t soon_ns = now_ns + ASK_SOON_NS;

	person->ask_pause_ns = 0;
	if (person->asked_ns && soon_ns < person->asked_ns + ASK_LEAST_NS)
		soon_ns = person->asked_ns + ASK_LEAST_NS;
	if (!person->ask_soon)
		person->ask_at_ns = soon_ns;
	person->ask_soon = true;
}

/* Nobody knows whose they were. In windows of max_overhead most calls are not seen. */
static void distrust_lost(struct flight_ranks *ranks, const struct capture_state *capture,
                          uint64_t now_ns)
{
	static const enum lost_reason reasons[] = { LOST_RING_FULL, LOST_THREADS_FULL, LOST_NOT_RUN,
		                                    LOST_QUEUE };
	uint64_t lost = 0;

	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
		lost += capture->lost[reasons[i]];
	if (lost == ranks->lost && capture->estimate_scale <= 1)
		return;
	for (size_t i = 0; i < ranks->n_persons; i++) {
		lateness_distrust(ranks->persons[i].lateness);
		person_ask_soon(&ranks->persons[i], now_ns);
	}
	ranks->lost = lost;
}

void flight_ranks_turn(struct flight_ranks *ranks, const struct capture_state *capture,
                       uint64_t now_ns, int socket, struct recorder_state *state)
{
	struct telling telling = { .message = { .kind = RECORDER_RANKS }, .socket = socket };

	distrust_lost(ranks, capture, now_ns);
	for (size_t i = 0; i < ranks->n_persons; i++)
		person_turn(ranks, &ranks->persons[i], &telling, now_ns);
	telling_send(&telling);
	count_unmatched(ranks, state);
}

static bool person_wants_ras(struct person *person, uint64_t now_ns)
{
	if (!person->ask_at_ns)
		person->ask_at_ns = now_ns + ASK_LEAST_NS;
	if (now_ns < person->ask_at_ns)
		return false;
	if (!collectives_want_ras(lateness_collectives(person->lateness), now_ns - ASK_LEAST_NS)) {
		person->ask_at_ns = now_ns + 1000000000;
		return false;
	}
	person->ask_pause_ns = person->ask_pause_ns ? 2 * person->ask_pause_ns : ASK_LEAST_NS;
	if (person->ask_pause_ns > ASK_MOST_NS)
		person->ask_pause_ns = ASK_MOST_NS;
	person->asked_ns = now_ns;
	person->ask_soon = false;
	person->ask_at_ns = now_ns + person->ask_pause_ns;
	return true;
}

/* Each at his own pace: what one has that RAS never knows puts nobody else off. */
bool flight_ranks_want_ras(struct flight_ranks *ranks, uint64_t now_ns)
{
	bool want = false;

	for (size_t i = 0; i < ranks->n_persons; i++)
		want |= person_wants_ras(&ranks->persons[i], now_ns);
	return want;
}
