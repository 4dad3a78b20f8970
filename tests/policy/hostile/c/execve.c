// nacre: found process.run
#include <unistd.h>

int main(void)
{
	execl("/bin/sh", "sh", "-c", "id", (char *)0);
}
