// SPDX-License-Identifier: MIT
/*
 * What a hostile agent says of its slots, of memory for code, and to what it is asked. Whatever it
 * says, what is passed on must be what agents.h promises, and each request is answered once.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/agent_ring.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what))                                                                       \
			abort();                                                                   \
	} while (0)

#define ASKED_MOST 1024
#define USERS_END  (1ull << 56)
#define SANE       0x7f0000000000ull
#define SECOND     1000000000ull

struct input {
	const uint8_t *at;
	size_t left;
};

struct scene {
	struct agent *agent;
	struct agent_shared *shared;
	int socket; /* the process's end */
	struct asked {
		bool asked, area;
		uint64_t near;
		uint32_t bytes;
	} asked[ASKED_MOST];
	uint32_t slots, said;
	bool ready, ended;
};

static uint64_t take(struct input *input, size_t bytes)
{
	uint64_t value = 0;

	bytes = bytes < input->left ? bytes : input->left;
	memcpy(&value, input->at, bytes);
	input->at += bytes;
	input->left -= bytes;
	return value;
}

/* A number of any size: small ones get further. */
static uint64_t number(struct input *input)
{
	return take(input, take(input, 1) % 9);
}

/* ---- what is promised ------------------------------------------------------------------------ */

static void check_ready(struct scene *scene, const struct agent_probes_answer *answer)
{
	CHECK(!scene->ready && answer->slots <= AGENT_SLOTS_MOST);
	CHECK((answer->why != NULL) == !answer->slots);
	scene->ready = true;
	scene->slots = answer->slots;
	if (!answer->slots)
		return;
	CHECK(answer->thunks && answer->thunk_bytes && answer->thunks < USERS_END);
	CHECK((uint64_t)answer->slots * answer->thunk_bytes <= USERS_END - answer->thunks);
	CHECK(answer->used <= answer->slots && answer->n_areas <= AGENT_AREAS_MOST);
	for (size_t i = 0; i < answer->n_areas; i++) {
		const struct agent_area *area = &answer->areas[i];

		CHECK(area->address && area->address % 4096 == 0 && area->bytes % 4096 == 0);
		CHECK(area->bytes && area->bytes <= AGENT_AREA_MOST);
		CHECK(area->address < USERS_END && area->bytes <= USERS_END - area->address);
		CHECK(area->n && (uint64_t)area->first + area->n <= answer->used);
	}
}

static void check_answer(struct scene *scene, const struct agent_probes_answer *answer)
{
	struct asked *asked = &scene->asked[answer->request % ASKED_MOST];

	CHECK(scene->ready && answer->request > 0 && asked->asked);
	asked->asked = false;
	CHECK(answer->code <= 0 && answer->code >= -4095 &&
	      (answer->why != NULL) == !!answer->code);
	if (answer->code || !asked->area)
		return;
	CHECK(answer->area && answer->area % 4096 == 0 && answer->area < USERS_END);
	CHECK(asked->near < answer->area || asked->near - answer->area <= AGENT_REACH);
	CHECK(answer->area + asked->bytes <= asked->near ||
	      answer->area + asked->bytes - asked->near <= AGENT_REACH);
}

static void on_news(void *data, uint32_t pid, const struct agent_probes_answer *answer)
{
	struct scene *scene = data;

	CHECK(pid == (uint32_t)getpid() && !scene->ended);
	if (answer->news == AGENT_PROBES_READY)
		check_ready(scene, answer);
	else if (answer->news == AGENT_PROBES_ANSWER)
		check_answer(scene, answer);
	else
		scene->ended = true;
}

/* ---- what is said, and asked ----------------------------------------------------------------- */

/* What makes sense, but for some of it. */
static void say_slots(struct agent_shared *shared, struct input *input)
{
	struct agent_area *area = &shared->probe_area[take(input, 1) % 2];
	const struct agent_area well = { .address = SANE, .bytes = 4096, .first = 3, .n = 7 };

	shared->probe_thunks = SANE;
	shared->probe_thunk_bytes = 64;
	shared->probe_slots = 2048;
	shared->probe_used = 100;
	shared->probe_areas = 2;
	shared->probe_area[0] = shared->probe_area[1] = well;
	for (uint64_t odd = take(input, 1) % 4; odd; odd--) {
		uint64_t value = number(input);

		switch (take(input, 1) % 9) {
		case 0:
			shared->probe_thunks = value;
			break;
		case 1:
			shared->probe_thunk_bytes = (uint32_t)value;
			break;
		case 2:
			shared->probe_slots = (uint32_t)value;
			break;
		case 3:
			shared->probe_used = (uint32_t)value;
			break;
		case 4:
			shared->probe_areas = (uint32_t)value;
			break;
		case 5:
			area->address = take(input, 1) % 2 ? value : value * 4096;
			break;
		case 6:
			area->bytes = (uint32_t)value * 4096;
			break;
		case 7:
			area->first = (uint32_t)value;
			break;
		default:
			area->n = (uint32_t)value;
		}
	}
}

