// SPDX-License-Identifier: MIT
#include "agent/agents.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/agent_channel.h"
#include "agent/agent_library.h"
#include "agent/agent_windows.h"
#include "base/map.h"
#include "base/quota.h"
#include "base/xalloc.h"
#include "probe/elf_image.h"
#include "probe/helper.h"

#define AGENTS_MOST   4096
#define AGENTS_USER   1024        /* of a user but root */
#define READING_NS    50000000ull /* a turn, of a user but root; then it is others' */
#define ENTERING_MOST 8           /* at once: each is a process of ours, and stops one of theirs; */
#define ENTERING_USER 4           /* of a user but root, who can make each take 10 s */
#define ACCEPTS_MOST  256         /* a turn */
#define EVENTS_MOST   64
#define VARIABLES     5

#define INJECTION      "CUDA_INJECTION64_PATH"
#define NVTX_INJECTION "NVTX_INJECTION64_PATH"

struct agents {
	struct agent_common common;
	int timer, listener;     /* -1: none */
	char name[CHANNEL_NAME]; /* of the listener */
	struct agent_library *library;
	char *variables[VARIABLES];
	struct agent *all;
	struct agent *over; /* to be freed when no event can mean them any more */
	struct quota places, entering;
	struct quota reading; /* in this turn */
	uint64_t edge_ns;     /* what the timer is set to; 0: nothing */
	struct agent_windows windows;
	bool told_full;
};

/* ---- making ---------------------------------------------------------------------------------- */

static int check_cupti(int fd, const char *path, struct err *err)
{
	struct elf_symbols symbols;
	struct elf_image image;
	int rc = elf_image_open(&image, fd, path, err);

	if (rc)
		return rc;
	rc = elf_symbols_dynamic(&image, &symbols);
	if (!rc)
		rc = elf_symbols_find(&image, &symbols, "cuptiSubscribe", false, NULL) == 1
		             ? 0
		             : -ENOEXEC;
	elf_image_close(&image);
	return rc ? err_set(err, ENOEXEC, "%s is no libcupti: it has no function cuptiSubscribe",
	                    path)
	          : 0;
}

static int open_cupti(struct agents *agents, const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), rc; /* a FIFO would be waited for */

	if (fd < 0)
		return err_set(err, errno, "--cupti: cannot open %s: %s", path, strerror(errno));
	rc = check_cupti(fd, path, err);
	if (rc) {
		close(fd);
		return err_prefix(err, "--cupti");
	}
	agents->common.cupti = fd;
	return 0;
}

