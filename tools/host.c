// SPDX-License-Identifier: MIT
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/kvm.h>

#include <swiftgic.h>

#include "host.h"
#include "swiftgic.h"
#include "vm.h"

static int __attribute__((format(printf, 3, 4)))
lacking(struct probe *probe, int status, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(probe->advice, sizeof(probe->advice), fmt, ap);
	va_end(ap);
	return status;
}

static int no_kvm(struct probe *probe, int err)
{
	switch (err) {
	case ENOENT:
	case ENODEV:
	case ENXIO:
		return lacking(
			probe, EXIT_CANNOT,
			"There is no KVM: its kernel has to be started at EL2 (in a VM: with nested\n"
			"virtualisation) and built with CONFIG_KVM. `dmesg | grep -i kvm` says more.");
	case EACCES:
	case EPERM:
		return lacking(
			probe, EXIT_CANNOT,
			"No permission to open /dev/kvm: be root, or in the group that it belongs to.");
	default:
		return lacking(probe, EXIT_CANNOT, "/dev/kvm: %s",
			       strerror(err));
	}
}

/* KVM_CREATE_DEVICE_TEST creates nothing. */
static bool has_device(int vm_fd, uint32_t type)
{
	struct kvm_create_device device = {
		.type = type,
		.flags = KVM_CREATE_DEVICE_TEST,
	};

	return !ioctl(vm_fd, KVM_CREATE_DEVICE, &device);
}

static int probe_devices(struct probe *probe, int kvm_fd)
{
	int vm_fd = ioctl(kvm_fd, KVM_CREATE_VM, 0);

	if (vm_fd < 0)
		return lacking(probe, EXIT_CANNOT, "KVM creates no VM: %s",
			       strerror(errno));
	probe->kvm = true;
	probe->max_vcpus = ioctl(vm_fd, KVM_CHECK_EXTENSION, KVM_CAP_MAX_VCPUS);
	probe->vgicv3 = has_device(vm_fd, KVM_DEV_TYPE_ARM_VGIC_V3);
	probe->its = has_device(vm_fd, KVM_DEV_TYPE_ARM_VGIC_ITS);
	close(vm_fd);
	if (probe->vgicv3)
		return EXIT_OK;
	return lacking(
		probe, EXIT_CANNOT,
		"KVM emulates no GICv3 here: the host's own interrupt controller has to be a\n"
		"GICv3 or later.");
}

static int probe_batch(struct probe *probe)
{
	const struct vm_config vm_config = { .nr_vcpus = 1, .nr_irqs = 64 };
	struct sgic_device_config config = {
		.size = sizeof(config),
		.nr_vcpus = 1,
	};
	struct sgic_device *device;
	struct sgic_error error;
	struct vm vm;
	int ret;

	ret = vm_create(&vm, &vm_config);
	if (ret)
		return lacking(probe, EXIT_CANNOT, "No VM with a GICv3: %s",
			       vm.err);
	config.gic_fd = vm.gic_fd;
	config.mpidrs = vm.mpidrs;
	ret = sgic_device_new(&config, &device, &error);
	if (!ret) {
		probe->batch = sgic_device_batch_limit(device);
		sgic_device_free(device);
	}
	vm_destroy(&vm);

	if (ret)
		return lacking(probe, EXIT_CANNOT, "%s", error.message);
	if (probe->batch)
		return EXIT_OK;
	return lacking(
		probe, EXIT_FAILED,
		"The kernel has no batch call: VGIC state moves one register a call. kernel/apply\n"
		"adds it to the source of the kernel.");
}

int probe_host(struct probe *probe)
{
	int kvm_fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	int ret;

	if (kvm_fd < 0)
		return no_kvm(probe, errno);
	ret = probe_devices(probe, kvm_fd);
	close(kvm_fd);
	return ret ? ret : probe_batch(probe);
}
