// nacre: found process.trace
#include <sys/ptrace.h>

int main(void)
{
	return ptrace(16, 1, 0, 0);
}
