// SPDX-License-Identifier: MIT
#include "agent/agent_probes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/agent_channel.h"
#include "base/buf.h"
#include "base/words.h"
#include "base/xalloc.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008u /* Linux 6.3 */
#endif

#define ANSWER_NS    10000000000ull
#define WAITING_MOST 256
#define PAGE         4096u
#define THUNK_MOST   4096u        /* bytes */
#define USERS_END    (1ull << 56) /* of addresses that processes have, wherever */
#define SEALS        (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

struct agent_request {
	struct agent_request *next;
	struct agent_message message;
	size_t n_slots;
	struct agent_slot slots[];
};

static uint32_t number_of(const struct agent_request *request)
{
	return request->message.area.number; /* it has the same place in all */
}

/* ---- telling --------------------------------------------------------------------------------- */

static void tell(struct agent *agent, const struct agent_probes_answer *answer)
{
	const struct agents_options *options = &agent->common->options;

	if (options->probes.news)
		options->probes.news(options->data, (uint32_t)agent->pid, answer);
}

static void add_reason(struct buf *why, const struct agent *agent, int code)
{
	switch (code) {
	case -ENOSYS:
		buf_printf(why, "no calls can be recorded inside of processes of this machine yet");
		break;
	case -ENOBUFS:
		buf_printf(why,
		           "cuscope has recorded calls inside of process %d so often that there is "
		           "no room left for more; start it anew, or go on with kernel probes",
		           agent->pid);
		break;
	case -ENOSPC:
		buf_printf(why,
		           "process %d has no free addresses near the library whose calls are to "
		           "be recorded",
		           agent->pid);
		break;
	case -EACCES:
	case -EPERM:
		buf_printf(why,
		           "process %d may not map memory for code (execmem of SELinux, or another "
		           "policy)",
		           agent->pid);
		break;
	case -ENOMEM:
		buf_printf(why, "process %d has no memory left", agent->pid);
		break;
	case -ETIMEDOUT:
		buf_printf(why,
		           "the agent in process %d does not answer; the process may be stopped, "
		           "or gets no processor",
		           agent->pid);
		break;
	case -ECANCELED:
		buf_printf(why, "the agent in process %d is about to leave", agent->pid);
		break;
	default:
		buf_printf(why, "the agent in process %d refuses: %s", agent->pid, strerror(-code));
	}
}

/* The first request is over. */
static void answer(struct agent *agent, int code, uint64_t area)
{
	struct agent_probes *probes = &agent->probes;
	struct agent_request *request = probes->first;
	struct agent_probes_answer told = { .news = AGENT_PROBES_ANSWER,
		                            .request = (int)number_of(request),
		                            .code = code,
		                            .area = area };
	AT_END(buf_free) struct buf why = { 0 };

	probes->first = request->next;
	if (!probes->first)
		probes->last = NULL;
	probes->waiting--;
	probes->sent_ns = 0;
	free(request);
	if (code) {
		add_reason(&why, agent, code);
		told.why = why.data;
	}
	tell(agent, &told);
}

/* As many as there are now: who is told may ask for more. */
static void answer_all(struct agent *agent, int code)
{
	uint32_t last = agent->probes.number;

	while (agent->probes.first && number_of(agent->probes.first) <= last)
		answer(agent, code, 0);
}

/* ---- what it says ---------------------------------------------------------------------------- */

static bool is_range(uint64_t at, uint64_t bytes)
{
	return at && at < USERS_END && bytes <= USERS_END - at;
}

static void nonsense(struct agent *agent, const char *what)
{
	agent_fail(agent,
	           "what the agent in process %d says of %s makes no sense, so nothing is taken "
	           "from it any more",
	           agent->pid, what);
}

/* What earlier sessions left, as it says. */
static bool are_areas(const struct agent_area *areas, uint32_t n, uint32_t used)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct agent_area *area = &areas[i];

		if (area->address % PAGE || area->bytes % PAGE || !area->bytes ||
		    area->bytes > AGENT_AREA_MOST || !is_range(area->address, area->bytes) ||
		    !area->n || area->n > used || area->first > used - area->n)
			return false;
	}
	return true;
}

