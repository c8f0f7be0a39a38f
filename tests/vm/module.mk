# SPDX-License-Identifier: MIT
# The smoke trace on kernels other than this one's, see tests/vm/run.

VM_FILES = tests/vm/ladder

test-vm: $(B)/vm/initramfs
	@tests/vm/run $(B) $< $(VM_KERNELS)

$(B)/vm/initramfs: $(VM_FILES:%=$(B)/%) tests/vm/make-initramfs tests/vm/init tests/vm/smoke
	@mkdir -p $(@D)
	tests/vm/make-initramfs $@ $(B) $(VM_FILES)

$(B)/tests/vm/ladder: $(B)/tests/vm/ladder.o $(B)/libcuscope.a
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

.PHONY: test-vm
