// SPDX-License-Identifier: MIT
#include "capture/driver_calls.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/xalloc.h"
#include "cuda/api.h"
#include "nvidia/decode.h"
#include "probe/driver_hooks.h"

#define LOOK_NS     1000000000ull /* between two looks at the devices */
#define MADE_UP_MAX 1024          /* names of calls that a target may have made up */
#define MINORS_MAX  256           /* of a major number; more are capabilities */

_Static_assert(SYSCALL_POLL == (int)NVIDIA_POLL && WIRE_DRIVER_UVM == (int)NVIDIA_UVM &&
                       WIRE_DRIVER_TOOLS == (int)NVIDIA_UVM_TOOLS,
               "both sides have the same numbers");
_Static_assert(WIRE_DRIVER_HEAD == NVIDIA_HEAD_MAX && WIRE_DRIVER_TAIL == NVIDIA_TAIL_MAX &&
                       WIRE_DRIVER_PARAMS == NVIDIA_PARAMS_MAX &&
                       NVIDIA_NUMBERS_MAX == WIRE_DEVICES,
               "both sides have the same sizes");

/* One kind of call: its function, and where its arguments are. */
struct driver_function {
	char key[NVIDIA_NAME_MAX + 32]; /* library and name */
	struct function function;
	struct api *made;
	struct nvidia_field fields[NVIDIA_FIELDS_MAX];
	size_t n_fields;
	UT_hash_handle hh;
};

struct driver_calls {
	struct programs *programs;
	struct pipeline *pipeline;
	struct driver_hooks *hooks;
	struct nvidia_gpus *gpus;
	struct driver_function *functions;
	size_t n_made_up;
	struct nvidia_numbers stand_ins[NVIDIA_NUMBERS_MAX];
	size_t n_stand_ins;
	unsigned version; /* of the driver; 0: not known */
	uint64_t looked_ns, seen;
};

/* ---- which devices --------------------------------------------------------------------------- */

/* Where there are more than fit, stand-ins of a test are those that stay. */
static void tell_devices(struct driver_calls *calls)
{
	struct nvidia_numbers found[NVIDIA_NUMBERS_MAX];
	struct wire_device devices[WIRE_DEVICES] = { 0 };
	struct wire_window windows[WIRE_UVM_NUMBERS] = { 0 };
	FILE *file = fopen("/proc/devices", "re");
	size_t n_found = nvidia_devices_read(file, found), n = 0;

	if (file)
		fclose(file);
	for (size_t i = 0; i < calls->n_stand_ins + n_found && n < WIRE_DEVICES; i++) {
		const struct nvidia_numbers *from = i < calls->n_stand_ins
		                                            ? &calls->stand_ins[i]
		                                            : &found[i - calls->n_stand_ins];

		devices[n++] =
			(struct wire_device){ from->major, from->first, from->last, from->device };
	}
	for (uint32_t at = 1; at < WIRE_UVM_NUMBERS; at++) {
		uint32_t number = at == (WIRE_UVM_BEGIN & 3) ? WIRE_UVM_BEGIN
		                  : at == (WIRE_UVM_END & 3) ? WIRE_UVM_END
		                                             : at - 2;
		struct nvidia_window window = nvidia_uvm_window(number, calls->version);

		windows[at] = (struct wire_window){ window.head, window.tail_at, window.tail, 0 };
	}
	driver_hooks_tell(calls->programs, devices, windows);
}

void driver_calls_turn(struct driver_calls *calls, uint64_t now_ns)
{
	if (now_ns - calls->looked_ns < LOOK_NS)
		return;
	calls->looked_ns = now_ns;
	calls->version = nvidia_driver_version();
	tell_devices(calls);
}

/* ---- functions ------------------------------------------------------------------------------- */

static struct driver_function *make_function(struct driver_calls *calls, const char *key,
                                             const struct nvidia_call *call)
{
	struct driver_function *known = xcalloc(1, sizeof(*known));
	struct buf spec = { 0 };

	snprintf(known->key, sizeof(known->key), "%s", key);
	known->n_fields = nvidia_fields(call, known->fields, &spec);
	known->function.id = pipeline_function_number(calls->pipeline);
	known->function.name = xstrdup(call->name);
	known->function.lib = call->library;
	known->function.layer = LAYER_KERNEL;
	known->function.cls = CLASS_OTHER;
	if (known->n_fields)
		known->function.api = api_from_text(&(struct api_text){ .name = call->name,
		                                                        .cls = CLASS_OTHER,
		                                                        .spec = spec.data },
		                                    &known->made);
	buf_free(&spec);
	HASH_ADD_STR(calls->functions, key, known);
	return known;
}

/*
 * Numbers that no table has, paths, and minors as a file system of the target's may tell them. All
 * other names are a few thousand, and always have room.
 */
static bool may_be_made_up(const struct nvidia_record *record, const struct nvidia_call *call)
{
	return !call->known || record->device == NVIDIA_NOTHING || record->minor >= MINORS_MAX;
}

/* Those beyond the limit have one name for each library. */
static struct driver_function *function_of(struct driver_calls *calls,
                                           const struct nvidia_record *record,
                                           struct nvidia_call *call)
{
	struct driver_function *known;
	char key[sizeof(known->key)];

