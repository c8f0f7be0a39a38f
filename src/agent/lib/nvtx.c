// SPDX-License-Identifier: MIT
#include "agent/lib/glibc.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "agent/lib/clock.h"
#include "agent/lib/nvtx.h"
#include "agent/lib/writer.h"
#include "agent/wire.h"
#include "base/array.h"

/* ---- nvtx entry ---------------------------------------------------------------------------- */

/* NVTX's functions, as a program's NVTX calls them, and how they come to be called. */

#define ENTRY __attribute__((visibility("default")))

int InitializeInjectionNvtx2(nvtx_get_table get_table);

/* As UTF-8, cut where there is no more room. */
static const char *entry_narrow(char to[AGENT_NVTX_TEXT], const wchar_t *from)
{
	size_t n = 0;

	for (; *from && n + 4 < AGENT_NVTX_TEXT; from++) {
		uint32_t c = (uint32_t)*from;

		if (c < 0x80) {
			to[n++] = (char)c;
			continue;
		}
		if (c >= 0x10000)
			to[n++] = (char)(0xf0 | (c >> 18 & 7));
		if (c >= 0x800)
			to[n++] = (char)((c >= 0x10000 ? 0x80 : 0xe0) |
			                 (c >> 12 & (c >= 0x10000 ? 0x3f : 0x0f)));
		to[n++] =
			(char)((c >= 0x800 ? 0x80 : 0xc0) | (c >> 6 & (c >= 0x800 ? 0x3f : 0x1f)));
		to[n++] = (char)(0x80 | (c & 0x3f));
	}
	to[n] = '\0';
	return to;
}

static struct nvtx_text *nvtx_text(const char *text);
static const char *nvtx_text_of(const struct nvtx_text *text);

static const char *message_of(const struct nvtx_attributes *attributes, char wide[AGENT_NVTX_TEXT])
{
	if (!attributes || attributes->bytes < sizeof(*attributes) || !attributes->message)
		return "";
	switch (attributes->message_type) {
	case NVTX_ASCII:
		return attributes->message;
	case NVTX_UNICODE:
		return entry_narrow(wide, attributes->message);
	case NVTX_REGISTERED:
		return nvtx_text_of(attributes->message);
	default:
		return "";
	}
}

/* Newer attributes may be longer, and have the same beginning. */
static struct nvtx_event event_of(const struct nvtx_attributes *attributes,
                                  char wide[AGENT_NVTX_TEXT])
{
	struct nvtx_event event = { .text = message_of(attributes, wide) };

	if (!attributes || attributes->bytes < sizeof(*attributes))
		return event;
	event.category = attributes->category;
	event.color = attributes->color_type == NVTX_ARGB ? attributes->color : 0;
	return event;
}

static struct nvtx_event entry_plain(const char *text)
{
	return (struct nvtx_event){ .text = text ? text : "" };
}

/* ---- domains ------------------------------------------------------------------------------- */

static void domain_mark(struct nvtx_domain *domain, const struct nvtx_attributes *attributes)
{
	char wide[AGENT_NVTX_TEXT];
	struct nvtx_event event = event_of(attributes, wide);

	nvtx_mark(domain, &event);
}

static uint64_t domain_start(struct nvtx_domain *domain, const struct nvtx_attributes *attributes)
{
	char wide[AGENT_NVTX_TEXT];
	struct nvtx_event event = event_of(attributes, wide);

	return nvtx_start(domain, &event);
}

static void domain_end(struct nvtx_domain *domain, uint64_t range)
{
	nvtx_end(range);
}

static int domain_push(struct nvtx_domain *domain, const struct nvtx_attributes *attributes)
{
	char wide[AGENT_NVTX_TEXT];
	struct nvtx_event event = event_of(attributes, wide);

	return nvtx_push(domain, &event);
}

static struct nvtx_text *register_string(struct nvtx_domain *domain, const char *text)
{
	return nvtx_text(text ? text : "");
}

static struct nvtx_text *register_wide_string(struct nvtx_domain *domain, const wchar_t *text)
{
	char wide[AGENT_NVTX_TEXT];

	return nvtx_text(text ? entry_narrow(wide, text) : "");
}

static struct nvtx_domain *entry_create(const char *name)
{
	return name ? nvtx_domain(name) : NULL;
}

static struct nvtx_domain *create_wide(const wchar_t *name)
{
	char wide[AGENT_NVTX_TEXT];

	return name ? nvtx_domain(entry_narrow(wide, name)) : NULL;
}

/* Another module may have the same. */
static void entry_destroy(struct nvtx_domain *domain)
{
}

/* ---- without a domain ---------------------------------------------------------------------- */

static void mark_attributes(const struct nvtx_attributes *attributes)
{
	domain_mark(NULL, attributes);
}

static void entry_mark(const char *text)
{
	struct nvtx_event event = entry_plain(text);

	nvtx_mark(NULL, &event);
}

static void mark_wide(const wchar_t *text)
{
	char wide[AGENT_NVTX_TEXT];
	struct nvtx_event event = entry_plain(text ? entry_narrow(wide, text) : NULL);

	nvtx_mark(NULL, &event);
}

static uint64_t start_attributes(const struct nvtx_attributes *attributes)
{
	return domain_start(NULL, attributes);
}

static uint64_t entry_start(const char *text)
{
	struct nvtx_event event = entry_plain(text);

	return nvtx_start(NULL, &event);
}

static uint64_t start_wide(const wchar_t *text)
{
	char wide[AGENT_NVTX_TEXT];
	struct nvtx_event event = entry_plain(text ? entry_narrow(wide, text) : NULL);

	return nvtx_start(NULL, &event);
}

