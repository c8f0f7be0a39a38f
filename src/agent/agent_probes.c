// SPDX-License-Identifier: MIT
#include "agent/agent_probes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/agent_channel.h"
#include "base/buf.h"
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
	struct buf why = { 0 };

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
	buf_free(&why);
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
	struct buf why = { 0 };
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
	buf_free(&why);
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
