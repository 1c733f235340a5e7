"""The kind of rig `qemu`: a machine in the guest, with its plant connected by emulated buses and lines."""
