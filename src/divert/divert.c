// SPDX-License-Identifier: MIT
#include "divert/divert.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/process.h"
#include "base/worker.h"
#include "base/vec.h"
#include "base/xalloc.h"
#include "divert/divert_plan.h"
#include "divert/divert_queue.h"

#define FREE_MS 2000

struct divert {
	int socket;
	struct divert_shared *shared; /* which cuscope-divert fills in */
	bool gone;                    /* the process is */
	divert_done_fn done;
	void *data;
	struct divert_queue queue;
	struct divert_shares shares;
	struct judged_files *files;
	struct divert_plan *plans; /* that were put */
	uint64_t number;
	struct back { /* entries of a process that are being put back */
		pid_t pid;
		uint64_t number;
		uint32_t place;
	} * backs;
	size_t n_backs;
};

/* ---- the process ----------------------------------------------------------------------------- */

/* It ends when its socket does, and not before it has put back what it has diverted. */
static void own_signals(void)
{
	static const int ignored[] = { SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGQUIT };

	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	for (size_t i = 0; i < sizeof(ignored) / sizeof(*ignored); i++)
		signal(ignored[i], SIG_IGN);
}

static void run(void *shared, int socket)
{
	prctl(PR_SET_NAME, DIVERT_COMM);
	own_signals();
	worker_close_all_but(socket, -1);
	divert_process(socket, shared);
}

int divert_new(divert_done_fn done, void *data, struct divert **out, struct err *err)
{
	struct divert_shared *shared;
	struct divert *divert;
	int socket, rc;

#ifndef __x86_64__
	return err_set(err, ENOTSUP, "functions are not diverted on this machine yet");
#endif
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
	              0);
	if (shared == MAP_FAILED)
		return err_set(err, errno, "diverting: no memory: %s", strerror(errno));
	rc = worker_fork(true, run, shared, &socket);
	if (rc) {
		munmap(shared, sizeof(*shared));
		return err_set(err, rc, "diverting: cannot make a process: %s", strerror(-rc));
	}
	divert = xcalloc(1, sizeof(*divert));
	divert->socket = socket;
	divert->shared = shared;
	divert->done = done;
	divert->data = data;
	divert->files = judged_files_new();
	divert->shares = divert_shares_init();
	*out = divert;
	return 0;
}

int divert_fd(const struct divert *divert)
{
	return divert->socket;
}

/* ---- orders ---------------------------------------------------------------------------------- */

static bool is_taken(const struct divert *divert, uint32_t place)
{
	for (const struct divert_plan *plan = divert->plans; plan; plan = plan->next)
		if (plan->state == PLAN_PUTTING && plan->place == place)
			return true;
	for (size_t i = 0; i < divert->n_backs; i++)
		if (divert->backs[i].place == place)
			return true;
	return false;
}

/* For the cut of an order; DIVERT_CUTS: there is none. */
static uint32_t free_place(const struct divert *divert, enum divert_kind kind)
{
	uint32_t end = kind == DIVERT_PUT ? DIVERT_PUTS : DIVERT_CUTS;
	uint32_t place = kind == DIVERT_PUT ? 0 : DIVERT_PUTS;

	while (place < end && is_taken(divert, place))
		place++;
	return place < end ? place : DIVERT_CUTS;
}

static int send_order(struct divert *divert, const struct divert_order *order, int fd,
                      struct err *err)
{
	int rc = divert->gone ? -ECHILD : queue_order(&divert->queue, divert->socket, order, fd);

	if (rc == -EAGAIN)
		return err_set(err, EAGAIN, "the process %s has too much to do", DIVERT_COMM);
	return rc ? err_set(err, ECHILD, "the process %s is gone", DIVERT_COMM) : 0;
}

static int begin(struct divert *divert, pid_t pid, const struct divert_module *module, size_t count,
                 struct divert_plan **plan, struct err *err)
{
	return *plan ? 0 : divert_plan_new(&divert->shares, pid, module, count, plan, err);
}

int divert_may_look(struct divert *divert, pid_t pid, const struct divert_module *module,
                    const struct divert_function *functions, size_t count,
                    struct divert_plan **plan, struct err *err)
{
	int rc = begin(divert, pid, module, count, plan, err);

	if (!rc && !judged_files_ready(divert->files, module, functions, count))
		rc = -EINPROGRESS;
	return rc;
}

int divert_look(struct divert *divert, pid_t pid, const struct divert_module *module,
                struct divert_function *functions, size_t count, struct divert_need *need,
                struct divert_plan **plan, struct err *err)
{
	int rc = begin(divert, pid, module, count, plan, err);

