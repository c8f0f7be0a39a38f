# SPDX-License-Identifier: MIT
# The smoke trace on kernels other than this one's, see tests/vm/run.

VM_FILES = cuscope
VM_PARTS = $(VM_FILES:%=$(B)/%)

test-vm: $(B)/vm/initramfs
	@tests/vm/run $(B) $< $(VM_KERNELS)

$(B)/vm/initramfs: $(VM_PARTS) tests/vm/make-initramfs tests/vm/init tests/vm/smoke
	@mkdir -p $(@D)
	tests/vm/make-initramfs $@ $(B) $(VM_FILES)

.PHONY: test-vm