/* Whether it is ready, or never will be. */
static void look_whether_ready(struct agent *agent)
{
	struct agent_probes_answer told = { .news = AGENT_PROBES_READY };
	struct agent_area areas[AGENT_AREAS_MOST];
	struct agent_ring_probes says;
	AT_END(buf_free) struct buf why = { 0 };
	uint32_t n;

	agent_ring_probes(agent->ring, &says);
	if (!says.slots && (!agent->spoke || agent->state == AGENT_STARTING))
		return;
	if (says.slots > AGENT_SLOTS_MOST ||
	    (says.slots && (!says.thunk_bytes || says.thunk_bytes > THUNK_MOST ||
	                    !is_range(says.thunks, (uint64_t)says.slots * says.thunk_bytes)))) {
		nonsense(agent, "its slots");
		return;
	}
	n = agent_ring_areas(agent->ring, areas);
	if (says.slots && (says.used > says.slots || !are_areas(areas, n, says.used))) {
		nonsense(agent, "code of earlier recordings");
		return;
	}
	agent->probes.ready = true;
	told.slots = agent->probes.slots = says.slots;
	told.thunks = says.slots ? says.thunks : 0;
	told.thunk_bytes = says.slots ? says.thunk_bytes : 0;
	told.used = says.slots ? says.used : 0;
	told.areas = areas;
	told.n_areas = says.slots ? n : 0;
	if (!says.slots) {
		add_reason(&why, agent, says.answer.code < 0 ? says.answer.code : -EPROTO);
		told.why = why.data;
	}
	tell(agent, &told);
}

static bool is_near(uint64_t at, uint64_t bytes, uint64_t near)
{
	return (at >= near || near - at <= AGENT_REACH) &&
	       (at + bytes <= near || at + bytes - near <= AGENT_REACH);
}

static bool makes_sense(const struct agent_message *message, const struct agent_answer *says)
{
	if (says->code > 0 || says->code < -4095)
		return false;
	if (message->type != AGENT_PROBES_AREA || says->code)
		return true;
	return says->area % PAGE == 0 && is_range(says->area, message->area.bytes) &&
	       is_near(says->area, message->area.bytes, message->area.near);
}

