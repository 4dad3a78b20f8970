// nacre: kernel namespaces
// policy: standard
// input: 272
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	long number;

	return scanf("%ld", &number) == 1 && syscall(number, 0x10000000) == 0;
}