static int push_attributes(const struct nvtx_attributes *attributes)
{
	return domain_push(NULL, attributes);
}

static int entry_push(const char *text)
{
	struct nvtx_event event = entry_plain(text);

	return nvtx_push(NULL, &event);
}

static int push_wide(const wchar_t *text)
{
	char wide[AGENT_NVTX_TEXT];
	struct nvtx_event event = entry_plain(text ? entry_narrow(wide, text) : NULL);

	return nvtx_push(NULL, &event);
}

static int entry_pop(void)
{
	return nvtx_pop(NULL);
}

/* ---- how they get there -------------------------------------------------------------------- */

static const struct entry_replacement {
	uint32_t module, place;
	nvtx_function function;
} entry_replacements[] = {
	{ NVTX_MODULE_CORE, NVTX_CORE_MarkEx, (nvtx_function)mark_attributes },
	{ NVTX_MODULE_CORE, NVTX_CORE_MarkA, (nvtx_function)entry_mark },
	{ NVTX_MODULE_CORE, NVTX_CORE_MarkW, (nvtx_function)mark_wide },
	{ NVTX_MODULE_CORE, NVTX_CORE_RangeStartEx, (nvtx_function)start_attributes },
	{ NVTX_MODULE_CORE, NVTX_CORE_RangeStartA, (nvtx_function)entry_start },
	{ NVTX_MODULE_CORE, NVTX_CORE_RangeStartW, (nvtx_function)start_wide },
	{ NVTX_MODULE_CORE, NVTX_CORE_RangeEnd, (nvtx_function)nvtx_end },
	{ NVTX_MODULE_CORE, NVTX_CORE_RangePushEx, (nvtx_function)push_attributes },
	{ NVTX_MODULE_CORE, NVTX_CORE_RangePushA, (nvtx_function)entry_push },
	{ NVTX_MODULE_CORE, NVTX_CORE_RangePushW, (nvtx_function)push_wide },
	{ NVTX_MODULE_CORE, NVTX_CORE_RangePop, (nvtx_function)entry_pop },
	{ NVTX_MODULE_CORE2, NVTX_CORE2_DomainMarkEx, (nvtx_function)domain_mark },
	{ NVTX_MODULE_CORE2, NVTX_CORE2_DomainRangeStartEx, (nvtx_function)domain_start },
	{ NVTX_MODULE_CORE2, NVTX_CORE2_DomainRangeEnd, (nvtx_function)domain_end },
	{ NVTX_MODULE_CORE2, NVTX_CORE2_DomainRangePushEx, (nvtx_function)domain_push },
	{ NVTX_MODULE_CORE2, NVTX_CORE2_DomainRangePop, (nvtx_function)nvtx_pop },
	{ NVTX_MODULE_CORE2, NVTX_CORE2_DomainRegisterStringA, (nvtx_function)register_string },
	{ NVTX_MODULE_CORE2, NVTX_CORE2_DomainRegisterStringW,
	  (nvtx_function)register_wide_string },
	{ NVTX_MODULE_CORE2, NVTX_CORE2_DomainCreateA, (nvtx_function)entry_create },
	{ NVTX_MODULE_CORE2, NVTX_CORE2_DomainCreateW, (nvtx_function)create_wide },
	{ NVTX_MODULE_CORE2, NVTX_CORE2_DomainDestroy, (nvtx_function)entry_destroy },
};

/* By NVTX, once for each library of the program that has it. 1: all is well. */
ENTRY int InitializeInjectionNvtx2(nvtx_get_table get_table)
{
	const struct nvtx_callbacks *callbacks = get_table(NVTX_TABLE_CALLBACKS);

	if (!callbacks || callbacks->bytes < sizeof(*callbacks))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(entry_replacements); i++) {
		const struct entry_replacement *it = &entry_replacements[i];
		nvtx_function **table = NULL;
		unsigned places = 0;

		/* Its size is a number of places, although NVTX's word for it is "size". */
		if (callbacks->get_module_functions(it->module, &table, &places) && table &&
		    it->place < places && table[it->place])
			*table[it->place] = it->function;
	}
	return 1;
}

/* ---- nvtx ---------------------------------------------------------------------------------- */

#define DEEP    64  /* ranges within each other; deeper ones are only counted */
#define OPEN    512 /* started and not ended; older ones are forgotten, and counted when they end */
#define DOMAINS 512 /* the last is of all that find no room */

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
	uint64_t id;        /* of those that were started; 0: none */
	uint64_t since_ns;  /* when measuring began that saw it begin */
	uint64_t forgotten; /* the last in this place that had not ended when another came */
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

/* A registered string; or NULL. */
static struct nvtx_text *nvtx_text(const char *text)
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

static const char *nvtx_text_of(const struct nvtx_text *text)
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
	if (!domain && n_domains < DOMAINS - 1) {
		domain = &domains[n_domains++];
		memcpy(domain->name, text, sizeof(text));
	} else if (!domain) {
		domain = &domains[DOMAINS - 1];
		copy_text(domain->name, "other domains");
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
	if (stack && stack->depth == DEEP)
		ring_count(&ring->shared->lost_ranges, 1);
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
	if (range->since_ns != since(ring))
		range->forgotten = 0;
	else if (range->id)
		range->forgotten = range->id;
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
	else if (id && id <= ended.forgotten && ended.since_ns == since(ring))
		ring_count(&ring->shared->lost_ranges, 1);
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
