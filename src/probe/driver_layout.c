// SPDX-License-Identifier: MIT
#include "probe/driver_layout.h"

#include <string.h>

#include <bpf/btf.h>

#include "base/array.h"

#define DEPTH_MAX 8 /* of members without a name */
#define NOT_FOUND (-1)

bool driver_layout_by_version(unsigned version, struct driver_layout *layout)
{
	static const struct {
		unsigned since;
		struct driver_layout layout;
	} known[] = {
		{ 580, { 6, 7, 8, 8, 16, 16, 28, 16, 20, 32, 40, 56, 0 } },
		{ 565, { 6, 7, 8, 16, 24, 24, 36, 16, 20, 32, 40, 52, 0 } },
		{ 550, { 6, 7, 8, 16, 24, 24, 32, 16, 20, 32, 40, 52, 0 } },
		{ 535, { 6, 7, 8, 16, 24, 24, 32, 16, 20, 24, 32, 44, 0 } },
		{ 515, { 5, 6, 7, 16, 24, 24, 32, 16, 20, 24, 32, 44, 0 } },
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (version >= known[i].since || !version) {
			*layout = known[i].layout;
			return true;
		}
	}
	return false;
}

/* ---- types --------------------------------------------------------------------------------- */

/* Past pointers, names and qualifiers: the struct or union itself; NULL: it is none. */
static const struct btf_type *body_of(const struct btf *btf, unsigned id)
{
	const struct btf_type *type = btf__type_by_id(btf, id);

	for (int i = 0; type && i < DEPTH_MAX * 2; i++) {
		if (btf_is_composite(type))
			return type;
		if (!btf_is_mod(type) && !btf_is_typedef(type) && !btf_is_ptr(type))
			return NULL;
		type = btf__type_by_id(btf, type->type);
	}
	return NULL;
}

static bool is_nameless(const struct btf *btf, const struct btf_member *member)
{
	return !*btf__name_by_offset(btf, member->name_off);
}

/* Where a member is, looked for in members without a name as well. */
static int member_of(const struct btf *btf, const struct btf_type *type, const char *name,
                     int depth, const struct btf_type **of)
{
	const struct btf_member *member = type ? btf_members(type) : NULL;

	for (int i = 0; type && i < btf_vlen(type); i++, member++) {
		int at = (int)btf_member_bit_offset(type, (unsigned)i) / 8, inner;

		if (!strcmp(btf__name_by_offset(btf, member->name_off), name)) {
			if (of)
				*of = body_of(btf, member->type);
			return at;
		}
		if (depth == DEPTH_MAX || !is_nameless(btf, member))
			continue;
		inner = member_of(btf, body_of(btf, member->type), name, depth + 1, of);
		if (inner != NOT_FOUND)
			return at + inner;
	}
	return NOT_FOUND;
}

/* "fault.cpu.fault_va": the offsets of all parts together. */
static int path_of(const struct btf *btf, const struct btf_type *type, const char *path)
{
	int sum = 0;

	while (*path) {
		size_t length = strcspn(path, ".");
		const struct btf_type *inner = NULL;
		char name[64] = "";
		int at;

		if (length >= sizeof(name))
			return NOT_FOUND;
		memcpy(name, path, length);
		at = member_of(btf, type, name, 0, &inner);
		if (at == NOT_FOUND)
			return NOT_FOUND;
		sum += at;
		type = inner;
		path += length + (path[length] == '.');
	}
	return sum;
}

/* What the third argument of the function that tells of events points at. */
static const struct btf_type *event_data(const struct btf *btf)
{
	int id = btf__find_by_name_kind(btf, "uvm_perf_event_notify", BTF_KIND_FUNC);
	const struct btf_type *function = id > 0 ? btf__type_by_id(btf, (unsigned)id) : NULL;
	const struct btf_type *proto = function ? btf__type_by_id(btf, function->type) : NULL;

	if (!proto || !btf_is_func_proto(proto) || btf_vlen(proto) < 3)
		return NULL;
	return body_of(btf, btf_params(proto)[2].type);
}

bool driver_layout_by_types(const struct btf *btf, struct driver_layout *layout)
{
	struct driver_layout found = *layout;
	const struct {
		const char *path;
		__u32 *to;
	} wanted[] = {
		{ "fault.proc_id", &found.fault_processor },
		{ "fault.gpu.buffer_entry", &found.fault_entry },
		{ "fault.cpu.fault_va", &found.fault_address },
		{ "fault.cpu.is_write", &found.fault_write },
		{ "migration.dst", &found.migration_dst },
		{ "migration.src", &found.migration_src },
		{ "migration.address", &found.migration_address },
		{ "migration.bytes", &found.migration_bytes },
		{ "migration.cause", &found.migration_cause },
	};
	const struct btf_type *data = event_data(btf);
	int id = btf__find_by_name_kind(btf, "uvm_va_space_struct", BTF_KIND_STRUCT), at;

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		at = path_of(btf, data, wanted[i].path);
		if (at == NOT_FOUND)
			return false;
		*wanted[i].to = (__u32)at;
	}
	at = id > 0 ? path_of(btf, btf__type_by_id(btf, (unsigned)id), "perf_events") : NOT_FOUND;
	if (at > 0)
		found.events = (__u32)at;
	*layout = found;
	return true;
}
