// nacre: allowed low
#include <stdio.h>
#include <string.h>

/* system("rm -rf /") in a comment is no call */
int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		printf("%s has %zu bytes\n", argv[i], strlen(argv[i]));
	return 0;
}
