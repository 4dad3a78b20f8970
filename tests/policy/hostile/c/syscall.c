// nacre: found native.syscall
#include <unistd.h>

int main(void)
{
	return syscall(59, "/bin/sh", 0, 0);
}
