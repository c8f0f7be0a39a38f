# SPDX-License-Identifier: MIT
# make unit               every tests/unit/test_*.c, each a program of its own
# make unit-sanitized     the same, built with ASan and UBSan

# Those that run code of x86-64
UNIT_ELSEWHERE := $(if $(filter x86_64,$(ARCH)),,tests/unit/test_divert_write.c tests/unit/test_entry_run.c tests/unit/test_entry_file.c tests/unit/test_entry_libraries.c)
UNIT_SRC := $(sort $(filter-out $(UNIT_ELSEWHERE),$(wildcard tests/unit/test_*.c)))
UNIT_BIN := $(UNIT_SRC:%.c=$(B)/%)

$(UNIT_BIN): %: %.o $(B)/libcuscope.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) $(B)/libcuscope.a -lcmocka $(LIBS)

$(B)/tests/unit/test_scan: $(B)/src/cli/scan.o
$(B)/tests/unit/test_entry_run: $(B)/tests/unit/entry_run.o

# fake_maps.h is what these have for the kernel's
WRAPPED := bpf_map_create bpf_map_update_elem bpf_map_update_batch bpf_map_delete_elem bpf_map_delete_batch budget_new
$(B)/tests/unit/test_code_tables: LDFLAGS += $(WRAPPED:%=-Wl,--wrap=%)
$(B)/tests/unit/test_inside $(B)/tests/unit/test_inside_away: LDFLAGS += -Wl,--wrap=maps_each -Wl,--wrap=tick_clock_is_usable
$(B)/tests/unit/test_divert_write: LDFLAGS += -Wl,--wrap=pwrite
$(B)/tests/unit/test_unwinder: LDFLAGS += $(WRAPPED:%=-Wl,--wrap=%) -Wl,--wrap=person_of_process

unit: $(UNIT_BIN)
	tests/unit/run.sh $(UNIT_BIN)

unit-sanitized:
	$(MAKE) B=build/asan \
		SANITIZE="-fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all" unit

.PHONY: unit unit-sanitized

test-unit: unit
test-sanitize: unit-sanitized

.PHONY: test-unit test-sanitize