	if (!rc)
		rc = divert_plan_make(*plan, divert->files, module, functions, err);
	if (rc)
		return rc;
	*need = (struct divert_need){ (*plan)->near_start, (*plan)->near_end, (*plan)->area_bytes,
		                      (*plan)->first };
	return 0;
}

int divert_put(struct divert *divert, struct divert_plan *plan, uint64_t area,
               const uint64_t *thunks, struct err *err)
{
	struct divert_order order = { .kind = DIVERT_PUT,
		                      .pid = plan->pid,
		                      .start_time = plan->start_time,
		                      .person = plan->person,
		                      .owner = plan->owner,
		                      .dev = plan->dev,
		                      .inode = plan->inode,
		                      .number = ++divert->number,
		                      .place = free_place(divert, DIVERT_PUT),
		                      .area = area,
		                      .area_bytes = plan->area_bytes };
	int fd, rc;

	if (order.place == DIVERT_CUTS)
		return err_set(err, EAGAIN, "the process %s has too much to do", DIVERT_COMM);
	fd = divert_plan_write(plan, area, thunks, &order.count, err);
	if (fd < 0)
		return fd;
	rc = send_order(divert, &order, fd, err);
	close(fd);
	if (rc)
		return rc;
	plan->number = order.number;
	plan->place = order.place;
	plan->state = PLAN_PUTTING;
	plan->next = divert->plans;
	divert->plans = plan;
	return 0;
}

int divert_take_back(struct divert *divert, pid_t pid, struct err *err)
{
	struct divert_order order = { .kind = DIVERT_TAKE_BACK,
		                      .pid = pid,
		                      .number = ++divert->number,
		                      .place = free_place(divert, DIVERT_TAKE_BACK) };
	int rc = send_order(divert, &order, -1, err);

	if (rc)
		return rc;
	divert->backs = vec_room(divert->backs, divert->n_backs, sizeof(*divert->backs));
	divert->backs[divert->n_backs++] = (struct back){ pid, order.number, order.place };
	return 0;
}

/* Those of a process that were diverted; with `all`, those that are being put too. */
static void free_plans(struct divert *divert, pid_t pid, bool all)
{
	struct divert_plan **link = &divert->plans, *plan;

	while ((plan = *link)) {
		if (plan->pid != pid || (!all && plan->state != PLAN_DIVERTED)) {
			link = &plan->next;
			continue;
		}
		*link = plan->next;
		divert_plan_free(plan);
	}
}

static size_t plans_of(const struct divert *divert, pid_t pid, uint64_t *owner)
{
	size_t count = 0;

	for (const struct divert_plan *plan = divert->plans; plan; plan = plan->next) {
		if (plan->pid != pid)
			continue;
		*owner = plan->owner;
		count++;
	}
	return count;
}

static void forget_backs(struct divert *divert, pid_t pid)
{
	for (size_t i = divert->n_backs; i-- > 0;)
		if (divert->backs[i].pid == pid)
			divert->backs[i] = divert->backs[--divert->n_backs];
}

static void forget(struct divert *divert, pid_t pid, enum divert_kind kind)
{
	struct divert_order order = { .kind = kind, .pid = pid, .place = DIVERT_CUTS };

	if (!shares_child_has(&divert->shares, pid, &order.owner) &&
	    !plans_of(divert, pid, &order.owner))
		return;
	shares_child_free(&divert->shares, pid);
	queue_forget(&divert->queue, pid);
	forget_backs(divert, pid);
	send_order(divert, &order, -1, NULL);
	free_plans(divert, pid, true);
}

void divert_gone(struct divert *divert, pid_t pid)
{
	forget(divert, pid, DIVERT_GONE);
}

/* Its number is that of no order that somebody waits for. */
void divert_forget(struct divert *divert, pid_t pid)
{
	forget(divert, pid, DIVERT_TAKE_BACK);
}

/* Of pid 0: cuscope-divert looks for itself which children have ended. */
static void sweep(struct divert *divert)
{
	const struct divert_order order = { .kind = DIVERT_GONE };

	if (shares_sweep(&divert->shares, stop_now_ns()))
		send_order(divert, &order, -1, NULL);
}