static void say_answer(struct scene *scene, struct input *input)
{
	struct agent_answer *answer = &scene->shared->answer;
	uint8_t how = (uint8_t)take(input, 1);

	answer->code = how & 1 ? (int32_t)number(input) : 0;
	answer->area = how & 2 ? number(input) * (how & 4 ? 1 : 4096) : SANE;
	answer->number = how & 8 ? (uint32_t)number(input) : scene->said + 1;
	scene->said = answer->number;
}

static void ask(struct scene *scene, struct input *input)
{
	struct agent_slot slots[2] = { { .slot = (uint32_t)number(input) },
		                       { .slot = 1, .does = (uint32_t)take(input, 1) % 4 } };
	uint64_t near = take(input, 1) % 4 ? SANE + take(input, 4) : number(input);
	uint32_t bytes = take(input, 1) % 4 ? 4096 : (uint32_t)number(input);
	bool area = take(input, 1) % 2;
	int request = area ? agent_probes_area(scene->agent, near, bytes)
	                   : agent_probes_set(scene->agent, slots, 2);

	if (request <= 0)
		return;
	CHECK(scene->ready && scene->slots && !scene->ended);
	CHECK(!scene->asked[request % ASKED_MOST].asked);
	scene->asked[request % ASKED_MOST] = (struct asked){ true, area, near, bytes };
}

/* What it has counted is a number, whatever stands there. */
static void say_counts(struct scene *scene, struct input *input)
{
	uint64_t *counts = (uint64_t *)(void *)((char *)scene->shared + AGENT_COUNTS_AT);
	uint32_t slot = (uint32_t)number(input), share = (uint32_t)take(input, 1);
	uint64_t said;

	scene->shared->probe_shares = (uint32_t)number(input);
	counts[share % AGENT_COUNT_SHARES * AGENT_SLOTS_MOST + slot % AGENT_SLOTS_MOST] =
		number(input);
	said = agent_ring_counted(scene->agent->ring, slot);
	CHECK(said == UINT64_MAX || said < (uint64_t)AGENT_COUNT_SHARES << 56);
}

static void step(struct scene *scene, struct input *input)
{
	struct agent_shared *shared = scene->shared;
	uint8_t bytes[64];

	switch (take(input, 1) % 8) {
	case 0:
		shared->magic = AGENT_MAGIC;
		shared->abi = AGENT_ABI;
		shared->state = (uint32_t)take(input, 1) % (AGENT_STATES + 1);
		break;
	case 1:
		say_slots(shared, input);
		break;
	case 2:
		say_answer(scene, input);
		break;
	case 3:
		memcpy(bytes, input->at, input->left < sizeof(bytes) ? input->left : sizeof(bytes));
		send(scene->socket, bytes, input->left % sizeof(bytes),
		     MSG_DONTWAIT | MSG_NOSIGNAL);
		agent_hear(scene->agent);
		break;
	case 4:
		ask(scene, input);
		break;
	case 5:
		say_counts(scene, input);
		break;
	default:
		scene->agent->common->now_ns += take(input, 1) * SECOND / 10;
		agent_turn(scene->agent);
	}
}

/* ---- the agent ------------------------------------------------------------------------------- */

static bool take_hello(struct scene *scene)
{
	union {
		char bytes[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct agent_message message;
	struct iovec part = { &message, sizeof(message) };
	struct msghdr packet = { .msg_iov = &part,
		                 .msg_iovlen = 1,
		                 .msg_control = control.bytes,
		                 .msg_controllen = sizeof(control) };
	struct cmsghdr *head;
	int fds[2]; /* the memory, and the bell */
	size_t bytes;

	if (recvmsg(scene->socket, &packet, MSG_DONTWAIT) != sizeof(message))
		return false;
	head = CMSG_FIRSTHDR(&packet);
	if (!head)
		return false;
	bytes = head->cmsg_len - CMSG_LEN(0);
	memcpy(fds, CMSG_DATA(head), bytes < sizeof(fds) ? bytes : sizeof(fds));
	scene->shared = mmap(NULL, AGENT_RING_AT, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	for (size_t i = 0; i < bytes / sizeof(int) && i < 2; i++)
		close(fds[i]);
	return scene->shared != MAP_FAILED;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct scene scene = { 0 };
	struct agent_common common = { .epoll = epoll_create1(EPOLL_CLOEXEC),
		                       .cupti = -1,
		                       .now_ns = SECOND,
		                       .order = AGENT_RUN };
	struct input input = { data, size };
	int pair[2];

	common.options.probes.wanted = true;
	common.options.probes.news = on_news;
	common.options.ring_bytes = 65536;
	common.options.data = &scene;
	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	scene.socket = pair[1];
	scene.agent = agent_new(&common, getpid());
	agent_greet(scene.agent, pair[0]);
	CHECK(take_hello(&scene));
	while (input.left && !scene.agent->over)
		step(&scene, &input);
	if (!scene.agent->over)
		agent_end(scene.agent);
	CHECK(!scene.ready || scene.ended);
	for (size_t i = 0; i < ASKED_MOST; i++)
		CHECK(!scene.asked[i].asked);
	agent_free(scene.agent);
	munmap(scene.shared, AGENT_RING_AT);
	close(scene.socket);
	close(common.epoll);
	return 0;
}