static int wait_for(struct agents *agents, int fd, uint32_t events, void *tag)
{
	struct epoll_event event = { .events = events, .data.ptr = tag };

	return epoll_ctl(agents->common.epoll, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

int agents_new(const struct agents_options *options, struct agents **agents_out, struct err *err)
{
	struct agents *agents = xcalloc(1, sizeof(*agents));
	int rc = 0;

	agents->places = (struct quota){
		.user = { AGENTS_USER, "at most 1,024 processes of one user are taken at once" },
		.all = { AGENTS_MOST, "at most 4,096 processes are taken at once" }
	};
	agents->reading = (struct quota){ .user = { .most = READING_NS } };
	agents->entering = (struct quota){ .user = { .most = ENTERING_USER },
		                           .all = { .most = ENTERING_MOST } };
	agents->common.options = *options;
	if (!options->kinds ||
	    (options->window_ns >= options->period_ns && options->window_percent <= 0)) /* always */
		agents->common.options.window_ns = 0;
	agents->common.order = AGENT_RUN;
	agents->common.cupti = agents->listener = -1;
	agents->common.epoll = epoll_create1(EPOLL_CLOEXEC);
	agents->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (agents->common.epoll < 0 || agents->timer < 0 ||
	    wait_for(agents, agents->timer, EPOLLIN, &agents->timer))
		rc = err_set(err, errno, "cannot wait for agents: %s", strerror(errno));
	if (!rc && options->cupti)
		rc = open_cupti(agents, options->cupti, err);
	if (rc) {
		agents_free(agents);
		agents = NULL;
	}
	*agents_out = agents;
	return rc;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Whoever connected and was not accepted yet may have sent something already. */
static void stop_listening(struct agents *agents)
{
	if (agents->listener < 0)
		return;
	epoll_ctl(agents->common.epoll, EPOLL_CTL_DEL, agents->listener, NULL);
	helper_let_go(agents->listener);
	agents->listener = -1;
}

static void reap(struct agents *agents)
{
	while (agents->over) {
		struct agent *agent = agents->over;

		agents->over = agent->next;
		agent_free(agent);
	}
}

void agents_free(struct agents *agents)
{
	if (!agents)
		return;
	MAP_FREE(agents->all, agent_free);
	reap(agents);
	quota_free(&agents->places);
	quota_free(&agents->reading);
	quota_free(&agents->entering);
	stop_listening(agents);
	close_fd(&agents->timer);
	close_fd(&agents->common.epoll);
	close_fd(&agents->common.cupti);
	agent_library_free(agents->library);
	for (size_t i = 0; i < VARIABLES; i++)
		free(agents->variables[i]);
	free(agents);
}

/* ---- for what is started --------------------------------------------------------------------- */

/* What was to be injected before us, "": nothing. If that is us, it is what we had before us. */
static const char *injected_before(void)
{
	const char *path = getenv(INJECTION), *next = getenv(AGENT_ENV_NEXT);

	if (!path || !*path)
		return "";
	if (!agent_library_is_at(path))
		return path;
	return next && !agent_library_is_at(next) ? next : "";
}

static void set_variables(struct agents *agents)
{
	const char *path = agent_library_path(agents->library), *nvtx = getenv(NVTX_INJECTION);
	size_t n = 0;

	agents->variables[n++] = xasprintf(INJECTION "=%s", path);
	agents->variables[n++] = xasprintf(AGENT_ENV "=%d:%s", AGENT_ABI, agents->name);
	agents->variables[n++] = xasprintf(AGENT_ENV_NEXT "=%s", injected_before());
	if (agents->common.options.kinds & AGENT_WANT_NVTX && (!nvtx || !*nvtx))
		agents->variables[n++] = xasprintf(NVTX_INJECTION "=%s", path);
}

int agents_environment(struct agents *agents, char *const **environment, struct err *err)
{
	int rc;

	*environment = agents->variables;
	if (agents->variables[0])
		return 0;
	rc = agent_library_open(&agents->library, err);
	if (rc)
		return rc;
	rc = channel_listen(agents->name, err);
	if (rc < 0)
		return rc;
	agents->listener = rc;
	rc = wait_for(agents, agents->listener, EPOLLIN, &agents->listener);
	if (rc)
		return err_set(err, rc, "cannot wait for agents: %s", strerror(-rc));
	set_variables(agents);
	return 0;
}

/* ---- agents come and go ---------------------------------------------------------------------- */

static struct agent *find(const struct agents *agents, pid_t pid)
{
	return MAP_FIND(agents->all, &pid);
}

/* Those that are over are not freed yet: an event that epoll has given may still mean them. */
static void put_away(struct agents *agents, struct agent *agent)
{
	HASH_DEL(agents->all, agent);
	quota_give(&agents->places, agent->person, 0, 1);
	agent->next = agents->over;
	agents->over = agent;
}

static struct agent *add(struct agents *agents, pid_t pid)
{
	struct agent *agent = agent_new(&agents->common, pid);
	const char *why = quota_take(&agents->places, agent->person, 0, 1);

	if (!why) {
		HASH_ADD_INT(agents->all, pid, agent);
		return agent;
	}
	if (agents->told_full)
		agents->common.lost.turned_away++;
	else
		agent_fail(agent, "no %s of process %d and others: %s",
		           agent_lacks(&agents->common), pid, why);
	agents->told_full = true;
	agent_free(agent);
	return NULL;
}

/* One that is being entered, or its end and its bell. */
static void wait_for_agent(struct agents *agents, struct agent *agent)
{
	int rc = 0;

	if (agent->over)
		return;
	if (agent->inject)
		rc = wait_for(agents, inject_fd(agent->inject), EPOLLIN, agent);
	else
		rc = wait_for(agents, agent->socket, EPOLLRDHUP, agent);
	if (!rc && !agent->inject)
		rc = wait_for(agents, agent->bell, EPOLLOUT | EPOLLET, agent);
	if (rc)
		agent_fail(agent, "no %s of process %d: cannot wait for it: %s",
		           agent_lacks(agent->common), agent->pid, strerror(-rc));
}

static void welcome(struct agents *agents, int socket, pid_t pid)
{
	const struct agents_options *options = &agents->common.options;
	struct agent *agent = find(agents, pid);

	/* Its exec closed the socket that the program before had; that is not read yet. */
	if (agent && !agent->inject && agent->ring) {
		agent_end(agent);
		put_away(agents, agent);
		agent = NULL;
	}
	if (!pid || agent || (options->wanted && !options->wanted(options->data, pid))) {
		helper_let_go(socket);
		return;
	}
	agent = add(agents, pid);
	if (!agent) {
		helper_let_go(socket);
		return;
	}
	agent_greet(agent, socket);
	wait_for_agent(agents, agent);
}

static void accept_all(struct agents *agents)
{
	for (int i = 0; i < ACCEPTS_MOST && agents->listener >= 0; i++) {
		pid_t pid = 0;
		int socket = channel_accept(agents->listener, &pid);

		if (socket < 0)
			return;
		welcome(agents, socket, pid);
	}
}

static bool is_waiting(const struct agent *agent)
{
	return !agent->over && !agent->inject && !agent->ring;
}

static void enter(struct agents *agents, struct agent *agent)
{
	if (!is_waiting(agent) || quota_refuses(&agents->entering, agent->person, 0, 1))
		return;
	agent_enter(agent);
	if (agent->over)
		return;
	wait_for_agent(agents, agent);
	if (!agent->over)
		quota_add(&agents->entering, agent->person, 0, 1);
}

static void leave_place(struct agents *agents, const struct agent *agent)
{
	quota_give(&agents->entering, agent->person, 0, 1);
}

void agents_enter(struct agents *agents, pid_t pid)
{
	struct agent *agent;

	if (find(agents, pid) || agents->common.order == AGENT_STOP)
		return;
	agent = add(agents, pid);
	if (agent)
		enter(agents, agent);
	if (agent && agent->over)
		put_away(agents, agent);
}

void agents_gone(struct agents *agents, pid_t pid)
{
	struct agent *agent = find(agents, pid);

	if (!agent)
		return;
	if (agent->inject)
		leave_place(agents, agent);
	agent_end(agent);
	put_away(agents, agent);
}

/* ---- turns ----------------------------------------------------------------------------------- */

static void set_timer(struct agents *agents, uint64_t at_ns)
{
	struct itimerspec when = {
		.it_value = { (time_t)(at_ns / 1000000000), (long)(at_ns % 1000000000) },
	};

	if (at_ns != agents->edge_ns)
		timerfd_settime(agents->timer, TFD_TIMER_ABSTIME, &when, NULL);
	agents->edge_ns = at_ns;
}

int agents_fd(const struct agents *agents)
{
	return agents->common.epoll;
}

static void entered(struct agents *agents, struct agent *agent)
{
	leave_place(agents, agent);
	agent_entered(agent);
	wait_for_agent(agents, agent);
}

static void give_up_hanging(struct agents *agents, struct agent *agent)
{
	if (!agent_hangs(agent))
		return;
	leave_place(agents, agent);
	agent_fail(agent,
	           "no %s of process %d: attaching to it hangs in the kernel; is memory of it "
	           "mapped from a file whose server does not answer (FUSE, NFS)?",
	           agent_lacks(agent->common), agent->pid);
}

static void handle(struct agents *agents, void *tag)
{
	struct agent *agent = tag;
	uint64_t times;

	if (tag == &agents->listener) {
		accept_all(agents);
	} else if (tag == &agents->timer) {
		if (read(agents->timer, &times, sizeof(times)) < 0)
			return; /* it was set anew meanwhile */
	} else if (!agent->over) {
		if (agent->inject)
			entered(agents, agent);
		else
			agent_hear(agent);
	}
}

/*
 * An agent can fill its ring as fast as it is read, and a user can have many of them. Who has had
 * his time in this turn is next in the next one.
 */
static void turn(struct agents *agents, struct agent *agent)
{
	uint64_t person = agent->person, busy_ns = helper_busy_ns();

	agent->waits = quota_refuses(&agents->reading, person, 0, 1);
	if (agent->waits)
		return;
	enter(agents, agent);
	give_up_hanging(agents, agent);
	agent_turn(agent);
	if (agent->over)
		put_away(agents, agent);
	quota_add(&agents->reading, person, 0, helper_busy_ns() - busy_ns);
}

/* Those who wait come first. */
static void turn_all(struct agents *agents)
{
	struct agent *agent, *next;
	bool any = false;

	quota_free(&agents->reading);
	HASH_ITER (hh, agents->all, agent, next) {
		turn(agents, agent);
		any |= agent->waits;
	}
	if (!any)
		return;
	HASH_ITER (hh, agents->all, agent, next) {
		if (agent->waits || agent->moved)
			continue;
		agent->moved = true;
		HASH_DEL(agents->all, agent);
		HASH_ADD_INT(agents->all, pid, agent);
	}
	HASH_ITER (hh, agents->all, agent, next)
		agent->moved = false;
}

/* What others say meanwhile is heard as well; that a window begins or ends is for all of them. */
void agents_turn_of(struct agents *agents, pid_t pid, uint64_t now_ns)
{
	struct epoll_event events[EVENTS_MOST];
	int n = epoll_wait(agents->common.epoll, events, EVENTS_MOST, 0);
	struct agent *agent, *turned = NULL;

	agents->common.now_ns = now_ns;
	for (int i = 0; i < n; i++) {
		void *tag = events[i].data.ptr;
		bool is_agent = tag != &agents->listener && tag != &agents->timer;

		agent = is_agent && !((struct agent *)tag)->over ? tag : NULL;
		if (tag != &agents->timer)
			handle(agents, tag);
		if (!agent)
			continue;
		turn(agents, agent);
		if (agent->pid == pid)
			turned = agent;
	}
	agent = find(agents, pid); /* another one than that, where one has just come */
	if (agent && agent != turned)
		turn(agents, agent);
	reap(agents);
}

void agents_turn(struct agents *agents, uint64_t now_ns)
{
	struct epoll_event events[EVENTS_MOST];
	int n = epoll_wait(agents->common.epoll, events, EVENTS_MOST, 0);
	uint64_t edge_ns;

	agents->common.now_ns = now_ns;
	for (int i = 0; i < n; i++)
		handle(agents, events[i].data.ptr);
	edge_ns = agent_windows_follow(&agents->windows, &agents->common, agents->all);
	if (edge_ns)
		set_timer(agents, edge_ns);
	turn_all(agents);
	reap(agents);
}

/* ---- probes ---------------------------------------------------------------------------------- */

int agents_probes_area(struct agents *agents, pid_t pid, uint64_t near, uint32_t bytes)
{
	struct agent *agent = find(agents, pid);

	return agent ? agent_probes_area(agent, near, bytes) : -ESRCH;
}

int agents_probes_set(struct agents *agents, pid_t pid, const struct agent_slot *slots, size_t n)
{
	struct agent *agent = find(agents, pid);

	return agent ? agent_probes_set(agent, slots, n) : -ESRCH;
}

int agents_probes_turn(struct agents *agents, pid_t pid, uint32_t first, uint32_t n,
                       enum agent_slot_does does)
{
	struct agent *agent = find(agents, pid);

	return agent ? agent_probes_slots(agent, first, n, does) : -ESRCH;
}

bool agents_probes_counted(const struct agents *agents, pid_t pid, uint32_t slot, uint64_t *calls)
{
	const struct agent *agent = find(agents, pid);

	if (!agent || !agent->ring)
		return false;
	*calls = agent_ring_counted(agent->ring, slot);
	return true;
}

const uint64_t *agents_probes_children(const struct agents *agents, pid_t pid)
{
	const struct agent *agent = find(agents, pid);

	return agent && agent->ring ? agent_ring_children(agent->ring) : NULL;
}

void agents_probes_children_free(const uint64_t *children)
{
	agent_ring_children_free(children);
}

void agents_probes_go(struct agents *agents, pid_t pid)
{
	struct agent *agent = find(agents, pid);

	if (agent)
		agent_probes_go(agent);
}

void agents_probes_names(struct agents *agents, uint64_t offset)
{
	struct agent *agent, *next;

	agents->common.name_offset = offset;
	HASH_ITER (hh, agents->all, agent, next) {
		if (agent->ring)
			agent_ring_set_names(agent->ring, offset);
	}
}

const char *agents_stage(const struct agents *agents, pid_t pid)
{
	const struct agent *agent = find(agents, pid);

	if (!agent)
		return "no agent was sent to it yet";
	if (agent->inject)
		return "its agent was on its way into it";
	if (!agent->ring)
		return "its agent waited for those of other processes";
	return agent->spoke ? "its agent had not said yet what it can record"
	                    : "its agent had not answered yet";
}

bool agents_any_begins(const struct agents *agents)
{
	const struct agent *agent, *next;

	HASH_ITER (hh, agents->all, agent, next) {
		if (!agent->over && (!agent->spoke || agent->state == AGENT_STARTING))
			return true;
	}
	return false;
}

/* ---- the end --------------------------------------------------------------------------------- */

void agents_stop(struct agents *agents)
{
	struct agent *agent, *next;

	if (agents->common.order == AGENT_STOP)
		return;
	agents->common.order = AGENT_STOP;
	agents->common.stop_ns = agents->common.now_ns;
	set_timer(agents, 0);
	stop_listening(agents);
	HASH_ITER (hh, agents->all, agent, next) {
		if (is_waiting(agent)) /* not yet begun: nothing is to be undone */
			put_away(agents, agent);
	}
	agents_turn(agents, agents->common.now_ns);
}

bool agents_stopped(const struct agents *agents)
{
	return agents->common.order == AGENT_STOP && !agents->all;
}

void agents_abandon(struct agents *agents)
{
	struct agent *agent, *next;

	HASH_ITER (hh, agents->all, agent, next)
		agent_abandon(agent);
}

void agents_lost(const struct agents *agents, struct agents_lost *lost)
{
	struct agent *agent, *next;

	*lost = agents->common.lost;
	HASH_ITER (hh, agents->all, agent, next)
		agent_add_lost(agent, lost);
}
