# SPDX-License-Identifier: MIT
# The smoke trace on kernels other than this one's, see tests/vm/run.

VM_PROGRAMS = cuscope $(addprefix programs/,threads errors capture fork exec dlopen loop memory frames frames-static sleeper hooked libhooked.so.1)
VM_FILES    = tests/vm/ladder tests/vm/exercise $(VM_PROGRAMS) simcuda/push/libcuda.so.1 simcuda/libcudart.so.13
VM_SCRIPTS  = tests/vm/make-initramfs tests/vm/init tests/vm/smoke $(wildcard tests/vm/*.py tests/integration/*.py tests/schema/*.py)

# make stress-vm: all programs on each rung of each kernel, and all tests on its best
stress-vm: prepare-vm
	LADDER_ALL=1 VM_TIMEOUT=1200 tests/vm/run $(B) $(B)/vm/initramfs $(VM_KERNELS)

prepare-vm: $(B)/vm/initramfs $(B)/programs/ownroot

test-vm: prepare-vm
	@tests/vm/run $(B) $(B)/vm/initramfs $(VM_KERNELS)

$(B)/vm/initramfs: $(VM_FILES:%=$(B)/%) $(VM_SCRIPTS)
	@mkdir -p $(@D)
	tests/vm/make-initramfs $@ $(B) $(VM_FILES)

$(B)/tests/vm/ladder: $(B)/tests/vm/ladder.o $(B)/libcuscope.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(B)/tests/vm/exercise: tests/vm/exercise.c tests/vm/driver/standin.h
	@mkdir -p $(@D)
	$(CC) $(filter-out -Isrc,$(CFLAGS)) -I. -o $@ $<

.PHONY: prepare-vm test-vm stress-vm