/* Answers to what is not asked, or not any more, are none. */
static void hear(struct agent *agent)
{
	struct agent_probes *probes = &agent->probes;
	struct agent_ring_probes says;

	agent_ring_probes(agent->ring, &says);
	if (probes->silent && says.answer.number == probes->given_up)
		probes->silent = false;
	if (!probes->sent_ns)
		return;
	if (says.answer.number != number_of(probes->first)) {
		if (agent->common->now_ns - probes->sent_ns < ANSWER_NS)
			return;
		probes->silent = true;
		probes->given_up = number_of(probes->first);
		answer_all(agent, -ETIMEDOUT);
	} else if (makes_sense(&probes->first->message, &says.answer)) {
		answer(agent, says.answer.code, says.answer.code ? 0 : says.answer.area);
	} else {
		nonsense(agent, "what it was asked for");
	}
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* Read only, and of that size for good: the agent reads what we wrote. */
static int slots_memfd(const struct agent_request *request)
{
	size_t bytes = request->n_slots * sizeof(*request->slots);
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create("cuscope-slots", flags | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("cuscope-slots", flags);
	if (fd < 0)
		return -errno;
	if (write(fd, request->slots, bytes) == (ssize_t)bytes &&
	    fcntl(fd, F_ADD_SEALS, SEALS) == 0)
		return fd;
	close(fd);
	return -ENOMEM;
}

static void send_next(struct agent *agent)
{
	struct agent_probes *probes = &agent->probes;
	struct agent_request *request = probes->first;
	int fd = -1, rc;

	if (!request || probes->sent_ns)
		return;
	if (request->n_slots) {
		fd = slots_memfd(request);
		if (fd < 0) {
			answer(agent, fd, 0);
			return;
		}
	}
	rc = channel_send(agent->socket, &request->message, &fd, fd >= 0 ? 1 : 0);
	if (fd >= 0)
		close(fd);
	if (!rc)
		probes->sent_ns = agent->common->now_ns;
	else if (rc != -EAGAIN)
		agent->closed = true;
}

void agent_probes_turn(struct agent *agent)
{
	struct agent_probes *probes = &agent->probes;

	if (!agent->common->options.probes.wanted || probes->ended)
		return;
	if (!probes->ready)
		look_whether_ready(agent);
	else
		hear(agent);
	if (agent->over || agent->closed || !probes->ready)
		return;
	if (probes->silent)
		answer_all(agent, -ETIMEDOUT);
	else if (agent->common->order == AGENT_STOP)
		answer_all(agent, -ECANCELED);
	else
		send_next(agent);
}

static struct agent_request *add(struct agent *agent, uint32_t type, size_t n_slots)
{
	struct agent_probes *probes = &agent->probes;
	struct agent_request *request =
		xcalloc(1, sizeof(*request) + n_slots * sizeof(*request->slots));

	request->n_slots = n_slots;
	request->message.type = type;
	request->message.abi = AGENT_ABI;
	request->message.area.number = ++probes->number;
	if (probes->last)
		probes->last->next = request;
	else
		probes->first = request;
	probes->last = request;
	probes->waiting++;
	return request;
}

static int may_ask(const struct agent *agent)
{
	const struct agent_probes *probes = &agent->probes;

	if (agent->over || !probes->ready || probes->ended || !probes->slots)
		return -ESRCH;
	return probes->waiting < WAITING_MOST && probes->number < INT32_MAX ? 0 : -ENOBUFS;
}

int agent_probes_area(struct agent *agent, uint64_t near, uint32_t bytes)
{
	int rc = may_ask(agent);
	struct agent_request *request;

	if (rc)
		return rc;
	if (!bytes || bytes > AGENT_AREA_MOST || !is_range(near, 1))
		return -EINVAL;
	request = add(agent, AGENT_PROBES_AREA, 0);
	request->message.area.near = near;
	request->message.area.bytes = bytes;
	return (int)number_of(request);
}

int agent_probes_set(struct agent *agent, const struct agent_slot *slots, size_t n)
{
	int rc = may_ask(agent);
	struct agent_request *request;

	if (rc)
		return rc;
	if (!n || n > agent->probes.slots)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (slots[i].slot >= agent->probes.slots || slots[i].does >= AGENT_SLOT_DOES)
			return -EINVAL;
	}
	request = add(agent, AGENT_PROBES_SET, n);
	request->message.slots.n = (uint32_t)n;
	memcpy(request->slots, slots, n * sizeof(*slots));
	return (int)number_of(request);
}

int agent_probes_slots(struct agent *agent, uint32_t first, uint32_t n, uint32_t does)
{
	int rc = may_ask(agent);
	struct agent_request *request;

	if (rc)
		return rc;
	if (!n || n > agent->probes.slots || first > agent->probes.slots - n ||
	    does >= AGENT_SLOT_DOES)
		return -EINVAL;
	request = add(agent, AGENT_PROBES_TURN, 0);
	request->message.slots.first = first;
	request->message.slots.n = n;
	request->message.slots.does = does;
	return (int)number_of(request);
}

/* Should it not be sent, the program waits for the longest time that there is. */
void agent_probes_go(struct agent *agent)
{
	const struct agent_message message = { .type = AGENT_PROBES_GO, .abi = AGENT_ABI };

	if (!may_ask(agent))
		channel_send(agent->socket, &message, NULL, 0);
}

/* ---- the end --------------------------------------------------------------------------------- */

void agent_probes_end(struct agent *agent, const char *why)
{
	const struct agent_probes_answer told = { .news = AGENT_PROBES_ENDED, .why = why };
	struct agent_probes *probes = &agent->probes;

	if (probes->ended)
		return;
	probes->ended = true; /* nothing more is asked for from here on */
	answer_all(agent, -ECANCELED);
	if (probes->ready)
		tell(agent, &told);
}

void agent_probes_drop(struct agent *agent)
{
	struct agent_probes *probes = &agent->probes;

	probes->ended = true;
	while (probes->first) {
		struct agent_request *request = probes->first;

		probes->first = request->next;
		free(request);
	}
	probes->last = NULL;
}

#define SAID_FLAGS (WIRE_NO_RETURN | WIRE_UNFINISHED | WIRE_UNREADABLE | WIRE_BEGUN | WIRE_WALKED)

#define THREADS    64       /* a power of two */
#define THREADS_NS 20000000 /* until they are asked for again */

struct probe_records {
	struct probe_records_options options;
	/* Threads that were found, by the low bits of their numbers, since then: a number may be
	 * another thread's later. */
	struct {
		uint32_t tid, found;
	} thread[THREADS];
	uint64_t threads_ns;
	struct wire_call call;
	struct wire_name name;
};

struct probe_records *probe_records_new(const struct probe_records_options *options)
{
	struct probe_records *records = xcalloc(1, sizeof(*records));

	records->options = *options;
	return records;
}

void probe_records_free(struct probe_records *records)
{
	free(records);
}

/* ---- what all have ------------------------------------------------------------------------- */

static bool find_cookie(const struct probe_records *records, uint32_t slot, uint64_t *cookie)
{
	if (slot >= records->options.n_cookies)
		return false;
	*cookie = records->options.cookies[slot];
	return *cookie != PROBE_NO_COOKIE && cookie_words(*cookie) <= WIRE_WORDS;
}

static uint32_t find_thread(struct probe_records *records, uint32_t tid, uint64_t now_ns)
{
	uint32_t at = tid % THREADS;

	if (now_ns - records->threads_ns > THREADS_NS) {
		memset(records->thread, 0, sizeof(records->thread));
		records->threads_ns = now_ns;
	}
	if (!tid || records->thread[at].tid != tid) {
		records->thread[at].found = records->options.thread(records->options.data, tid);
		records->thread[at].tid = records->thread[at].found ? tid : 0;
	}
	return records->thread[at].found;
}

/* In ns. One that is later than the last look at the clocks, and not later than now, makes us look
 * again. */
static bool find_time(const struct probe_records *records, uint64_t told, uint64_t now_ns,
                      uint64_t *ns)
{
	struct tick_clock *ticks = records->options.ticks;

	*ns = told;
	if (ticks && !tick_clock_ns(ticks, told, ns)) {
		if (told > tick_clock_ticks())
			return false;
		tick_clock_look(ticks);
		if (!tick_clock_ns(ticks, told, ns))
			return false;
	}
	return *ns >= records->options.since_ns && (ticks || *ns <= now_ns);
}

static struct wire_head head_of(const struct probe_records *records, uint8_t type, uint64_t cookie,
                                uint32_t tid, uint64_t time_ns)
{
	return (struct wire_head){ .type = type,
		                   .hook = (uint16_t)cookie_hook(cookie),
		                   .tgid = records->options.pid,
		                   .tid = tid,
		                   .time_ns = time_ns };
}

/* ---- calls --------------------------------------------------------------------------------- */

/* An entry has no end and no result; a call that was left or is not followed has no result. */
static bool records_makes_sense(const struct agent_probed *told, uint64_t cookie)
{
	uint32_t words = cookie_words(cookie);
	bool walked = told->head.flags & WIRE_WALKED;

	if (told->head.bytes != sizeof(*told) + words * sizeof(*told->word) ||
	    (walked ? told->depth - 1 >= UINT16_MAX : told->depth >= AGENT_PROBE_DEPTH_MAX) ||
	    told->head.flags & ~(uint32_t)(SAID_FLAGS | WIRE_NESTED))
		return false;
	if (told->head.type == AGENT_PROBE_BEGUN)
		return !(told->head.flags & (WIRE_NO_RETURN | WIRE_UNFINISHED | WIRE_BEGUN));
	return (told->head.flags & (WIRE_NO_RETURN | WIRE_UNFINISHED)) !=
	       (WIRE_NO_RETURN | WIRE_UNFINISHED);
}

static enum probe_record_is take_call(struct probe_records *records,
                                      const struct agent_probed *told, uint64_t now_ns)
{
	struct wire_call *call = &records->call;
	bool begun = told->head.type == AGENT_PROBE_BEGUN;
	uint32_t depth = told->head.flags & WIRE_WALKED ? 0 : told->depth, tid;
	uint64_t cookie, begin_ns, end_ns;

	if (told->head.bytes < sizeof(*told) || !find_cookie(records, told->head.lane, &cookie) ||
	    !records_makes_sense(told, cookie))
		return PROBE_RECORD_BAD;
	if (told->end < told->begin || !find_time(records, told->begin, now_ns, &begin_ns) ||
	    !find_time(records, told->end, now_ns, &end_ns))
		return PROBE_RECORD_BAD_TIMES;
	tid = find_thread(records, told->tid, now_ns);
	if (!tid)
		return PROBE_RECORD_NO_THREAD;
	call->head = head_of(records, begun ? WIRE_BEGIN : WIRE_CALL, cookie, tid,
	                     begun ? begin_ns : end_ns);
	call->head.flags = (told->head.flags & SAID_FLAGS) | (depth ? WIRE_NESTED : 0);
	call->head.depth = (uint8_t)depth;
	call->head.walk = (uint16_t)(told->depth - depth);
	call->head.words = (uint8_t)cookie_words(cookie);
	call->begin_ns = begin_ns;
	call->result = begun ? 0 : told->result;
	call->place = told->place;
	words_copy(call->word, told->word, call->head.words * sizeof(*call->word));
	records->options.record(records->options.data, &call->head,
	                        WIRE_CALL_BYTES(call->head.words));
	return PROBE_RECORD_TAKEN;
}

/* ---- texts --------------------------------------------------------------------------------- */

static enum probe_record_is take_name(struct probe_records *records,
                                      const struct agent_probe_name *told, uint64_t now_ns)
{
	struct wire_name *name = &records->name;
	size_t most = told->head.bytes - offsetof(struct agent_probe_name, text), length;
	uint64_t cookie, time_ns;
	uint32_t tid;

	if (told->head.bytes <= sizeof(*told) || !find_cookie(records, told->head.lane, &cookie))
		return PROBE_RECORD_BAD;
	length = strnlen(told->text, most);
	if (length == most || length >= WIRE_STRING_MAX || told->source < NAME_OF_HANDLE ||
	    told->source > NAME_OF_ARGUMENT)
		return PROBE_RECORD_BAD;
	if (!find_time(records, told->begin, now_ns, &time_ns))
		return PROBE_RECORD_BAD_TIMES;
	tid = find_thread(records, told->tid, now_ns);
	if (!tid)
		return PROBE_RECORD_NO_THREAD;
	name->head = head_of(records, WIRE_NAME, cookie, tid, time_ns);
	name->head.flags = told->head.flags & WIRE_TRUNCATED;
	name->head.bytes = (uint16_t)(length ? length + 1 : 0);
	name->key = told->key;
	name->from = told->from;
	name->source = told->source;
	name->reserved = 0;
	memcpy(name->text, told->text, name->head.bytes);
	records->options.record(records->options.data, &name->head,
	                        WIRE_NAME_BYTES(name->head.bytes));
	return PROBE_RECORD_TAKEN;
}

enum probe_record_is probe_records_take(struct probe_records *records,
                                        const struct agent_head *record, uint64_t now_ns)
{
	switch (record->type) {
	case AGENT_PROBED:
	case AGENT_PROBE_BEGUN:
		return take_call(records, (const struct agent_probed *)record, now_ns);
	case AGENT_PROBE_NAME:
		return take_name(records, (const struct agent_probe_name *)record, now_ns);
	default:
		return PROBE_RECORD_OTHER;
	}
}
