/*
 * KVM: the probe runs a loop of guest code. A /dev/kvm that opens, makes a VM and a CPU proves
 * nothing: some hosts only emulate, too slowly or not completely, and no stock kernel boots there.
 * So a vector instruction, which such emulators lack, is run 200,000 times within 50 ms of CPU
 * time.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/time.h>

#include "base/fd.h"
#include "kernel/probe.h"

#if defined(__x86_64__)

#include <linux/kvm.h>
#include <stdint.h>
#include <string.h>

/* The guest's memory: three page tables and the code, one page each. */
#define GUEST_SIZE 0x10000U
#define PML4_AT 0x1000U
#define PDPT_AT 0x2000U
#define PD_AT 0x3000U
#define CODE_AT 0x4000U

#define PAGE_PRESENT_WRITABLE 3U
#define PAGE_LARGE 0x80U

#define DONE_PORT 0x80

static const unsigned char guest_code[] = {
	0xb9, 0x40, 0x0d, 0x03, 0x00, /*       mov ecx, 200000 */
	0x66, 0x0f, 0xfe, 0xc1,	      /* loop: paddd xmm0, xmm1 */
	0xff, 0xc9,		      /*       dec ecx */
	0x75, 0xf8,		      /*       jnz loop */
	0xe6, DONE_PORT,	      /*       out DONE_PORT, al */
	0xf4,			      /*       hlt */
};

static void put_entry(unsigned char *memory, size_t at, uint64_t entry)
{
	memcpy(memory + at, &entry, sizeof(entry));
}

/* Code in ring 0 of long mode, the first 2 MiB mapped one to one. */
static int set_registers(int cpu_fd)
{
	struct kvm_segment code = {.limit = 0xffffffff,
		.selector = 8,
		.present = 1,
		.type = 11,
		.s = 1,
		.l = 1,
		.g = 1};
	struct kvm_segment data = code;
	struct kvm_regs registers = {.rip = CODE_AT, .rflags = 2};
	struct kvm_sregs special;

	if (ioctl(cpu_fd, KVM_GET_SREGS, &special) < 0)
		return -errno;
	data.type = 3;
	data.selector = 16;
	data.l = 0;
	data.db = 1;
	special.cs = code;
	special.ds = special.es = special.fs = special.gs = special.ss = data;
	special.cr3 = PML4_AT;
	special.cr4 = 0x620;	  /* PAE, OSFXSR, OSXMMEXCPT: long mode with SSE */
	special.cr0 = 0x80050033; /* PG, AM, WP, NE, ET, MP, PE */
	special.efer = 0x500;	  /* LME, LMA */
	if (ioctl(cpu_fd, KVM_SET_SREGS, &special) < 0 ||
		ioctl(cpu_fd, KVM_SET_REGS, &registers) < 0)
		return -errno;
	return 0;
}

static int load_guest(int vm_fd)
{
	struct kvm_userspace_memory_region region = {.memory_size = GUEST_SIZE};
	unsigned char *memory =
		mmap(NULL, GUEST_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return -errno;
	put_entry(memory, PML4_AT, PDPT_AT | PAGE_PRESENT_WRITABLE);
	put_entry(memory, PDPT_AT, PD_AT | PAGE_PRESENT_WRITABLE);
	put_entry(memory, PD_AT, PAGE_LARGE | PAGE_PRESENT_WRITABLE);
	memcpy(memory + CODE_AT, guest_code, sizeof(guest_code));
	region.userspace_addr = (uintptr_t)memory;
	return ioctl(vm_fd, KVM_SET_USER_MEMORY_REGION, &region) < 0 ? -errno : 0;
}

/* Runs the guest; the timer's signal ends this process if it takes too long. */
static void run_guest(struct nc_probes *probes, int kvm_fd, int cpu_fd)
{
	struct itimerval limit = {.it_value = {.tv_usec = 50000}};
	int size = ioctl(kvm_fd, KVM_GET_VCPU_MMAP_SIZE, 0);
	struct kvm_run *run =
		size < 0 ? MAP_FAILED
			 : mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, cpu_fd, 0);

	if (run == MAP_FAILED) {
		nc_probe_fail(probes, NC_PROBE_KVM, -errno, "no access to the virtual CPU");
		return;
	}
	nc_probe_fail(probes, NC_PROBE_KVM, 0, "KVM only emulates here: guest code ran too slowly");
	if (setitimer(ITIMER_PROF, &limit, NULL) < 0 || ioctl(cpu_fd, KVM_RUN, 0) < 0)
		nc_probe_fail(probes, NC_PROBE_KVM, -errno, "running a guest");
	else if (run->exit_reason == KVM_EXIT_IO && run->io.port == DONE_PORT)
		nc_probe_pass(probes, NC_PROBE_KVM, 0, "a guest's instructions ran");
	else
		nc_probe_fail(probes, NC_PROBE_KVM, 0,
			"KVM only emulates here: it opens and makes a VM, but an ordinary guest "
			"instruction failed (exit reason %u)",
			run->exit_reason);
}

void nc_probe_kvm(struct nc_probes *probes)
{
	cleanup_close int kvm_fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	cleanup_close int vm_fd = -EBADF;
	cleanup_close int cpu_fd = -EBADF;
	int r;

	if (kvm_fd < 0) {
		nc_probe_fail(probes, NC_PROBE_KVM, -errno, "opening /dev/kvm");
		return;
	}
	vm_fd = ioctl(kvm_fd, KVM_CREATE_VM, 0);
	r = vm_fd < 0 ? -errno : load_guest(vm_fd);
	if (r == 0) {
		cpu_fd = ioctl(vm_fd, KVM_CREATE_VCPU, 0);
		r = cpu_fd < 0 ? -errno : set_registers(cpu_fd);
	}
	if (r < 0)
		nc_probe_fail(probes, NC_PROBE_KVM, r, "making a virtual machine");
	else
		run_guest(probes, kvm_fd, cpu_fd);
}

#else

void nc_probe_kvm(struct nc_probes *probes)
{
	nc_probe_fail(probes, NC_PROBE_KVM, 0, "no guest code to try on this processor type");
}

#endif
