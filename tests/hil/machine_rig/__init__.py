"""The kind of rig `qemu`: a machine in the guest, with its plant beside it on emulated buses and lines."""