	snprintf(key, sizeof(key), "%s %s", call->library, call->name);
	known = MAP_FIND_TEXT(calls->functions, key);
	if (known)
		return known;
	if (!may_be_made_up(record, call))
		return make_function(calls, key, call);
	if (calls->n_made_up < MADE_UP_MAX) {
		calls->n_made_up++;
		return make_function(calls, key, call);
	}
	snprintf(call->name, sizeof(call->name), "[others]");
	call->fields = call->more = "";
	snprintf(key, sizeof(key), "%s %s", call->library, call->name);
	known = MAP_FIND_TEXT(calls->functions, key);
	return known ? known : make_function(calls, key, call);
}

/* ---- records --------------------------------------------------------------------------------- */

/* What the record says it has, if it has that many bytes. */
static struct nvidia_bytes part(const struct wire_driver_call *record, size_t at, size_t count,
                                uint32_t from)
{
	struct nvidia_bytes none = { 0 };

	if (!count || at + count > record->head.bytes)
		return none;
	return (struct nvidia_bytes){ record->data + at, count, from };
}

static struct nvidia_record record_of(const struct wire_driver_call *wire)
{
	struct nvidia_record record = {
		.syscall = (enum nvidia_syscall)wire->head.words,
		.device = (enum nvidia_device)wire->head.hook,
		.minor = wire->minor,
		.fd = wire->fd,
		.command = (uint32_t)wire->argument[0],
		.number = wire->number,
		.bytes = wire->block_bytes,
		.result = wire->result,
		.ended = !(wire->head.flags & WIRE_UNFINISHED),
		.head = part(wire, 0, wire->head_bytes, 0),
		.tail = part(wire, WIRE_DRIVER_HEAD, wire->tail_bytes, wire->tail_at),
		.params = part(wire, WIRE_DRIVER_HEAD + WIRE_DRIVER_TAIL, wire->params_bytes, 0),
	};

	memcpy(record.argument, wire->argument, sizeof(record.argument));
	return record;
}

/* `text` is the one argument that is words: a processor. */
static void fill_arguments(struct driver_calls *calls, const struct driver_function *known,
                           const struct nvidia_record *record, struct call *call, char *text,
                           size_t room)
{
	for (size_t i = 0; i < known->n_fields && i < API_ARGS_MAX; i++) {
		const struct nvidia_field *field = &known->fields[i];
		const uint8_t *uuid = nvidia_processor(record, field);

		call->args.n_args = (uint8_t)(i + 1);
		if (!uuid) {
			nvidia_value(record, field, &call->args.arg[i]);
			continue;
		}
		nvidia_gpus_name(calls->gpus, uuid, text, room);
		call->text = text;
	}
}

int driver_calls_record(struct driver_calls *calls, const struct wire_head *head, struct err *err)
{
	const struct wire_driver_call *wire = (const struct wire_driver_call *)head;
	struct nvidia_record record;
	struct nvidia_call told;
	struct driver_function *known;
	struct call call = { .depth = head->depth };
	struct event event = {
		.type = EVENT_OTHER_CALL, .time_ns = head->time_ns, .tid = head->tid, .call = &call
	};
	char text[32];
	bool failed;

	record = record_of(wire);
	nvidia_identify(&record, calls->version, &told);
	known = function_of(calls, &record, &told);
	call.function = &known->function;
	call.begin_ns = wire->begin_ns;
	call.end_ns = record.ended ? head->time_ns : 0;
	call.result = nvidia_result(&record, &told, &failed);
	call.flags = (failed ? CALL_FAILED : 0) | (record.ended ? 0 : CALL_UNFINISHED);
	fill_arguments(calls, known, &record, &call, text, sizeof(text));
	event.process = pipeline_process(calls->pipeline, head->tgid);
	calls->seen++;
	return pipeline_pass(calls->pipeline, &event, err);
}

/* ---- the whole ------------------------------------------------------------------------------- */

int driver_calls_new(struct programs *programs, struct pipeline *pipeline,
                     struct driver_calls **calls, struct err *err)
{
	const char *stand_ins = getenv("CUSCOPE_NVIDIA_DEVICES");
	struct driver_calls *c = xcalloc(1, sizeof(*c));
	int r = 0;

	c->programs = programs;
	c->pipeline = pipeline;
	c->gpus = nvidia_gpus_new();
	if (stand_ins)
		r = nvidia_devices_parse(stand_ins, c->stand_ins, &c->n_stand_ins, err);
	if (!r) {
		c->version = nvidia_driver_version();
		tell_devices(c);
		r = driver_hooks_attach(programs, &c->hooks, err);
	}
	if (r) {
		driver_calls_free(c);
		return r;
	}
	*calls = c;
	return 0;
}

void driver_calls_stop(struct driver_calls *calls, programs_record_fn each, void *data)
{
	driver_hooks_stop(calls->programs);
	driver_hooks_open_calls(calls->programs, each, data);
}

void driver_calls_free(struct driver_calls *calls)
{
	struct driver_function *known, *next;

	if (!calls)
		return;
	driver_hooks_detach(calls->hooks);
	nvidia_gpus_free(calls->gpus);
	HASH_ITER (hh, calls->functions, known, next) {
		HASH_DEL(calls->functions, known);
		free((char *)known->function.name);
		api_free(known->made);
		free(known);
	}
	free(calls);
}

uint64_t driver_calls_seen(const struct driver_calls *calls)
{
	return calls->seen;
}
