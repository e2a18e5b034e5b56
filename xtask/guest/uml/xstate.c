/* xstate.c - lets the 6.1 kernel of Debian's user-mode-linux run on processors with AMX.
 *
 * User-mode Linux keeps 2696 bytes of vector registers for a process and writes them back with
 * PTRACE_SETREGSET(NT_X86_XSTATE). A host whose processor has AMX (Sapphire Rapids and newer) wants its whole
 * save area there, 11008 bytes and more, answers EFAULT to less, and the guest dies at its first process with
 * "ptrace set fp regs failed, errno = 14". This wraps ptrace(2): the bytes that user-mode Linux does not know are
 * sent as zero, which is what they are, as nobody in the guest asked for the use of AMX.
 *
 * umlrun builds it once, and preloads it only where the processor has AMX.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

/* The size of the host's save area, from its answer to the first read. */
static size_t host_size;
static char area[1 << 16];

static long raw(long request, pid_t pid, void *addr, void *data)
{
	return syscall(SYS_ptrace, request, pid, addr, data);
}

long ptrace(enum __ptrace_request request, ...)
{
	va_list args;
	va_start(args, request);
	pid_t pid = va_arg(args, pid_t);
	void *addr = va_arg(args, void *);
	void *data = va_arg(args, void *);
	va_end(args);

	struct iovec *want = data;
	if (request == PTRACE_SETREGSET && (long)addr == NT_X86_XSTATE) {
		struct iovec whole = { area, sizeof area };
		if (host_size == 0 && raw(PTRACE_GETREGSET, pid, addr, &whole) == 0)
			host_size = whole.iov_len;
		if (host_size > want->iov_len) {
			memcpy(area, want->iov_base, want->iov_len);
			memset(area + want->iov_len, 0, host_size - want->iov_len);
			whole = (struct iovec){ area, host_size };
			return raw(request, pid, addr, &whole);
		}
	}
	/* The C library returns the word that a PEEK reads; the system call stores it. */
	if (request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA || request == PTRACE_PEEKUSER) {
		long word;
		long answer = raw(request, pid, addr, &word);
		return answer < 0 ? answer : word;
	}
	return raw(request, pid, addr, data);
}
