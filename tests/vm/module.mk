# SPDX-License-Identifier: MIT
# The smoke trace on kernels other than this one's, see tests/vm/run.

VM_PROGRAMS = cuscope $(addprefix programs/,threads errors capture fork exec dlopen loop memory frames frames-static sleeper)
VM_FILES    = tests/vm/ladder $(VM_PROGRAMS) simcuda/push/libcuda.so.1 simcuda/libcudart.so.13
VM_SCRIPTS  = tests/vm/make-initramfs tests/vm/init tests/vm/smoke $(wildcard tests/integration/*.py tests/schema/*.py)

test-vm: $(B)/vm/initramfs
	@tests/vm/run $(B) $< $(VM_KERNELS)

$(B)/vm/initramfs: $(VM_FILES:%=$(B)/%) $(VM_SCRIPTS)
	@mkdir -p $(@D)
	tests/vm/make-initramfs $@ $(B) $(VM_FILES)

$(B)/tests/vm/ladder: $(B)/tests/vm/ladder.o $(B)/libcuscope.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

.PHONY: test-vm
