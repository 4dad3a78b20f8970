// nacre: refused file.destroy process.run
package main

import (
	"os/exec"
)

func main() {
	exec.Command("rm", "-rf", "/").Run()
}