void divert_forked(struct divert *divert, pid_t parent, pid_t child)
{
	struct divert_order order = { .kind = DIVERT_FORKED, .pid = parent, .child = child };
	size_t places = plans_of(divert, parent, &order.owner);

	if (!places)
		places = shares_child_has(&divert->shares, parent, &order.owner);
	if (!places)
		return; /* nothing is asked about most children: programs make 10,000 a second */
	order.start_time = process_start_time(child);
	divert_gone(divert, child); /* of an earlier process of that number */
	if (quota_refuses(&divert->shares.of_children, order.owner, 0, places))
		sweep(divert);
	if (shares_child(&divert->shares, order.owner, child, places) &&
	    send_order(divert, &order, -1, NULL)) {
		shares_child_free(&divert->shares, child);
		divert->shares.of_children.refused++;
	}
}

uint64_t divert_refused_children(const struct divert *divert)
{
	return divert->shares.of_children.refused;
}

/* ---- answers --------------------------------------------------------------------------------- */

static struct divert_plan *find_plan(const struct divert *divert, uint64_t number)
{
	struct divert_plan *plan = divert->plans;

	while (plan && plan->number != number)
		plan = plan->next;
	return plan;
}

static void take_out(struct divert *divert, const struct divert_plan *plan)
{
	struct divert_plan **link = &divert->plans;

	while (*link != plan)
		link = &(*link)->next;
	*link = plan->next;
}

static bool take_back_order(struct divert *divert, uint64_t number, struct back *back)
{
	for (size_t i = 0; i < divert->n_backs; i++) {
		if (divert->backs[i].number == number) {
			*back = divert->backs[i];
			divert->backs[i] = divert->backs[--divert->n_backs];
			return true;
		}
	}
	return false;
}

/* Of divert_put or divert_take_back, where who does it was ended before its answer as well. */
static enum divert_cut_state cut_of(const struct divert *divert, uint32_t place, uint64_t number,
                                    uint64_t *since_ns)
{
	struct divert_cut *cut = &divert->shared->cuts[place];
	enum divert_cut_state state = CUT_NOT_MADE;

	if (place < DIVERT_CUTS && atomic_load(&cut->number) == number)
		state = atomic_load(&cut->state);
	*since_ns = state ? atomic_load(&cut->since_ns) : 0;
	return state;
}

/* Which entries lead to thunks since the cut. False: none does. */
static bool fill_put(struct divert_plan *plan, const uint8_t *refusals,
                     struct divert_result *result)
{
	result->count = plan->asked;
	result->refusals = refusals;
	result->diverted = 0;
	for (uint32_t i = 0; i < plan->asked; i++)
		result->diverted += refusals[i] == ENTRY_MOVABLE;
	return result->diverted;
}

/* By its cut: 0 of *result stands for what it says, and all else stays as it is. */
static void judge_put(const struct divert *divert, struct divert_plan *plan,
                      struct divert_result *result)
{
	enum divert_cut_state state = cut_of(divert, plan->place, plan->number, &result->since_ns);

	if (state == CUT_BEGUN)
		divert_plan_find(plan);
	if (state == CUT_MADE)
		fill_put(plan, divert->shared->refusals[plan->place], result);
	if (state == CUT_MADE ||
	    (state == CUT_BEGUN && !plan->not_found && fill_put(plan, plan->found, result)))
		result->rc = 0;
	else if (!plan->not_found)
		result->since_ns = 0; /* nothing was written yet */
}

bool divert_is_put(const struct divert *divert, struct divert_plan *plan, uint64_t begin_ns,
                   struct divert_result *result)
{
	uint64_t since_ns;

	if (cut_of(divert, plan->place, plan->number, &since_ns) == CUT_NOT_MADE ||
	    begin_ns < since_ns)
		return false;
	*result = (struct divert_result){ .pid = plan->pid, .plan = plan, .rc = -ETIMEDOUT };
	judge_put(divert, plan, result);
	return result->since_ns;
}

bool divert_is_taken_back(const struct divert *divert, pid_t pid, uint64_t begin_ns)
{
	uint64_t since_ns;

	for (size_t i = 0; i < divert->n_backs; i++) {
		const struct back *back = &divert->backs[i];

		if (back->pid == pid &&
		    cut_of(divert, back->place, back->number, &since_ns) == CUT_MADE)
			return begin_ns >= since_ns;
	}
	return false;
}

static void on_put(struct divert *divert, const struct divert_reply *reply,
                   struct divert_result *result)
{
	/* What may be written still is cuscope-divert's to put back. */
	struct divert_plan *plan = find_plan(divert, reply->number);

	if (!plan)
		return; /* divert_gone */
	result->plan = plan;
	judge_put(divert, plan, result);
	if (result->rc)
		take_out(divert, plan);
	plan->state = result->rc ? PLAN_IDLE : PLAN_DIVERTED;
	if (reply->rc == -ETIMEDOUT) /* it is known there still, as a child is */
		shares_child(&divert->shares, plan->owner, reply->pid, 1);
	divert->done(divert->data, result);
}

