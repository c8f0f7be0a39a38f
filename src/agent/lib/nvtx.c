// SPDX-License-Identifier: MIT
#include "agent/lib/glibc.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "agent/lib/clock.h"
#include "agent/lib/nvtx.h"
#include "agent/lib/nvtx_abi.h"
#include "agent/lib/writer.h"

#define DEEP    64  /* ranges within each other; deeper ones are only counted */
#define OPEN    512 /* started and not ended; older ones are forgotten */
#define DOMAINS 64  /* more are the default domain */

struct nvtx_text {
	size_t length;
	char text[];
};

struct nvtx_domain {
	char name[AGENT_NVTX_TEXT];
	uint32_t number, said_in; /* in which ring */
};

struct range {
	uint64_t begin_ns;
	uint64_t id;       /* of those that were started; 0: none */
	uint64_t since_ns; /* when measuring began that saw it begin */
	struct nvtx_domain *domain;
	uint32_t category, color;
	char text[AGENT_NVTX_TEXT];
};

/* Of one thread. */
struct stack {
	uint64_t since_ns; /* pushes of before that time have no pops here */
	uint32_t depth, deeper;
	struct range ranges[DEEP];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range open_ranges[OPEN];
static struct nvtx_domain domains[DOMAINS];
static uint32_t n_domains;
static uint64_t last_id;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool keyed;
static __thread struct stack *own_stack;

void nvtx_forked(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

/* ---- texts and domains --------------------------------------------------------------------- */

struct nvtx_text *nvtx_text(const char *text)
{
	size_t length = strnlen(text, AGENT_NVTX_TEXT - 1);
	struct nvtx_text *copy = malloc(sizeof(*copy) + length + 1);

	if (!copy)
		return NULL;
	copy->length = length;
	memcpy(copy->text, text, length);
	copy->text[length] = '\0';
	return copy;
}

const char *nvtx_text_of(const struct nvtx_text *text)
{
	return text->text;
}

static void copy_text(char to[AGENT_NVTX_TEXT], const char *from)
{
	size_t length = strnlen(from, AGENT_NVTX_TEXT - 1);

	memcpy(to, from, length);
	to[length] = '\0';
}

struct nvtx_domain *nvtx_domain(const char *name)
{
	char text[AGENT_NVTX_TEXT];
	struct nvtx_domain *domain = NULL;

	copy_text(text, name);
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < n_domains && !domain; i++) {
		if (strcmp(domains[i].name, text) == 0)
			domain = &domains[i];
	}
	if (!domain && n_domains < DOMAINS) {
		domain = &domains[n_domains++];
		memcpy(domain->name, text, sizeof(text));
	}
	pthread_mutex_unlock(&lock);
	return domain;
}

/* Its number in this ring, said before where it is new; 0: the default domain. */
static uint32_t domain_number(struct ring *ring, struct nvtx_domain *domain)
{
	struct {
		struct agent_name name;
		char text[AGENT_NVTX_TEXT];
	} record = { .name.head.type = AGENT_NAME };
	uint32_t number = 0;

	if (!domain)
		return 0;
	pthread_mutex_lock(&lock);
	if (domain->said_in == writer_generation()) {
		number = domain->number;
	} else {
		record.name.number = writer_name_number();
		memcpy(record.name.text, domain->name, sizeof(domain->name));
		record.name.head.bytes =
			ring_rounded(offsetof(struct agent_name, text) + strlen(domain->name) + 1);
		if (ring_put(ring, &record.name.head)) {
			number = domain->number = record.name.number;
			domain->said_in = writer_generation();
		}
	}
	pthread_mutex_unlock(&lock);
	return number;
}

/* ---- ranges -------------------------------------------------------------------------------- */

static void write_range(struct ring *ring, const struct range *range, enum agent_nvtx_kind kind,
                        uint32_t depth, uint64_t end_ns)
{
	struct {
		struct agent_nvtx nvtx;
		char text[AGENT_NVTX_TEXT];
	} record;
	size_t length = strlen(range->text);
	uint32_t bytes = ring_rounded(offsetof(struct agent_nvtx, text) + length + 1);

	memset(&record, 0, bytes);
	record.nvtx.head.bytes = bytes;
	record.nvtx.head.type = AGENT_NVTX;
	record.nvtx.head.flags = (uint8_t)kind;
	record.nvtx.begin_ns = range->begin_ns;
	record.nvtx.end_ns = end_ns;
	record.nvtx.tid = writer_tid();
	record.nvtx.depth = depth;
	record.nvtx.domain = domain_number(ring, range->domain);
	record.nvtx.category = range->category;
	record.nvtx.color = range->color;
	memcpy(record.nvtx.text, range->text, length);
	ring_put(ring, &record.nvtx.head);
}

static uint64_t since(const struct ring *ring)
{
	return __atomic_load_n(&ring->shared->active_since_ns, __ATOMIC_RELAXED);
}

/* Ranges may still come on this thread, from what other libraries do at its end. */
static void free_stack(void *stack)
{
	own_stack = NULL;
	free(stack);
}

static void make_key(void)
{
	keyed = pthread_key_create(&key, free_stack) == 0;
}

/* NULL: no memory. */
static struct stack *stack_of_thread(uint64_t since_ns)
{
	if (!own_stack) {
		pthread_once(&once, make_key);
		own_stack = keyed ? calloc(1, sizeof(*own_stack)) : NULL;
		if (!own_stack)
			return NULL;
		pthread_setspecific(key, own_stack);
	}
	if (own_stack->since_ns != since_ns) {
		own_stack->since_ns = since_ns;
		own_stack->depth = own_stack->deeper = 0;
	}
	return own_stack;
}

static void keep(struct range *range, struct nvtx_domain *domain, const struct nvtx_event *event)
{
	range->domain = domain;
	range->category = event->category;
	range->color = event->color;
	copy_text(range->text, event->text);
}

int nvtx_push(struct nvtx_domain *domain, const struct nvtx_event *event)
{
	struct ring *ring = writer_hold(AGENT_WANT_NVTX);
	struct stack *stack;
	struct range *range;

	if (!ring)
		return NVTX_NOT_TRACKED;
	stack = stack_of_thread(since(ring));
	writer_release();
	if (!stack)
		return NVTX_NOT_TRACKED;
	if (stack->depth == DEEP)
		return (int)(DEEP + stack->deeper++);
	range = &stack->ranges[stack->depth];
	keep(range, domain, event);
	range->begin_ns = clock_now();
	return (int)stack->depth++;
}

/* Takes the innermost of the domain: those of other domains may lie across it. */
static int pop(struct ring *ring, struct stack *stack, struct nvtx_domain *domain, uint64_t end_ns)
{
	uint32_t i = stack->depth;

	if (stack->deeper)
		return (int)(DEEP + --stack->deeper);
	while (i && stack->ranges[i - 1].domain != domain)
		i--;
	if (!i)
		return NVTX_NOT_TRACKED;
	i--;
	write_range(ring, &stack->ranges[i], AGENT_NVTX_PUSHPOP, i, end_ns);
	memmove(&stack->ranges[i], &stack->ranges[i + 1],
	        (stack->depth - i - 1) * sizeof(*stack->ranges));
	stack->depth--;
	return (int)i;
}

int nvtx_pop(struct nvtx_domain *domain)
{
	struct ring *ring = writer_hold(AGENT_WANT_NVTX);
	struct stack *stack;
	int depth = NVTX_NOT_TRACKED;

	if (!ring)
		return NVTX_NOT_TRACKED;
	stack = stack_of_thread(since(ring));
	if (stack)
		depth = pop(ring, stack, domain, clock_now());
	writer_release();
	return depth;
}

uint64_t nvtx_start(struct nvtx_domain *domain, const struct nvtx_event *event)
{
	uint64_t id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
	struct ring *ring = writer_hold(AGENT_WANT_NVTX);
	struct range *range = &open_ranges[id % OPEN];

	if (!ring)
		return id;
	pthread_mutex_lock(&lock);
	range->id = id;
	range->since_ns = since(ring);
	keep(range, domain, event);
	range->begin_ns = clock_now();
	pthread_mutex_unlock(&lock);
	writer_release();
	return id;
}

void nvtx_end(uint64_t id)
{
	struct ring *ring = writer_hold(AGENT_WANT_NVTX);
	struct range *range = &open_ranges[id % OPEN], ended;
	uint64_t end_ns = clock_now();

	if (!ring)
		return;
	pthread_mutex_lock(&lock);
	ended = *range;
	if (range->id == id)
		range->id = 0;
	pthread_mutex_unlock(&lock);
	if (ended.id == id && ended.since_ns == since(ring))
		write_range(ring, &ended, AGENT_NVTX_STARTEND, 0, end_ns);
	writer_release();
}

void nvtx_mark(struct nvtx_domain *domain, const struct nvtx_event *event)
{
	struct ring *ring = writer_hold(AGENT_WANT_NVTX);
	struct range mark;

	if (!ring)
		return;
	mark.begin_ns = clock_now();
	keep(&mark, domain, event);
	write_range(ring, &mark, AGENT_NVTX_MARK, 0, mark.begin_ns);
	writer_release();
}
