# SPDX-License-Identifier: MIT
# make unit               every tests/unit/test_*.c, each a program of its own
# make unit-sanitized     the same with ASan and UBSan, by clang: of src, the objects of the fuzzers (tests/fuzz/module.mk)

# Those that run code of x86-64
UNIT_ELSEWHERE := $(if $(filter x86_64,$(ARCH)),,tests/unit/test_divert_write.c tests/unit/test_entry_run.c tests/unit/test_entry_file.c tests/unit/test_entry_libraries.c)
UNIT_SRC := $(sort $(filter-out $(UNIT_ELSEWHERE),$(wildcard tests/unit/test_*.c)))
UNIT_BIN := $(UNIT_SRC:%.c=$(B)/%)

# Tests are not optimized: it takes gcc a second each, without a use.
$(B)/tests/unit/%.o: override CFLAGS += -O0 -U_FORTIFY_SOURCE
$(B)/fuzz/obj/tests/unit/%.o: FUZZ_CFLAGS += -O0 -w

UNIT_SANITIZED := $(UNIT_SRC:tests/unit/%.c=$(B)/fuzz/unit/%)

# What they have in place of the library's functions or of libc's. fake_maps.h is what some have for the kernel's maps.
FAKE_MAPS := bpf_map_create bpf_map_update_elem bpf_map_update_batch bpf_map_delete_elem bpf_map_delete_batch
UNIT_WRAP_test_agents := helper_person_of
UNIT_WRAP_test_call_queue := helper_person_of person_of_process
UNIT_WRAP_test_call_texts := helper_string helper_person_of
UNIT_WRAP_test_code_files := helper_person_of
UNIT_WRAP_test_code_tables := $(FAKE_MAPS)
UNIT_WRAP_test_fold_uids := programs_map bpf_map_update_elem
UNIT_WRAP_test_gpu_launches := call_memory_read
UNIT_WRAP_INSIDE := helper_memory helper_string maps_each tick_clock_is_usable person_of_process
UNIT_WRAP_test_divert_shares := judged_files_get maps_each_code person_of_process
UNIT_WRAP_test_divert_write := pwrite
UNIT_WRAP_test_elf_damage := helper_pread
UNIT_WRAP_test_judged_files := entry_file_judge stop_now_ns
UNIT_WRAP_test_modules_gone := maps_each
UNIT_WRAP_test_sampler := programs_state programs_map pipeline_process stack_names_find
UNIT_WRAP_test_session := gpu_is_awaited gpu_measured gpu_is_on_its_way programs_open_calls order_passed_ns modules_free own_hooks_free programs_free kernel_features_free
UNIT_WRAP_test_stream_state := helper_person_of helper_process_begun helper_process_ended
UNIT_WRAP_test_tids := helper_person_of
UNIT_WRAP_test_unwinder := $(FAKE_MAPS) person_of_process
UNIT_WRAP_test_uvm_queue := ioctl
UNIT_WRAP_test_watcher := fold_read fold_delete fold_delete_live programs_state programs_lost modules_hook modules_unseen \
	sampler_is_worn sampler_send_anew sampler_renew sampler_move
UNIT_WRAP_test_why := facts_call_of
UNIT_WRAP = $(UNIT_WRAP_$(@F)) $(if $(filter test_inside%,$(@F)),$(UNIT_WRAP_INSIDE))
UNIT_LDFLAGS = $(LDFLAGS) $(UNIT_WRAP:%=-Wl,--wrap=%)

$(UNIT_BIN): %: %.o $(B)/libcuscope.a
	$(CC) $(CFLAGS) $(UNIT_LDFLAGS) -o $@ $(filter %.o,$^) $(B)/libcuscope.a -lcmocka $(LIBS)

# Sums of parts of trace files are checked here, as no fuzzer would find one: that object is built a second time.
UNIT_EXACT := $(B)/fuzz/exact/src/trace/chunk.o

$(B)/fuzz/exact/%.o: %.c Makefile tests/fuzz/module.mk
	@mkdir -p $(@D)
	$(CLANG) $(filter-out -DFUZZING,$(FUZZ_CFLAGS)) -c -o $@ $<

$(UNIT_SANITIZED): $(B)/fuzz/unit/%: $(B)/fuzz/obj/tests/unit/%.o $(UNIT_EXACT) $(B)/fuzz/libfuzzed.a
	@mkdir -p $(@D)
	$(CLANG) $(FUZZ_FLAGS) $(FUZZ_LD) $(UNIT_LDFLAGS) -o $@ $(filter %.o,$^) $(B)/fuzz/libfuzzed.a -lcmocka $(LIBS)

# What some need beside the library
$(addprefix $(B)/tests/unit/,test_scan test_option): $(addprefix $(B)/src/cli/,option.o completion.o completion_values.o)
$(B)/tests/unit/test_entry_run: $(B)/tests/unit/entry_run.o
$(B)/fuzz/unit/test_entry_run: $(B)/fuzz/obj/tests/unit/entry_run.o
$(addprefix $(B)/tests/unit/,test_process_identities test_process_pod): $(B)/tests/unit/made_proc.o
$(addprefix $(B)/fuzz/unit/,test_process_identities test_process_pod): $(B)/fuzz/obj/tests/unit/made_proc.o

# These load the simulated NVML
$(addprefix $(B)/tests/unit/,test_gpu_state test_gpu_sampler) $(addprefix $(B)/fuzz/unit/,test_gpu_state test_gpu_sampler): | \
		$(B)/simnvml/libnvidia-ml.so.1

# This one the simulated CUPTI
$(addprefix $(B)/,tests/unit/test_gpu_busy fuzz/unit/test_gpu_busy): | $(SIM_LIBS)

unit: $(UNIT_BIN)
	tests/unit/run.sh $(UNIT_BIN)

# They mostly wait: for the time of samples, of pages, of limits.
unit unit-sanitized: export WAITING := test_gpu_busy test_gpu_state test_gpu_sampler test_helper

unit-sanitized: $(UNIT_SANITIZED)
	tests/unit/run.sh $(UNIT_SANITIZED)

.PHONY: unit unit-sanitized

test-unit: unit
test-sanitize: unit-sanitized

.PHONY: test-unit test-sanitize