static void on_taken_back(struct divert *divert, const struct divert_reply *reply,
                          struct divert_result *result)
{
	struct back back;

	if (!take_back_order(divert, reply->number, &back))
		return;
	if (cut_of(divert, back.place, back.number, &result->since_ns) == CUT_MADE)
		result->rc = 0;
	if (!result->rc || result->rc == -ESRCH || result->rc == -EPERM)
		free_plans(divert, reply->pid, false);
	divert->done(divert->data, result);
}

static void on_reply(struct divert *divert, const struct divert_reply *reply)
{
	struct divert_result result = { .pid = reply->pid,
		                        .rc = reply->rc,
		                        .why = reply->why,
		                        .stopped_ns = reply->stopped_ns,
		                        .threads = reply->threads,
		                        .put_back = reply->put_back,
		                        .changed = reply->changed };

	if (reply->kind == DIVERT_PUT)
		on_put(divert, reply, &result);
	else
		on_taken_back(divert, reply, &result);
}

static void end_one(struct divert *divert, enum divert_kind kind, pid_t pid, uint64_t number,
                    const struct err *err)
{
	struct divert_reply reply = { .kind = kind, .pid = pid, .number = number, .rc = err->code };

	memcpy(reply.why, err->text, sizeof(reply.why));
	on_reply(divert, &reply);
}

/* What was under way is so no longer. */
static int process_gone(struct divert *divert, struct err *err)
{
	struct divert_plan *plan;
	struct err why = { 0 };

	if (divert->gone)
		return 0;
	divert->gone = true;
	err_set(&why, ECHILD,
	        "the process %s was killed; what it had diverted stays so, and calls the functions",
	        DIVERT_COMM);
	while (divert->n_backs)
		end_one(divert, DIVERT_TAKE_BACK, divert->backs[0].pid, divert->backs[0].number,
		        &why);
	do {
		plan = divert->plans;
		while (plan && plan->state != PLAN_PUTTING)
			plan = plan->next;
		if (plan)
			end_one(divert, DIVERT_PUT, plan->pid, plan->number, &why);
	} while (plan);
	return err_set(err, ECHILD, "%s", why.text);
}

int divert_turn(struct divert *divert, struct err *err)
{
	struct divert_reply reply;
	ssize_t n;

	if (!divert->gone && queue_send(&divert->queue, divert->socket))
		return process_gone(divert, err);
	for (;;) {
		n = divert->gone ? -1 : recv(divert->socket, &reply, sizeof(reply), MSG_DONTWAIT);
		if (n == (ssize_t)sizeof(reply))
			on_reply(divert, &reply);
		else if (n >= 0 || (!divert->gone && errno != EAGAIN && errno != EINTR))
			return process_gone(divert, err);
		else if (divert->gone || errno == EAGAIN)
			return 0;
	}
}

/* Waits until it reads, or has ended. */
static void wait_for(struct divert *divert, short events, uint64_t until_ns)
{
	struct pollfd fd = { .fd = divert->socket, .events = events };
	uint64_t now = stop_now_ns();
	char dropped[64];

	if (now >= until_ns || poll(&fd, 1, (int)((until_ns - now) / 1000000u) + 1) <= 0)
		return;
	if (fd.revents & ~POLLOUT &&
	    recv(divert->socket, dropped, sizeof(dropped), MSG_DONTWAIT) <= 0)
		divert->gone = true;
}

/* The end of its socket tells it to put all back; its own end is the answer. */
void divert_free(struct divert *divert)
{
	uint64_t until_ns = stop_now_ns() + FREE_MS * 1000000ull;
	struct divert_plan *plan;

	if (!divert)
		return;
	queue_keep_children(&divert->queue);
	while (!divert->gone && stop_now_ns() < until_ns &&
	       !queue_send(&divert->queue, divert->socket) && divert->queue.first)
		wait_for(divert, POLLIN | POLLOUT, until_ns);
	shutdown(divert->socket, SHUT_WR);
	while (!divert->gone && stop_now_ns() < until_ns)
		wait_for(divert, POLLIN, until_ns);
	close(divert->socket);
	while ((plan = divert->plans)) {
		divert->plans = plan->next;
		divert_plan_free(plan);
	}
	queue_free(&divert->queue);
	divert_shares_free(&divert->shares);
	judged_files_free(divert->files);
	free(divert->backs);
	munmap(divert->shared, sizeof(*divert->shared));
	free(divert);
}
